/* What the verbs say about the load of the machine: while its profile was measured, and during a run. */
#ifndef SPILLWAY_CLI_CLI_LOAD_H
#define SPILLWAY_CLI_CLI_LOAD_H

#include "base/process/load.h"
#include "cli/common/cli.h"

struct hardware;

/* Warns when the machine's profile was measured while others used its processors. */
void cli_load_warn_profile(struct cli *cli, const struct hardware *hardware);

/*
 * Returns true when a run of measured_s seconds lost a noticeable share of the processors to others. Then *slowed_s is
 * predicted_s on a machine as busy as that, if the run could have used all of that share. Runs of less than two
 * seconds are too short to tell.
 */
bool cli_load_slows(double taken, double measured_s, double predicted_s, double *slowed_s);

#endif
