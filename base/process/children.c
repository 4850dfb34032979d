#include "base/process/children.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/launch.h"
#include "base/size.h"
#include "base/try.h"

enum { TICK_MS = 50, CHUNK_BYTES = 1 << 16, COMPLAINT_BYTES = 1 << 14 };
enum { OUTPUT, COMPLAINT, PIPE_COUNT }; /* a child's standard output and error */

struct children_text {
    char *bytes; /* NUL-terminated once there is any */
    size_t length, capacity;
};

struct children_child {
    pid_t pid; /* 0: this place is free */
    uint64_t id;
    int ends[PIPE_COUNT]; /* -1: closed */
    struct children_text texts[PIPE_COUNT];
};

struct children {
    const struct children_client *client;
    struct children_child *places;
    struct pollfd *polled; /* PIPE_COUNT a place */
    uint32_t width, running;
};

static volatile sig_atomic_t stopped;

static void on_stop(int number)
{
    (void)number;
    stopped = 1;
}

/* --- starting -------------------------------------------------------------------------------- */

static void close_both(const int ends[2])
{
    close(ends[0]);
    close(ends[1]);
}

static enum status start(struct children_child *child, const struct children_start *what, struct error *err)
{
    const char *program = what->argv[0];
    int pipes[PIPE_COUNT][2], made = 0;
    while (made < PIPE_COUNT && pipe2(pipes[made], O_CLOEXEC) == 0) made++;
    int reason = errno;
    if (made == PIPE_COUNT)
        reason = launch_program(&(struct launch){.argv = what->argv, .folder = what->folder, .death_signal = SIGKILL,
                                                 .streams = {LAUNCH_NOWHERE, pipes[OUTPUT][1], pipes[COMPLAINT][1]}},
                                &child->pid);
    if (reason != 0) {
        child->pid = 0;
        while (made > 0) close_both(pipes[--made]);
        return launch_fail(program, reason, err);
    }
    child->id = what->id;
    for (int p = 0; p < PIPE_COUNT; p++) {
        close(pipes[p][1]);
        child->ends[p] = pipes[p][0];
        child->texts[p].length = 0;
        fcntl(child->ends[p], F_SETFL, O_NONBLOCK);
    }
    return STATUS_OK;
}

static enum status fill(struct children *all, struct error *err)
{
    for (uint32_t c = 0; c < all->width; c++) {
        struct children_start what = {0};
        if (all->places[c].pid > 0) continue;
        if (!all->client->next(all->client->context, &what)) return STATUS_OK;
        TRY(start(&all->places[c], &what, err));
        all->running++;
    }
    return STATUS_OK;
}

/* --- hearing --------------------------------------------------------------------------------- */

static enum status make_room(struct children_text *text, struct error *err)
{
    if (text->capacity - text->length > CHUNK_BYTES) return STATUS_OK;
    size_t capacity = 2 * text->capacity + 2 * CHUNK_BYTES;
    char *bytes = alloc_resize(text->bytes, capacity);
    if (!bytes) return error_memory(err, "the output of a program", capacity);
    text->bytes = bytes;
    text->capacity = capacity;
    return STATUS_OK;
}

/* Keeps only the end of a complaint: a program reports the cause of its end last. */
static void forget_beginning(struct children_text *text)
{
    if (text->length <= COMPLAINT_BYTES) return;
    memmove(text->bytes, text->bytes + text->length - COMPLAINT_BYTES, COMPLAINT_BYTES);
    text->length = COMPLAINT_BYTES;
}

/* Reads the data that a pipe holds now. Closes a pipe that has ended. */
static enum status hear(struct children_child *child, int which, struct error *err)
{
    struct children_text *text = &child->texts[which];
    for (;;) {
        TRY(make_room(text, err));
        ssize_t length = read(child->ends[which], text->bytes + text->length, CHUNK_BYTES);
        if (length < 0 && errno == EINTR) continue;
        if (length < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return STATUS_OK;
        if (length <= 0) break;
        text->length += (size_t)length;
        if (which == COMPLAINT) forget_beginning(text);
        if (text->length > CHILDREN_OUTPUT_MAX)
            return error_set(err, STATUS_LIMIT, "a program prints too much (limit is %d bytes)", CHILDREN_OUTPUT_MAX);
    }
    close(child->ends[which]);
    child->ends[which] = -1;
    return STATUS_OK;
}

static enum status tell_end(struct children *all, struct children_child *child, struct error *err)
{
    struct launch_end how;
    (void)!launch_wait(child->pid, &how, err);
    child->pid = 0;
    all->running--;
    if (err->status) return err->status;
    for (int p = 0; p < PIPE_COUNT; p++) child->texts[p].bytes[child->texts[p].length] = '\0';
    struct children_text *complaint = &child->texts[COMPLAINT];
    if (complaint->length > 0 && complaint->bytes[complaint->length - 1] == '\n')
        complaint->bytes[complaint->length - 1] = '\0';
    const struct children_end end = {.id = child->id,
                                     .cpu_s = how.cpu_s,
                                     .exit_code = how.exit_code,
                                     .signal = how.signal,
                                     .output = child->texts[OUTPUT].bytes,
                                     .output_length = child->texts[OUTPUT].length,
                                     .complaint = complaint->bytes};
    return all->client->ended(all->client->context, &end, err);
}

static enum status wait_a_moment(struct children *all, struct error *err)
{
    nfds_t count = 0;
    for (uint32_t c = 0; c < all->width; c++)
        for (int p = 0; p < PIPE_COUNT; p++)
            if (all->places[c].pid > 0 && all->places[c].ends[p] >= 0)
                all->polled[count++] = (struct pollfd){.fd = all->places[c].ends[p], .events = POLLIN};
    if (poll(all->polled, count, TICK_MS) < 0 && errno != EINTR) return error_io(err, "cannot wait for a program");
    for (uint32_t c = 0; c < all->width; c++) {
        struct children_child *child = &all->places[c];
        if (child->pid == 0) continue;
        for (int p = 0; p < PIPE_COUNT; p++)
            if (child->ends[p] >= 0 && hear(child, p, err) != STATUS_OK) return err->status;
        if (child->ends[OUTPUT] < 0 && child->ends[COMPLAINT] < 0) TRY(tell_end(all, child, err));
    }
    return STATUS_OK;
}

/* --- the pool -------------------------------------------------------------------------------- */

static enum status run_all(struct children *all, struct error *err)
{
    for (;;) {
        TRY(fill(all, err));
        if (all->running == 0) return STATUS_OK;
        TRY(wait_a_moment(all, err));
        if (stopped) return error_set(err, STATUS_INTERRUPTED, "stopped");
        if (all->client->tick && all->client->tick(all->client->context, err) != STATUS_OK) return err->status;
    }
}

static void end_all(struct children *all)
{
    for (uint32_t c = 0; c < all->width; c++) {
        struct children_child *child = &all->places[c];
        if (child->pid > 0) {
            launch_kill(child->pid);
            for (int p = 0; p < PIPE_COUNT; p++)
                if (child->ends[p] >= 0) close(child->ends[p]);
        }
        for (int p = 0; p < PIPE_COUNT; p++) free(child->texts[p].bytes);
    }
}

enum status children_run(const struct children_client *client, uint32_t width, struct error *err)
{
    assert(width >= 1 && width <= CHILDREN_MAX);
    static const int signals[] = {SIGINT, SIGTERM};
    struct sigaction old[ARRAY_COUNT(signals)], action = {.sa_handler = on_stop};
    struct children all = {.client = client, .width = width};
    all.places = alloc_zeroed(width, sizeof *all.places);
    all.polled = alloc_zeroed(PIPE_COUNT * (size_t)width, sizeof *all.polled);
    enum status status = STATUS_OK;
    if (!all.places || !all.polled) {
        status = error_memory(err, "a pool of programs", width * sizeof *all.places);
        all.width = 0;
    }
    stopped = 0;
    for (size_t s = 0; s < ARRAY_COUNT(signals); s++) sigaction(signals[s], &action, &old[s]);
    if (status == STATUS_OK) status = run_all(&all, err);
    if (all.places) end_all(&all);
    for (size_t s = 0; s < ARRAY_COUNT(signals); s++) sigaction(signals[s], &old[s], NULL);
    free(all.places);
    free(all.polled);
    return status;
}

uint32_t children_cores(void)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return count < 1 ? 1 : count > CHILDREN_MAX ? CHILDREN_MAX : (uint32_t)count;
}

const char *children_reason(const char *complaint, char *buffer, size_t bytes)
{
    static const char head[] = "error: ";
    const size_t head_length = sizeof head - 1;
    const char *reason = NULL, *line = complaint;
    for (;; line = strchr(line, '\n') + 1) {
        if (strncmp(line, head, head_length) == 0) reason = line + head_length;
        if (!strchr(line, '\n')) break;
    }
    if (!reason) reason = line;
    snprintf(buffer, bytes, "%.*s", (int)strcspn(reason, "\n"), reason);
    return buffer;
}
