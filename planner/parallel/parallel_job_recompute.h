/*
 * KARMA's interleaved recomputation over devices: chooses, chunk by chunk, whether a job that swaps activations
 * recomputes them instead.
 *
 * All ranks do the same at once, so one device and its share of the link to the host represent all. A minibatch of one
 * microbatch goes forward over the chunks and back. The streams of a device carry
 *
 *     compute   F0 F1 F2 ... B2 B1 B0       a recomputed chunk repeats its forward pass before its backward pass
 *     up        W0 W1 W2 ... W2+A2 W1+A1    weights for each pass, into `prefetch` + 1 slots; swapped activations
 *     down      A0 A1 ... G2 G1 G0          activations after forward passes, gradients after backward ones, two slots
 *
 * Activations have the places of planner/parallel/parallel_job_layout.h that fit next to the workspace of
 * recomputation. The clock simulates this; tests compare it with the simulator. Sums and steps on the host, and
 * storage, do not depend on the choices and are left out.
 *
 * Up to PARALLEL_JOB_CHOICE_EXACT recomputable chunks, all choices are tried: the optimum by that clock. Beyond, the
 * search starts from the first k chunks, the last k, every k-th, and all but every k-th, each with its best k, then
 * changes one or two chunks while the minibatch gets shorter. (The chain of planner/chain/chain.h, for one device, has
 * no weights or gradients on the link; here they are most of the traffic.)
 *
 * A recomputed chunk keeps the tensors between its layers, and the workspace has room for its recomputed activations.
 *
 * Source: KARMA, arXiv 2008.11421, section III-F, and its pipeline over several devices.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RECOMPUTE_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_RECOMPUTE_H

#include "planner/parallel/parallel_job_layout.h"

enum { PARALLEL_JOB_CHOICE_EXACT = 14 };

/* Seconds of passes and copies, and bytes. Index 1: the chunk is recomputed. */
struct parallel_job_choice_chunk {
    double forward_s, backward_s[2];
    double weights_s, down_s;           /* copy of its weights up, for each pass; of its gradient down */
    double copy_s[2];                   /* copy of all its activations: down, up */
    uint64_t kept_bytes[2], work_bytes[2];
    bool gathers;                       /* it has weights */
};

struct parallel_job_choice_problem {
    struct parallel_job_choice_chunk *chunks; /* (count); at most PARALLEL_CUTS_MAX */
    uint32_t count, slots;   /* of weights */
    uint64_t have_bytes;     /* for activations and workspace */
};

/* Returns the seconds until the last gradient is on the host. *fits is false, and the result meaningless, with places
 * for fewer than `slots` chunks (or all, if fewer), or if a chunk without weights would be swapped. */
double parallel_job_choice_clock_s(const struct parallel_job_choice_problem *problem, const char *choices, bool *fits);

/* Sets choices[0 .. count) and *best_s. *exact: all choices were tried. Returns false if none fits. */
bool parallel_job_choice_best(const struct parallel_job_choice_problem *problem, char *choices, double *best_s,
                              bool *exact);

/* Sets the choices in job->parallel, where job is s->job. The gangs must exist; *s is otherwise unchanged. If nothing
 * fits, all chunks are swapped, and planner/parallel/parallel_job_layout.h reports the missing bytes. Errors: as
 * parallel_job_times_make(). */
MUST_CHECK enum status parallel_job_choose_recompute(struct parallel_job *s, struct job *job, struct error *err);

#endif
