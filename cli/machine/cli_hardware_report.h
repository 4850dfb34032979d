/* Reports of `hardware show` and `hardware detect`. */
#ifndef SPILLWAY_CLI_MACHINE_CLI_HARDWARE_REPORT_H
#define SPILLWAY_CLI_MACHINE_CLI_HARDWARE_REPORT_H

#include "cli/common/cli.h"
#include "cli/reports/cli_networks.h"
#include "models/hardware/hardware.h"

/* `route` may be NULL. */
MUST_CHECK enum status cli_hardware_text(struct cli *cli, const struct hardware *hardware,
                                         const struct cli_route *route, struct error *err);

/* Writes a JSON report named `report`. */
MUST_CHECK enum status cli_hardware_json(struct cli *cli, const char *report, const struct hardware *hardware,
                                         const struct cli_route *route, struct error *err);

#endif
