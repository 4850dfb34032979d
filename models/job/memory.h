/*
 * Tables of tensors in buffers, by which the executor allocates and the planner counts.
 *
 * A *state blob* is one piece per shard: frozen weights, the other weights as passes read them, the fp32 master of
 * 16-bit weights, and the optimizer's moments (AdamW: all first, then all second; momentum: all sums). The part that a
 * pass needs comes first, and so do all full-precision values; what an update changes comes last, after the frozen
 * weights. Parts list the same tensors in the same order, each in its own format; absent tensors have 0 bytes. Tensors
 * start on 64-byte boundaries, except that rows of an embedding's tables have no padding: any range of rows can be a
 * shard (a slice), and updating slices is the arithmetic of updating the whole.
 *
 *     [ frozen | weights | master of matrices | first moments | second moments ]
 *       ^ t0 ...  ^ t1 t2 ...
 *
 *     bytes per element of a matrix, AdamW        in a pass   weights  master  moments  together
 *     all fp32                                        4          4               4 + 4     12
 *     bf16 or bf16-weights                            2          2        4      4 + 4     14
 *     moments in bf16                                 4          4               2 + 2      8
 *     both                                            2          2        4      2 + 2     10
 */
#ifndef SPILLWAY_MODELS_JOB_MEMORY_H
#define SPILLWAY_MODELS_JOB_MEMORY_H

#include <stdint.h>

#include "base/arena.h"
#include "models/network/network.h"

enum { MEMORY_ALIGNMENT = 64 };

enum state_part { STATE_FROZEN, STATE_WEIGHTS, STATE_MASTER, STATE_FIRST, STATE_SECOND, STATE_PARTS };

/* A missing part has 0 bytes. */
struct state_layout {
    struct {
        uint64_t offset_bytes, bytes;
        uint64_t row_bytes; /* of an embedding's tables */
    } parts[STATE_PARTS];
    uint64_t bytes;
};

struct memory_entry {
    char name[96];
    uint64_t layer;
    uint64_t offset_bytes;
    uint64_t bytes;
    bool rounded; /* of weights: 16 bits */
};

struct memory_table {
    struct memory_entry *entries;
    uint32_t count;
    uint64_t bytes; /* aligned end */
};

/* Offsets are relative to the part. */
struct state_tables {
    struct state_layout layout;
    struct memory_table parts[STATE_PARTS]; /* all with equally many entries; the frozen ones also where they are
                                             * apart, and the layout has no bytes for them */
};

/* Returns tables of a blob of only fp32 values laid out by memory_parameters(), such as kept values. */
static inline struct state_tables state_tables_of_values(struct memory_table parameters)
{
    struct state_tables tables = {0};
    tables.parts[STATE_WEIGHTS] = parameters;
    tables.layout.parts[STATE_WEIGHTS].bytes = tables.layout.bytes = parameters.bytes;
    return tables;
}

/* Lists the parameters of layers [first_layer, first_layer + layer_count), fp32 for every precision: the layout of
 * gradients and of kept values. Frozen ones have 0 bytes. */
MUST_CHECK enum status memory_parameters(const struct network *network, uint64_t first_layer,
                                         uint64_t layer_count, struct arena *arena,
                                         struct memory_table *out, struct error *err);

/* Counts these layers' tensors that are trained. */
uint64_t memory_tensor_count(const struct network *network, uint64_t first_layer,
                             uint64_t layer_count);

/* Returns the bytes of a double for each tensor of the network. */
static inline uint64_t memory_norm_bytes(const struct network *network)
{
    return memory_tensor_count(network, 0, network->layer_count) * sizeof(double);
}

/* Return the trained parameters' fp32 bytes, and the state's layout, without tables. */
uint64_t memory_parameter_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count);
struct state_layout memory_state(const struct network *network, uint64_t first_layer,
                                 uint64_t layer_count, struct state_format format);
MUST_CHECK enum status memory_state_tables(const struct network *network, uint64_t first_layer,
                                           uint64_t layer_count, struct state_format format,
                                           struct arena *arena, struct state_tables *out,
                                           struct error *err);

/* Returns the place in a part of the state, in bytes from the part's beginning, of the parameter at byte `at` of
 * memory_parameters(). A place between two tensors counts as the beginning of the second, so that a range of parameters
 * is a range of each part. */
uint64_t memory_state_offset(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                             struct state_format format, enum state_part part, uint64_t at);

/* Lays out rows that are moved together. fp32 parts come before bf16 parts, so that all are aligned for any number of
 * rows. */
struct state_layout memory_state_rows(const struct network *network, uint64_t rows,
                                      struct state_format format);

/* Counts what passes read, at the start of a blob: frozen and other weights. */
static inline uint64_t state_weight_bytes(const struct state_layout *layout)
{
    return layout->parts[STATE_FROZEN].bytes + layout->parts[STATE_WEIGHTS].bytes;
}

/* Counts weights and master at the start of a blob. */
static inline uint64_t state_value_bytes(const struct state_layout *layout)
{
    return state_weight_bytes(layout) + layout->parts[STATE_MASTER].bytes;
}

/* Counts what updates change, at the end of a blob; 0: nothing is trained. */
static inline uint64_t state_trained_bytes(const struct state_layout *layout)
{
    return layout->bytes - layout->parts[STATE_FROZEN].bytes;
}

/*
 * Lists activations that a forward pass keeps for the backward pass, including the input of each layer except the
 * first (the boundary). Entries are "L.what" with L the layer's number, in a precision; statistics are fp32.
 *
 *   gpt2 blocks       norm1 (R,C)  norm1_stats (R,2)  qkv (R,3HD)  attention (R,HD)
 *                     attention_stats (B,H,T)  middle (R,C)  norm2 (R,C)  norm2_stats (R,2)
 *                     fc (R,F)  gelu (R,F)  output (R,C)
 *   vit blocks        the same with q, k, v (R,HD) instead of qkv
 *   llama blocks      the same with q (R,HD)  k, v (R,KD) instead of qkv, K heads of keys and values;
 *                     q and k after rotation; gate, up, swiglu (R,F) instead of fc and gelu; norms keep one
 *                     number per row
 *   blocks with experts   before gate: shared_gate, shared_up, shared_swiglu (R,S), shared_made (R,C+1), if all tokens
 *                     have an expert in common; router (R,E), routes (4 R k + E + 1), sent, returned (R k,C); then
 *                     gate, up and swiglu have R k rows. The C columns of shared_made and returned are there for each
 *                     piece ("tensor_pieces")
 *   t5 blocks         q, k, v; in the decoder also cross_norm, cross_q, cross_attention, ..., and cross_k, cross_v
 *                     with the encoder's rows; the decoder's first block passes on the normed result of the encoder
 *                     (encoded)
 *   bert blocks       q  k  v  attention  attention_stats  middle (R,C: before its norm)  norm1
 *                     norm1_stats  fc  gelu  sum (R,C: before its norm)  norm2_stats  output
 *   heads             normf (R,C)  normf_stats (R,2); bert: also transform (R,C)  gelu (R,C); vit:
 *                     class (B,C)  normf (B,C)  normf_stats (B,2)
 *   embeddings        nothing
 *   opaque layers     activations; for operations (models/network/network_graph.h) the tensors that a layer keeps
 *
 * middle is the residual stream after attention. The last layer's output is the next shard's boundary buffer.
 */
MUST_CHECK enum status memory_activations(const struct network *network, uint64_t first_layer,
                                          uint64_t layer_count, uint64_t microbatch,
                                          uint64_t sequence, uint32_t precision, struct arena *arena,
                                          struct memory_table *out, struct error *err);
uint64_t memory_activation_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                                 uint64_t microbatch, uint64_t sequence, uint32_t precision);

/*
 * Lists activations kept when a backward pass recomputes one layer at a time: "L.input" (R,C) of each layer except the
 * first.
 * Source: Chen et al., arXiv 1604.06174, section 4, with one layer to a segment.
 */
MUST_CHECK enum status memory_inputs(const struct network *network, uint64_t first_layer,
                                     uint64_t layer_count, uint64_t microbatch, uint64_t sequence,
                                     uint32_t precision, struct arena *arena, struct memory_table *out,
                                     struct error *err);
uint64_t memory_input_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                            uint64_t microbatch, uint64_t sequence, uint32_t precision);

/*
 * Scratch memory of a computation. `how` is a sum of
 *   UNIT_KEEP           activations are kept in a separate buffer (a forward pass writes them, the backward pass
 *                       reads them); never with LOSS
 *   UNIT_GRADIENTS_OUT  gradients of the parameters are in a separate buffer too: the update happens elsewhere
 *   UNIT_INPUTS         only the inputs of layers are kept (memory_inputs()), in the buffer of UNIT_KEEP; no effect
 *                       without UNIT_KEEP, except that LOSS holds them in this workspace
 *   UNIT_ACCUMULATE     the gradients of several microbatches are added up
 *   UNIT_ROUNDED        weights are bf16, and so are copies of the operands that they are multiplied by
 *   UNIT_HALF           activations and their gradients have 16 bits; weight gradients, logits and scratch are fp32
 *   n UNIT_LEVEL        sums over microbatches are a tree, of which n partial sums wait
 * Each pass has its row's entries; unneeded entries have 0 bytes. `layer` is the first layer of the range.
 *
 *   FORWARD   keep, d_stream, d_stream2, gathered, scratch, logits, rounded
 *   BACKWARD  gradients, d_stream, d_stream2, d_qkv, d_wide, gathered, norm_parts, scratch, logits, activations, sums,
 *             rounded, d_rounded, head, levels; all also adapter
 *   LOSS      as BACKWARD, and inputs
 *
 *   keep         one layer's activations (for a forward pass that keeps nothing, or only inputs)
 *   d_stream2    (R,C), or (R,HD) if that is wider: gradient of one branch. It is added to the gradient of the
 *                residual stream, which is in the outgoing boundary gradient
 *   d_stream, d_stream2   in a forward pass that keeps nothing: the two residual streams that layers
 *                read and write alternately; of operations also the gradients of two cuts in a backward pass
 *   gradients    of the largest layer. Each layer is updated as soon as its gradients are complete, or they
 *                are added to the sums of earlier microbatches. 0 for the embedding of gpt2 and llama, which adds
 *                up its rows in place. A tied table's gradient has a separate buffer and is not in the head's. 0 where
 *                a tree adds up: each microbatch's gradients are a partial sum
 *   sums         of the gradients of all layers, unless they have a separate buffer; only with
 *                UNIT_ACCUMULATE
 *   levels       partial sums of a tree, each as in memory_level(); only with UNIT_LEVEL
 *   head, inputs activations kept by the head, and the inputs as laid out by memory_inputs(); only with
 *                UNIT_INPUTS. The head computes in a BACKWARD where its forward pass is a unit of its own
 *   rounded      the input of a linear layer in bf16, d_rounded the gradient of its output, for the widest layer;
 *                only with UNIT_ROUNDED. With UNIT_HALF d_rounded is the gradient of logits in 16 bits
 *   d_qkv        (R,3HD), for llama (R,(H+2K)D): gradients of q, k and v, one after the other unless
 *                they are kept as one tensor      d_wide  (R,F), for llama two of them: gate, then up; at least (R,C)
 *                where norms follow attention. With experts (R k,F) each, then (R k,C), (R,E) and for the expert of all
 *                tokens (R,S), (R,S): gradients of its gate, up, sent or returned, router, and so on; then for each
 *                piece (R,k) of the chosen ones' weights and (R) of that expert's factor
 *   logits       (r,V) with r = network_logit_rows(), the rows of a piece, or (B,classes)
 *   scratch      attention: with UNIT_ROUNDED first memory_attention_copies(), then the larger of
 *                memory_attention_tiles(), with UNIT_HALF memory_attention_half_tiles(), and
 *                memory_attention_library(), and (R,C) for blocks side by side or with
 *                dropout; embedding: two sorted lists of (row, token) pairs of 8 bytes, for bert's norm then two (R,C)
 *                and one (R,2); vit: the patches, as pixels and embedded; operations: models/network/graph_places.h
 *   adapter      (R,rank), backward twice: the input of a linear layer times A, and its gradient; only with adapters
 *   gathered     (R,C), for the heads of bert and vit two: rows of all members, where a tensor group cuts them
 *   norm_parts   (2,C): gradients of a norm's weights, from a part of the rows; both only in slices of a network
 *   activations  as laid out by memory_activations(), if they are recomputed; an entry of that table is at this
 *                entry's offset plus its own. With UNIT_INPUTS only one layer's activations, without its output
 *                and not of the head
 */
enum { MEMORY_ATTENTION_TILE = 64, MEMORY_ATTENTION_LANES = 32, MEMORY_ATTENTION_HALF_TILES = 7,
       MEMORY_EMBEDDING_WORDS = 4 };
enum unit_pass { UNIT_FORWARD, UNIT_BACKWARD, UNIT_LOSS };
enum { UNIT_KEEP = 1, UNIT_GRADIENTS_OUT = 2, UNIT_INPUTS = 4, UNIT_WAYS = 8, UNIT_ACCUMULATE = 8,
       UNIT_ROUNDED = 16, UNIT_HALF = 32, UNIT_LEVEL = 64 };

/*
 * A partial sum of a tree over microbatches, in the workspace of a pass: the gradients of these layers' parameters,
 * laid out as by memory_parameters(), of the tied table, from the head, and the loss. An embedding of tokens adds up
 * its rows in place: of it only the gradient of bert's norm is there.
 */
struct memory_level {
    uint64_t table_offset, loss_offset;
    uint64_t bytes; /* aligned */
};
struct memory_level memory_level(const struct network *network, uint64_t first_layer, uint64_t layer_count);

/* B samples of T tokens, heads of queries, heads of keys and values, all D wide. */
struct attention_sizes {
    uint64_t samples, tokens, heads, kv_heads, head_width;
};

/* Returns attention's 4-byte numbers: two tiles of MEMORY_ATTENTION_TILE x T for each head in use, at most
 * MEMORY_ATTENTION_LANES. */
uint64_t memory_attention_tiles(struct attention_sizes s);

/* Returns the same for attention of bf16 numbers: each head in use also has MEMORY_ATTENTION_HALF_TILES tiles of
 * MEMORY_ATTENTION_TILE x D, of operands and sums in fp32. */
uint64_t memory_attention_half_tiles(struct attention_sizes s);

/*
 * Returns the 4-byte numbers of a bf16 library (exec/cuda/attention_cudnn.c) that computes heads with shared keys
 * separately. Backward: 2 bytes per pair of tokens, and gradients of 2 bytes per shared head of keys. 0 when this
 * exceeds MEMORY_LIBRARY_BYTES_MAX: the library must work in the tiles' space, or is not used.
 * Source: workspace requests of cuDNN 9.19; tests/exec/cuda/test_exec_cudnn.c checks them.
 */
enum { MEMORY_LIBRARY_BYTES_MAX = 256 << 20 };
uint64_t memory_attention_library(struct attention_sizes s, bool back);

/* Returns rounding attention's scratch after the copies. */
uint64_t memory_attention_workspace(struct attention_sizes s, bool back);

/* Returns the scratch for rounded copies of q, k and v, backward also dout: fp32, or bf16 with equally many
 * results. Backward, one number per row and head follows. */
uint64_t memory_attention_copies(struct attention_sizes s, bool back);

/* Returns the 4-byte numbers of attention, forward or backward, of a job in a precision, whose queries follow `earlier`
 * tokens of each sample (slices of tokens). In bf16-weights operands are rounded first. */
uint64_t memory_attention_after(struct attention_sizes s, uint64_t earlier, uint32_t precision);

/* Returns true if the pass recomputes one layer at a time from inputs. */
static inline bool unit_holds_inputs(enum unit_pass pass, uint32_t how)
{
    return (how & UNIT_INPUTS) && (pass == UNIT_LOSS || (how & UNIT_KEEP));
}


MUST_CHECK enum status memory_workspace(const struct network *network, uint64_t first_layer,
                                        uint64_t layer_count, enum unit_pass pass, uint32_t how,
                                        uint64_t microbatch, uint64_t sequence,
                                        struct arena *arena, struct memory_table *out,
                                        struct error *err);
uint64_t memory_workspace_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count, enum unit_pass pass, uint32_t how,
                                uint64_t microbatch, uint64_t sequence);

/*
 * The gradients of a block's linear layers' outputs for one microbatch, in a precision, as a backward pass in two units
 * keeps them from the first to the second:
 *
 *     d_out, d_middle   (R,C)  of the block's second and first sum, or of what enters their norms in bert
 *     d_qkv, d_wide     as in a workspace
 */
struct memory_block_gradients {
    uint64_t d_middle_offset, d_qkv_offset, d_wide_offset; /* d_out is at 0 */
    uint64_t bytes;
};
struct memory_block_gradients memory_block_gradients(const struct network *network, uint64_t layer, uint64_t microbatch,
                                                     uint64_t sequence, uint32_t precision);

/* Writes the bytes of every pass for every combination of UNIT_KEEP, UNIT_GRADIENTS_OUT and UNIT_INPUTS, each with
 * `how` added, at the cost of one call. */
void memory_workspaces(const struct network *network, uint64_t first_layer, uint64_t layer_count, uint32_t how,
                       uint64_t microbatch, uint64_t sequence, uint64_t bytes[3][UNIT_WAYS]);

/* Returns the bytes that a layer passes to the next for one microbatch: R * C numbers (a profile states them; t5's
 * R counts rows of encoder and decoder). */
uint64_t memory_boundary_bytes(const struct network *network, uint64_t layer, uint64_t microbatch,
                               uint64_t sequence, uint32_t precision);

/* Returns the layer's first entry named `name` or ending in it after a dot ("qkv" finds "3.qkv"); may be NULL.
 * Borrowed. */
const struct memory_entry *memory_find(const struct memory_table *table, uint64_t layer,
                                       const char *name);

#endif
