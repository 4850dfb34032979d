/* Keys of config.json that training ignores (models/network/network_ignored.h). */
#ifndef SPILLWAY_CLI_COMMON_CLI_IGNORED_H
#define SPILLWAY_CLI_COMMON_CLI_IGNORED_H

#include "cli/common/cli.h"
#include "models/job/job.h"

/* Warns once for each set of keys and values, with its first network. */
void cli_warn_ignored(struct cli *cli, const struct job_set *jobs);

#endif
