/*
 * Which outputs of frozen first layers to keep.
 *
 * Jobs of a group have equal outputs of the first layers that both freeze (models/jobs/job_outputs.h). A job begins
 * after the first l layers, whose outputs are kept, or computes all of them: l = 0. If a job of the group takes the
 * outputs of l layers they are made once, of all samples, whatever the number of jobs:
 *
 *     seconds = sum over jobs        samples (load_s(l) + compute_s(most) - compute_s(l)),  or samples compute_s(most)
 *             + sum over kept (g, l) rows make_s(l)
 *     bytes   = sum over kept (g, l) rows bytes(l)  <=  budget
 *
 * Source: Nakandala and Kumar, "Nautilus", SIGMOD 2022, section 4.2: the same costs, but for making what is kept, which
 * it does not count, and one budget.
 */
#ifndef SPILLWAY_PLANNER_PREFIX_PREFIX_PROBLEM_H
#define SPILLWAY_PLANNER_PREFIX_PREFIX_PROBLEM_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* The first l layers: of a sample. compute_s rises with l. */
struct prefix_layer {
    double compute_s, make_s; /* in the job's microbatches; in those of outputs, with the copy to the host */
    double load_s, bytes;
};

struct prefix_group {
    struct prefix_layer *layers; /* (most + 1), by l; those below 2 cannot be kept */
    uint64_t most;               /* of its jobs */
    double rows;                 /* samples whose outputs are made, of whole minibatches */
    uint64_t samples, held_out;  /* of these, samples of the training and held-out ones */
    uint32_t first;              /* a job of it */
};

struct prefix_job {
    uint32_t group;   /* PREFIX_NONE: it has no outputs that could be kept */
    uint64_t most;    /* frozen first layers */
    double samples;   /* that it passes over, training and evaluations, each as often as it comes */
    const char *why;  /* nothing of it can be kept; NULL: something can */
};
#define PREFIX_NONE UINT32_MAX

struct prefix_problem {
    struct prefix_job *jobs;
    struct prefix_group *groups;
    uint32_t job_count, group_count;
    double budget_bytes;
};

/*
 * Makes the problem of the jobs, in the arena. Seconds are by the planner's costs: of a computation on the first
 * device, or of fetching its weights, if this takes longer and the device does not hold the job; of copies to and from
 * it, with the host's copying of rows. Errors: as job_outputs_samples().
 */
MUST_CHECK enum status prefix_problem_make(const struct hardware *hardware, const struct job_set *jobs,
                                           double budget_bytes, struct arena *arena, struct prefix_problem *out,
                                           struct error *err);

/* Return the seconds and bytes of a choice: by job, the layers after which it begins. */
double prefix_seconds(const struct prefix_problem *problem, const uint64_t *layers);
double prefix_bytes(const struct prefix_problem *problem, const uint64_t *layers);

/* Returns true if a job before this one has the same group and layers in the choice, so that these are made once. */
bool prefix_is_shared(const struct prefix_problem *problem, const uint64_t *layers, uint32_t job);

#endif
