/*
 * The memory layout of a parallel job.
 *
 * A pass that makes activations, a boundary or a gradient takes the lowest free variant of that kind and chunk; the
 * last pass that uses it frees it. So there are as many variants as are alive at once. Where ranks keep shares, whole
 * weights and gradients of chunks lie in *rings*: a few slots, each as large as the stage's largest chunk. Every
 * variant has its own place, the same on all the stage's devices:
 *
 *     [ states | gradients | versions | workspace | ring of weights | ring of gradients | activations 0, 1, ... |
 *       boundaries | their gradients ]
 *
 * On a stage, gradients of boundaries alternate between two places, because each is made by the pass that uses up the
 * next boundary's.
 *
 * Swapped activations share n places of the largest chunk's size, the number that fits: chunk r has place r mod n (the
 * last chunk has its own if larger). The last n chunks stay on the device. Chunk r + n takes chunk r's place after
 * chunk r's copy to the host, and chunk r comes back after the backward pass of chunk r + n. Earlier jobs of the file
 * take all places they can use; later jobs on these devices get the rest.
 *
 * Data kept by recomputed chunks (planner/parallel/parallel_job_recompute.h) has its own place, and stays.
 *
 *     n = 3   forward   0 1 2 0 1 2 0 1      chunks 0 to 4 leave; 5, 6, 7 stay
 *             backward  1 0 2 1 0 2 1 0      4 comes back after chunk 7, 3 after chunk 6, ...
 *
 * In asynchronous schedules microbatches use n places in turn: microbatch m of a replica has place m mod n. If stages
 * take turns by themselves (parallel_turns()), a boundary has different places on both of its stages: variant k f + j
 * is place k on its own stage and place j of f on the previous stage. Microbatches in flight are counted modulo the
 * largest possible number. Versions use their slots in turn as well, and so do gradients of chunks whose updates wait
 * for the first stage: the first pass of a minibatch makes its gradient, the update frees it. Synchronous schedules
 * with such stages do the same within each minibatch, with the places that their order needs.
 *
 * A stage's chunks share a workspace, because their passes follow each other. Backward passes in two units of jobs that
 * are carried out have handovers: made by the first unit, used up by the second. Where ranks split gradients, both
 * units make parts of the microbatch's gradient, in a place of its own until it is reduced. The slices of a microbatch
 * (terapipe) have a handover together: the first slice's forward pass makes it, and its backward pass, the last, uses
 * it up.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_LAYOUT_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_LAYOUT_H

#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/parallel/pipeline/pipeline.h"
#include "planner/parallel/parallel_job_times.h"
#include "planner/walk/plan_build.h"

/* Data between passes, one of each kind per microbatch in flight. */
enum parallel_job_thing {
    PARALLEL_JOB_ACTIVATIONS,
    PARALLEL_JOB_BOUNDARY,
    PARALLEL_JOB_GRADIENT,
    PARALLEL_JOB_HANDOVER, /* from a pass INPUT to its pass WEIGHT; or among the slices of a microbatch */
    PARALLEL_JOB_APART,    /* likewise: the microbatch's gradient, where ranks split gradients */
    PARALLEL_JOB_THINGS
};

/* A variant's indexes in the plan + 1; 0: not yet known. */
struct parallel_job_variant {
    uint32_t buffer;
    uint32_t slots[2]; /* on the chunk's stage, and on the previous one */
};

/* Variants of one kind of data of a chunk. */
struct parallel_job_pool {
    uint32_t *variant_of;                  /* [microbatch] */
    struct parallel_job_variant *variants; /* the first variant_room variants */
    uint32_t variant_room;
    uint32_t *free;       /* a bit per variant */
    uint32_t free_count, made;
    uint32_t front; /* places on the previous stage; 0: equal to `made` */
    uint64_t bytes;
    uint64_t offset[2];   /* of variant 0 on the chunk's stage, and on the previous one */
};

/* An emitted pass and its variants (planner/parallel/parallel_job_cache.h). */
struct parallel_job_pass_variants {
    uint32_t activations, boundary, behind, gradient, handover; /* `behind`: the boundary between this chunk and the
                                                                   next */
};
struct parallel_job_cached_pass {
    bool some;
    uint32_t task;
    struct parallel_job_pass_variants with;
};

/* Slots taken in turn and freed in the same order. */
struct parallel_job_ring {
    uint32_t slots;
    uint32_t taken, given; /* in this minibatch */
    uint64_t offset, bytes; /* of slot 0; of each */
};

/* The work of a pass, equal for every microbatch. */
struct parallel_job_work {
    bool known;
    uint32_t work; /* PLAN_NONE: nothing */
};

/* A pass's collectives of the tensor group, equal for every microbatch. */
struct parallel_job_exchange {
    bool known;
    uint32_t count;
    struct parallel_collective list[PARALLEL_COLLECTIVES_MAX];
};

struct parallel_job_chunk {
    struct parallel_layers layers;
    struct parallel_job_work works[PARALLEL_PASS_COUNT];
    struct parallel_job_exchange exchanges[PARALLEL_PASS_COUNT];
    uint32_t stage;
    struct parallel_job_pool pools[PARALLEL_JOB_THINGS];
    struct parallel_job_cached_pass *emitted; /* [enum pipeline_pass][microbatches] */
    uint64_t state_bytes, gradient_bytes, workspace_bytes;   /* on each rank */
    uint64_t whole_weight_bytes, whole_gradient_bytes;       /* of all ranks together */
    uint64_t gathered_table_bytes;                           /* of whole weights: the tied table of the first chunk */
    uint64_t raised_table_bytes, raised_table_offset;        /* of that table, from there in each rank's host state */
    struct rank_state host; /* of each rank, where states are offloaded: the weights are those that go up */
    uint64_t read_bytes;    /* of these, with storage: what is read to go up, or to the device's state */
    uint64_t level_bytes, level_offset, loss_bytes; /* carried out: partial sums; the loss with its own */
    bool has_batch, has_loss; /* carried out: it has an embedding or a head, or a head */
    bool brings_batch;        /* it is the first on its stage with data */
    bool brings_norms;        /* it is the first on its stage, of a job that clips */
    uint64_t state_offset, gradient_offset;
    bool swaps;             /* activations go to the host after the forward pass and come back */
    bool gathers;           /* weights are gathered for each pass, from the ranks' shares or the host */
    bool scatters;          /* each pass makes a gradient; ranks add shares of it, or the host adds all */
    bool joins;             /* ranks sum its gradient */
    bool tied;              /* both end stages sum it, too */
    bool updated;           /* in this minibatch */
    bool resets;            /* its next backward pass begins another sum after that of a delayed update */
    uint32_t passes_left;   /* backward passes of this minibatch */
    uint32_t gradients;     /* sums of gradients, in turn ... */
    uint32_t gradient_turn; /* ... the current unit's ... */
    bool begins_sum, ends_sum; /* ... where there are several: the current pass makes it, or completes it */
    uint32_t versions, staleness; /* asynchronous: versions of its weights, 0: in the state; updates that passes lack */
    uint64_t version_bytes, version_offset;
    uint64_t version;       /* read by the current unit ... */
    bool version_ends;      /* ... for the last time */
};

struct parallel_job_stage {
    uint32_t gang;
    uint32_t turns, first_turn; /* replicas that alternate, and first of their gangs; 1: all in step */
    uint32_t start, lag;        /* asynchronous: tick of its first pass, ticks between both passes */
    uint64_t workspace_offset, end;
    uint32_t batches; /* carried out: minibatches whose data are there at once */
    uint64_t batch_offset, loss_offset, held_out_offset, norms_offset; /* carried out */
    struct parallel_job_ring weights, gradients;
    struct parallel_job_ring staged_weights, staged_states; /* in each rank's host memory, on the way from storage */
    uint64_t staged_end;
    uint64_t steps, steps_left; /* of a minibatch; of this one */
    uint64_t first_gathering;   /* the first step with gathered weights ... */
    uint64_t next_gathering;    /* ... and the next one to gather for; order.count: none */
};

struct parallel_job {
    struct plan_builder *builder;
    const struct plan *plan;
    const struct job *job;
    struct job sliced;       /* the job with the current slice */
    const struct parallel *parallel;
    uint32_t index;          /* of the job */
    bool carried_out;        /* parallel_is_carried_out() */
    uint32_t chunks, microbatches;
    struct parallel_job_chunk *of;   /* per chunk */
    struct parallel_job_stage *stages;
    uint64_t microbatch;        /* of the current pass, if stages take turns */
    uint64_t *gathering_behind; /* per step: its stage's next step that multiplies by gathered weights */
    uint32_t *completed;        /* chunks with complete gradients in this minibatch, in that order */
    uint32_t completed_count;
    uint32_t stepped;           /* chunks that the host has updated in this minibatch */
    struct parallel_job_times times;
    struct pipeline_order order;
    uint32_t ends_gang;      /* of both end stages, if they sum a tied table's gradients */
    uint64_t joined_bytes;   /* of such a gradient; 0: none */
    uint32_t ends_left;      /* chunks with such a gradient not complete in this minibatch */
    uint64_t base_bytes;     /* where earlier jobs' memory on these devices ends ... */
    uint64_t staged_base_bytes; /* ... and what their ranks stage */
    bool refreshes;          /* this minibatch copies up the weights of a delayed update ... */
    bool flushes;            /* ... and also those of its own, before the next minibatch or an evaluation */
    double in_s, out_s; /* of the first stage's states (planner/plan_charges.h) */
    double estimated_end_s;
};

static inline const struct parallel_job_stage *parallel_job_stage_of(const struct parallel_job *s, uint32_t chunk)
{
    return &s->stages[s->of[chunk].stage];
}

/* Return true for steps that multiply by weights, and passes that make gradients. */
static inline bool parallel_job_uses_weights(const struct parallel_job *s, const struct pipeline_step *step)
{
    return step->pass != PIPELINE_WEIGHT || parallel_fetches_again(s->job, step->chunk);
}
static inline bool parallel_job_makes_gradient(uint32_t pass)
{
    return pass == PIPELINE_BACKWARD || pass == PIPELINE_WEIGHT;
}

/* Returns the size of a range for `bytes`, which may be 0. */
uint64_t parallel_job_range_bytes(uint64_t bytes);

/* Sizes all chunks' things and makes tables of variants, after chunks, stages and order. */
MUST_CHECK enum status parallel_job_size(struct parallel_job *s, struct arena *arena, struct error *err);

/* Writes the places of chunk r's thing, for the current microbatch, into its table. */
void parallel_job_assign_place(struct parallel_job *s, uint32_t r, enum parallel_job_thing thing, uint32_t in_table);

/* Take the variants that a step makes, and free those it uses last. */
void parallel_job_acquire(struct parallel_job *s, const struct pipeline_step *step);
void parallel_job_release(struct parallel_job *s, const struct pipeline_step *step);

/* Lays out the places that one minibatch needs at once. Errors: STATUS_INFEASIBLE, with job, stage and missing bytes;
 * STATUS_BAD_INPUT for swapped activations of a chunk without weights. */
MUST_CHECK enum status parallel_job_lay_out(struct parallel_job *s, struct error *err);

#endif
