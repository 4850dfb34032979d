/* The headings of `--help` and of the man pages, and the options under each. */
#ifndef SPILLWAY_CLI_COMMON_CLI_OPTION_GROUPS_H
#define SPILLWAY_CLI_COMMON_CLI_OPTION_GROUPS_H

#include "base/process/options.h"

/* All groups; ends with a NULL heading. Every option of every verb must have a group; a test checks
 * it. */
extern const struct option_group cli_option_groups[];

#endif
