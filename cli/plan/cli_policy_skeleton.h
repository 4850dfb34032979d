/* The files that a user's own policy starts from. */
#ifndef SPILLWAY_CLI_PLAN_CLI_POLICY_SKELETON_H
#define SPILLWAY_CLI_PLAN_CLI_POLICY_SKELETON_H

#include "cli/common/cli.h"

enum { CLI_SKELETON_FILES = 3 };

/* Returns the name of file `index` ("mine.c", "test_mine.c", "Makefile"). */
const char *cli_skeleton_name(const char *policy, uint32_t index, char name[CLI_PATH_BYTES]);

/* Makes `folder` with the files of a new policy. Errors: STATUS_BAD_INPUT for a name that is invalid or taken, and if
 * the folder exists; STATUS_IO. After an error nothing remains. */
MUST_CHECK enum status cli_skeleton_write(const char *policy, const char *folder, struct error *err);

/* Returns the folder that has spillway/policy.h: in this program's build tree or installation, else /usr/include. */
void cli_include_folder(char path[CLI_PATH_BYTES]);

#endif
