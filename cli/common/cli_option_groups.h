/* Headings of `--help` and the man pages, and their options. */
#ifndef SPILLWAY_CLI_COMMON_CLI_OPTION_GROUPS_H
#define SPILLWAY_CLI_COMMON_CLI_OPTION_GROUPS_H

#include "base/process/options.h"

/* Ends with a NULL heading. Every option must have a group; a test checks it. */
extern const struct option_group cli_option_groups[];

#endif
