/* A figure from its runs to its verdict, for tests of cli/repro/figure.h. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_FIGURE_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_FIGURE_H

#include "cli/repro/figure_result.h"
#include "cli/repro/figure_runs.h"

struct support_ran {
    struct figure *figure;
    struct run_set *set;
    struct arena arena;
    struct figure_result result;
    const uint32_t *indexes; /* of the runs in `set` */
};

/* Runs all of ran->figure, which was parsed into a zeroed struct, and judges it. Release it with
 * support_ran_release(), also after an error. */
MUST_CHECK enum status support_ran_execute(struct support_ran *ran, const struct run_set_options *options,
                                           struct error *err);
void support_ran_release(struct support_ran *ran);

#endif
