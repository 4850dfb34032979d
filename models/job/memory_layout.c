#include "models/job/memory_layout.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/size.h"
#include "base/try.h"

void memory_put_bytes(struct memory_layout *layout, const char *name, uint64_t bytes)
{
    uint64_t offset = size_align(layout->bytes, layout->alignment);
    if (layout->entries) {
        struct memory_entry *entry = &layout->entries[layout->count];
        entry->layer = layout->layer;
        entry->offset_bytes = offset;
        entry->bytes = bytes;
        entry->rounded = layout->rounded;
        snprintf(entry->name, sizeof entry->name, "%.95s", name);
    }
    layout->count++;
    layout->bytes = offset + bytes;
}

void memory_put(struct memory_layout *layout, const char *name, uint64_t elements)
{
    memory_put_bytes(layout, name, elements * sizeof(float));
}

/* "L.what" */
static void put_named(struct memory_layout *layout, const char *what, uint64_t bytes)
{
    char name[64] = "";
    if (layout->entries)
        snprintf(name, sizeof name, "%" PRIu64 ".%s", layout->layer, what);
    memory_put_bytes(layout, name, bytes);
}

void memory_put_kept(struct memory_layout *layout, const char *what, uint64_t elements)
{
    const uint64_t plain = elements * (layout->number_bytes > 0 ? layout->number_bytes : sizeof(float));
    put_named(layout, what,
              layout->code == COMPRESSION_PLAIN ? plain : compression_code_bytes(layout->code, elements));
}

void memory_put_statistics(struct memory_layout *layout, const char *what, uint64_t elements)
{
    put_named(layout, what, elements * sizeof(float));
}

uint64_t memory_layout_end(const struct memory_layout *layout)
{
    return size_align(layout->bytes, MEMORY_ALIGNMENT);
}

struct memory_sizes memory_sizes_of(const struct memory_range *range, uint64_t layer)
{
    struct network room;
    const struct network *n = network_of_layer(range->network, layer, &room);
    uint64_t tokens = network_layer_tokens(n, layer, range->sequence);
    uint64_t seen = network_crosses(n, layer) ? range->sequence : 0;
    const uint64_t parts = n->slices_rows ? n->slice_of : 1;
    return (struct memory_sizes){.batch = range->microbatch, .tokens = tokens, .rows = range->microbatch * tokens,
                                 .own = range->microbatch * tokens / parts,
                                 .stream = range->microbatch * network_tokens(n, range->sequence) / parts,
                                 .seen = range->microbatch * seen, .seen_tokens = seen,
                                 .joins = network_joins(n, layer), .width = n->width, .inner = n->heads * n->head_width,
                                 .shared = network_kv_heads(n) * n->head_width, .ff = n->ff_width,
                                 .heads = n->heads};
}

void memory_lay_layer(const struct memory_range *range, uint64_t layer, struct memory_layout *layout)
{
    layout->layer = layer;
    layout->alignment = MEMORY_ALIGNMENT;
    layout->number_bytes = range->number_bytes;
    layout->code = range->code;
    layout->bytes = memory_layout_end(layout);
    range->lay(range, layer, layout);
}

uint64_t memory_run_end(const struct memory_range *range, uint64_t layer)
{
    uint64_t last = range->first + range->count - 1, end = network_alike_end(range->network, layer);
    if (layer == last) return last + 1;
    return end < last ? end : last;
}

uint64_t memory_range_bytes(const struct memory_range *range)
{
    uint64_t sum = 0, end = range->first + range->count;
    for (uint64_t layer = range->first, next; layer < end; layer = next) {
        struct memory_layout layout = {0};
        next = memory_run_end(range, layer);
        memory_lay_layer(range, layer, &layout);
        sum += (next - layer) * memory_layout_end(&layout);
    }
    return sum;
}

enum status memory_range_table(const struct memory_range *range, struct arena *arena,
                               struct memory_table *out, struct error *err)
{
    struct memory_layout counted = {0};
    for (uint64_t i = 0; i < range->count; i++) memory_lay_layer(range, range->first + i, &counted);
    struct memory_entry *entries;
    TRY(ARENA_NEW(arena, counted.count, entries, err));
    struct memory_layout layout = {.entries = entries};
    for (uint64_t i = 0; i < range->count; i++) memory_lay_layer(range, range->first + i, &layout);
    assert(layout.count == counted.count);
    *out = (struct memory_table){entries, layout.count, memory_layout_end(&layout)};
    return STATUS_OK;
}

struct memory_range memory_range_of(const struct network *network, uint64_t first, uint64_t count)
{
    assert(count > 0 && first < network->layer_count && count <= network->layer_count - first);
    return (struct memory_range){.network = network, .first = first, .count = count};
}

struct memory_range memory_pass_range(const struct network *network, uint64_t first, uint64_t count,
                                      uint64_t microbatch, uint64_t sequence, uint64_t number_bytes,
                                      void (*lay)(const struct memory_range *, uint64_t, struct memory_layout *))
{
    struct memory_range range = memory_range_of(network, first, count);
    range.number_bytes = number_bytes;
    range.microbatch = microbatch;
    range.sequence = sequence;
    range.lay = lay;
    return range;
}

uint64_t memory_words(uint64_t bytes)
{
    return (bytes + sizeof(float) - 1) / sizeof(float);
}
