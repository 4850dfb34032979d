/*
 * Starts child processes and waits for them: the one place that does.
 *
 * A child has a process group of its own, so that a terminal's Ctrl-C goes to this process only. The kernel signals
 * the child when this process ends. The child starts with the default action for SIGTERM, SIGTSTP and SIGPIPE.
 */
#ifndef SPILLWAY_BASE_PROCESS_LAUNCH_H
#define SPILLWAY_BASE_PROCESS_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"

/* A stream of a child: a descriptor of this process, or one of these. */
enum { LAUNCH_SAME = -1, LAUNCH_NOWHERE = -2 }; /* this process's stream; /dev/null */

struct launch {
    const char *const *argv; /* NULL at the end; argv[0] is a path */
    bool by_name;            /* argv[0] without a slash is looked up on PATH, as a shell does */
    const char *folder;      /* working directory of the child and of a relative argv[0]; NULL: ours */
    int streams[3];          /* standard input, output and error */
    int death_signal;        /* what the child gets when this process ends */
    bool ignores_interrupt;  /* the child ignores SIGINT */
};

struct launch_end {
    int exit_code; /* valid when `signal` is 0 */
    int signal;    /* signal that ended the child; 0: none */
    bool late;     /* the child did not end in time; it and its group were killed */
    double cpu_s;  /* user-mode processor time of the child and of the children it waited for */
};

/* Starts a program. Returns 0, or the errno that says why it cannot be started; no child is left then. */
MUST_CHECK int launch_program(const struct launch *how, pid_t *child);

/* Runs `work` in a copy of this process, which then exits with 0; `work` may call _exit() with another code. Uses only
 * the streams and the signals of `how`. Returns 0, or an errno. */
MUST_CHECK int launch_copy(const struct launch *how, void (*work)(void *context), void *context, pid_t *child);

/* Reports `code` of launch_program(): STATUS_DEVICE, "cannot start 'NAME': REASON". */
enum status launch_fail(const char *name, int code, struct error *err);

/* Waits until the child has ended. Errors: STATUS_IO. */
MUST_CHECK enum status launch_wait(pid_t child, struct launch_end *end, struct error *err);

/* As launch_wait(), but kills the child and its group when the clock (clock_s()) passes `until_s`. */
MUST_CHECK enum status launch_wait_until(pid_t child, double until_s, struct launch_end *end, struct error *err);

/* Kills the child and its group, and waits. */
void launch_kill(pid_t child);

#endif
