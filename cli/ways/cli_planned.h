/* The time that `plan` predicts for a single job, from a plan of a few minibatches; `mem` shows it with its own
 * ways. */
#ifndef SPILLWAY_CLI_WAYS_CLI_PLANNED_H
#define SPILLWAY_CLI_WAYS_CLI_PLANNED_H

#include "cli/ways/cli_candidate.h"

struct cli_planned {
    bool any;           /* false: no way fits, or there are too many devices to plan */
    char way[CLI_OUTCOME_NAME_BYTES]; /* as `plan` names it (cli_ways.h) */
    double run_s;       /* simulated seconds of CLI_PLANNED_RUN minibatches */
    double other_s;     /* the same for the way `other`; 0: it has no plan */
    bool runnable;      /* `run` can carry it out */
};

enum { CLI_PLANNED_RUN = 32 };

/*
 * Plans `source`, one job of CLI_PLANNED_RUN minibatches. `other`: the name of a way to compare with. If both ways take
 * equally long and neither is better to run, out->way is `other`: one way may have several names. Errors: as
 * cli_ways(), except errors which only say that no way fits.
 */
MUST_CHECK enum status cli_planned_find(const struct cli_source *source, const char *other, struct cli_planned *out,
                                        struct error *err);

#endif
