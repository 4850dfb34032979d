/*
 * spillway-exec as a child process.
 *
 * The planner's libraries and the GPU vendors' libraries must not be in one program, and a crash of
 * the executor must be a result and not end this program.
 */
#ifndef SPILLWAY_CLI_PROCESS_CLI_CHILD_H
#define SPILLWAY_CLI_PROCESS_CLI_CHILD_H

#include <stdbool.h>

#include "base/error.h"
#include "cli/common/cli.h"

/* Finds spillway-exec: $SPILLWAY_EXEC if it is set, else beside this program, else on PATH. Errors:
 * STATUS_DEVICE with the places that were searched. */
MUST_CHECK enum status cli_child_find(char path[CLI_PATH_BYTES], struct error *err);

struct cli_child_end {
    bool interrupted; /* the user stopped the child, and it ended by itself */
    int exit_code;    /* valid if no signal ended the child */
    int signal;       /* 0: the child ended by itself */
    double wall_s;
};

/*
 * Starts argv[0] with the terminal passed through (argv ends with NULL) and waits for it. The
 * child's standard output is closed: its results come in files, and standard output belongs to the
 * answer of this program. Ctrl-C reaches the child once, and the child finishes its current step;
 * this program waits. Errors: STATUS_DEVICE if the child cannot be started. A child that fails is
 * not an error here.
 */
MUST_CHECK enum status cli_child_run(const char *const argv[], struct cli_child_end *end,
                                     struct error *err);

/*
 * Reports how the child ended: STATUS_OK for exit code 0, STATUS_INTERRUPTED after Ctrl-C,
 * STATUS_DEVICE with the signal's name for a crash, else the status of its exit code. `what` names
 * the work in messages ("run", "measure").
 */
MUST_CHECK enum status cli_child_status(const struct cli_child_end *end, const char *what,
                                        struct error *err);

/* Creates an empty file in $TMPDIR or /tmp for the child's results; the caller unlinks it. Errors:
 * STATUS_IO, STATUS_LIMIT. */
MUST_CHECK enum status cli_child_file(char path[CLI_PATH_BYTES], struct error *err);

#endif
