/*
 * Carries out one COMPUTE operation of a plan with a kernel table: forward, loss and backward of a range of layers of
 * a network, with the optimizer step of each layer as soon as its gradients are complete. All memory is passed as
 * pointers; nothing is allocated.
 */
#ifndef SPILLWAY_EXEC_NETWORK_UNIT_H
#define SPILLWAY_EXEC_NETWORK_UNIT_H

#include <stdatomic.h>

#include "exec/kernels/kernels.h"
#include "models/job/memory.h"
#include "planner/plan.h"

/* The tables of a shard, made once per (job, shard) before the run. */
struct unit_tables {
    struct memory_table parameters;  /* fp32: layout of gradients and of kept values */
    struct state_tables state;       /* the state blob */
    struct memory_table activations; /* kept activations */
    struct memory_table inputs;      /* kept instead with `inputs_only` */
    struct memory_table workspace[3][UNIT_WAYS]; /* by enum unit_pass and `how` */
};

MUST_CHECK enum status unit_tables_init(const struct job *job, const struct plan_shard *shard,
                                        struct arena *arena, struct unit_tables *out,
                                        struct error *err);

/*
 * Stops the steps of a job. The guard closes at the first loss of the job that is not finite, or at the first
 * gradient of a tensor that is not finite or whose step would not be. No further step of the job is made, so its
 * weights and moments stay as the last whole step left them. A loss is known before the first step of its minibatch;
 * a bad gradient may be found after steps of later layers. All devices of a job share the guard.
 */
enum unit_guard_state { UNIT_GUARD_OPEN, UNIT_GUARD_LOSS, UNIT_GUARD_GRADIENT };
struct unit_guard {
    atomic_int state; /* enum unit_guard_state */
};

struct unit_arguments {
    const struct job *job;
    const struct plan_shard *shard;
    const struct unit_tables *tables;
    uint32_t pass;              /* PLAN_FORWARD, PLAN_LOSS, PLAN_BACKWARD, PLAN_UPDATE, PLAN_NORM,
                                   PLAN_EVALUATE */
    uint64_t minibatch;         /* from 0; the optimizer's step is this + 1 */
    uint64_t first_row, row_count; /* rows of an embedding slice; 0, 0: all rows */
    void *state;                /* state blob; only its weights in a forward pass or with a gradient; for a slice
                                   the state of its rows (memory_state_rows()) */
    float *gradient;            /* gradient of the parameters, laid out like them: written by a backward pass that
                                   does not update, read by an UPDATE and a NORM; NULL: updates follow at once */
    double *norms;              /* for a job that clips: sums of squares of all its tensors' gradients; a NORM
                                   writes the sums of its shard, an UPDATE reads all */
    const void *table;          /* tied token table for the head, in the format of weights */
    float *table_gradient;      /* written by the head, read by the embedding's backward pass; for a slice: its
                                   rows; NULL if the slice has no tokens */
    const int32_t *batch;       /* laid out as described at job_batch_bytes() */
    double *loss;
    float *boundary_in;         /* (R, C), the shard's input; NULL for shard 0 */
    float *boundary_out;        /* the shard's output; NULL for the last shard */
    const float *gradient_in;   /* gradient of its output; NULL for the last shard */
    float *gradient_out;        /* gradient of its input; NULL for shard 0 */
    float *activations;         /* kept between forward and backward pass; NULL: recompute */
    bool inputs_only;           /* only inputs of layers are kept, and layers are recomputed one at a time:
                                   UNIT_INPUTS (models/job/memory.h) */
    float *workspace;
    struct unit_guard *guard;   /* NULL: steps are always made. Requires kernels that end before they return and
                                   leave their results in host memory */
};

void unit_compute(const struct kernels *kernels, const struct unit_arguments *arguments);

/* Returns the norm of all gradients of a job from the sums of squares of its tensors, added in their order. */
double unit_norm(const struct job *job, const double *norms);

/* Returns NULL when the executor can train this job, else the reason why not ("networks of family 'profile' ...").
 * Borrowed by the calling thread until its next call. */
const char *unit_unsupported(const struct job *job);

/* Returns the name of a kernel that training this job needs and the table lacks; NULL when it has all. Borrowed. */
const char *unit_missing_kernel(const struct kernels *kernels, const struct job *job);

#endif
