/*
 * What a parallel job has on the devices of its stages, how much of it at once and where: part of
 * planner/parallel/parallel_job.c. Nobody but that and planner/parallel/parallel_job_units.h includes this.
 *
 * Every thing that is made takes the lowest free variant of its kind and run, and gives it back where it is
 * used for the last time; so there are as many variants as things of that kind live at once in the order of the
 * passes. Whole weights and gradients, where ranks keep shares, are runs' in turn: they lie in *rings*, slots
 * for a few of the largest of the stage. Every variant has a place of its own in the memory of the stage's
 * devices, the same on all of them:
 *
 *     [ states | gradients | versions | workspace | ring of weights | ring of gradients | activations 0, 1, ... |
 *       boundaries | their gradients ]
 *
 * On one stage, and between the buckets of any, gradients of boundaries take two places in turn, since each is made by the
 * pass that uses up the one behind.
 *
 * Where activations are swapped, all runs' lie in as many places as fit, of the largest's size: run r in place r mod n (a
 * larger one of the last run apart). The last n runs' stay. Each other's place is taken by run r + n when its copy out has
 * ended, and free again when that one's backward pass has, which is when it comes back: as memory frees. Jobs in front
 * in the file take as many places as there are; those behind them on the same devices what is left.
 *
 * Runs that were chosen to be computed again (planner/parallel/parallel_job_recompute.h) take no turn: what little they keep has a place of
 * its own, and stays.
 *
 *     n = 3   forward   0 1 2 0 1 2 0 1      runs 0 to 4 leave; 5, 6, 7 stay
 *             backward  1 0 2 1 0 2 1 0      4 comes back when 7 is through, 3 when 6 is, ...
 *
 * Asynchronous schedules go on without end, so their microbatches take places in turn: the n-th of a replica's the
 * place n mod as many as there are. Where stages take turns by themselves (parallel_turns()), what passes from one to
 * the other has other places on each side: variant k f + j, the k-th of its own stage and the j-th of f in front.
 * Microbatches under way are counted in all of them mod as many as that can be. Versions of weights take their slots
 * in turn as well. Synchronous schedules whose stages take turns by themselves do the same in each minibatch, with as
 * many places as its order needs.
 *
 * A boundary has a place on both stages that it passes; a workspace is shared by the runs of a stage, whose
 * passes follow each other.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_LAYOUT_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_LAYOUT_H

#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/parallel/pipeline/pipeline.h"
#include "planner/parallel/parallel_job_times.h"
#include "planner/walk/plan_build.h"

/* What lives between passes, one for each microbatch under way. */
enum parallel_job_thing { PARALLEL_JOB_ACTIVATIONS, PARALLEL_JOB_BOUNDARY, PARALLEL_JOB_GRADIENT, PARALLEL_JOB_THINGS };

/* A variant in the plan: indexes + 1, once they are known. */
struct parallel_job_variant {
    uint32_t buffer;
    uint32_t slots[2]; /* on the run's own stage, and on the one in front */
};

/* The things of one kind of one run. */
struct parallel_job_pool {
    uint32_t *variant_of; /* [microbatch] */
    struct parallel_job_variant *variants; /* the first variant_room of them */
    uint32_t variant_room;
    uint32_t *free;       /* a bit for each variant; all 0 where none is */
    uint32_t free_count, made;
    uint32_t front; /* places on the stage in front that have numbers of their own; 0: the same as here, `made` */
    uint64_t bytes;
    uint64_t offset[2];   /* of variant 0 on the run's own stage, and on the one in front */
};

/* A pass over a run that was emitted, and with which variants (planner/parallel/parallel_job_cache.h). */
struct parallel_job_pass_variants {
    uint32_t activations, boundary, behind, gradient; /* `behind`: of what passes between the run and the next */
};
struct parallel_job_cached_pass {
    bool some;
    uint32_t instance;
    struct parallel_job_pass_variants with;
};

/* Slots that are taken one after the other and given back in that order. */
struct parallel_job_ring {
    uint32_t slots;
    uint32_t taken, given; /* in this minibatch */
    uint64_t offset, bytes; /* of slot 0; of each */
};

/* What a pass over a run computes: the same of every microbatch. */
struct parallel_job_work {
    bool known;
    uint32_t work; /* PLAN_NONE: nothing */
};

/* What its tensor group exchanges in it, likewise. */
struct parallel_job_exchange {
    bool known;
    uint32_t count;
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
};

struct parallel_job_run {
    struct parallel_layers layers;
    struct parallel_job_work works[PARALLEL_PASS_COUNT];
    struct parallel_job_exchange exchanges[PARALLEL_PASS_COUNT];
    uint32_t stage;
    struct parallel_job_pool pools[PARALLEL_JOB_THINGS];
    struct parallel_job_cached_pass *emitted; /* [enum pipeline_pass][microbatches] */
    uint64_t state_bytes, gradient_bytes, workspace_bytes;   /* on each rank */
    uint64_t whole_weight_bytes, whole_gradient_bytes;       /* of all ranks together */
    struct rank_state host;                                  /* of each rank, where states are offloaded */
    uint64_t state_offset, gradient_offset;
    bool swaps;             /* its activations leave behind the forward pass and come back */
    bool gathers;           /* its weights are fetched for each pass, from ranks that have shares or the host */
    bool scatters;          /* each pass leaves a gradient of its own, of which ranks take shares or the host all */
    bool joins;             /* ranks add up its gradient */
    bool tied;              /* so do the first and the last stage */
    bool updated;           /* in this minibatch */
    uint32_t passes_left;   /* backward passes of this minibatch */
    uint32_t versions;      /* of its weights there at once, asynchronous schedules; 0: they are in the state */
    uint64_t version_bytes, version_offset;
    uint64_t version;       /* that the unit at hand reads ... */
    bool version_ends;      /* ... for the last time */
};

struct parallel_job_stage {
    uint32_t gang;
    uint32_t turns, first_turn; /* replicas that take microbatches in turn, their gangs; 1: all, in step */
    uint32_t start, lag;        /* asynchronous schedules: the tick of its first pass, ticks between both passes */
    uint64_t workspace_offset, end;
    struct parallel_job_ring weights, gradients;
    struct parallel_job_ring staged_weights, staged_states; /* in host memory, of each rank, on their way from storage */
    uint64_t staged_end;
    uint64_t steps, steps_left; /* of a minibatch; of this one */
    uint64_t first_gathering;   /* the first step that multiplies by gathered weights ... */
    uint64_t next_gathering;    /* ... and the one to gather for next; order.count: none */
};

struct parallel_job {
    struct plan_builder *builder;
    const struct plan *plan;
    const struct job *job;
    struct job sliced;       /* room for a slice of it: of the pass at hand */
    const struct parallel *parallel;
    uint32_t index;          /* of the job */
    uint32_t runs, microbatches;
    struct parallel_job_run *of;   /* per run */
    struct parallel_job_stage *stages;
    uint64_t microbatch;     /* the index of the microbatch whose pass is at hand, where stages take turns */
    uint64_t *gathering_behind; /* per step: the next of its stage that multiplies by gathered weights */
    uint32_t *completed;     /* runs whose gradients of this minibatch are complete, in that order */
    uint32_t completed_count;
    struct parallel_job_times times;
    struct pipeline_order order;
    uint32_t ends_gang;      /* first and last stage, where these sum a tied table's gradients */
    uint64_t joined_bytes;   /* of such a gradient; 0: they do not */
    uint32_t ends_left;      /* of this minibatch: runs with such a gradient that is not complete */
    uint64_t base_bytes;     /* where other jobs' memory on these devices ends ... */
    uint64_t staged_base_bytes; /* ... and what their ranks stage */
    bool refreshes;          /* an update was delayed: its weights are to come up in this minibatch */
    double in_s, out_s; /* of the first stage's states (planner/plan_charges.h) */
    double estimated_end_s;
};

static inline const struct parallel_job_stage *parallel_job_stage_of(const struct parallel_job *s, uint32_t run)
{
    return &s->stages[s->of[run].stage];
}

/* Do these passes multiply by weights, or make gradients of them? */
static inline bool parallel_job_uses_weights(uint32_t pass)
{
    return pass != PIPELINE_WEIGHT;
}
static inline bool parallel_job_makes_gradient(uint32_t pass)
{
    return pass == PIPELINE_BACKWARD || pass == PIPELINE_WEIGHT;
}

/* Of a range that nothing else has, also where it is needed for 0 bytes. */
uint64_t parallel_job_range_bytes(uint64_t bytes);

/* Bytes of all runs' things; tables for variants. When runs, stages and order are there.
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status parallel_job_size(struct parallel_job *s, struct arena *arena, struct error *err);

/* The places of a thing of run r of the microbatch whose turn it is, into its table. */
void parallel_job_assign_place(struct parallel_job *s, uint32_t r, enum parallel_job_thing thing, uint32_t in_table);

/* A step takes what it makes, and gives back what it uses for the last time. */
void parallel_job_acquire(struct parallel_job *s, const struct pipeline_step *step);
void parallel_job_release(struct parallel_job *s, const struct pipeline_step *step);

/* Places for as many of each as one minibatch needs at once.
 * Errors: STATUS_INFEASIBLE, naming job, stage and bytes missing; STATUS_BAD_INPUT for activations that are swapped of
 * a run without weights. */
MUST_CHECK enum status parallel_job_lay_out(struct parallel_job *s, struct error *err);

#endif
