/*
 * The memory layout of a parallel job: what each device of its stages holds, how much at once, and where.
 *
 * A pass that makes activations, a boundary or a gradient takes the lowest free variant of that kind and chunk. The
 * last pass that uses it frees the variant. So the number of variants is the largest number alive at once in the order
 * of the passes. Where ranks keep shares, whole weights and gradients of several chunks use the same memory in turn:
 * they lie in *rings*, a few slots, each as large as the largest chunk of the stage. Every variant has its own place,
 * the same on all devices of the stage:
 *
 *     [ states | gradients | versions | workspace | ring of weights | ring of gradients | activations 0, 1, ... |
 *       boundaries | their gradients ]
 *
 * On one stage, and between the buckets of a stage, gradients of boundaries alternate between two places, because each
 * is made by the pass that uses up the gradient of the next boundary.
 *
 * Swapped activations of all chunks share n places of the largest chunk's size, n being the number that fits: chunk r
 * has place r mod n (the last chunk has its own place if it is larger). The last n chunks stay on the device. Chunk r +
 * n takes the place of chunk r when chunk r's copy to the host has ended. Chunk r comes back when the backward pass of
 * chunk r + n has freed the place. Earlier jobs of the file take all places they can use; later jobs on the same
 * devices get the rest.
 *
 * Recomputed chunks (planner/parallel/parallel_job_recompute.h) do not share these places: the little that they keep
 * has its own place, and stays.
 *
 *     n = 3   forward   0 1 2 0 1 2 0 1      chunks 0 to 4 leave; 5, 6, 7 stay
 *             backward  1 0 2 1 0 2 1 0      4 comes back after chunk 7, 3 after chunk 6, ...
 *
 * Asynchronous schedules do not end with a minibatch, so their microbatches use n places in turn: microbatch m of a
 * replica has place m mod n. If stages take turns by themselves (parallel_turns()), the boundary between two stages has
 * different places on both: variant k f + j is place k on its own stage and place j of f on the previous stage.
 * Microbatches in flight are counted modulo the largest possible number. Versions of weights use their slots in turn as
 * well. Synchronous schedules whose stages take turns by themselves do the same within each minibatch, with the number
 * of places that their order needs.
 *
 * The chunks of a stage share a workspace, because their passes follow each other.
 */
#ifndef SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_LAYOUT_H
#define SPILLWAY_PLANNER_PARALLEL_PARALLEL_JOB_LAYOUT_H

#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/parallel/pipeline/pipeline.h"
#include "planner/parallel/parallel_job_times.h"
#include "planner/walk/plan_build.h"

/* Data that lives between passes, one of each kind per microbatch in flight. */
enum parallel_job_thing { PARALLEL_JOB_ACTIVATIONS, PARALLEL_JOB_BOUNDARY, PARALLEL_JOB_GRADIENT, PARALLEL_JOB_THINGS };

/* A variant in the plan: indexes + 1, once they are known. */
struct parallel_job_variant {
    uint32_t buffer;
    uint32_t slots[2]; /* on the chunk's own stage, and on the previous stage */
};

/* The variants of one kind of data of one chunk. */
struct parallel_job_pool {
    uint32_t *variant_of;                  /* [microbatch] */
    struct parallel_job_variant *variants; /* the first variant_room variants */
    uint32_t variant_room;
    uint32_t *free;       /* a bit for each variant; all 0: no variant is free */
    uint32_t free_count, made;
    uint32_t front; /* number of places on the previous stage if it differs; 0: equal to `made` */
    uint64_t bytes;
    uint64_t offset[2];   /* of variant 0 on the chunk's own stage, and on the previous stage */
};

/* An emitted pass over a chunk, and its variants (planner/parallel/parallel_job_cache.h). */
struct parallel_job_pass_variants {
    uint32_t activations, boundary, behind, gradient; /* `behind`: the boundary between this chunk and the next */
};
struct parallel_job_cached_pass {
    bool some;
    uint32_t instance;
    struct parallel_job_pass_variants with;
};

/* Slots that are taken one after the other and freed in the same order. */
struct parallel_job_ring {
    uint32_t slots;
    uint32_t taken, given; /* in this minibatch */
    uint64_t offset, bytes; /* of slot 0; of each */
};

/* The work of a pass over a chunk, the same for every microbatch. */
struct parallel_job_work {
    bool known;
    uint32_t work; /* PLAN_NONE: nothing */
};

/* The collectives of the tensor group in a pass, the same for every microbatch. */
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
    struct rank_state host;                                  /* of each rank, where states are offloaded */
    uint64_t state_offset, gradient_offset;
    bool swaps;             /* its activations are copied to the host after the forward pass and come back */
    bool gathers;           /* its weights are gathered for each pass, from the ranks' shares or from the host */
    bool scatters;          /* each pass makes its own gradient; ranks add shares of it, or the host adds all */
    bool joins;             /* ranks sum its gradient */
    bool tied;              /* the first and the last stage sum it, too */
    bool updated;           /* in this minibatch */
    uint32_t passes_left;   /* backward passes of this minibatch */
    uint32_t versions;      /* asynchronous schedules: versions of its weights at once; 0: in the state */
    uint64_t version_bytes, version_offset;
    uint64_t version;       /* read by the current unit ... */
    bool version_ends;      /* ... for the last time */
};

struct parallel_job_stage {
    uint32_t gang;
    uint32_t turns, first_turn; /* number of replicas that alternate, and first of their gangs; 1: all in step */
    uint32_t start, lag;        /* asynchronous schedules: the tick of its first pass, ticks between both passes */
    uint64_t workspace_offset, end;
    struct parallel_job_ring weights, gradients;
    struct parallel_job_ring staged_weights, staged_states; /* in host memory, of each rank, on their way from
                                                               storage */
    uint64_t staged_end;
    uint64_t steps, steps_left; /* of a minibatch; of this one */
    uint64_t first_gathering;   /* the first step that multiplies by gathered weights ... */
    uint64_t next_gathering;    /* ... and the one to gather for next; order.count: none */
};

struct parallel_job {
    struct plan_builder *builder;
    const struct plan *plan;
    const struct job *job;
    struct job sliced;       /* the job with the slice of the current pass */
    const struct parallel *parallel;
    uint32_t index;          /* of the job */
    uint32_t chunks, microbatches;
    struct parallel_job_chunk *of;   /* per chunk */
    struct parallel_job_stage *stages;
    uint64_t microbatch;        /* index of the current pass's microbatch, if stages take turns */
    uint64_t *gathering_behind; /* per step: the next step of its stage that multiplies by gathered weights */
    uint32_t *completed;        /* chunks whose gradients of this minibatch are complete, in that order */
    uint32_t completed_count;
    struct parallel_job_times times;
    struct pipeline_order order;
    uint32_t ends_gang;      /* gang of first and last stage, if they sum a tied table's gradients */
    uint64_t joined_bytes;   /* of such a gradient; 0: they do not sum one */
    uint32_t ends_left;      /* of this minibatch: chunks with such a gradient that is not complete */
    uint64_t base_bytes;     /* where other jobs' memory on these devices ends ... */
    uint64_t staged_base_bytes; /* ... and what their ranks stage */
    bool refreshes;          /* an update was delayed: its weights are copied up in this minibatch */
    double in_s, out_s; /* of the first stage's states (planner/plan_charges.h) */
    double estimated_end_s;
};

static inline const struct parallel_job_stage *parallel_job_stage_of(const struct parallel_job *s, uint32_t chunk)
{
    return &s->stages[s->of[chunk].stage];
}

/* Return true for passes that multiply by weights, and for passes that make gradients of them. */
static inline bool parallel_job_uses_weights(uint32_t pass)
{
    return pass != PIPELINE_WEIGHT;
}
static inline bool parallel_job_makes_gradient(uint32_t pass)
{
    return pass == PIPELINE_BACKWARD || pass == PIPELINE_WEIGHT;
}

/* Returns the size of a range of its own for `bytes`, which may be 0. */
uint64_t parallel_job_range_bytes(uint64_t bytes);

/* Bytes of all chunks' things; tables for variants. When chunks, stages and order are there. */
MUST_CHECK enum status parallel_job_size(struct parallel_job *s, struct arena *arena, struct error *err);

/* Writes the places of a thing of chunk r, for the current microbatch, into its table. */
void parallel_job_assign_place(struct parallel_job *s, uint32_t r, enum parallel_job_thing thing, uint32_t in_table);

/* Take the variants that a step makes, and free the variants that it uses for the last time. */
void parallel_job_acquire(struct parallel_job *s, const struct pipeline_step *step);
void parallel_job_release(struct parallel_job *s, const struct pipeline_step *step);

/* Lays out the places of each kind, in the number that one minibatch needs at once.
 * Errors: STATUS_INFEASIBLE, naming job, stage and bytes missing; STATUS_BAD_INPUT for activations that are swapped of
 * a chunk without weights. */
MUST_CHECK enum status parallel_job_lay_out(struct parallel_job *s, struct error *err);

#endif
