/*
 * Small instances' optimal makespans by a label-setting dynamic program.
 *
 * Label set t holds the partial schedules of t tasks, started in the order of time, except dominated ones (label_set.h)
 * and ones that provably end too late (lagrangian_bound.h; prices are fitted again to a large set). When no set was cut
 * and the last is empty, the best known schedule is optimal. First passes cut sets to the labels with the most slack
 * and find better schedules (a beam search); each pass is eight times as wide as the one before. Passes run forwards
 * or, mirrored (task_net.h), backwards: where narrow sets became empty sooner.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_LABEL_SETTING_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_LABEL_SETTING_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

struct label_setting_options {
    uint64_t nodes_max;  /* partial schedules to look at; 0: no limit */
    double until_s;      /* on the clock of base/process/clock.h */
    size_t memory_bytes; /* for label sets; 0: 768 MiB. Label sets that do not fit are cut, and then nothing is
                            proven */
    uint32_t width_max;  /* of label sets; 0: no limit */
    /* Values to be found by measurements; 0: the default. A proof is valid for any values. */
    uint32_t width;      /* of the first pass */
    double fit_share;    /* share of the usual rounds of fitting prices; 0: all. Few are enough to find without a
                            proof */
    uint32_t fit_min;    /* prices are fitted to label sets of this size and more */
    uint32_t sides;      /* 1: forwards, 2: backwards (equal devices only), 3: both, by their success */
};

struct label_setting_result {
    bool proven; /* steps[] is optimal */
    uint64_t nodes;
};

/* Returns true for makespans without a bridge, within the limits of task_net.h. */
bool label_setting_takes(const struct instance *in);

/*
 * Improves the best known schedule, *value and steps[] (in->task_count), in place. Deterministic unless `until_s` ends
 * the search.
 */
MUST_CHECK enum status label_setting_run(const struct instance *in, const struct instance_bounds *bounds,
                                         const struct label_setting_options *options,
                                         struct dispatch_step *steps, int64_t *value,
                                         struct label_setting_result *result, struct error *err);

#endif
