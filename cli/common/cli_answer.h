/* The end of a JSON answer. Verbs call cli_report_begin() and cli_report_end(), which cli.h declares. */
#ifndef SPILLWAY_CLI_COMMON_CLI_ANSWER_H
#define SPILLWAY_CLI_COMMON_CLI_ANSWER_H

#include "base/error.h"

struct cli;

/*
 * Closes the JSON answer of a command that ended with `status` and moves it to cli->out. An error is added as "error":
 * {"status", "exit_code", "message"}. If --json was given and the verb began no answer, the error is an object of its
 * own, "spillway-error-1". Returns `status`, or STATUS_NO_MEMORY when memory for the answer ends.
 */
MUST_CHECK enum status cli_answer_end(struct cli *cli, enum status status, struct error *err);

#endif
