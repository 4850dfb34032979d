/*
 * The child leaves by _exit(), so that buffers of the parent are not written twice and handlers of the parent do not
 * run. Only when `work` has returned does the child write a mark after the result: the time at which it was started.
 * Code that calls exit(0) in the middle of its work therefore has no result.
 *
 *     this process  --  guard, a process group of its own  --  child  --  what the child starts
 *
 * SIGTERM tells the guard that this process has ended; SIGKILL ends the child when the guard ends (PR_SET_PDEATHSIG).
 * Processes that outlive the child become children of the guard (PR_SET_CHILD_SUBREAPER), which ends them. If the
 * guard itself is gone, this process ends the guard's group.
 *
 * The parent enforces the time limit: it waits for the pipe with poll() and kills the child. RLIMIT_CPU would miss a
 * child that sleeps. RLIMIT_AS enforces the memory limit.
 */
#include "base/process/contain.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/process/clock.h"

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
        if (written <= 0) _exit(126); /* the reader has closed the pipe */
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

/* The work of a child: `work`, then the mark; or `talk`. */
struct task {
    contain_work work;
    contain_talk talk; /* NULL: there is work */
    void *context;
    const struct contain_limits *limits;
    double mark;
    int file; /* the child's end */
};

static _Noreturn void be_child(const struct task *task, pid_t parent)
{
    struct contain_sink sink = {task->file};
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(126);
    /* the parent reports a crash, without handlers or core files */
    for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++) signal(crashes[i], SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    if (limits_memory && task->limits->memory_bytes > 0) {
        uint64_t most = address_space() + task->limits->memory_bytes;
        setrlimit(RLIMIT_AS, &(struct rlimit){most, most});
    }
    if (dup2(STDERR_FILENO, STDOUT_FILENO) < 0) _exit(126);
    if (task->talk) {
        task->talk(task->context, task->file);
        _exit(0);
    }
    task->work(task->context, &sink);
    contain_write(&sink, &task->mark, sizeof task->mark);
    _exit(0);
}

/* --- the guard ------------------------------------------------------------------------------- */

static volatile sig_atomic_t asked_to_end;

static void on_term(int number)
{
    (void)number;
    asked_to_end = 1;
}

/* Kills all children. Uses only calls that are safe after fork(). */
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

/* Waits for the child, ends its remaining processes, and writes the child's wait status. */
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

/* Runs in the guard's process. */
static _Noreturn void stand_between(const struct task *task, pid_t parent, int told)
{
    const struct sigaction action = {.sa_handler = on_term};
    sigset_t none;
    setpgid(0, 0);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGINT, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(126);
    const pid_t guard = getpid(), child = fork();
    if (child == 0) {
        close(told);
        be_child(task, guard);
    }
    close(task->file);
    if (child < 0) _exit(126);
    be_guard(child, told);
}

/* --- the parent ------------------------------------------------------------------------------ */

struct contain_received {
    char *bytes;
    size_t length, capacity;
};

/* Receives data until the child has closed its end or its guard has ended (returns true), or until the time is up. */
static bool receive(int file, int told, double until_s, size_t length_max, struct contain_received *r,
                    struct error *err)
{
    for (;;) {
        double left_s = until_s - clock_s();
        struct pollfd wait[2] = {{.fd = file, .events = POLLIN}, {.fd = told, .events = POLLIN}};
        if (left_s <= 0) return false;
        int ready = poll(wait, 2, left_s > 1000 ? 1000000 : (int)(left_s * 1000) + 1);
        if (ready < 0 && errno != EINTR) return false;
        if (ready <= 0) continue;
        if (!wait[0].revents) return true; /* a process that the child left has the pipe open */
        if (r->capacity - r->length < CHUNK_BYTES) {
            size_t capacity = 2 * r->capacity + CHUNK_BYTES;
            char *bytes = alloc_resize(r->bytes, capacity);
            if (!bytes) {
                error_memory(err, "the output of a child process", capacity);
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
            error_set(err, STATUS_LIMIT, "a child process wrote more than %zu bytes", length_max);
            return false;
        }
    }
}

struct guarded {
    pid_t guard;
    int told;
};

/* `task->file` is the child's end, `here` this process's, which no child needs. */
static enum status start_guard(const struct task *task, int here, struct guarded *out, struct error *err)
{
    int told[2];
    if (pipe2(told, O_CLOEXEC) != 0) return error_set(err, STATUS_DEVICE, "cannot make a pipe to a child process");
    const pid_t parent = getpid(), guard = fork();
    if (guard == 0) {
        close(here);
        close(told[0]);
        stand_between(task, parent, told[1]);
    }
    close(told[1]);
    if (guard < 0) {
        close(told[0]);
        return error_set(err, STATUS_DEVICE, "cannot start a child process");
    }
    setpgid(guard, guard); /* here too: whoever comes first */
    *out = (struct guarded){guard, told[0]};
    return STATUS_OK;
}

/* Returns true when the guard has ended. It is not reaped, so its process number is not reused. */
static bool wait_until(pid_t guard, double until_s)
{
    siginfo_t info = {.si_pid = 0};
    while (waitid(P_PID, (id_t)guard, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0 &&
           clock_s() < until_s)
        usleep(200);
    return info.si_pid == guard;
}

/* Ends the guard, which ends the child and all processes that the child started. If the guard was stopped or killed,
 * its process group is ended from here. */
static int end_guard(pid_t guard)
{
    static const double patience_s = 2;
    int how = 0;
    kill(guard, SIGTERM);
    (void)wait_until(guard, clock_s() + patience_s);
    kill(-guard, SIGKILL);
    while (waitpid(guard, &how, 0) < 0 && errno == EINTR) {}
    return how;
}

/* Ends the guard and all its processes. `in_time`: the guard had ended by then. */
static void finish(const struct guarded *guarded, bool in_time, struct contain_end *end)
{
    int how = 0;
    const int guard_how = end_guard(guarded->guard);
    const bool is_told = read(guarded->told, &how, sizeof how) == (ssize_t)sizeof how;
    close(guarded->told);
    end->in_time = in_time;
    if (!in_time) return;
    if (!is_told) how = guard_how;
    end->killed_parent = !is_told && WIFSIGNALED(guard_how);
    if (WIFSIGNALED(how)) end->signal = WTERMSIG(how);
    else if (WIFEXITED(how)) end->exit_code = is_told || WEXITSTATUS(how) > 0 ? WEXITSTATUS(how) : 126;
}

enum status contain_run(contain_work work, void *context, const struct contain_limits *limits,
                        size_t length_max, void **result, size_t *length, struct contain_end *end,
                        struct error *err)
{
    int ends[2];
    struct contain_received r = {0};
    struct guarded guarded;
    *result = NULL;
    *length = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return error_set(err, STATUS_DEVICE, "cannot make a pipe to a child process");
    const double started_s = clock_s();
    const struct task task = {.work = work, .context = context, .limits = limits, .mark = started_s, .file = ends[1]};
    const enum status status = start_guard(&task, ends[0], &guarded, err);
    close(ends[1]);
    const bool closed = status == STATUS_OK &&
                        receive(ends[0], guarded.told, started_s + limits->seconds, length_max, &r, err);
    close(ends[0]);
    if (status != STATUS_OK) return status;
    /* a guard that closed the pipe but still runs gets the remaining time */
    const bool in_time = closed && wait_until(guarded.guard, started_s + limits->seconds);
    *end = (struct contain_end){.in_time = false};
    finish(&guarded, in_time, end);
    end->seconds = clock_s() - started_s;
    const bool complete = in_time && !end->killed_parent && end->signal == 0 && end->exit_code == 0 &&
                          r.length >= sizeof started_s &&
                          memcmp(r.bytes + r.length - sizeof started_s, &started_s, sizeof started_s) == 0;
    if (complete && !err->status) {
        *result = r.bytes;
        *length = r.length - sizeof started_s;
    } else {
        free(r.bytes);
    }
    return err->status;
}

/* --- talking ---------------------------------------------------------------------------------- */

struct contain_process {
    struct guarded guarded;
    int socket;
    double started_s;
};

enum status contain_start(contain_talk talk, void *context, const struct contain_limits *limits,
                          struct contain_process **out, struct error *err)
{
    int ends[2];
    struct contain_process *const process = alloc_zeroed(1, sizeof *process);
    if (!process) return error_memory(err, "a child process", sizeof *process);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        free(process);
        return error_set(err, STATUS_DEVICE, "cannot make a socket to a child process");
    }
    const struct task task = {.talk = talk, .context = context, .limits = limits, .file = ends[1]};
    process->socket = ends[0];
    process->started_s = clock_s();
    const enum status status = start_guard(&task, ends[0], &process->guarded, err);
    close(ends[1]);
    if (status == STATUS_OK) {
        *out = process;
    } else {
        close(ends[0]);
        free(process);
    }
    return status;
}

int contain_socket(const struct contain_process *process) { return process->socket; }

void contain_stop(struct contain_process *process, bool by_itself, struct contain_end *end)
{
    static const double moment_s = 2;
    *end = (struct contain_end){.in_time = false};
    if (!process) return;
    close(process->socket);
    finish(&process->guarded, by_itself && wait_until(process->guarded.guard, clock_s() + moment_s), end);
    end->seconds = clock_s() - process->started_s;
    free(process);
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
