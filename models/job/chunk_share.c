#include "models/job/chunk_share.h"

#include <assert.h>

#include "base/extreme.h"
#include "base/size.h"

static void add_section(struct chunk_memory *m, uint64_t first, uint64_t count, enum chunk_section_kind kind)
{
    const uint64_t each = (count + m->ranks - 1) / m->ranks;
    if (count == 0) return;
    m->sections[m->section_count++] =
        (struct chunk_section){.first = first, .count = count, .share = size_align(each, CHUNK_SHARE_ROUNDING),
                               .kind = kind};
}

static bool has_state(const struct chunk_memory *m, const struct chunk_section *section)
{
    return section->kind != CHUNK_SECTION_HEAD || m->copies_table;
}

/* Returns the place in a part of the state of the parameter that is `at` parameters into the section. */
static uint64_t place_in_part(const struct job *job, struct parallel_layers layers, const struct chunk_memory *m,
                              const struct chunk_section *section, enum state_part part, uint64_t at)
{
    const struct network *n = &job->network;
    const struct state_format format = job_state_format(job);
    if (section->kind == CHUNK_SECTION_HEAD)
        return m->layer_part_bytes[part] + at * (m->table_rows_layout.parts[part].row_bytes / n->width);
    return memory_state_offset(n, layers.first, layers.count, format, part, (section->first + at) * sizeof(float));
}

static void add_frozen(struct chunk_memory *m, uint64_t first, uint64_t bytes, enum chunk_section_kind kind)
{
    const uint64_t each = (bytes + m->ranks - 1) / m->ranks;
    if (bytes == 0) return;
    m->frozen[m->frozen_count++] = (struct chunk_section){.first = first, .count = bytes,
                                                          .share = size_align(each, MEMORY_ALIGNMENT), .kind = kind};
}

/* Returns the bytes of the tied table's weights, where the chunk has it. */
static uint64_t table_bytes(const struct job *job, const struct chunk_memory *m)
{
    return m->table_rows * job->network.width * precision_weight_bytes(job->precision);
}

/* Cuts the frozen weights of `bytes` into sections. */
static void cut_frozen(const struct job *job, uint64_t bytes, struct chunk_memory *m)
{
    const uint64_t table = m->trains_table ? 0 : table_bytes(job, m), own = m->has_embedding ? table : 0;
    add_frozen(m, 0, own, CHUNK_SECTION_TABLE);
    add_frozen(m, own, bytes - own, CHUNK_SECTION_LAYERS);
    if (m->has_head && m->copies_table) add_frozen(m, m->table_weights_offset, table, CHUNK_SECTION_HEAD);
}

/* Returns the bytes of all replicas' rooms for frozen weights, with which a share's state begins. */
static uint64_t frozen_share_bytes(const struct chunk_memory *m)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < m->frozen_count; i++) bytes += m->frozen[i].share;
    return bytes;
}

/* Returns the bytes of a copy of the table after the layers' weights; `gathered`: also where it is another chunk's. */
static uint64_t copy_bytes(const struct job *job, const struct chunk_memory *m, bool gathered)
{
    const bool has = (m->has_head && m->copies_table) || (gathered && m->gathers_table);
    return has ? size_align(table_bytes(job, m), MEMORY_ALIGNMENT) : 0;
}

/* Returns all weights that a replica's state may have: those that passes read, without another chunk's table. */
static uint64_t own_weight_bytes(const struct job *job, const struct chunk_memory *m)
{
    return m->table_weights_offset + copy_bytes(job, m, false);
}

static uint64_t add_part(const struct job *job, struct parallel_layers layers, const struct chunk_memory *m,
                         struct chunk_share *share, enum state_part part, uint64_t end)
{
    for (uint32_t i = 0; i < share->count; i++) {
        const struct chunk_section *section = &m->sections[i];
        struct chunk_share_section *own = &share->sections[i];
        struct chunk_share_part *range = &own->parts[part];
        const uint64_t at = own->first - section->first;
        if (!has_state(m, section) || own->count == 0) continue;
        range->whole = place_in_part(job, layers, m, section, part, at);
        range->bytes = place_in_part(job, layers, m, section, part, at + own->count) - range->whole;
        range->here = part == STATE_WEIGHTS && !m->splits_weights ? m->frozen_bytes + range->whole : end;
        if (part != STATE_WEIGHTS || m->splits_weights) end = size_align(end + range->bytes, MEMORY_ALIGNMENT);
    }
    return end;
}

struct chunk_share chunk_share(const struct job *job, struct parallel_layers layers, const struct chunk_memory *m,
                               uint32_t rank)
{
    struct chunk_share share = {.count = m->section_count};
    uint64_t gradient = 0, frozen = 0, end = m->splits_weights ? frozen_share_bytes(m) : own_weight_bytes(job, m);
    assert(m->splits_states && rank < m->ranks);
    for (uint32_t i = 0; i < m->section_count; i++) {
        const struct chunk_section *section = &m->sections[i];
        const uint64_t begin = min_u64(rank * section->share, section->count);
        share.sections[i].first = section->first + begin;
        share.sections[i].count = min_u64(section->share, section->count - begin);
        share.sections[i].gradient_offset = gradient;
        gradient += section->share * sizeof(float);
    }
    for (uint32_t i = 0; i < m->frozen_count; i++) {
        const struct chunk_section *section = &m->frozen[i];
        const uint64_t begin = min_u64(rank * section->share, section->count);
        share.frozen[i] = (struct chunk_share_part){.whole = section->first + begin, .here = frozen,
                                                    .bytes = min_u64(section->share, section->count - begin)};
        frozen += section->share;
    }
    for (uint32_t part = STATE_WEIGHTS; part < STATE_PARTS; part++)
        end = add_part(job, layers, m, &share, (enum state_part)part, end);
    share.state_bytes = end;
    return share;
}

static void cut(const struct job *job, struct parallel_layers layers, struct chunk_memory *m)
{
    const uint64_t table = m->trains_table ? m->table_rows * job->network.width : 0;
    const uint64_t all = memory_parameter_bytes(&job->network, layers.first, layers.count) / sizeof(float);
    const uint64_t own = m->has_embedding ? table : 0;
    add_section(m, 0, own, CHUNK_SECTION_TABLE);
    add_section(m, own, all - own, CHUNK_SECTION_LAYERS);
    if (m->has_head) add_section(m, m->table_gradient_offset / sizeof(float), table, CHUNK_SECTION_HEAD);
}

/* Returns the bytes of the share's weights: to the end of the last range in the state, or of all ranges. */
static uint64_t weight_bytes(const struct chunk_memory *m, const struct chunk_share *share)
{
    uint64_t bytes = frozen_share_bytes(m);
    for (uint32_t i = 0; i < share->count; i++) {
        const struct chunk_share_part *range = &share->sections[i].parts[STATE_WEIGHTS];
        bytes = m->splits_weights ? max_u64(bytes, range->here + range->bytes) : bytes + range->bytes;
    }
    return bytes;
}

/* Returns the end of the share's weights and of their copies in full precision. */
static uint64_t value_end(const struct job *job, const struct chunk_memory *m, const struct chunk_share *share)
{
    uint64_t end = m->splits_weights ? frozen_share_bytes(m) : m->table_weights_offset + copy_bytes(job, m, true);
    for (uint32_t i = 0; i < share->count; i++)
        for (uint32_t part = STATE_WEIGHTS; part <= STATE_MASTER; part++)
            end = max_u64(end, share->sections[i].parts[part].here + share->sections[i].parts[part].bytes);
    return end;
}

/* Sizes what devices have of the states, and what comes up to them. */
static void size_device(const struct job *job, struct chunk_memory *m)
{
    const struct parallel *p = &job->parallel;
    m->device_state_bytes = m->state_bytes;
    if (p->offload == OFFLOAD_NOTHING) {
        m->raised_bytes = 0;
        return;
    }
    m->device_state_bytes = m->splits_weights ? m->raised_bytes : own_weight_bytes(job, m);
    if (m->ranks == 1 || m->raised_bytes == 0) m->raised_bytes = m->device_state_bytes; /* all, also if it is frozen */
    if (p->offload == OFFLOAD_WEIGHTS) m->device_state_bytes = 0;
}

/* Sizes what comes up of the embedding's table to the head of another chunk: all, or a share. It is the first of the
 * first chunk's frozen weights, or of the trained ones, which come after these. */
static void size_raised_table(const struct job *job, struct chunk_memory *m)
{
    const uint64_t all = m->whole_weight_bytes - m->table_weights_offset, table = table_bytes(job, m);
    const struct parallel_layers first = parallel_layers(job, 0);
    const uint64_t frozen = m->trains_table ? job_state(job, first.first, first.count).parts[STATE_FROZEN].bytes : 0;
    m->raised_table_bytes = m->trains_table ? m->sections[m->section_count - 1].share *
                                                  precision_weight_bytes(job->precision)
                                            : size_align((table + m->ranks - 1) / m->ranks, MEMORY_ALIGNMENT);
    if (m->ranks == 1 || m->raised_table_bytes > all) m->raised_table_bytes = all;
    m->raised_table_offset = size_align((frozen + m->ranks - 1) / m->ranks, MEMORY_ALIGNMENT);
}

void chunk_share_split(const struct job *job, struct parallel_layers layers, struct chunk_memory *m)
{
    const struct parallel *p = &job->parallel;
    const struct state_layout layout = job_state(job, layers.first, layers.count);
    for (uint32_t part = 0; part < STATE_PARTS; part++)
        m->layer_part_bytes[part] = size_align(layout.parts[part].bytes, MEMORY_ALIGNMENT);
    m->ranks = parallel_splits(p, ZERO_STATES) ? p->data : 1;
    m->splits_states = true;
    m->splits_gradients = parallel_splits(p, ZERO_GRADIENTS);
    m->splits_weights = parallel_splits(p, ZERO_WEIGHTS);
    m->gathers_table = (m->splits_weights || p->offload == OFFLOAD_WEIGHTS) && m->has_head && !m->has_embedding &&
                       m->table_rows > 0 && !m->copies_table;
    m->frozen_bytes = m->layer_part_bytes[STATE_FROZEN];
    m->table_weights_offset = m->frozen_bytes + m->layer_part_bytes[STATE_WEIGHTS];
    m->whole_weight_bytes = m->table_weights_offset + copy_bytes(job, m, true);
    if (!parallel_fetches_weights(p)) { /* what is frozen stays on the devices */
        m->whole_weight_bytes = m->layer_part_bytes[STATE_WEIGHTS];
        if (m->trains_table) m->whole_weight_bytes += copy_bytes(job, m, true);
    }
    cut(job, layers, m);
    if (m->splits_weights) cut_frozen(job, layout.parts[STATE_FROZEN].bytes, m);
    m->state_bytes = m->value_bytes = 0;
    for (uint32_t rank = 0; rank < m->ranks; rank++) {
        const struct chunk_share share = chunk_share(job, layers, m, rank);
        m->state_bytes = max_u64(m->state_bytes, share.state_bytes);
        m->raised_bytes = max_u64(m->raised_bytes, weight_bytes(m, &share));
        m->value_bytes = max_u64(m->value_bytes, value_end(job, m, &share));
    }
    size_device(job, m);
    if (m->gathers_table && p->offload == OFFLOAD_WEIGHTS) size_raised_table(job, m);
    if (!m->splits_gradients) return;
    m->gradient_bytes = 0;
    for (uint32_t i = 0; i < m->section_count; i++) m->gradient_bytes += m->sections[i].share * sizeof(float);
}
