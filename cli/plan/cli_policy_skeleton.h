/* First files of a user's policy. */
#ifndef SPILLWAY_CLI_PLAN_CLI_POLICY_SKELETON_H
#define SPILLWAY_CLI_PLAN_CLI_POLICY_SKELETON_H

#include "cli/common/cli.h"

enum { CLI_SKELETON_FILES = 3 };

/* Returns "mine.c", "test_mine.c" or "Makefile". */
const char *cli_skeleton_name(const char *policy, uint32_t index, char name[CLI_PATH_BYTES]);

/* Makes `folder` with a policy's files. Errors: STATUS_BAD_INPUT for an invalid or taken name, and if the folder
 * exists; STATUS_IO. After an error nothing remains. */
MUST_CHECK enum status cli_skeleton_write(const char *policy, const char *folder, struct error *err);

/* Returns the folder of spillway/policy.h: in this program's tree or installation, else /usr/include. */
void cli_include_folder(char path[CLI_PATH_BYTES]);

#endif
