/*
 * Optimal makespans of small instances: a label-setting dynamic program.
 *
 * Label set t holds the partial schedules of t tasks, started in the order of time, but for those that another one
 * makes superfluous (label_set.h) and those that can be seen to end too late (lagrangian_bound.h, whose prices are fitted
 * anew to a label set that is large). When no label set was cut and the last is empty, nothing is better than the best
 * known. First come narrow label sets, cut to those of most slack, that find better schedules (a beam search); each pass
 * is eight times as wide as the one before. Passes go from the front or, on the mirrored problem (task_net.h), from the
 * end: wherever narrow label sets were found to be emptied sooner.
 */
#ifndef SPILLWAY_PLANNER_LABEL_SETTING_H
#define SPILLWAY_PLANNER_LABEL_SETTING_H

#include "planner/solve/bounds/instance_bound.h"
#include "planner/solve/instance/timetable.h"

struct label_setting_options {
    uint64_t nodes_max;  /* partial schedules that are looked at; 0: no limit */
    double until_s;      /* on the clock of base/process/progress.h */
    size_t memory_bytes; /* for label sets; 0: 768 MiB. What does not fit is cut: then nothing is proven */
    uint32_t width_max;  /* of label sets; 0: no limit */
    /* What is best found by measuring; 0: the usual. Whatever they are, what is proven is true. */
    uint32_t width;      /* of the first pass */
    double fit_share;    /* of the usual rounds of fitting prices; 0: all. Few are enough to find without a proof */
    uint32_t fit_min;    /* prices are fitted to label sets of this size and more */
    uint32_t sides;      /* 1: from the front, 2: from the end (devices all alike), 3: both, as it goes */
};

struct label_setting_result {
    bool proven; /* steps[] is optimal */
    uint64_t nodes;
};

/* Makespans without a bridge, of the sizes of task_net.h? */
bool label_setting_takes(const struct instance *in);

/*
 * *value and steps[] (in->task_count) hold the best known schedule and are bettered in place.
 * Deterministic but for `until_s`. Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status label_setting_run(const struct instance *in, const struct instance_bounds *bounds,
                                        const struct label_setting_options *options,
                                        struct dispatch_step *steps, int64_t *value,
                                        struct label_setting_result *result, struct error *err);

#endif
