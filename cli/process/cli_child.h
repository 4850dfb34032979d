/*
 * spillway-exec as a child process.
 *
 * The planner's libraries and GPU vendors' must not be in one program, and a crash of the executor
 * must be a result.
 */
#ifndef SPILLWAY_CLI_PROCESS_CLI_CHILD_H
#define SPILLWAY_CLI_PROCESS_CLI_CHILD_H

#include <stdbool.h>

#include "base/error.h"
#include "cli/common/cli.h"

/* Looks at $SPILLWAY_EXEC, else beside this program, else on PATH. Errors: STATUS_DEVICE with
 * the places that were searched. */
MUST_CHECK enum status cli_child_find(char path[CLI_PATH_BYTES], struct error *err);

struct cli_child_end {
    bool interrupted; /* it ended by itself */
    int exit_code;    /* valid without a signal */
    int signal;       /* 0: none */
    double wall_s;
};

/*
 * Starts argv[0] with the terminal (argv ends with NULL) and waits. The child's standard output is
 * closed: results come in files. Ctrl-C reaches it once, and it finishes its current step. Errors:
 * STATUS_DEVICE if the child cannot be started. A child that fails is not an error.
 */
MUST_CHECK enum status cli_child_run(const char *const argv[], struct cli_child_end *end,
                                     struct error *err);

/*
 * Returns STATUS_OK for exit code 0, STATUS_INTERRUPTED after Ctrl-C, STATUS_DEVICE with the
 * signal's name for a crash, else its exit code's status. `what` is for messages ("run",
 * "measure").
 */
MUST_CHECK enum status cli_child_status(const struct cli_child_end *end, const char *what,
                                        struct error *err);

/* Makes an empty file in $TMPDIR or /tmp; the caller unlinks it. Errors: STATUS_IO,
 * STATUS_LIMIT. */
MUST_CHECK enum status cli_child_file(char path[CLI_PATH_BYTES], struct error *err);

#endif
