/* The time that `plan` predicts for a job, from a few minibatches; for `mem`. */
#ifndef SPILLWAY_CLI_WAYS_CLI_PLANNED_H
#define SPILLWAY_CLI_WAYS_CLI_PLANNED_H

#include "cli/ways/cli_candidate.h"

struct cli_planned {
    bool any;           /* false: no way fits, or too many devices */
    char way[CLI_OUTCOME_NAME_BYTES]; /* as in `plan` (cli_ways.h) */
    double run_s;       /* simulated, of CLI_PLANNED_RUN minibatches */
    double other_s;     /* the same for `other`; 0: no plan */
    bool runnable;      /* `run` can do it */
};

enum { CLI_PLANNED_RUN = 32 };

/*
 * Plans one job of CLI_PLANNED_RUN minibatches. `other` is a way to compare with, and out->way if both take equally
 * long and neither is better to run. Errors: as cli_ways(), except that no way fits.
 */
MUST_CHECK enum status cli_planned_find(const struct cli_source *source, const char *other, struct cli_planned *out,
                                        struct error *err);

#endif
