/* The end of a JSON answer. Its beginning, cli_report_begin(), and cli_report_end() are in cli.h: verbs call them. */
#ifndef SPILLWAY_CLI_CLI_ANSWER_H
#define SPILLWAY_CLI_CLI_ANSWER_H

#include "base/error.h"

struct cli;

/*
 * Closes the JSON answer of a command that ended with `status` and moves it to cli->out. With an error it gets
 * "error": {"status", "exit_code", "message"}; without an answer, but with --json, that is an object of its own,
 * "spillway-error-1". Returns `status`; STATUS_NO_MEMORY when the answer did not fit into memory.
 */
MUST_CHECK enum status cli_answer_end(struct cli *cli, enum status status, struct error *err);

#endif
