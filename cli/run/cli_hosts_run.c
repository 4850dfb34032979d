#include "cli/run/cli_hosts_run.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/children.h"
#include "base/process/clock.h"
#include "base/process/launch.h"
#include "base/size.h"
#include "base/try.h"

static const char executor[] = "spillway-exec"; /* on PATH of other hosts */

static const char *ssh_program(void)
{
    const char *const given = getenv("SPILLWAY_SSH");
    return given && *given ? given : "ssh";
}

/* Writes a word as a shell reads it back. */
static void quote(FILE *to, const char *word)
{
    fputc('\'', to);
    for (; *word; word++) {
        if (*word == '\'') fputs("'\\''", to);
        else fputc(*word, to);
    }
    fputc('\'', to);
}

/* --- probing -------------------------------------------------------------------------------------- */

enum { PROBE_WORDS = 9 };
enum { EXIT_NO_EXECUTOR = 3, EXIT_NO_PLAN = 4, EXIT_NOT_FOUND = 127, EXIT_SSH = 255 };

struct hosts_probe {
    const struct cli_hosts_start *start;
    uint32_t next;
    char *line;         /* what hosts carry out */
    const char **words; /* [host][PROBE_WORDS] */
};

static bool next_probe(void *context, struct children_start *out)
{
    struct hosts_probe *const probe = context;
    const struct cli_hosts *const hosts = probe->start->hosts;
    while (probe->next < hosts->count && hosts->hosts[probe->next].is_here) probe->next++;
    if (probe->next == hosts->count) return false;
    const char *const words[PROBE_WORDS] =
        {"/usr/bin/env", ssh_program(), "-o", "BatchMode=yes", "-o", "ConnectTimeout=8", hosts->hosts[probe->next].name,
         probe->line,    NULL};
    const char **const argv = probe->words + (size_t)probe->next * PROBE_WORDS;
    memcpy(argv, words, sizeof words);
    *out = (struct children_start){.argv = argv, .id = probe->next++};
    return true;
}

static enum status end_probe(void *context, const struct children_end *end, struct error *err)
{
    const struct hosts_probe *const probe = context;
    const char *const name = probe->start->hosts->hosts[end->id].name;
    char reason[300];
    if (end->signal == 0 && end->exit_code == 0) return STATUS_OK;
    children_reason(end->complaint, reason, sizeof reason);
    if (end->signal == 0 && end->exit_code == EXIT_NO_EXECUTOR)
        return error_set(err, STATUS_DEVICE, "host '%s' has no program '%s' on the PATH of its ssh commands", name,
                         executor);
    if (end->signal == 0 && end->exit_code == EXIT_NO_PLAN)
        return error_set(err, STATUS_BAD_INPUT,
                         "host '%s' cannot read the plan '%s' (expected at the same path on every host)", name,
                         probe->start->plan_path);
    if (end->signal == 0 && end->exit_code == EXIT_NOT_FOUND)
        return error_set(err, STATUS_DEVICE, "cannot start '%s' for host '%s': %s", ssh_program(), name, reason);
    if (end->signal == 0 && end->exit_code == EXIT_SSH)
        return error_set(err, STATUS_DEVICE, "host '%s' does not answer: %s", name, reason[0] ? reason : "ssh failed");
    return error_set(err, STATUS_DEVICE, "host '%s' was asked for the plan, and ssh ended with %s %d%s%s", name,
                     end->signal ? "signal" : "exit code", end->signal ? end->signal : end->exit_code,
                     reason[0] ? ": " : "", reason);
}

enum status cli_hosts_probe(const struct cli_hosts_start *start, struct error *err)
{
    struct hosts_probe probe = {.start = start};
    const struct children_client client = {.context = &probe, .next = next_probe, .ended = end_probe};
    size_t length;
    FILE *const to = open_memstream(&probe.line, &length);
    probe.words = alloc_zeroed(start->hosts->count, PROBE_WORDS * sizeof *probe.words);
    if (to) {
        fprintf(to, "command -v %s >/dev/null || exit %d", executor, EXIT_NO_EXECUTOR);
        if (!start->sends_plan) {
            fputs("; test -r ", to);
            quote(to, start->plan_path);
            fprintf(to, " || exit %d", EXIT_NO_PLAN);
        }
        fclose(to);
    }
    const enum status status = probe.line && probe.words ? children_run(&client, CLI_HOSTS_RANKS_MAX, err)
                                                         : error_memory(err, "the list of hosts", start->hosts->count);
    free(probe.words);
    free(probe.line);
    return status;
}

/* --- lines ---------------------------------------------------------------------------------------- */

enum { LINE_BYTES = 2000 };

struct hosts_rank {
    const char *host;
    uint32_t number;
    pid_t child;  /* 0: not started */
    int from;     /* its standard error; -1: ended */
    size_t held;  /* bytes of an unfinished line */
    char line[LINE_BYTES];
};

struct cli_hosts_run {
    uint32_t count; /* of ranks, without rank 0 */
    struct hosts_rank *ranks;
    struct pollfd *polled;
    pthread_t thread;
    atomic_bool quit, read_all; /* the thread shall end; it has ended */
};

static void print_line(struct hosts_rank *rank)
{
    if (rank->held > 0)
        fprintf(stderr, "%s%s (rank %" PRIu32 "): %.*s\n", isatty(STDERR_FILENO) ? "\r\033[K" : "", rank->host,
                rank->number, (int)rank->held, rank->line);
    rank->held = 0;
}

/* Reads what has come, and prints whole lines; longer ones than a buffer in pieces. */
static void read_lines(struct hosts_rank *rank)
{
    char text[4096];
    const ssize_t count = read(rank->from, text, sizeof text);
    if (count < 0 && (errno == EINTR || errno == EAGAIN)) return;
    for (ssize_t i = 0; i < count; i++) {
        if (text[i] == '\n' || text[i] == '\r' || rank->held == LINE_BYTES) print_line(rank);
        if (text[i] != '\n' && text[i] != '\r') rank->line[rank->held++] = text[i];
    }
    if (count > 0) return;
    print_line(rank);
    close(rank->from);
    rank->from = -1;
}

static void *pass_on(void *pointer)
{
    static const int wait_ms = 100;
    struct cli_hosts_run *const run = pointer;
    for (bool open = true; open && !atomic_load(&run->quit);) {
        open = false;
        for (uint32_t i = 0; i < run->count; i++) { /* poll() passes over -1 */
            run->polled[i] = (struct pollfd){.fd = run->ranks[i].from, .events = POLLIN};
            open |= run->ranks[i].from >= 0;
        }
        if (poll(run->polled, run->count, wait_ms) <= 0) continue;
        for (uint32_t i = 0; i < run->count; i++)
            if (run->polled[i].fd >= 0 && run->polled[i].revents) read_lines(&run->ranks[i]);
    }
    atomic_store(&run->read_all, true);
    return NULL;
}

/* --- starting -------------------------------------------------------------------------------------- */

/* Finds a free port of this machine. Returns 0 when there is none. */
static uint32_t free_port(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_ANY)};
    socklen_t length = sizeof at;
    const int made = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    uint32_t port = 0;
    if (made < 0) return 0;
    if (bind(made, (const struct sockaddr *)&at, sizeof at) == 0 &&
        getsockname(made, (struct sockaddr *)&at, &length) == 0)
        port = ntohs(at.sin_port);
    close(made);
    return port;
}

static void choose_place(const struct cli_hosts *hosts, char meet[CLI_MEET_BYTES])
{
    const char *const user_end = strrchr(hosts->hosts[0].name, '@');
    const char *name = user_end ? user_end + 1 : hosts->hosts[0].name;
    if (strcmp(name, "localhost") == 0) name = "127.0.0.1";
    const bool bracketed = strchr(name, ':') != NULL;
    snprintf(meet, CLI_MEET_BYTES, "%s%.255s%s:%" PRIu32, bracketed ? "[" : "", name, bracketed ? "]" : "",
             free_port());
}

/* Makes the line that a host carries out. The caller frees it; NULL: no memory. */
static char *remote_line(const struct cli_hosts_start *start, const char *const *words, uint32_t rank)
{
    char *line = NULL, *copy = NULL;
    size_t length;
    if (start->sends_plan && asprintf(&copy, "%s.%" PRIu32, start->plan_path, rank) < 0) return NULL;
    FILE *const to = open_memstream(&line, &length);
    if (to) {
        if (copy) { /* beside its name here, because paths in it are relative to its folder */
            fputs("umask 077; cat >", to);
            quote(to, copy);
            fputs(" || exit 3; ", to);
        }
        fputs(executor, to);
        for (size_t w = 1; words[w]; w++) {
            fputc(' ', to);
            quote(to, copy && !words[w + 1] ? copy : words[w]);
        }
        if (copy) {
            fputs("; ended=$?; rm -f ", to);
            quote(to, copy);
            fputs("; exit $ended", to);
        }
        fclose(to);
    }
    free(copy);
    return line;
}

static int start_here(const char *const *words, int complaints, pid_t *child)
{
    const struct launch how = {.argv = words, .death_signal = SIGTERM,
                               .streams = {LAUNCH_NOWHERE, LAUNCH_NOWHERE, complaints}};
    return launch_program(&how, child);
}

static int start_there(const struct cli_hosts_start *start, const struct cli_host *host, const char *const *words,
                       uint32_t rank, int complaints, pid_t *child)
{
    char *const line = remote_line(start, words, rank);
    if (!line) return ENOMEM;
    const int plan = start->sends_plan ? open(start->plan_path, O_RDONLY | O_CLOEXEC) : LAUNCH_NOWHERE;
    const char *const argv[] = {ssh_program(), "-o", "BatchMode=yes", "-o", "ConnectTimeout=8", host->name, line, NULL};
    const struct launch how = {.argv = argv, .by_name = true, .death_signal = SIGTERM,
                               .streams = {plan, LAUNCH_NOWHERE, complaints}};
    const int reason = start->sends_plan && plan < 0 ? errno : launch_program(&how, child);
    if (plan >= 0) close(plan);
    free(line);
    return reason;
}

static enum status start_rank(const struct cli_hosts_start *start, const char *meet, struct hosts_rank *rank,
                              struct error *err)
{
    const struct cli_host *const host = cli_host_of(start->hosts, rank->number);
    char number[16], count[16];
    const char *const own[] = {"--quiet", "--rank", number, "--ranks", count, "--meet", meet, "--", start->plan_path};
    const char **const words = alloc_zeroed(start->option_count + ARRAY_COUNT(own) + 3, sizeof *words);
    int ends[2];
    if (!words) return error_memory(err, "a command line", start->option_count * sizeof *words);
    snprintf(number, sizeof number, "%" PRIu32, rank->number);
    snprintf(count, sizeof count, "%" PRIu32, start->hosts->ranks);
    words[0] = start->program;
    words[1] = "run";
    for (size_t i = 0; i < start->option_count; i++) words[2 + i] = start->options[i];
    for (size_t i = 0; i < ARRAY_COUNT(own); i++) words[2 + start->option_count + i] = own[i];
    int reason = pipe2(ends, O_CLOEXEC) == 0 ? 0 : errno;
    if (reason == 0) {
        reason = host->is_here ? start_here(words, ends[1], &rank->child)
                               : start_there(start, host, words, rank->number, ends[1], &rank->child);
        close(ends[1]);
        rank->from = ends[0];
    }
    free(words);
    rank->host = host->name;
    return reason == 0 ? STATUS_OK : launch_fail(host->is_here ? start->program : ssh_program(), reason, err);
}

static void release(struct cli_hosts_run *run)
{
    for (uint32_t i = 0; run->ranks && i < run->count; i++) {
        if (run->ranks[i].child > 0) launch_kill(run->ranks[i].child);
        if (run->ranks[i].from >= 0) close(run->ranks[i].from);
    }
    free(run->ranks);
    free(run->polled);
    free(run);
}

enum status cli_hosts_begin(const struct cli_hosts_start *start, char meet[CLI_MEET_BYTES], struct cli_hosts_run **out,
                            struct error *err)
{
    struct cli_hosts_run *const run = alloc_zeroed(1, sizeof *run);
    if (!run) return error_memory(err, "ranks", sizeof *run);
    run->count = start->hosts->ranks - 1;
    run->ranks = alloc_zeroed(start->hosts->ranks, sizeof *run->ranks);
    run->polled = alloc_zeroed(start->hosts->ranks, sizeof *run->polled);
    enum status status = run->ranks && run->polled ? STATUS_OK
                                                   : error_memory(err, "ranks", sizeof *run->ranks * run->count);
    for (uint32_t i = 0; run->ranks && i < run->count; i++)
        run->ranks[i] = (struct hosts_rank){.number = i + 1, .from = -1};
    choose_place(start->hosts, meet);
    for (uint32_t i = 0; status == STATUS_OK && i < run->count; i++)
        status = start_rank(start, meet, &run->ranks[i], err);
    if (status == STATUS_OK) {
        const int failed = pthread_create(&run->thread, NULL, pass_on, run);
        if (failed) status = error_set(err, STATUS_DEVICE, "cannot start a thread: %s", strerror(failed));
    }
    if (status == STATUS_OK) *out = run;
    else release(run);
    return status;
}

void cli_hosts_end(struct cli_hosts_run *run)
{
    static const double grace_s = 10;
    const double until_s = clock_s() + grace_s;
    if (!run) return;
    for (uint32_t i = 0; i < run->count; i++) {
        struct launch_end end;
        struct error ignored = {0};
        if (launch_wait_until(run->ranks[i].child, until_s, &end, &ignored) == STATUS_OK && end.late)
            fprintf(stderr, "%s (rank %" PRIu32 "): did not end, and was killed\n", run->ranks[i].host,
                    run->ranks[i].number);
        run->ranks[i].child = 0;
    }
    const double read_until_s = clock_s() + 1; /* lines that are still in the pipes */
    while (!atomic_load(&run->read_all) && clock_s() < read_until_s)
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    atomic_store(&run->quit, true);
    pthread_join(run->thread, NULL);
    release(run);
}
