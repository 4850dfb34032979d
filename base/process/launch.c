/*
 * Programs are started by vfork(): fork() in a process with many answers in memory copies the tables of its pages for
 * each child. Between vfork() and exec the child uses the memory of this process, so it makes only system calls. A
 * pipe that closes by itself when exec succeeds carries errno when it does not.
 */
#include "base/process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/process/clock.h"

/* --- in the child ---------------------------------------------------------------------------- */

static bool set_streams(const int streams[3])
{
    int nowhere = -1;
    for (int s = 0; s < 3; s++)
        if (streams[s] == LAUNCH_NOWHERE && nowhere < 0 && (nowhere = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0)
            return false;
    for (int s = 0; s < 3; s++) {
        const int from = streams[s] == LAUNCH_NOWHERE ? nowhere : streams[s];
        if (from >= 0 && dup2(from, s) < 0) return false;
    }
    return true;
}

/* Makes only calls that are safe after vfork(). */
static bool prepare(const struct launch *how, pid_t parent)
{
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, how->death_signal);
    signal(SIGINT, how->ignores_interrupt ? SIG_IGN : SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    signal(SIGTSTP, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    if (getppid() != parent) _exit(127); /* the parent ended before the call of prctl() */
    return (!how->folder || chdir(how->folder) == 0) && set_streams(how->streams);
}

static _Noreturn void become(const struct launch *how, pid_t parent, int report)
{
    char *const *argv = (char *const *)how->argv; /* exec changes nothing in argv; its prototype is older than const */
    if (prepare(how, parent)) how->by_name ? execvp(argv[0], argv) : execv(argv[0], argv);
    const int reason = errno;
    if (write(report, &reason, sizeof reason) < 0) _exit(126);
    _exit(127);
}

/* --- starting -------------------------------------------------------------------------------- */

static pid_t begin(const struct launch *how, int report)
{
    const pid_t parent = getpid();
    const pid_t pid = vfork();
    if (pid == 0) become(how, parent, report);
    return pid;
}

int launch_program(const struct launch *how, pid_t *child)
{
    int ends[2], reason = 0;
    if (pipe2(ends, O_CLOEXEC) != 0) return errno;
    const pid_t pid = begin(how, ends[1]);
    if (pid < 0) reason = errno;
    close(ends[1]);
    ssize_t length = 0;
    if (pid > 0)
        do length = read(ends[0], &reason, sizeof reason);
        while (length < 0 && errno == EINTR);
    close(ends[0]);
    if (length == (ssize_t)sizeof reason) launch_kill(pid);
    if (reason == 0) *child = pid;
    return reason;
}

int launch_copy(const struct launch *how, void (*work)(void *context), void *context, pid_t *child)
{
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        if (!prepare(how, parent)) _exit(127);
        work(context);
        _exit(0);
    }
    if (pid < 0) return errno;
    *child = pid;
    return 0;
}

enum status launch_fail(const char *name, int code, struct error *err)
{
    return error_set(err, STATUS_DEVICE, "cannot start '%s': %s", name, strerror(code));
}

/* --- waiting --------------------------------------------------------------------------------- */

/* Returns false when the child has not ended yet (WNOHANG), or is none of ours. */
static bool wait_once(pid_t child, int options, struct launch_end *end)
{
    int how = 0;
    struct rusage usage = {0};
    pid_t waited;
    do waited = wait4(child, &how, options, &usage);
    while (waited < 0 && errno == EINTR);
    if (waited != child) return false;
    if (WIFSIGNALED(how)) end->signal = WTERMSIG(how);
    else end->exit_code = WEXITSTATUS(how);
    end->cpu_s = (double)usage.ru_utime.tv_sec + 1e-6 * (double)usage.ru_utime.tv_usec;
    return true;
}

enum status launch_wait(pid_t child, struct launch_end *end, struct error *err)
{
    *end = (struct launch_end){0};
    return wait_once(child, 0, end) ? STATUS_OK : error_io(err, "cannot wait for a program");
}

enum status launch_wait_until(pid_t child, double until_s, struct launch_end *end, struct error *err)
{
    static const long nap_max_ns = 50000000;
    *end = (struct launch_end){0};
    for (struct timespec nap = {0, 1000000}; !wait_once(child, WNOHANG, end);) {
        if (clock_s() >= until_s) {
            const bool is_ours = kill(-child, SIGKILL) == 0 || kill(child, SIGKILL) == 0;
            if (!is_ours || !wait_once(child, 0, end)) return error_io(err, "cannot wait for a program");
            end->late = true;
            return STATUS_OK;
        }
        nanosleep(&nap, NULL);
        if (nap.tv_nsec < nap_max_ns) nap.tv_nsec *= 2;
    }
    return STATUS_OK;
}

void launch_kill(pid_t child)
{
    struct launch_end unused;
    if (kill(-child, SIGKILL) != 0) kill(child, SIGKILL);
    (void)wait_once(child, 0, &unused);
}
