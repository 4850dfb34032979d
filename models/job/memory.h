/*
 * Where each tensor lies: the tables that the executor allocates by and the planner counts by.
 *
 * A *state blob* is one contiguous piece per shard, in parts: the weights as the passes read them; of
 * those that have 16 bits the fp32 master; then what the optimizer remembers: for AdamW all first moments,
 * then all second ones; for momentum all running sums of gradients. What a pass needs is in front, and
 * so are all values in full (weights and master together). A part lists the same tensors in the same
 * order, in its own number format, and those it does not have with 0 bytes. Tensors start on 64-byte
 * boundaries, except in an embedding layer, whose tables lie row behind row without padding so that any
 * range of rows is a shard of its own (a slice) and updating slices one after the other is the same
 * arithmetic as updating the whole.
 *
 *     [ weights | master of matrices | first moments | second moments ]
 *       ^ t0 t1 t2 ...
 *
 *     bytes of a matrix's element, AdamW          of a pass   weights  master  moments  together
 *     all fp32                                        4          4               4 + 4     12
 *     bf16 or bf16-weights                            2          2        4      4 + 4     14
 *     moments in bf16                                 4          4               2 + 2      8
 *     both                                            2          2        4      2 + 2     10
 */
#ifndef SPILLWAY_MODELS_MEMORY_H
#define SPILLWAY_MODELS_MEMORY_H

#include <stdint.h>

#include "base/arena.h"
#include "models/network/network.h"

enum { MEMORY_ALIGNMENT = 64 };

enum state_part { STATE_WEIGHTS, STATE_MASTER, STATE_FIRST, STATE_SECOND, STATE_PARTS };

/* Where the parts of a blob are; one of 0 bytes is not there. */
struct state_layout {
    struct {
        uint64_t offset_bytes, bytes;
        uint64_t row_bytes; /* of a row of an embedding's tables */
    } parts[STATE_PARTS];
    uint64_t bytes;
};

struct memory_entry {
    char name[96];
    uint64_t layer;
    uint64_t offset_bytes;
    uint64_t bytes;
};

struct memory_table {
    struct memory_entry *entries;
    uint32_t count;
    uint64_t bytes; /* end of the last entry, aligned */
};

/* The tensors of each part of a blob, offsets within the part. */
struct state_tables {
    struct state_layout layout;
    struct memory_table parts[STATE_PARTS]; /* equally many entries each */
};

/* A blob of fp32 values alone, such as those that are kept: laid out as memory_parameters() has it. */
static inline struct state_tables state_tables_of_values(struct memory_table parameters)
{
    struct state_tables tables = {0};
    tables.parts[STATE_WEIGHTS] = parameters;
    tables.layout.parts[STATE_WEIGHTS].bytes = tables.layout.bytes = parameters.bytes;
    return tables;
}

/* Parameters of layers [first, first + count): entries are the tensors in order. fp32, whatever the
 * job's precision: so lie gradients, and values that are kept. */
MUST_CHECK enum status memory_parameters(const struct network *network, uint64_t first_layer,
                                         uint64_t layer_count, struct arena *arena,
                                         struct memory_table *out, struct error *err);

/* How many tensors these layers have. */
uint64_t memory_tensor_count(const struct network *network, uint64_t first_layer,
                             uint64_t layer_count);

/* Bytes of the parameters in fp32, and where the parts of their state are, without building tables. */
uint64_t memory_parameter_bytes(const struct network *network, uint64_t first_layer,
                                uint64_t layer_count);
struct state_layout memory_state(const struct network *network, uint64_t first_layer,
                                 uint64_t layer_count, struct state_format format);
MUST_CHECK enum status memory_state_tables(const struct network *network, uint64_t first_layer,
                                           uint64_t layer_count, struct state_format format,
                                           struct arena *arena, struct state_tables *out,
                                           struct error *err);

/* The state of `rows` rows of an embedding's tables, moved as one: the fp32 parts lie in front of the
 * bf16 ones, so that they are aligned without gaps however many rows there are. */
struct state_layout memory_state_rows(const struct network *network, uint64_t rows,
                                      struct state_format format);

/* Bytes of the front of a blob that has all values in full: weights and master. */
static inline uint64_t state_value_bytes(const struct state_layout *layout)
{
    return layout->parts[STATE_WEIGHTS].bytes + layout->parts[STATE_MASTER].bytes;
}

/*
 * Activations that a forward pass over the layers keeps for its backward pass, the input of each
 * layer included (the first layer's input is a buffer of its own: the boundary). Entry names are
 * "L.what" with L the layer's number. Tables are of fp32, as the executor has them; bytes are of a precision (enum
 * precision), of which statistics are none.
 *
 *   gpt2 blocks       norm1 (R,C)  norm1_stats (R,2)  qkv (R,3HD)  attention (R,HD)
 *                     attention_stats (B,H,T)  middle (R,C)  norm2 (R,C)  norm2_stats (R,2)
 *                     fc (R,F)  gelu (R,F)  output (R,C)
 *   vit blocks        the same with q, k, v (R,HD) in place of qkv
 *   llama blocks      the same with q (R,HD)  k, v (R,KD) in place of qkv, K heads of keys and values;
 *                     q and k turned; gate, up, swiglu (R,F) in place of fc and gelu; norms keep one
 *                     number a row
 *   t5 blocks         q, k, v; of the decoder also cross_norm, cross_q, cross_attention, ..., and cross_k, cross_v of the
 *                     encoder's rows; its first block hands the normed result of the encoder on (encoded)
 *   bert blocks       q  k  v  attention  attention_stats  middle (R,C: before its norm)  norm1
 *                     norm1_stats  fc  gelu  sum (R,C: before its norm)  norm2_stats  output
 *   heads             normf (R,C)  normf_stats (R,2); bert: transform (R,C)  gelu (R,C) as well; vit:
 *                     class (B,C)  normf (B,C)  normf_stats (B,2)
 *   embeddings        nothing
 *   opaque layers     activations, of operations (models/network/network_graph.h) what a layer keeps
 *
 * middle is the residual stream after attention. `output` is there for every layer but the last of
 * the range, whose output is the boundary buffer of the next shard.
 */
MUST_CHECK enum status memory_activations(const struct network *network, uint64_t first_layer,
                                          uint64_t layer_count, uint64_t microbatch,
                                          uint64_t sequence, struct arena *arena,
                                          struct memory_table *out, struct error *err);
uint64_t memory_activation_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                                 uint64_t microbatch, uint64_t sequence, uint32_t precision);

/*
 * What is left of them when only the inputs of layers are kept and a backward pass recomputes one
 * layer at a time: "L.input" (R,C) of each layer but the first, whose input is the boundary.
 * Source: Chen et al., arXiv 1604.06174, section 4, with one layer to a segment.
 */
MUST_CHECK enum status memory_inputs(const struct network *network, uint64_t first_layer,
                                     uint64_t layer_count, uint64_t microbatch, uint64_t sequence,
                                     struct arena *arena, struct memory_table *out,
                                     struct error *err);
uint64_t memory_input_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                            uint64_t microbatch, uint64_t sequence, uint32_t precision);

/*
 * Scratch that a compute operation needs beside state, boundaries and kept activations. `how`, a sum
 * of
 *   UNIT_KEEP           the activations are kept in a buffer of their own (a forward pass writes
 *                       them, the backward pass reads them); LOSS never has one
 *   UNIT_GRADIENTS_OUT  so are the gradients of the parameters: they are updated elsewhere
 *   UNIT_INPUTS         of activations, only the inputs of layers are held (memory_inputs()), in the
 *                       buffer of UNIT_KEEP, without which it changes nothing; LOSS holds them here
 *   UNIT_ACCUMULATE     the gradients of several microbatches are added up
 *   UNIT_ROUNDED        weights are bf16, and so are copies of what they are multiplied by
 *   UNIT_HALF           activations and their gradients have 16 bits; gradients of weights, logits and scratch are fp32
 * Each pass has the entries of its row, of 0 bytes where they are not needed; `layer` is the range's
 * first.
 *
 *   FORWARD   keep, d_stream, d_stream2, scratch, logits, rounded
 *   BACKWARD  gradients, d_stream, d_stream2, d_qkv, d_wide, scratch, activations, sums, rounded,
 *             d_rounded
 *   LOSS      the same and logits, head, inputs
 *
 *   keep         one layer's activations (a forward pass that keeps nothing, or inputs)
 *   d_stream2    (R,C), or (R,HD if that is wider): gradient of one branch, to be added to the
 *                gradient on the residual stream, which stays in the boundary gradient that leaves
 *   d_stream, d_stream2   in a forward pass that keeps nothing: the two residual streams that layers
 *                read and write in turn
 *   gradients    of the largest layer: each layer is updated as soon as its gradients are complete, or
 *                they are added to what earlier microbatches left.
 *                0 for the embedding of gpt2 and llama, which adds its rows up where they lie; the
 *                gradient of a tied table is a buffer of its own, so it is not in the head's
 *   sums         of the gradients of all layers, unless these have a buffer of their own; only with
 *                UNIT_ACCUMULATE
 *   head, inputs what the head keeps, and the inputs as memory_inputs() lays them out; only with
 *                UNIT_INPUTS
 *   rounded      the input of a linear layer in bf16, d_rounded the gradient of its output: of the widest;
 *                only with UNIT_ROUNDED; with UNIT_HALF d_rounded is the gradient of logits in 16 bits
 *   d_qkv        (R,3HD), for llama (R,(H+2K)D): gradients of q, k and v, one after the other unless
 *                they are kept as one      d_wide  (R,F), for llama two of them: gate, then up
 *   logits       (r,V) with r = network_logit_rows(), the rows of a piece, or (B,classes)
 *   scratch      attention: memory_attention_tiles(), and with UNIT_ROUNDED memory_attention_copies() in
 *                front, then at least memory_attention_library(); embedding: two sorted lists of (row, token)
 *                pairs of 8 bytes, for bert's norm behind them two (R,C) and one (R,2); for vit
 *                the patches, as pixels and embedded
 *   activations  as memory_activations() lays them out, when they are recomputed; an entry of that
 *                table is at this entry's offset plus its own. With UNIT_INPUTS those of one layer that
 *                is not the head, its output left out
 */
enum { MEMORY_ATTENTION_TILE = 64, MEMORY_ATTENTION_LANES = 32, MEMORY_EMBEDDING_WORDS = 4 };
enum unit_pass { UNIT_FORWARD, UNIT_BACKWARD, UNIT_LOSS };
enum { UNIT_KEEP = 1, UNIT_GRADIENTS_OUT = 2, UNIT_INPUTS = 4, UNIT_WAYS = 8, UNIT_ACCUMULATE = 8,
       UNIT_ROUNDED = 16, UNIT_HALF = 32 };

/* Of an attention: B samples of T tokens, heads of queries, heads of keys and values, all D wide. */
struct attention_sizes {
    uint64_t samples, tokens, heads, kv_heads, head_width;
};

/* Numbers of 4 bytes that attention needs for weights: two tiles of MEMORY_ATTENTION_TILE x T for each of
 * at most MEMORY_ATTENTION_LANES heads at a time. */
uint64_t memory_attention_tiles(struct attention_sizes s);

/*
 * The same for a library that takes bf16 (exec/cuda/attention_cudnn.c), when the heads that share keys are
 * computed by themselves: back, a weight of 2 bytes for each pair of tokens and gradients of 2 bytes for
 * each head of keys that is shared. 0 where that is more than MEMORY_LIBRARY_BYTES_MAX: it must do with
 * the tiles then, or is not used.
 * Source: what cuDNN 9.19 asks for, which tests/exec/test_exec_cudnn.c holds this to.
 */
enum { MEMORY_LIBRARY_BYTES_MAX = 256 << 20 };
uint64_t memory_attention_library(struct attention_sizes s, bool back);

/* What attention has of its scratch behind the copies, when it rounds. */
uint64_t memory_attention_workspace(struct attention_sizes s, bool back);

/* The same for rounded copies of its operands and results: q, k and v, and back dout as well, in fp32,
 * or in bf16 with as many results, for which it is at least enough; back, one number for each row of each
 * head behind them. */
uint64_t memory_attention_copies(struct attention_sizes s, bool back);

/* Does a pass hold only the inputs of layers, and recompute the rest one layer at a time? */
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

/* The same of every pass in every way, each with what `how` adds: at the price of one. */
void memory_workspaces(const struct network *network, uint64_t first_layer, uint64_t layer_count, uint32_t how,
                       uint64_t microbatch, uint64_t sequence, uint64_t bytes[3][UNIT_WAYS]);

/* Bytes that layer `layer` passes to the next for one microbatch: R * C numbers, whatever the layer (a
 * profile says it itself; t5's R are the rows of encoder and decoder). What enters a shard is what
 * the layer in front of it passes. */
uint64_t memory_boundary_bytes(const struct network *network, uint64_t layer, uint64_t microbatch,
                               uint64_t sequence, uint32_t precision);

/* The first entry of the layer with this name, or whose name ends with it behind a dot ("qkv" finds
 * "3.qkv", "mlp.c_fc.weight" finds "h.2.mlp.c_fc.weight"). NULL when there is none. Borrowed. */
const struct memory_entry *memory_find(const struct memory_table *table, uint64_t layer,
                                       const char *name);

#endif
