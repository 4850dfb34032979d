/* Warnings about load during measurement and runs. */
#ifndef SPILLWAY_CLI_PROCESS_CLI_LOAD_H
#define SPILLWAY_CLI_PROCESS_CLI_LOAD_H

#include "base/process/load.h"
#include "cli/common/cli.h"

struct hardware;

/* Warns if other programs ran during the profile's measurement. */
void cli_load_warn_profile(struct cli *cli, const struct hardware *hardware);

/*
 * Returns true if others took a noticeable share (`taken`) of the processors; *slowed_s is then the predicted time
 * under this load, if the run could have used it all. False for runs of less than two seconds.
 */
bool cli_load_slows(double taken, double measured_s, double predicted_s, double *slowed_s);

/* Returns true if the work of dilated devices was late by so large a share that the cores were the limit: the run then
 * measures this machine and not the dilated one. */
bool cli_load_limited(double late);

/* Warns if the cores were the limit of a measured run whose work was late by this share. */
void cli_load_warn_late(struct cli *cli, double late);

#endif
