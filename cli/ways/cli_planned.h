/* What `plan` takes for a single job, from a plan of some minibatches: `mem` says it beside its own ways. */
#ifndef SPILLWAY_CLI_PLANNED_H
#define SPILLWAY_CLI_PLANNED_H

#include "cli/ways/cli_candidate.h"

struct cli_planned {
    bool any;           /* false: no way, or too many devices to look */
    char way[CLI_OUTCOME_NAME_BYTES]; /* as `plan` names it (cli_ways.h) */
    double run_s;       /* simulated, of CLI_PLANNED_RUN minibatches */
    double other_s;     /* likewise, of the other way; 0: there is no plan of it */
    bool runnable;      /* by `run` */
};

enum { CLI_PLANNED_RUN = 32 };

/*
 * source: one job of CLI_PLANNED_RUN minibatches. `other`: a way to hold it against, by name. Where both take equally long
 * and neither is better to run, out->way is `other`: several names may stand for one way.
 * Errors: those of cli_ways() but for what only means that no way fits.
 */
MUST_CHECK enum status cli_planned_find(const struct cli_source *source, const char *other, struct cli_planned *out,
                                        struct error *err);

#endif
