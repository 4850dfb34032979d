/* The headings of `--help` and of the man pages, and the options under each. */
#ifndef SPILLWAY_CLI_CLI_OPTION_GROUPS_H
#define SPILLWAY_CLI_CLI_OPTION_GROUPS_H

#include "base/process/options.h"

/* Ends with a NULL heading. Every option of every verb has a group; a test asks for it. */
extern const struct option_group cli_option_groups[];

#endif
