/* The dated price list that comes along, for those who name none. */
#ifndef SPILLWAY_CLI_CLI_SHIPPED_PRICES_H
#define SPILLWAY_CLI_CLI_SHIPPED_PRICES_H

#include "cli/common/cli.h"

/* share/spillway beside this program's folder, else the tree that it was built from. False: it is in neither. */
bool cli_shipped_prices(char path[CLI_PATH_BYTES]);

#endif
