/* How devices of a machine reach each other, as text and JSON: its networks, and the route of one copy. */
#ifndef SPILLWAY_CLI_NETWORKS_H
#define SPILLWAY_CLI_NETWORKS_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "models/hardware/hardware.h"

/* " --[nvlink-3 250 GB/s duplex]--" for each link. */
void cli_networks_print_path(FILE *out, const struct hardware *hardware, const uint32_t *path,
                             uint32_t count);

/* A row for networks that are alike: as many devices, over links of the same rates. Nothing where there are
 * none. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status cli_networks_print(FILE *out, const struct hardware *hardware, struct error *err);

struct cli_route {
    uint32_t from, to;
};

/* "3,11". Errors: STATUS_BAD_INPUT, also where these are not two devices of it. */
MUST_CHECK enum status cli_route_parse(const char *text, const struct hardware *hardware,
                                       struct cli_route *out, struct error *err);
/* The direct way, else the staged one through host memory, else a copy out and one in. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status cli_route_print(FILE *out, const struct hardware *hardware, struct cli_route route,
                                       struct error *err);
void cli_route_json(struct json_out *json, const struct hardware *hardware, struct cli_route route);

#endif
