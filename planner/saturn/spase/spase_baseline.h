/*
 * The rival planners of Saturn.
 *
 *     max      all devices of a node for one job at a time, in the order of the file
 *     min      each job on its fewest devices, in the order of the file
 *     optimus  Optimus's greedy step: all jobs on their fewest devices, then one step wider for the job whose run time
 *              falls most. With more jobs than devices the rule does not say when to stop: the best schedule of all
 *              its steps is taken
 *     random   any configuration, any order
 *
 * All choose among modes, so none takes a slower parallelism on equally many devices.
 *
 * Source: Saturn, PVLDB 17(4), sec. 5; Peng et al., "Optimus: an efficient dynamic resource scheduler for deep learning
 * clusters", EuroSys 2018.
 */
#ifndef SPILLWAY_PLANNER_SATURN_SPASE_SPASE_BASELINE_H
#define SPILLWAY_PLANNER_SATURN_SPASE_SPASE_BASELINE_H

#include "planner/saturn/spase/spase_schedule.h"

enum spase_baseline {
    SPASE_BASELINE_MAX,
    SPASE_BASELINE_MIN,
    SPASE_BASELINE_OPTIMUS,
    SPASE_BASELINE_RANDOM,
    SPASE_BASELINE_COUNT
};
extern const char *const spase_baseline_names[SPASE_BASELINE_COUNT];

/* steps: out, (in->job_count); *value: the makespan. `free_at` as in spase_list_clear(); `seed` is only for random. */
MUST_CHECK enum status spase_baseline_run(const struct spase *in, enum spase_baseline kind, uint64_t seed,
                                          const int64_t *free_at, struct spase_step *steps, int64_t *value,
                                          struct error *err);

#endif
