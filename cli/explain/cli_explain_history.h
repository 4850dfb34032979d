/*
 * `explain history:ROW`, or `FILE.db:ROW`: finds a row's plan and measured trace. The row has the plan's file and the
 * command line with the trace's. Both must still be there, relative to the same folder.
 */
#ifndef SPILLWAY_CLI_EXPLAIN_CLI_EXPLAIN_HISTORY_H
#define SPILLWAY_CLI_EXPLAIN_CLI_EXPLAIN_HISTORY_H

#include "base/arena.h"
#include "cli/common/cli.h"

/* Returns true for "history:12", "history:last", "runs.db:last" that is not a file. */
bool cli_explain_is_row(const char *word);

/*
 * Finds a run's files, whose paths live as long as `arena`. Errors: STATUS_BAD_INPUT if there is no history or no such
 * row, or if the row is not a run or kept no trace; as history_open() and history_read().
 */
MUST_CHECK enum status cli_explain_row(const char *word, struct arena *arena, const char **plan_path,
                                       const char **trace_path, struct error *err);

#endif
