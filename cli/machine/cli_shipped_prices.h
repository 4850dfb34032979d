/* The dated price list of this release, for users who name none. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_SHIPPED_PRICES_H
#define SPILLWAY_CLI_MACHINE_CLI_SHIPPED_PRICES_H

#include "cli/common/cli.h"

/* Finds it in share/spillway beside this program's folder, else in the tree that it was built from. Returns false if it
 * is in neither. */
bool cli_shipped_prices(char path[CLI_PATH_BYTES]);

#endif
