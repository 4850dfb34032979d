/* A machine's networks and the route of one copy. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_NETWORKS_H
#define SPILLWAY_CLI_REPORTS_CLI_NETWORKS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "models/hardware/hardware.h"

/* Prints " --[nvlink-3 250 GB/s duplex]--". */
void cli_networks_print_path(FILE *out, const struct hardware *hardware, const uint32_t *path,
                             uint32_t count);

/* Prints a row for equal device counts and link rates; nothing without networks. */
MUST_CHECK enum status cli_networks_print(FILE *out, const struct hardware *hardware, struct error *err);

struct cli_route {
    uint32_t from, to;
};

/* Reads "3,11". Errors: STATUS_BAD_INPUT, also if these are not two devices of the machine. */
MUST_CHECK enum status cli_route_parse(const char *text, const struct hardware *hardware,
                                       struct cli_route *out, struct error *err);
/* Prints the direct route, else the staged one, else a copy out and a copy in. */
MUST_CHECK enum status cli_route_print(FILE *out, const struct hardware *hardware, struct cli_route route,
                                       struct error *err);
void cli_route_json(struct json_out *json, const struct hardware *hardware, struct cli_route route);

#endif
