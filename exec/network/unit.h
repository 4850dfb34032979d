/*
 * Carries out one COMPUTE operation of a plan: forward, loss and backward of a range of layers, with each layer's
 * optimizer step as soon as its gradients are complete. Nothing is allocated.
 */
#ifndef SPILLWAY_EXEC_NETWORK_UNIT_H
#define SPILLWAY_EXEC_NETWORK_UNIT_H

#include <stdatomic.h>

#include "exec/kernels/kernels.h"
#include "exec/network/unit_group.h"
#include "models/job/memory.h"
#include "planner/plan.h"

/* Made once per (job, shard). */
struct unit_tables {
    struct memory_table parameters;  /* fp32: gradients and kept values */
    struct state_tables state;       /* the state blob */
    struct memory_table activations; /* kept activations */
    struct memory_table inputs;      /* with `inputs_only` */
    struct memory_table workspace[3][UNIT_WAYS]; /* by enum unit_pass and `how` */
};

MUST_CHECK enum status unit_tables_init(const struct job *job, const struct plan_shard *shard,
                                        struct arena *arena, struct unit_tables *out,
                                        struct error *err);
/* Makes tables for units that compute one microbatch each. */
MUST_CHECK enum status unit_tables_init_alone(const struct job *job, const struct plan_shard *shard,
                                              struct arena *arena, struct unit_tables *out, struct error *err);

/* The only microbatch that a unit computes. Zeroed: it computes all, one after the other. */
struct unit_microbatch {
    bool alone;
    bool adds;      /* `loss` and `gradient` have the sums of earlier microbatches, to which a backward pass adds */
    bool apart;     /* ... but `gradient` only takes this microbatch's */
    uint32_t index; /* within the minibatch, to whose loss in `loss` it adds; all buffers but `batch` have only this
                     * microbatch */
    uint32_t place, held; /* its index among the microbatches in `batch`, and their number; 0: all of the minibatch */
};

/*
 * Stops the steps of a job, on all its devices, at the first loss that is not finite, or the first gradient that is
 * not finite or whose step would not be: weights and moments stay as the last whole step left them. A loss is known
 * before the first step of its minibatch; a bad gradient may be found after steps of later layers.
 */
enum unit_guard_state { UNIT_GUARD_OPEN, UNIT_GUARD_LOSS, UNIT_GUARD_GRADIENT };
struct unit_guard {
    atomic_int state; /* enum unit_guard_state */
};

/*
 * The part of a device in a tensor group: all sizes are those of the network's slice (network_slice()), which is the
 * unit's network. Norms, biases of row products and boundaries are whole, and equal on all devices; where the group
 * cuts rows (sequence parallelism), boundaries, norms' rows and what is kept of them are a device's own.
 */
struct unit_split {
    struct unit_group *group;
    uint32_t rank, members;
    void *room; /* of a GPU: host memory for a member's values; NULL: they are in host memory */
    const struct network *whole; /* the network that was cut */
    uint64_t vocabulary;        /* of the whole network ... */
    uint64_t first_word, words; /* ... and the device's words of it; there may be none */
};

/* Adds a tensor's gradient, of which each half of a backward pass makes some, to a tree; offset: in the gradient. */
struct unit_carry {
    void (*add)(const void *context, uint64_t offset_bytes, uint64_t bytes);
    const void *context;
};

struct unit_arguments {
    const struct job *job;
    const struct unit_split *split; /* NULL: one device has the whole network */
    const struct plan_shard *shard;
    const struct unit_tables *tables;
    uint32_t pass;              /* PLAN_FORWARD, PLAN_LOSS, PLAN_BACKWARD, PLAN_UPDATE, PLAN_NORM,
                                   PLAN_EVALUATE; over blocks and one microbatch also PLAN_BACKWARD_INPUT and
                                   PLAN_BACKWARD_WEIGHT, a PLAN_BACKWARD in two */
    uint64_t minibatch;         /* from 0; the step is this + 1 */
    uint32_t round;             /* UPDATE of a stage with its own pace: minibatches of an update, whose mean gradient is
                                   taken, and of which `minibatch` counts the updates; 0: one */
    struct unit_microbatch microbatch;
    uint64_t first_row, row_count; /* of an embedding slice; 0, 0: all */
    void *state;                /* state blob; only its weights in a forward pass or with a gradient; for a slice
                                   memory_state_rows() */
    void *base;                 /* frozen weights, which are only read, of a job that shares them; NULL: they begin
                                 * the state */
    void *version;              /* parallel jobs, LOAD and UPDATE: a version of the weights that is made */
    float *gradient;            /* laid out like the parameters: written by a backward pass that does not update,
                                   read by UPDATE and NORM; NULL: updates follow at once */
    float *levels;              /* of a chunk: partial sums of a tree of gradients (exec/network/chunk.h) */
    const struct unit_carry *carry; /* takes each complete gradient of a tensor after the embedding; may be NULL */
    double *norms;              /* if it clips: sums of squares of all tensors' gradients; a NORM writes its
                                   shard's, an UPDATE reads all */
    const void *table;          /* tied token table, in the format of weights */
    float *table_gradient;      /* from the head to the embedding's backward pass; for a slice its rows; may be NULL */
    const int32_t *batch;       /* as in job_batch_bytes() */
    const int32_t *begins;      /* (B,T) of the pass's samples, packed rows: the first token of each token's own row
                                   ... */
    const int32_t *position_rows; /* ... and the row of its position, which restarts there, in the embedding's tables;
                                     NULL: samples are not packed */
    double *loss;
    uint64_t targets;           /* of a minibatch of rows, or of a masked language model, over which the loss is the
                                   mean; 0: all microbatches have equally many */
    kernel_number *boundary_in; /* (R, C), the shard's input; NULL for shard 0 */
    kernel_number *boundary_out; /* NULL for the last shard */
    const kernel_number *gradient_in; /* of its output; NULL for the last shard */
    kernel_number *gradient_out; /* of its input; NULL for shard 0 */
    kernel_number *activations; /* kept from forward to backward; NULL: recompute */
    bool inputs_only;           /* layers are recomputed one at a time: UNIT_INPUTS (models/job/memory.h) */
    kernel_number *handed_activations; /* from a BACKWARD_INPUT to its BACKWARD_WEIGHT: all activations, where the
                                          forward pass did not keep them ... */
    kernel_number *handed_gradients; /* ... and memory_block_gradients() of each block */
    kernel_number *context;     /* of a slice of tokens: keys, values and their gradients of all tokens, for each
                                   block ... */
    uint64_t context_bytes;     /* ... this long each (models/job/chunk_memory.h) ... */
    float *context_scratch;     /* ... and the scratch of attention to earlier tokens */
    float *workspace;
    float *loss_statistics;     /* of a head with `split`: three numbers for each row of a piece of logits */
    struct unit_guard *guard;   /* may be NULL. Requires kernels that end before they return and leave results in
                                   host memory */
};

void unit_compute(const struct kernels *kernels, const struct unit_arguments *arguments);

/* Sums of squares are added in the order of tensors. */
double unit_norm(const struct job *job, const double *norms);

/* Returns NULL if the executor can train this job, else the reason. Borrowed by the calling thread until its next
 * call. */
const char *unit_unsupported(const struct job *job);

/* Returns a kernel that this job needs and the table lacks, or NULL. Borrowed. */
const char *unit_missing_kernel(const struct kernels *kernels, const struct job *job);

#endif
