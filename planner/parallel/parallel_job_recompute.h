/*
 * Which runs of a job that swaps are computed again: KARMA's interleaved recomputation over devices, decided run by run.
 * Part of planner/parallel/parallel_job.c; nobody else but tests includes this.
 *
 * All ranks do the same at the same time, so one device and its link to the host stand for all: what ranks of a node share
 * of a link is divided among them. A minibatch of one microbatch goes forward over the runs and back, and on the streams of
 * a device
 *
 *     compute   F0 F1 F2 ... B2 B1 B0       a backward pass of a run that is computed again with its forward pass in front
 *     up        W0 W1 W2 ... W2+A2 W1+A1    weights for each pass, into `prefetch` + 1 slots; activations that left
 *     down      A0 A1 ... G2 G1 G0          activations behind forward passes, gradients behind backward ones, two slots
 *
 * with places for activations as planner/parallel/parallel_job_layout.h has them: as many as fit beside what computing again
 * needs of the workspace. The clock below plays that; tests hold it to the simulator's. What hosts add up and step does not
 * depend on the choices and is left out, and so is storage.
 *
 * Up to PARALLEL_JOB_CHOICE_EXACT runs that have something to compute again all choices are tried: the best is the best there
 * is by that clock. More are searched: from the first k runs, the last k, every k-th and all but every k-th, the best k of
 * each, one run and then two at a time are changed as long as it gets shorter. (The chain of planner/chain/chain.h, which
 * decides this for one device, knows neither weights nor gradients on the link, which here are most of what crosses it.)
 *
 * Memory: as planner/parallel/parallel_job_layout.h; a run that is computed again keeps what passes from layer to layer in it,
 * in a place of its own, and the workspace has room for what is computed again.
 *
 * Source: KARMA, arXiv 2008.11421, section III-F (what to recompute), and its pipeline over several devices.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RECOMPUTE_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RECOMPUTE_H

#include "planner/parallel/parallel_job_layout.h"

enum { PARALLEL_JOB_CHOICE_EXACT = 14 };

/* A run: seconds of passes and copies, bytes by whether it is computed again (index 1) or not. */
struct parallel_job_choice_run {
    double forward_s, backward_s[2];
    double weights_s, down_s;           /* its weights up, for each pass; its gradient down */
    double copy_s[2];                   /* of all its activations: down, up */
    uint64_t kept_bytes[2], work_bytes[2];
    bool gathers;                       /* it has weights */
};

struct parallel_job_choice_problem {
    struct parallel_job_choice_run *runs; /* (count); at most PARALLEL_CUTS_MAX */
    uint32_t count, slots;   /* of weights */
    uint64_t have_bytes;     /* for activations and workspace */
};

/* Seconds until the last gradient is down; *fits false: places for less than `slots` runs are left (or for all, where they
 * are fewer), or a run without weights would leave, and the result means nothing. */
double parallel_job_choice_clock_s(const struct parallel_job_choice_problem *problem, const char *choices, bool *fits);

/* choices: out, (count). *best_s: of them. *exact: all others were tried. False: none fits. */
bool parallel_job_choice_best(const struct parallel_job_choice_problem *problem, char *choices, double *best_s, bool *exact);

/* Into job->parallel, s->job's own. When gangs are there; leaves no other trace in *s. All swapped where nothing fits, so
 * that planner/parallel/parallel_job_layout.h says what is missing. Errors: STATUS_NO_MEMORY, and those of
 * parallel_job_times_make(). */
MUST_CHECK enum status parallel_job_choose_recompute(struct parallel_job *s, struct job *job, struct error *err);

#endif
