/* Reports of a simulation's streams and links. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_SIMULATED_H
#define SPILLWAY_CLI_REPORTS_CLI_SIMULATED_H

#include "cli/common/cli.h"
#include "models/hardware/hardware.h"
#include "sim/sim.h"

struct cli_simulated {
    const struct hardware *hardware;
    const struct sim_result *result;
    const struct trace *trace;
};

/* Checks that no figure exceeds a physical limit. *compute_share: of the time of `devices`. Errors: as
 * cli_check_peak(). */
MUST_CHECK enum status cli_simulated_check(const struct cli_simulated *s, uint32_t devices, double *compute_share,
                                           struct error *err);

/* Prints both tables, each with an empty line. */
MUST_CHECK enum status cli_simulated_tables(FILE *out, const struct cli_simulated *s, struct error *err);

/* Prints "bound by ..." and the speed of the simulation. */
void cli_simulated_end(FILE *out, const struct cli_simulated *s);

/* Prints the tables, the makespan, the end, and the trace's path (may be NULL). */
MUST_CHECK enum status cli_simulated_print(struct cli *cli, const struct cli_simulated *s, double compute_share,
                                           const char *trace_path, struct error *err);

/* Print what caching allocators reserve on the device where it exceeds the use most, and write "reserved", by
 * device; nothing without such a simulation. */
void cli_simulated_reserved(FILE *out, const struct cli_simulated *s);
void cli_simulated_reserved_json(struct json_out *json, const struct cli_simulated *s);

/* Writes the arrays "streams" and "links". */
void cli_simulated_json(struct json_out *json, const struct cli_simulated *s);
/* Writes "operations", "wall_s", "operations_per_s". */
void cli_simulated_speed_json(struct json_out *json, const struct cli_simulated *s);

#endif
