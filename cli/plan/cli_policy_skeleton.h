/* The files that a policy of one's own begins with. */
#ifndef SPILLWAY_CLI_POLICY_SKELETON_H
#define SPILLWAY_CLI_POLICY_SKELETON_H

#include "cli/common/cli.h"

enum { CLI_SKELETON_FILES = 3 };

/* Name of file `index` ("mine.c", "test_mine.c", "Makefile"). */
const char *cli_skeleton_name(const char *policy, uint32_t index, char name[CLI_PATH_BYTES]);

/* Make `folder` with the files of a policy of that name. Errors: STATUS_BAD_INPUT for a name that is
 * none or taken, and when the folder is there already; STATUS_IO. Nothing is left behind then. */
MUST_CHECK enum status cli_skeleton_write(const char *policy, const char *folder, struct error *err);

/* The folder in which spillway/policy.h lies: in the build tree or the installed one that this program is part of, else
 * /usr/include. */
void cli_include_folder(char path[CLI_PATH_BYTES]);

#endif
