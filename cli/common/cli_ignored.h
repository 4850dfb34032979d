/* What training ignores: keys of config.json (models/network/network_ignored.h), and tf32 on devices without it. */
#ifndef SPILLWAY_CLI_COMMON_CLI_IGNORED_H
#define SPILLWAY_CLI_COMMON_CLI_IGNORED_H

#include "cli/common/cli.h"
#include "models/job/job.h"

struct hardware;

/* Warns once for each set of keys and values, with its first network. */
void cli_warn_ignored(struct cli *cli, const struct job_set *jobs);

/* Warns of the first job whose precision is spelled tf32 if no device has it. */
void cli_warn_tf32(struct cli *cli, const struct hardware *hardware, const struct job_set *jobs);

#endif
