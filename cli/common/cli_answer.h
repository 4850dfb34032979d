#ifndef SPILLWAY_CLI_COMMON_CLI_ANSWER_H
#define SPILLWAY_CLI_COMMON_CLI_ANSWER_H

#include "base/error.h"

struct cli;

/*
 * Closes a command's JSON answer and moves it to cli->out. An error is added as "error": {"status", "exit_code",
 * "message"}, or with --json and no answer is an object "spillway-error-1". Returns `status`, or STATUS_NO_MEMORY.
 */
MUST_CHECK enum status cli_answer_end(struct cli *cli, enum status status, struct error *err);

#endif
