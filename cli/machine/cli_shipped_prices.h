/* This release's dated price list. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_SHIPPED_PRICES_H
#define SPILLWAY_CLI_MACHINE_CLI_SHIPPED_PRICES_H

#include "cli/common/cli.h"

/* Looks in share/spillway beside this program's folder, then in its source tree; false: in neither. */
bool cli_shipped_prices(char path[CLI_PATH_BYTES]);

#endif
