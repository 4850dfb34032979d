/*
 * The ranks of a run on several hosts, except rank 0, which is the executor that `run` starts as always.
 *
 * Ranks on this machine are child processes, those elsewhere are started by ssh ($SPILLWAY_SSH names another program).
 * They write no files and no reports; a thread passes on the lines of their standard error as "HOST (rank I): LINE".
 * Ranks end each other (docs/several-processes.md): nothing here has to.
 */
#ifndef SPILLWAY_CLI_RUN_CLI_HOSTS_RUN_H
#define SPILLWAY_CLI_RUN_CLI_HOSTS_RUN_H

#include <stddef.h>

#include "cli/run/cli_hosts_file.h"

struct cli_hosts_run; /* opaque */

struct cli_hosts_start {
    const struct cli_hosts *hosts;
    const char *program;         /* the executor of this machine */
    const char *const *options;  /* of all ranks, without rank, number of ranks, and meeting place */
    size_t option_count;
    const char *plan_path;       /* absolute */
    bool sends_plan;             /* the plan was made here: other hosts get a copy */
};

enum { CLI_MEET_BYTES = 320 };

/* Looks whether each host answers and has the executor and the plan. Errors: STATUS_DEVICE, STATUS_BAD_INPUT for a
 * plan that a host does not have, STATUS_INTERRUPTED. */
MUST_CHECK enum status cli_hosts_probe(const struct cli_hosts_start *start, struct error *err);

/* Starts all ranks but rank 0. `meet`: the meeting place, also for rank 0. cli_hosts_end() ends what was begun.
 * Errors: STATUS_DEVICE; no rank is left then. */
MUST_CHECK enum status cli_hosts_begin(const struct cli_hosts_start *start, char meet[CLI_MEET_BYTES],
                                       struct cli_hosts_run **out, struct error *err);

/* Waits for the ranks after rank 0 has ended, at most ten seconds, and ends those that are left. */
void cli_hosts_end(struct cli_hosts_run *run);

#endif
