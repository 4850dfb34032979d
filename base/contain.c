/*
 * The child leaves by _exit(), so that neither buffers of the parent are written twice nor its handlers
 * run. Only when `work` has returned does it write a mark behind the result, the time at which it was
 * started: code that calls exit(0) in the middle of its work has no result. It dies with the parent
 * (PR_SET_PDEATHSIG).
 *
 * Time is kept by the parent, who waits for the pipe with poll() and kills; RLIMIT_CPU would not see a
 * child that sleeps. Memory is kept by RLIMIT_AS.
 */
#include "base/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/progress.h"

enum { CHUNK_BYTES = 65536 };

struct contain_sink {
    int file;
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool limits_memory = false;
#else
static const bool limits_memory = true;
#endif

/* --- the child ------------------------------------------------------------------------------- */

void contain_write(struct contain_sink *sink, const void *data, size_t length)
{
    const char *next = data;
    while (length > 0) {
        ssize_t written = write(sink->file, next, length);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) _exit(126); /* nobody reads any more */
        next += written;
        length -= (size_t)written;
    }
}

/* Bytes of address space in use now. */
static uint64_t address_space(void)
{
    unsigned long long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file) return 0;
    if (fscanf(file, "%llu", &pages) != 1) pages = 0;
    fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static _Noreturn void be_child(contain_work work, void *context, const struct contain_limits *limits,
                               pid_t parent, double mark, int file)
{
    struct contain_sink sink = {file};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    /* a crash is to be told by the parent, not by handlers or core files */
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) signal(crashes[i], SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (limits_memory && limits->memory_bytes > 0) {
        uint64_t most = address_space() + limits->memory_bytes;
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
    }
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) _exit(126);
    work(context, &sink);
    contain_write(&sink, &mark, sizeof mark);
    _exit(0);
}

/* --- the guard ------------------------------------------------------------------------------- */

static volatile sig_atomic_t asked_to_end;

static void on_term(int number)
{
    (void)number;
    asked_to_end = 1;
}

/* Only calls that are safe after fork(). */
static void kill_children(pid_t self)
{
    char name[64], text[4096];
    snprintf(name, sizeof name, "/proc/%ld/task/%ld/children", (long)self, (long)self);
    const int file = open(name, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, sizeof text - 1) : 0;
    if (file >= 0) close(file);
    text[length > 0 ? length : 0] = '\0';
    for (char *next = text; *next;) {
        char *end;
        const long process = strtol(next, &end, 10);
        if (end == next) break;
        if (process > 1) kill((pid_t)process, SIGKILL);
        next = end + strspn(end, " \n");
    }
}

/* Waits for the child, ends what is left, tells the child's wait status. */
static _Noreturn void be_guard(pid_t child, int told)
{
    const pid_t self = getpid();
    int how = 0, other = 0;
    pid_t ended = 0;
    while (!asked_to_end && (ended = waitpid(child, &how, 0)) < 0 && errno == EINTR) {}
    if (ended != child) kill(child, SIGKILL);
    for (;;) {
        kill_children(self);
        const pid_t any = waitpid(-1, &other, 0);
        if (any == child) how = other;
        if (any < 0 && errno != EINTR) break;
    }
    if (write(told, &how, sizeof how) != (ssize_t)sizeof how) _exit(126);
    _exit(0);
}

/* In the guard's process. */
static _Noreturn void stand_between(contain_work work, void *context, const struct contain_limits *limits, pid_t parent,
                                    double mark, int file, int told)
{
    const struct sigaction action = {.sa_handler = on_term};
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (getppid() != parent) _exit(126);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGINT, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    const pid_t guard = getpid(), child = fork();
    if (child == 0) {
        close(told);
        be_child(work, context, limits, guard, mark, file);
    }
    close(file);
    if (child < 0) _exit(126);
    be_guard(child, told);
}

/* --- the parent ------------------------------------------------------------------------------ */

struct received {
    char *bytes;
    size_t length, capacity;
};

/* Until the child has closed its end (true) or the time is up. */
static bool receive(int file, double until_s, size_t length_max, struct received *r, struct error *err)
{
    for (;;) {
        double left_s = until_s - clock_s();
        struct pollfd wait = {.fd = file, .events = POLLIN};
        if (left_s <= 0) return false;
        int ready = poll(&wait, 1, left_s > 1000 ? 1000000 : (int)(left_s * 1000) + 1);
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) continue;
        if (r->capacity - r->length < CHUNK_BYTES) {
            size_t capacity = 2 * r->capacity + CHUNK_BYTES;
            char *bytes = alloc_resize(r->bytes, capacity);
            if (!bytes) {
                error_memory(err, "what a child process says", capacity);
                return false;
            }
            r->bytes = bytes;
            r->capacity = capacity;
        }
        ssize_t got = read(file, r->bytes + r->length, CHUNK_BYTES);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return got == 0;
        r->length += (size_t)got;
        if (r->length > length_max + sizeof(double)) { /* the mark */
            error_set(err, STATUS_LIMIT, "a child process said more than %zu bytes", length_max);
            return false;
        }
    }
}

static bool wait_until(pid_t process, int *how, double until_s)
{
    pid_t ended;
    while ((ended = waitpid(process, how, WNOHANG)) == 0 && clock_s() < until_s) usleep(200);
    return ended == process;
}

/* The guard takes the child and all that it started along; one that was stopped is ended itself, and its child with it. */
static void end_guard(pid_t guard, int *how)
{
    static const double patience_s = 2;
    kill(guard, SIGTERM);
    if (wait_until(guard, how, clock_s() + patience_s)) return;
    kill(guard, SIGKILL);
    while (waitpid(guard, how, 0) < 0 && errno == EINTR) {}
}

enum status contain_run(contain_work work, void *context, const struct contain_limits *limits,
                        size_t length_max, void **result, size_t *length, struct contain_end *end,
                        struct error *err)
{
    int ends[2], told[2];
    struct received r = {0};
    *result = NULL;
    *length = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return error_set(err, STATUS_DEVICE, "cannot make a pipe to a child process");
    if (pipe2(told, O_CLOEXEC) != 0) {
        close(ends[0]);
        close(ends[1]);
        return error_set(err, STATUS_DEVICE, "cannot make a pipe to a child process");
    }
    double started_s = clock_s();
    pid_t parent = getpid(), guard = fork();
    if (guard == 0) {
        close(ends[0]);
        close(told[0]);
        stand_between(work, context, limits, parent, started_s, ends[1], told[1]);
    }
    close(ends[1]);
    close(told[1]);
    if (guard < 0) {
        close(ends[0]);
        close(told[0]);
        return error_set(err, STATUS_DEVICE, "cannot start a child process");
    }
    bool closed = receive(ends[0], started_s + limits->seconds, length_max, &r, err);
    close(ends[0]);
    /* closed and not gone: whoever closes the pipe and goes on gets what is left of the time */
    int guard_status = 0, wait_status = 0;
    bool in_time = closed && wait_until(guard, &guard_status, started_s + limits->seconds);
    if (!in_time) end_guard(guard, &guard_status);
    bool is_told = read(told[0], &wait_status, sizeof wait_status) == (ssize_t)sizeof wait_status;
    close(told[0]);
    *end = (struct contain_end){.in_time = in_time, .seconds = clock_s() - started_s};
    if (in_time && !is_told) {
        wait_status = guard_status;
        end->killed_parent = WIFSIGNALED(guard_status);
    }
    if (in_time && WIFSIGNALED(wait_status)) end->signal = WTERMSIG(wait_status);
    if (in_time && WIFEXITED(wait_status)) end->exit_code = WEXITSTATUS(wait_status);
    bool complete =
        in_time && is_told && WIFEXITED(wait_status) && end->exit_code == 0 && r.length >= sizeof started_s &&
        memcmp(r.bytes + r.length - sizeof started_s, &started_s, sizeof started_s) == 0;
    if (complete && !err->status) {
        *result = r.bytes;
        *length = r.length - sizeof started_s;
    } else {
        free(r.bytes);
    }
    return err->status;
}

const char *contain_text(const struct contain_end *end, const struct contain_limits *limits,
                         char text[CONTAIN_TEXT_BYTES])
{
    const char *name = end->signal ? sigabbrev_np(end->signal) : NULL;
    if (!end->in_time)
        snprintf(text, CONTAIN_TEXT_BYTES, "was not done within %.3g s", limits->seconds);
    else if (end->killed_parent)
        snprintf(text, CONTAIN_TEXT_BYTES, "killed its parent process (SIG%s)", name ? name : "?");
    else if (end->signal)
        snprintf(text, CONTAIN_TEXT_BYTES, "was ended by SIG%s (%s)", name ? name : "?",
                 strsignal(end->signal));
    else
        snprintf(text, CONTAIN_TEXT_BYTES, "ended the process with exit code %d", end->exit_code);
    return text;
}
