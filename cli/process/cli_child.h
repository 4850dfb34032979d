/*
 * spillway-exec as a child process.
 *
 * The planner's libraries and those of GPUs must not meet in one program, and a crash of the
 * executor has to be a result rather than the end of this one; hence a child.
 */
#ifndef SPILLWAY_CLI_CHILD_H
#define SPILLWAY_CLI_CHILD_H

#include <stdbool.h>

#include "base/error.h"
#include "cli/common/cli.h"

/* $SPILLWAY_EXEC when it is set, else beside this program, else on PATH.
 * Errors: STATUS_DEVICE, saying where was looked. */
MUST_CHECK enum status cli_child_find(char path[CLI_PATH_BYTES], struct error *err);

struct cli_child_end {
    bool interrupted; /* the user stopped it, and it ended by itself */
    int exit_code;    /* when no signal ended it */
    int signal;       /* 0: it ended by itself */
    double wall_s;
};

/*
 * Start argv[0] with the terminal passed through (argv ends with NULL) and wait for it. Its standard
 * output is closed to it: what it has to say comes in files, and ours is one answer.
 * Ctrl-C reaches the child once, which finishes what it began; this program waits meanwhile.
 * Errors: STATUS_DEVICE when it cannot be started. A child that fails is no error here.
 */
MUST_CHECK enum status cli_child_run(const char *const argv[], struct cli_child_end *end,
                                     struct error *err);

/*
 * What to report for a child that did not end well: STATUS_OK for exit code 0, STATUS_INTERRUPTED
 * after Ctrl-C, STATUS_DEVICE with the signal's name for a crash, else the status that its exit
 * code stands for. `what` was being done ("run", "measure").
 */
MUST_CHECK enum status cli_child_status(const struct cli_child_end *end, const char *what,
                                        struct error *err);

/* An empty file for what a child has to say, in $TMPDIR or /tmp; the caller unlinks it. STATUS_IO,
 * STATUS_LIMIT. */
MUST_CHECK enum status cli_child_file(char path[CLI_PATH_BYTES], struct error *err);

#endif
