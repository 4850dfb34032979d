/*
 * Signals. The first SIGINT means "finish the current step", the second "end now": each must reach the child once.
 * Ctrl-C goes to the foreground group, `kill` to one process, `timeout` to both. Therefore the child has its own
 * process group; this process forwards signals, merging two within a fifth of a second. Ctrl-Z stops both. If the
 * parent dies, the kernel signals the child (PR_SET_PDEATHSIG), which stops as after Ctrl-C.
 */
#include "cli/process/cli_child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/files/folder.h"
#include "base/files/path.h"
#include "base/process/clock.h"
#include "base/process/launch.h"

static const char program[] = "spillway-exec";

/* --- finding the executor -------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    return access(path, X_OK) == 0;
}

static bool beside_us(const char *name, char path[CLI_PATH_BYTES])
{
    struct error unknown = {0};
    return path_from_program(name, path, CLI_PATH_BYTES, &unknown) == STATUS_OK && is_program(path);
}

static bool on_path(const char *name, char path[CLI_PATH_BYTES])
{
    const char *folders = getenv("PATH");
    while (folders && *folders) {
        size_t length = strcspn(folders, ":");
        int written = snprintf(path, CLI_PATH_BYTES, "%.*s/%s", (int)length, folders, name);
        if (length > 0 && written > 0 && written < CLI_PATH_BYTES && is_program(path)) return true;
        folders += length + (folders[length] == ':');
    }
    return false;
}

enum status cli_child_find(char path[CLI_PATH_BYTES], struct error *err)
{
    const char *given = getenv("SPILLWAY_EXEC");
    if (given && *given) {
        if (!is_program(given))
            return error_set(err, STATUS_DEVICE,
                             "SPILLWAY_EXEC is '%s', which is not a program that can be started",
                             given);
        snprintf(path, CLI_PATH_BYTES, "%s", given);
        return STATUS_OK;
    }
    if (beside_us(program, path) || on_path(program, path)) return STATUS_OK;
    return error_set(err, STATUS_DEVICE,
                     "the executor '%s' was not found next to this program nor on PATH (name it "
                     "with the environment variable SPILLWAY_EXEC)", program);
}

/* --- running the executor -------------------------------------------------------------------- */

static const double same_signal_s = 0.2;

static volatile sig_atomic_t stop_asked;
static volatile pid_t child; /* 0: not started */
static volatile double handed_on_s;

static void on_stop(int number)
{
    int saved = errno;
    double now_s = clock_s(); /* clock_gettime() is safe here */
    stop_asked = 1;
    if (child > 0 && now_s - handed_on_s > same_signal_s) {
        handed_on_s = now_s;
        kill(child, number);
    }
    errno = saved;
}

/* Stops the child on Ctrl-Z, then this process. */
static void on_pause(int number)
{
    (void)number;
    int saved = errno;
    if (child > 0) kill(child, SIGSTOP);
    raise(SIGSTOP);
    if (child > 0) kill(child, SIGCONT);
    errno = saved;
}

static const struct {
    int number;
    void (*handler)(int number);
} handled[] = {{SIGINT, on_stop}, {SIGTERM, on_stop}, {SIGTSTP, on_pause}};
enum { HANDLED_COUNT = sizeof handled / sizeof *handled };

static void watch_signals(struct sigaction old[HANDLED_COUNT])
{
    stop_asked = 0;
    handed_on_s = -1;
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        struct sigaction action = {.sa_handler = handled[i].handler, .sa_flags = SA_RESTART};
        sigemptyset(&action.sa_mask);
        sigaction(handled[i].number, &action, &old[i]);
    }
}

static void unwatch_signals(const struct sigaction old[HANDLED_COUNT])
{
    for (size_t i = 0; i < HANDLED_COUNT; i++) sigaction(handled[i].number, &old[i], NULL);
}

enum status cli_child_run(const char *const argv[], struct cli_child_end *end, struct error *err)
{
    struct sigaction old[HANDLED_COUNT];
    watch_signals(old);
    double started_s = clock_s();
    const struct launch how = {.argv = argv, .death_signal = SIGINT,
                               .streams = {LAUNCH_SAME, LAUNCH_NOWHERE, LAUNCH_SAME}};
    struct launch_end ended = {0};
    pid_t pid = 0;
    const int reason = launch_program(&how, &pid);
    if (reason == 0) {
        child = pid;
        if (stop_asked) kill(pid, SIGINT); /* before the child existed */
    }
    enum status status = reason == 0 ? launch_wait(pid, &ended, err) : launch_fail(argv[0], reason, err);
    child = 0;
    if (reason == 0)
        *end = (struct cli_child_end){.wall_s = clock_s() - started_s, .exit_code = ended.exit_code,
                                      .signal = ended.signal,
                                      .interrupted = stop_asked || (ended.signal == 0 && ended.exit_code == 130)};
    unwatch_signals(old);
    return status;
}

enum status cli_child_status(const struct cli_child_end *end, const char *what, struct error *err)
{
    if (end->signal != 0) {
        const char *name = sigabbrev_np(end->signal);
        const char *hint = end->signal == SIGKILL ? ", perhaps because the host ran out of memory"
                                                  : "";
        if (end->interrupted && (end->signal == SIGINT || end->signal == SIGTERM))
            return error_set(err, STATUS_INTERRUPTED, "the %s was stopped", what);
        return error_set(err, STATUS_DEVICE, "the executor was ended by SIG%s (%s)%s",
                         name ? name : "?", strsignal(end->signal), hint);
    }
    if (end->exit_code == 0) return STATUS_OK;
    if (end->exit_code == 130)
        return error_set(err, STATUS_INTERRUPTED, "the %s was stopped", what);
    enum status status = end->exit_code == 1   ? STATUS_CHECK
                         : end->exit_code == 2 ? STATUS_BAD_INPUT
                                               : STATUS_DEVICE;
    return error_set(err, status, "the %s failed with exit code %d; the executor's message is above",
                     what, end->exit_code);
}

/* --- files --------------------------------------------------------------------------------- */

enum status cli_child_file(char path[CLI_PATH_BYTES], struct error *err)
{
    int length = snprintf(path, CLI_PATH_BYTES, "%s/spillway-run-XXXXXX", folder_for_temporary());
    if (length >= CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "TMPDIR is too long (limit is %d bytes)",
                         CLI_PATH_BYTES);
    int file = mkstemp(path);
    if (file < 0) return error_io(err, "cannot make a temporary file '%s'", path);
    close(file);
    return STATUS_OK;
}
