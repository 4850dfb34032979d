/*
 * Replicas that split the optimizer's states (models/job/chunk_share.h) each step their own share. A share cuts tensors
 * anywhere: a step computes every parameter by itself, and the random bits of rounded moments depend on its number in
 * its layer, so the bits are those of a step of the whole tensor. A job that clips adds up the squares of the share's
 * part of each tensor; a collective of the replicas adds these up.
 */
#include <assert.h>

#include "base/extreme.h"
#include "exec/network/chunk.h"
#include "exec/network/transformer.h"

static const struct chunk_section *find_section(const struct chunk_memory *m, enum chunk_section_kind kind,
                                                uint32_t *index)
{
    for (*index = 0; *index < m->section_count; ++*index)
        if (m->sections[*index].kind == kind) return &m->sections[*index];
    return NULL;
}

static float *gradient_of(const struct chunk_tables *tables, float *gradient, const struct chunk_share_section *own)
{
    const uint64_t bytes = tables->memory.splits_gradients ? own->gradient_offset : own->first * sizeof(float);
    return transformer_at(gradient, bytes);
}

float *chunk_share_gradient(const struct chunk_tables *tables, float *gradient, enum chunk_section_kind kind,
                            uint32_t rank)
{
    uint32_t index;
    const struct chunk_section *section = find_section(&tables->memory, kind, &index);
    assert(section);
    (void)section;
    return gradient_of(tables, gradient, &tables->shares[rank].sections[index]);
}

/* Returns NULL if there is no such part. `at`: the place in the part. */
static void *in_share(const struct chunk_arguments *a, const struct chunk_share_section *own, enum state_part part,
                      uint64_t at)
{
    const struct chunk_share_part *range = &own->parts[part];
    if (range->bytes == 0) return NULL;
    return transformer_at(a->state, range->here + at - range->whole);
}

static struct kernel_parameters parameters_at(void *const parts[STATE_PARTS])
{
    return (struct kernel_parameters){.p = parts[STATE_MASTER] ? parts[STATE_MASTER] : parts[STATE_WEIGHTS],
                                      .rounded = parts[STATE_MASTER] ? parts[STATE_WEIGHTS] : NULL,
                                      .m = parts[STATE_FIRST],
                                      .v = parts[STATE_SECOND]};
}

static float clip_scale(const struct chunk_arguments *a)
{
    const struct unit_arguments unit = {.job = a->job, .norms = a->norms};
    return transformer_clip_scale(&unit);
}

/* Steps the range of the head's copy of the table. */
static void update_rows(const struct kernels *kernels, const struct chunk_arguments *a,
                        const struct chunk_section *section, const struct chunk_share_section *own)
{
    void *parts[STATE_PARTS];
    const struct transformer_range range = {.place = own->first - section->first, .count = own->count, .decays = true,
                                             .scale = clip_scale(a)};
    for (uint32_t part = 0; part < STATE_PARTS; part++)
        parts[part] = in_share(a, own, (enum state_part)part, own->parts[part].whole);
    if (!parts[STATE_WEIGHTS]) return; /* it has no copy */
    transformer_update_range(kernels, a->job, parameters_at(parts), gradient_of(a->tables, a->gradient, own), &range,
                             a->minibatch, a->guard);
}

/* Steps the part of tensor `index` of the chunk that is in the share. */
static void update_tensor(const struct kernels *kernels, const struct chunk_arguments *a,
                          const struct chunk_share_section *own, uint32_t index, struct transformer_range range)
{
    const struct memory_entry *entry = &a->tables->parameters.entries[index];
    const uint64_t first = entry->offset_bytes / sizeof(float), count = entry->bytes / sizeof(float);
    const uint64_t begin = max_u64(first, own->first), end = min_u64(first + count, own->first + own->count);
    void *parts[STATE_PARTS] = {NULL};
    if (begin >= end) return;
    for (uint32_t part = 0; part < STATE_PARTS; part++) {
        const struct memory_entry *in_part = &a->tables->state.parts[part].entries[index];
        if (in_part->bytes == 0) continue;
        parts[part] = in_share(a, own, (enum state_part)part,
                               in_part->offset_bytes + (begin - first) * (in_part->bytes / count));
    }
    range.place += begin - first;
    range.count = end - begin;
    transformer_update_range(kernels, a->job, parameters_at(parts),
                             gradient_of(a->tables, a->gradient, own) + (begin - own->first), &range, a->minibatch,
                             a->guard);
}

static void update_layers(const struct kernels *kernels, const struct chunk_arguments *a,
                          const struct chunk_share_section *own)
{
    const struct memory_table *parameters = &a->tables->parameters;
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    struct transformer_range range = {.layer = UINT64_MAX, .scale = clip_scale(a)};
    uint32_t first = 0;
    for (uint32_t i = 0; i < parameters->count; i++) {
        if (parameters->entries[i].layer != range.layer) {
            range = (struct transformer_range){.layer = parameters->entries[i].layer, .scale = range.scale};
            network_layer_shapes(&a->job->network, range.layer, specs);
            first = i;
        }
        range.decays = specs[i - first].matrix;
        update_tensor(kernels, a, own, i, range);
        range.place += parameters->entries[i].bytes / sizeof(float);
    }
}

/* Adds the head's gradient of a table without a copy. */
static void add_table_gradient(const struct kernels *kernels, const struct chunk_arguments *a,
                               const struct chunk_share_section *own)
{
    float *const gradient = gradient_of(a->tables, a->gradient, own);
    kernels->add(kernels, gradient, gradient, a->table_gradient, (int64_t)own->count);
}

/* Returns true for an embedding's table that the head of another chunk reads on the same device. */
static bool has_table_gradient(const struct chunk_memory *m, uint32_t section)
{
    return m->trains_table && m->sections[section].kind == CHUNK_SECTION_TABLE && !m->copies_table;
}

void chunk_update_share(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    const struct chunk_share *share = &a->tables->shares[a->rank];
    for (uint32_t i = 0; i < m->section_count; i++) {
        const struct chunk_share_section *own = &share->sections[i];
        if (own->count == 0) continue;
        if (m->sections[i].kind == CHUNK_SECTION_HEAD) {
            update_rows(kernels, a, &m->sections[i], own);
            continue;
        }
        if (has_table_gradient(m, i) && !job_clips(a->job)) add_table_gradient(kernels, a, own);
        update_layers(kernels, a, own);
    }
}

/* Computes the squares of the parts of tensors that are in a range of the share. */
static void square_range(const struct kernels *kernels, const struct chunk_arguments *a,
                         const struct chunk_share_section *own, double *sums)
{
    const struct memory_table *parameters = &a->tables->parameters;
    const float *const gradient = gradient_of(a->tables, a->gradient, own);
    for (uint32_t i = 0, trained = 0; i < parameters->count; i++) {
        const struct memory_entry *entry = &parameters->entries[i];
        if (a->tables->state.parts[STATE_FROZEN].entries[i].bytes > 0) continue;
        double *const sum = &sums[trained++];
        const uint64_t first = entry->offset_bytes / sizeof(float), end = first + entry->bytes / sizeof(float);
        const uint64_t from = max_u64(first, own->first), to = min_u64(end, own->first + own->count);
        if (from < to) kernels->squares(kernels, sum, gradient + (from - own->first), (int64_t)(to - from), true);
    }
}

void chunk_norm_share(const struct kernels *kernels, const struct chunk_arguments *a)
{
    const struct chunk_memory *m = &a->tables->memory;
    const struct network *network = &a->tables->job->network;
    const struct chunk_share *share = &a->tables->shares[a->rank];
    const uint64_t first_layer = a->tables->shards[0].first_layer;
    const struct parallel_layers *const last = &m->pieces[m->piece_count - 1];
    double *const sums = a->norms + memory_tensor_count(network, 0, first_layer);
    kernels->zero(kernels, sums, memory_tensor_count(network, first_layer, last->first + last->count - first_layer) *
                                     sizeof *sums);
    for (uint32_t i = 0; i < m->section_count; i++) {
        const struct chunk_share_section *own = &share->sections[i];
        if (own->count == 0 || m->sections[i].kind == CHUNK_SECTION_HEAD) continue; /* a table counts once */
        if (has_table_gradient(m, i)) add_table_gradient(kernels, a, own);
        square_range(kernels, a, own, sums);
    }
    if (!a->split) return;
    uint64_t layers = 0;
    for (uint32_t i = 0; i < m->piece_count; i++) layers += a->tables->shards[i].layer_count;
    transformer_join_squares(kernels, a->split, network, first_layer, layers, sums);
}
