/* Warnings about the load of the machine while its profile was measured and during a run. */
#ifndef SPILLWAY_CLI_PROCESS_CLI_LOAD_H
#define SPILLWAY_CLI_PROCESS_CLI_LOAD_H

#include "base/process/load.h"
#include "cli/common/cli.h"

struct hardware;

/* Warns when other programs used the processors while the machine's profile was measured. */
void cli_load_warn_profile(struct cli *cli, const struct hardware *hardware);

/*
 * Returns true if other programs took a noticeable share (`taken`) of the processors during a run of measured_s
 * seconds. Then *slowed_s is the predicted time on a machine with this load, if the run could have used all of that
 * share. Returns false for runs of less than two seconds.
 */
bool cli_load_slows(double taken, double measured_s, double predicted_s, double *slowed_s);

#endif
