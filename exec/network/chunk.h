/*
 * Carries out a pass of a parallel job over a chunk of layers and one microbatch (models/job/chunk_memory.h), as units
 * over its pieces. The sums of gradients over microbatches have the order of a job on one device, and so the bits.
 *
 *     FORWARD   the embedding, then the other layers; the head only in the backward pass
 *     EVALUATE  the same over held-out data, with the head's loss; nothing is kept
 *     BACKWARD  the head, forward and backward, then the other layers, then the embedding; gradients are added to the
 *               sums of earlier microbatches
 *     BACKWARD_INPUT, BACKWARD_WEIGHT   the same in two: the embedding and the gradients of the blocks' linear layers
 *                                       are
 *               in the second. Each adds to the sums of earlier microbatches by itself
 *     REDUCE    the gradient that replicas exchange becomes its code, in place
 *     NORM      of a job that clips: the sums of squares of all tensors' gradients, or of a share of them
 *     LOAD      with versions of the weights: the state's weights become the first one
 *     UPDATE    steps of all tensors, and the next version. A tied table's two gradients are added first, unless a JOIN
 *               or a NORM did so
 */
#ifndef SPILLWAY_EXEC_NETWORK_CHUNK_H
#define SPILLWAY_EXEC_NETWORK_CHUNK_H

#include "exec/network/unit.h"
#include "models/job/chunk_share.h"

/* Made once per chunk. */
struct chunk_tables {
    const struct job *job;                      /* with the network's slice in a tensor group */
    struct chunk_memory memory;
    struct plan_shard shards[CHUNK_PIECES_MAX]; /* one for each piece */
    struct unit_tables units[CHUNK_PIECES_MAX]; /* states and parameters as laid out for the whole chunk */
    struct state_tables state;                  /* of the chunk, without the tied table's copy */
    struct memory_table parameters;             /* likewise */
    struct memory_table coded;                  /* encoded activations of the last piece (models/job/memory_layout.h);
                                                   empty without such a code */
    const struct chunk_share *shares;           /* of each replica; NULL: all have everything */
    const struct chunk_tables *slices;          /* for passes over each slice of tokens; NULL: none */
};

MUST_CHECK enum status chunk_tables_init(const struct job *job, uint32_t job_index, struct parallel_layers layers,
                                         struct arena *arena, struct chunk_tables *out, struct error *err);

struct chunk_arguments {
    const struct job *job;
    const struct chunk_tables *tables;
    const struct unit_split *split; /* NULL without a tensor group */
    uint32_t pass;            /* PLAN_FORWARD, PLAN_BACKWARD, PLAN_BACKWARD_INPUT, PLAN_BACKWARD_WEIGHT, PLAN_NORM,
                               * PLAN_REDUCE, PLAN_UPDATE, PLAN_EVALUATE or PLAN_LOAD */
    uint32_t rank;            /* the replica's number */
    uint64_t minibatch;
    uint32_t round;           /* as in struct unit_arguments */
    struct unit_microbatch microbatch;
    void *state;              /* or, in passes, the gathered weights of replicas that share them, or a version */
    void *version;            /* LOAD, UPDATE: the version made; NULL: none */
    float *gradient;          /* of backward passes: of all parameters; UPDATE: what the replica keeps of it */
    const void *table;        /* BACKWARD, BACKWARD_INPUT, EVALUATE of a head without a copy of its tied table: the
                               * embedding's state */
    const float *table_gradient; /* UPDATE (if the job clips, NORM) of that embedding: chunk_table_gradient() or
                               * chunk_share_gradient() of the head's chunk */
    float *levels;            /* backward passes where gradients are added up as a tree: chunk_memory's partial sums;
                                 may be
                               * NULL. `loss` has its own after it */
    const struct unit_carry *carry; /* as in struct unit_arguments */
    double *norms;            /* NORM, UPDATE of a job that clips: of all tensors of the network */
    const int32_t *batch;     /* of the minibatch; NULL without embedding and head */
    const int32_t *begins, *position_rows; /* as in struct unit_arguments, of the microbatch */
    uint64_t targets;         /* as in struct unit_arguments */
    double *loss;             /* of the last chunk; in an evaluation the held-out one */
    kernel_number *boundary_in; /* NULL for the first chunk */
    kernel_number *boundary_out; /* NULL for the last chunk */
    const kernel_number *gradient_in; /* likewise, of its output */
    kernel_number *gradient_out; /* NULL for the first chunk */
    kernel_number *activations; /* NULL: nothing is kept */
    kernel_number *handover; /* BACKWARD_INPUT, BACKWARD_WEIGHT; passes over slices of tokens */
    void *workspace;
    struct unit_guard *guard; /* as in struct unit_arguments */
};

/* Copies the embedding's rows from the first chunk's state to the head's copy, if the chunk has one. */
void chunk_fill_table(const struct chunk_tables *tables, void *state, const struct chunk_tables *first,
                      const void *first_state);

/* Returns where the head's chunk has the tied table's gradient, within its gradient. */
static inline float *chunk_table_gradient(const struct chunk_tables *tables, float *gradient)
{
    return gradient + tables->memory.table_gradient_offset / sizeof *gradient;
}

/* Returns the gradient of the replica's range of a section, within the gradient that the replica keeps. */
float *chunk_share_gradient(const struct chunk_tables *tables, float *gradient, enum chunk_section_kind section,
                            uint32_t rank);

/* Steps the replica's share of the parameters, from its share of the gradient. */
void chunk_update_share(const struct kernels *kernels, const struct chunk_arguments *arguments);

/* Adds up the squares of the share of the gradient, after a table's second gradient: into the norms of the chunk's
 * tensors, with the tensor group's. */
void chunk_norm_share(const struct kernels *kernels, const struct chunk_arguments *arguments);

/* Returns the part of a device in a tensor group of the job. */
struct unit_split chunk_split(const struct job *job, struct unit_group *group, uint32_t rank);

void chunk_compute(const struct kernels *kernels, const struct chunk_arguments *arguments);

#endif
