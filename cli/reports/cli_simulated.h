/* The parts of a report that are about a simulation's streams and links. */
#ifndef SPILLWAY_CLI_SIMULATED_H
#define SPILLWAY_CLI_SIMULATED_H

#include "cli/common/cli.h"
#include "models/hardware/hardware.h"
#include "sim/sim.h"

struct cli_simulated {
    const struct hardware *hardware;
    const struct sim_result *result;
    const struct trace *trace;
};

/* No figure is past what physics allows; *compute_share is the share of the time of `devices` that they compute.
 * Errors: those of cli_check_peak(). */
MUST_CHECK enum status cli_simulated_check(const struct cli_simulated *s, uint32_t devices, double *compute_share,
                                           struct error *err);

/* Both tables, each with an empty line behind it. */
MUST_CHECK enum status cli_simulated_tables(FILE *out, const struct cli_simulated *s, struct error *err);

/* "bound by ..." and how fast that was found out. */
void cli_simulated_end(FILE *out, const struct cli_simulated *s);

/* For verbs that say no more than that: the tables, the makespan, the end, and where the trace is (or NULL). */
MUST_CHECK enum status cli_simulated_print(struct cli *cli, const struct cli_simulated *s, double compute_share,
                                           const char *trace_path, struct error *err);

/* What caching allocators reserve, of the device where it is the most beyond what is in use, and "reserved", by device.
 * Nothing where none were simulated. */
void cli_simulated_reserved(FILE *out, const struct cli_simulated *s);
void cli_simulated_reserved_json(struct json_out *json, const struct cli_simulated *s);

/* The arrays "streams" and "links". */
void cli_simulated_json(struct json_out *json, const struct cli_simulated *s);
/* "operations", "wall_s", "operations_per_s". */
void cli_simulated_speed_json(struct json_out *json, const struct cli_simulated *s);

#endif
