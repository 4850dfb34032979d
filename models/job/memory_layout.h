/*
 * Layouts of a range of layers, put together tensor by tensor: the same lines count entries, add up bytes and fill
 * tables. Equal layers are counted once.
 */
#ifndef SPILLWAY_MODELS_JOB_MEMORY_LAYOUT_H
#define SPILLWAY_MODELS_JOB_MEMORY_LAYOUT_H

#include "models/cost/compression.h"
#include "models/job/memory.h"

/* What was put: counts and bytes, and the entries where a table is filled. */
struct memory_layout {
    struct memory_entry *entries; /* NULL: only count */
    uint32_t count;
    uint64_t bytes;
    uint64_t layer;
    uint64_t alignment;
    uint64_t number_bytes; /* of activations; 0: fp32 */
    enum compression_code code; /* of activations */
    bool rounded;          /* what is put has 16 bits */
};

/* Layers, and how each is laid out. */
struct memory_range {
    const struct network *network;
    uint64_t first, count;
    uint64_t microbatch, sequence;
    uint64_t number_bytes;      /* of activations; 0: fp32 ... */
    enum compression_code code; /* ... and how these are encoded */
    uint32_t part;              /* enum state_part */
    struct state_format format; /* of the state */
    void (*lay)(const struct memory_range *range, uint64_t layer, struct memory_layout *layout);
};

/* A layer's tensors depend on these sizes. */
struct memory_sizes {
    uint64_t batch, tokens, rows;
    uint64_t own;    /* rows of norms and sums: all, or a member's where a tensor group cuts them */
    uint64_t stream; /* handed on: of these, too */
    uint64_t seen;   /* of an encoder's result, and their tokens */
    uint64_t seen_tokens;
    bool joins;      /* the result is normed by this layer */
    uint64_t width, inner, shared, ff, heads;
};

void memory_put_bytes(struct memory_layout *layout, const char *name, uint64_t bytes);

/* Puts fp32 numbers. */
void memory_put(struct memory_layout *layout, const char *name, uint64_t elements);

/* Puts activations in their precision, or encoded. */
void memory_put_kept(struct memory_layout *layout, const char *what, uint64_t elements);

/* Puts statistics, fp32 in any precision. */
void memory_put_statistics(struct memory_layout *layout, const char *what, uint64_t elements);

/* Returns the aligned end of what was put, in bytes. */
uint64_t memory_layout_end(const struct memory_layout *layout);

struct memory_sizes memory_sizes_of(const struct memory_range *range, uint64_t layer);

void memory_lay_layer(const struct memory_range *range, uint64_t layer, struct memory_layout *layout);

/* Returns the end of layers with the same needs as `layer`. The last one has no output and counts separately. */
uint64_t memory_run_end(const struct memory_range *range, uint64_t layer);

/* Adds up a range; equal layers are counted once. */
uint64_t memory_range_bytes(const struct memory_range *range);

/* Fills a table of the range's entries. */
enum status memory_range_table(const struct memory_range *range, struct arena *arena,
                               struct memory_table *out, struct error *err);

struct memory_range memory_range_of(const struct network *network, uint64_t first, uint64_t count);

/* `lay` lays out the layers of a pass over a microbatch. */
struct memory_range memory_pass_range(const struct network *network, uint64_t first, uint64_t count,
                                      uint64_t microbatch, uint64_t sequence, uint64_t number_bytes,
                                      void (*lay)(const struct memory_range *, uint64_t, struct memory_layout *));

/*
 * Lists as memory_activations(), or with UNIT_INPUTS as memory_inputs(), fp32 numbers that are encoded, each entry by
 * itself. Statistics of norms and attention, and the routes of experts, are as they are.
 */
MUST_CHECK enum status memory_coded(const struct network *network, uint64_t first_layer, uint64_t layer_count,
                                    uint32_t how, uint64_t microbatch, uint64_t sequence, enum compression_code code,
                                    struct arena *arena, struct memory_table *out, struct error *err);
uint64_t memory_coded_bytes(const struct network *network, uint64_t first_layer, uint64_t layer_count, uint32_t how,
                            uint64_t microbatch, uint64_t sequence, enum compression_code code);

/* Returns how many fp32 numbers hold `bytes`. */
uint64_t memory_words(uint64_t bytes);

/* Lays out the activations that a pass keeps. */
void memory_lay_activations(const struct memory_range *range, uint64_t layer, struct memory_layout *layout);

#endif
