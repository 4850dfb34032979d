/*
 * The buffers of a parallel job's chunk of layers, as the executor lays them out. models/job/parallel_memory.h has the
 * closed forms of the literature, for jobs that are only simulated.
 *
 * State and gradient are laid out like a shard's of these layers (models/job/memory.h); the tied table's part follows.
 * A chunk's embedding computes by itself, as in plans of spilled jobs (planner/plan.h), and then its other layers: a
 * chunk has one or two *pieces*.
 *
 *     state        [ blob of all layers | blob of the tied table's rows ]
 *     gradient     [ of all layers      | of the tied table, from the head ]
 *     activations  [ embedding's output (R, C) | as kept by the other layers ]
 *     workspace    [ embedding's output | its gradient | statistics of the loss | scratch of a pass over either piece ]
 *     handover     [ embedding's output | its gradient | layers' activations | gradients of each block ]
 *
 * The table's own blob exists where the head is on another stage than the embedding: two copies with equal values,
 * stepped with the same gradient, the sum of both ends'. On one stage the head reads the embedding's table, which is
 * stepped with that sum. The table's gradient from the head is in the head's chunk in either case. The embedding's
 * output is in the workspace only where its stage keeps nothing.
 *
 * The table's own blob has only weights where the table is frozen, and the gradient then has no table.
 *
 * Asynchronous schedules keep versions of the weights, which the passes read in place of the state: each a copy of the
 * beginning of the state, with the frozen weights, and then of the weights of the table's copy. The state has the
 * newest weights and their moments.
 *
 * Where the optimizer is on the host (offload "states"), states are laid out as shares (models/job/chunk_share.h), also
 * if a replica has all of one. The host has the whole state of a replica, its device the beginning: the weights; or
 * nothing, where the weights are on the host, too, and come up for each pass.
 *
 * A backward pass in two units has a buffer that the first one hands over to the second. It has activations only where
 * the first unit makes them (again), and gradients as in memory_block_gradients().
 *
 * Slices of tokens (terapipe) of a microbatch hand over keys and values, and their gradients: such a buffer lives from
 * the first slice's forward pass to its backward pass, and has all tokens of the sequence. Other buffers have room for
 * the largest slice. Offsets are a slice's own. Attention to earlier tokens has its own scratch, after a pass's.
 *
 *     handover     [ block 0: keys | values | gradients of keys | of values ][ block 1 ... ]     each (B, T, K D)
 *
 * Compressed boundaries are encoded in their buffers (models/cost/compression.h). A pass decodes those that it reads to
 * the end of the workspace, and makes others there before it encodes them.
 *
 *     workspace    [ ... | boundary in | gradient out | boundary out, or gradient in ]
 *
 * So are compressed activations, but for statistics of norms and attention and for routes of experts. A pass forward
 * makes them plain at the end of the workspace, and encodes them; a pass back decodes them there.
 *
 *     workspace    [ ... | activations, plain ]
 *
 * Devices of a tensor group have equal buffers, of the network's slice (network_slice()); boundaries are whole, or
 * a device's own rows (sequence parallelism). Their
 * head exchanges statistics of the loss.
 */
#ifndef SPILLWAY_MODELS_JOB_CHUNK_MEMORY_H
#define SPILLWAY_MODELS_JOB_CHUNK_MEMORY_H

#include "models/job/job.h"

enum { CHUNK_PIECES_MAX = 2, CHUNK_SECTIONS_MAX = 3, CHUNK_LOSS_NUMBERS = 3, CHUNK_CONTEXT_PARTS = 4 };

/* Parameters that replicas share among themselves, each a contiguous range (models/job/chunk_share.h). */
enum chunk_section_kind {
    CHUNK_SECTION_TABLE,  /* the embedding's tied table */
    CHUNK_SECTION_LAYERS, /* all others of the chunk's layers */
    CHUNK_SECTION_HEAD    /* the tied table as the head has it: a gradient, and a copy if the ends are on two stages */
};
struct chunk_section {
    uint64_t first, count; /* parameters, in the whole gradient */
    uint64_t share;        /* parameters of each replica's range; the last ones may have fewer */
    enum chunk_section_kind kind;
};

struct chunk_memory {
    struct parallel_layers pieces[CHUNK_PIECES_MAX];
    uint32_t piece_count;
    bool has_embedding;           /* pieces[0] */
    bool has_head;                /* in the last piece */
    bool inputs_only;             /* only inputs of layers are kept */
    uint64_t table_rows;          /* of a tied table's slice, in the head's chunk and in the embedding's; 0: none */
    bool copies_table;            /* the head has a copy: the embedding is on another stage */
    bool trains_table;            /* the table is not frozen */
    uint64_t table_offset;        /* of the embedding's table in the state of the first chunk */
    uint64_t table_state_offset;  /* of the copy ... */
    struct state_layout table_rows_layout; /* ... which has this layout, memory_state_rows() */
    uint64_t table_gradient_offset;
    uint32_t levels;              /* partial sums where gradients are added up as a tree; all have gradient_bytes ... */
    uint64_t level_bytes;         /* ... together */
    uint64_t loss_bytes;          /* of the loss and its partial sums */
    uint64_t kept_offset;         /* of the layers' activations */
    uint64_t d_between_offset;    /* in the workspace: the gradient of the embedding's output */
    uint64_t loss_offset;         /* in the workspace: CHUNK_LOSS_NUMBERS for each row of a piece */
    uint64_t scratch_offset;      /* in the workspace: a pass's */
    uint64_t handed_d_between_offset, handed_kept_offset, handed_gradients_offset; /* in the handover */
    uint64_t state_bytes, gradient_bytes, activation_bytes, workspace_bytes; /* of each replica */
    uint64_t value_bytes;         /* the beginning of the state, with all weights and their copies in full precision */
    uint64_t device_state_bytes;  /* the beginning of the state; less than all where the optimizer is on the host */
    uint64_t raised_bytes;        /* of the weights that go up after a host's step, or for a pass; 0: they are on the
                                     device */
    uint64_t raised_table_bytes;  /* of the embedding's table, which goes up to the head of another chunk, too; or 0 */
    uint64_t raised_table_offset; /* ... from there in the first chunk's state on the host */
    uint64_t handover_bytes;      /* 0: backward passes are one unit, and there are no slices of tokens */
    uint64_t context_bytes;       /* in the handover of slices: a block's keys, and each of the other three ... */
    uint64_t context_offset;      /* ... and in the workspace, the scratch of attention to earlier tokens */
    uint64_t whole_gradient_bytes; /* of a pass ... */
    uint64_t whole_weight_bytes;   /* ... and all weights that it reads, with the table's copy: the trained ones where
                                      the frozen ones stay in the state; 0: they are the state's */
    uint64_t frozen_bytes;         /* of the layers' frozen weights, with which a state that replicas split begins, and
                                      all weights that a pass reads */
    uint64_t table_weights_offset; /* of the head's copy of the table, in the state, a version or the whole weights */
    bool splits_states, splits_gradients, splits_weights; /* replicas have shares; else the rest is zero */
    bool gathers_table;            /* the head's weights are gathered with the embedding's table, of an earlier chunk */
    uint32_t ranks;
    uint64_t layer_part_bytes[STATE_PARTS]; /* of the layers' state, aligned */
    struct chunk_section sections[CHUNK_SECTIONS_MAX];
    uint32_t section_count;
    struct chunk_section frozen[CHUNK_SECTIONS_MAX]; /* frozen weights of which replicas have shares, too: in bytes,
                                                        from the beginning of all weights that a pass reads */
    uint32_t frozen_count;
    bool encodes_in, encodes_out; /* the boundaries before and after the chunk are encoded, ... */
    uint64_t boundary_numbers;    /* ... of these numbers (so is the embedding's output), whose plain places in the
                                     workspace are: */
    uint64_t plain_in_offset, plain_gradient_offset, plain_out_offset;
    enum compression_code kept_code; /* of activations; if it is not plain, these are plain in the workspace, ... */
    uint64_t plain_kept_offset, plain_kept_bytes;
    uint64_t coded_layers_offset; /* ... and the layers' code follows that of the embedding's output */
    uint64_t version_bytes;       /* of an asynchronous schedule's weights */
};

/* Describes what is common to all slices of tokens, or the slice of a job of parallel_slice(). */
struct chunk_memory chunk_memory(const struct job *job, struct parallel_layers layers);

#endif
