/* `simulate --failures FILE`: many random runs, from one without failures. */
#ifndef SPILLWAY_CLI_SIMULATE_CLI_FAILURES_H
#define SPILLWAY_CLI_SIMULATE_CLI_FAILURES_H

#include "cli/common/cli.h"
#include "models/hardware/failures.h"
#include "sim/failure_simulation.h"

struct cli_failures {
    const char *path; /* may be NULL */
    uint64_t runs, seed;
};

/* Times only of runs that ended. */
struct cli_failure_outcome {
    struct arena arena;
    struct failures failures;
    uint32_t devices;
    uint64_t runs, ended;
    double work_s;
    double low_s, median_s, high_s; /* 5, 50 and 95 % of the runs end earlier */
    struct failure_simulation mean;           /* of all runs; without .interruptions */
    double interruptions;           /* mean */
    double best_interval_s;         /* between checkpoints, by Daly's formula; HUGE_VAL: none */
    double best_median_s;           /* median time with it */
};

/*
 * Simulates failures. `makespan_s`: without them, on `devices`. `out` is zeroed before; the caller releases it with
 * cli_failures_release(), also after an error. Errors: as failures_read().
 */
MUST_CHECK enum status cli_failures_run(const struct cli_failures *wanted, uint32_t devices, double makespan_s,
                                        struct cli_failure_outcome *out, struct error *err);
void cli_failures_release(struct cli_failure_outcome *outcome);

void cli_failures_print(FILE *out, const struct cli_failure_outcome *s);
void cli_failures_json(struct json_out *json, const struct cli_failure_outcome *s); /* the object "failures" */

#endif
