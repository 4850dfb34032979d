/*
 * How ranks meet.
 *
 *     rank 1 ... n-1   connect to rank 0, and say HELLO: number, version, plan, machine, and the port where they listen
 *     rank 0           has heard all of them, or has waited long enough: answers WELCOME with a table of all ranks, or
 *                      with the line that all ranks end with
 *     rank i           connects to ranks 1 ... i-1 at the ports of the table, and accepts those after it
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/ranks/meet_file.h"
#include "exec/ranks/ranks_state.h"
#include "exec/ranks/socket_io.h"

static const char MAGIC[8] = "spwrank";
static const double HELLO_S = 2;    /* for a connection to say HELLO */
static const double ANSWER_S = 2;   /* beyond the patience, for rank 0's answer */

struct hello {
    char magic[8], version[24]; /* these two stay where they are in all versions */
    uint32_t rank, count, port, unused;
    uint64_t plan;
    char machine[160], options[96], folder[160], name[RANKS_NAME_BYTES];
};

struct place {
    char host[SOCKET_HOST_BYTES], name[RANKS_NAME_BYTES];
    uint32_t port;
};

struct welcome {
    char magic[8];
    uint32_t fits, status; /* enum status, of all ranks */
    char line[480];        /* unless it fits */
};

/* A rank that meets the others. */
struct ranks_meeting {
    struct ranks *ranks;
    const struct ranks_options *options;
    struct place *places; /* by rank */
    struct hello hello;   /* of this rank */
    int listening;
    double until_s;
};

/* Reports what all ranks end with. */
static enum status refuse(const struct welcome *welcome, struct error *err)
{
    return error_set(err, welcome->status == STATUS_BAD_INPUT ? STATUS_BAD_INPUT : STATUS_DEVICE, "%s", welcome->line);
}

static void introduce(struct ranks_meeting *m)
{
    char host[64] = "";
    struct hello *const hello = &m->hello;
    if (gethostname(host, sizeof host - 1) != 0) snprintf(host, sizeof host, "?");
    memcpy(hello->magic, MAGIC, sizeof MAGIC);
    snprintf(hello->version, sizeof hello->version, "%s", SPILLWAY_VERSION);
    hello->rank = m->options->rank;
    hello->count = m->options->count;
    hello->plan = m->options->plan;
    snprintf(hello->machine, sizeof hello->machine, "%s", m->options->machine);
    snprintf(hello->options, sizeof hello->options, "%s", m->options->options);
    const char *const folder = m->options->folder ? m->options->folder : "";
    const size_t length = strlen(folder), kept = sizeof hello->folder - 1;
    snprintf(hello->folder, sizeof hello->folder, "%s", folder + (length > kept ? length - kept : 0));
    snprintf(hello->name, sizeof hello->name, "rank %" PRIu32 " (%s, process %ld)", hello->rank, host, (long)getpid());
}

/* --- rank 0 ----------------------------------------------------------------------------------- */

/* Returns the last part of a path that a line has room for. */
static const char *end_of(const char *path)
{
    static const size_t most = 90;
    const size_t length = strlen(path);
    return path + (length > most ? length - most : 0);
}

/* Compares a rank with rank 0. Returns false with the line for all ranks. */
static bool fits(const struct hello *own, const struct hello *other, char *line, size_t bytes)
{
    line[0] = '\0';
    if (memcmp(own->version, other->version, sizeof own->version) != 0)
        snprintf(line, bytes, "the ranks have different programs: %.100s version %.20s, %.100s version %.20s",
                 own->name, own->version, other->name, other->version);
    else if (own->count != other->count)
        snprintf(line, bytes,
                 "the ranks differ about their number: %.100s expects %" PRIu32 ", %.100s expects %" PRIu32, own->name,
                 own->count, other->name, other->count);
    else if (own->plan != other->plan)
        snprintf(line, bytes, "the ranks have different plans: %.100s has %016" PRIx64 ", %.100s has %016" PRIx64,
                 own->name, own->plan, other->name, other->plan);
    else if (strcmp(own->machine, other->machine) != 0)
        snprintf(line, bytes, "the ranks' machines compute different bits: %.100s has '%.90s', %.100s has '%.90s'",
                 own->name, own->machine, other->name, other->machine);
    else if (strcmp(own->options, other->options) != 0)
        snprintf(line, bytes, "the ranks have different options: %.100s has '%.90s', %.100s has '%.90s'", own->name,
                 own->options, other->name, other->options);
    else if (strcmp(own->folder, other->folder) != 0)
        snprintf(line, bytes,
                 "the ranks have different folders for checkpoints: %.100s has '%.90s', %.100s has '%.90s'", own->name,
                 end_of(own->folder), other->name, end_of(other->folder));
    return line[0] == '\0';
}

/* Takes a connection, unless it says nothing of use. */
static void admit(struct ranks_meeting *m, int socket, const char *host, struct welcome *welcome)
{
    struct ranks *const ranks = m->ranks;
    struct hello hello;
    if (!socket_read_all(socket, &hello, sizeof hello, clock_s() + HELLO_S) ||
        memcmp(hello.magic, MAGIC, sizeof MAGIC) != 0) {
        close(socket);
        return;
    }
    hello.version[sizeof hello.version - 1] = hello.machine[sizeof hello.machine - 1] = '\0';
    hello.options[sizeof hello.options - 1] = hello.folder[sizeof hello.folder - 1] = '\0';
    hello.name[sizeof hello.name - 1] = '\0';
    const bool in_range = hello.rank > 0 && hello.rank < ranks->count;
    welcome->fits = fits(&m->hello, &hello, welcome->line, sizeof welcome->line);
    if (welcome->fits && (!in_range || ranks->links[hello.rank].socket >= 0)) {
        welcome->fits = false;
        snprintf(welcome->line, sizeof welcome->line, "there are two of rank %" PRIu32 ": %.100s and %.100s",
                 hello.rank, in_range ? ranks->links[hello.rank].name : m->hello.name, hello.name);
    }
    if (!in_range || ranks->links[hello.rank].socket >= 0) { /* it is not in the table */
        (void)socket_write_all(socket, welcome, sizeof *welcome, clock_s() + HELLO_S);
        close(socket);
        return;
    }
    ranks->links[hello.rank].socket = socket;
    memcpy(ranks->links[hello.rank].name, hello.name, sizeof hello.name);
    struct place *const place = &m->places[hello.rank];
    memcpy(place->name, hello.name, sizeof place->name);
    memcpy(place->host, host, sizeof place->host);
    place->port = hello.port;
}

static uint32_t first_missing(const struct ranks *ranks)
{
    uint32_t rank = 1;
    while (rank < ranks->count && ranks->links[rank].socket >= 0) rank++;
    return rank;
}

static enum status gather_ranks(struct ranks_meeting *m, struct error *err)
{
    struct ranks *const ranks = m->ranks;
    struct welcome welcome = {.fits = true, .status = STATUS_BAD_INPUT};
    memcpy(welcome.magic, MAGIC, sizeof MAGIC);
    while (welcome.fits && first_missing(ranks) < ranks->count) {
        char host[SOCKET_HOST_BYTES] = "";
        const int socket = socket_accept(m->listening, m->until_s, host);
        if (socket >= 0) {
            admit(m, socket, host, &welcome);
        } else if (clock_s() >= m->until_s) {
            welcome.fits = false;
            welcome.status = STATUS_DEVICE;
            snprintf(welcome.line, sizeof welcome.line, "rank %" PRIu32 " of %" PRIu32 " has not come after %.3g s",
                     first_missing(ranks), ranks->count, m->options->patience_s);
        }
    }
    const double until_s = clock_s() + HELLO_S;
    for (uint32_t r = 1; r < ranks->count; r++) {
        if (ranks->links[r].socket < 0) continue;
        if (!socket_write_all(ranks->links[r].socket, &welcome, sizeof welcome, until_s) ||
            (welcome.fits &&
             !socket_write_all(ranks->links[r].socket, m->places, ranks->count * sizeof *m->places, until_s))) {
            if (welcome.fits)
                return error_set(err, STATUS_DEVICE, "%s ended before the run began", ranks->links[r].name);
        }
    }
    return welcome.fits ? STATUS_OK : refuse(&welcome, err);
}

static enum status meet_as_first(struct ranks_meeting *m, struct error *err)
{
    uint32_t port = 0;
    TRY(socket_listen(m->options->meet ? m->options->meet : "127.0.0.1:0", &m->listening, &port, err));
    if (!m->options->meet) TRY(meet_file_write(m->options->meet_file, port, err));
    snprintf(m->places[0].name, sizeof m->places[0].name, "%s", m->hello.name);
    const enum status status = gather_ranks(m, err);
    if (!m->options->meet) meet_file_remove(m->options->meet_file);
    return status;
}

/* --- others ------------------------------------------------------------------------------------- */

static enum status connect_to_first(struct ranks_meeting *m, struct error *err)
{
    int *const first = &m->ranks->links[0].socket;
    char address[128];
    if (m->options->meet) return socket_connect(m->options->meet, m->until_s, first, err);
    TRY(meet_file_await(m->options->meet_file, m->until_s, address, sizeof address, err));
    return socket_connect(address, m->until_s, first, err);
}

static enum status ask_first(struct ranks_meeting *m, struct error *err)
{
    const int first = m->ranks->links[0].socket;
    const double until_s = m->until_s + ANSWER_S;
    struct welcome welcome = {0};
    if (!socket_write_all(first, &m->hello, sizeof m->hello, until_s) ||
        !socket_read_all(first, &welcome, sizeof welcome, until_s) || memcmp(welcome.magic, MAGIC, sizeof MAGIC) != 0)
        return error_set(err, STATUS_DEVICE, "rank 0 at '%s' does not answer",
                         m->options->meet ? m->options->meet : m->options->meet_file);
    welcome.line[sizeof welcome.line - 1] = '\0';
    if (!welcome.fits) return refuse(&welcome, err);
    if (!socket_read_all(first, m->places, m->ranks->count * sizeof *m->places, until_s))
        return error_set(err, STATUS_DEVICE, "rank 0 ended before the run began");
    for (uint32_t r = 0; r < m->ranks->count; r++) {
        m->places[r].host[SOCKET_HOST_BYTES - 1] = m->places[r].name[RANKS_NAME_BYTES - 1] = '\0';
        memcpy(m->ranks->links[r].name, m->places[r].name, RANKS_NAME_BYTES);
    }
    return STATUS_OK;
}

static enum status connect_to_others(struct ranks_meeting *m, struct error *err)
{
    struct ranks *const ranks = m->ranks;
    const double until_s = m->until_s + ANSWER_S;
    for (uint32_t r = 1; r < ranks->own; r++) {
        char address[SOCKET_HOST_BYTES + 16];
        snprintf(address, sizeof address, "[%s]:%" PRIu32, m->places[r].host, m->places[r].port);
        TRY(socket_connect(address, until_s, &ranks->links[r].socket, err));
        if (!socket_write_all(ranks->links[r].socket, &m->hello, sizeof m->hello, until_s))
            return error_set(err, STATUS_DEVICE, "%s ended before the run began", m->places[r].name);
    }
    for (uint32_t left = ranks->count - 1 - ranks->own; left > 0;) {
        const int socket = socket_accept(m->listening, until_s, NULL);
        struct hello hello;
        if (socket < 0) return error_set(err, STATUS_DEVICE, "a rank after %s has not come", m->hello.name);
        if (!socket_read_all(socket, &hello, sizeof hello, clock_s() + HELLO_S) ||
            memcmp(hello.magic, MAGIC, sizeof MAGIC) != 0 || hello.rank <= ranks->own || hello.rank >= ranks->count ||
            ranks->links[hello.rank].socket >= 0) {
            close(socket);
            continue;
        }
        ranks->links[hello.rank].socket = socket;
        left--;
    }
    return STATUS_OK;
}

static enum status meet_as_other(struct ranks_meeting *m, struct error *err)
{
    TRY(connect_to_first(m, err));
    TRY(socket_listen_beside(m->ranks->links[0].socket, &m->listening, &m->hello.port, err));
    TRY(ask_first(m, err));
    return connect_to_others(m, err);
}

enum status ranks_meet(struct ranks *ranks, const struct ranks_options *options, struct error *err)
{
    struct ranks_meeting m = {.ranks = ranks, .options = options, .listening = -1,
                        .until_s = clock_s() + options->patience_s};
    m.places = alloc_zeroed(ranks->count, sizeof *m.places);
    if (!m.places) return error_memory(err, "the table of ranks", ranks->count * sizeof *m.places);
    introduce(&m);
    memcpy(ranks->links[ranks->own].name, m.hello.name, RANKS_NAME_BYTES);
    const enum status status = ranks->own == 0 ? meet_as_first(&m, err) : meet_as_other(&m, err);
    socket_close(&m.listening);
    free(m.places);
    return status;
}
