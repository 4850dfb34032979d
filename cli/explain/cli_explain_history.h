/*
 * `explain history:ROW`, or `FILE.db:ROW` of a history in a file: which plan and which measured trace a row of the history is about.
 *
 * A row knows the plan's file and the command that made it, and that has the trace's. Both files are where they were then,
 * seen from the same folder, or it says which is gone.
 */
#ifndef SPILLWAY_CLI_CLI_EXPLAIN_HISTORY_H
#define SPILLWAY_CLI_CLI_EXPLAIN_HISTORY_H

#include "base/arena.h"
#include "cli/common/cli.h"

/* Is it such a word ("history:12", "history:last", "runs.db:last") and no file? */
bool cli_explain_is_row(const char *word);

/*
 * The files of a run; they live as long as `arena`.
 * Errors: STATUS_BAD_INPUT when there is no history or no such row, when it is no run, or when that kept no trace; those of
 * history_open() and history_read().
 */
MUST_CHECK enum status cli_explain_row(const char *word, struct arena *arena, const char **plan_path,
                                       const char **trace_path, struct error *err);

#endif
