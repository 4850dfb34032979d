/* The hash decides nothing about the order of operations, so equal traces give equal bytes. */
#include "traces/trace_operations.h"

#include "base/random.h"
#include "base/try.h"

static struct trace_operation span_operation(const struct trace_span *span)
{
    return (struct trace_operation){.bytes = span->bytes,
                                    .stream = span->stream,
                                    .job = span->job,
                                    .shard = span->shard,
                                    .pass = span->pass,
                                    .index = span->op_index};
}

static bool operations_equal(const struct trace_operation *a, const struct trace_operation *b)
{
    return a->bytes == b->bytes && a->stream == b->stream && a->job == b->job &&
           a->shard == b->shard && a->pass == b->pass && a->index == b->index;
}

/* Returns the cell of `operation`, or the free cell for it. */
static uint32_t *operation_cell(const struct trace_operations *table,
                                const struct trace_operation *operation)
{
    uint64_t names = (uint64_t)operation->job << 32 | operation->shard;
    uint64_t rest = (uint64_t)operation->stream << 16 | (uint64_t)operation->pass << 8 |
                    operation->index;
    uint64_t hash = random_u64(names ^ random_mix(operation->bytes), rest);
    uint32_t mask = table->cell_count - 1;
    for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
        uint32_t item = table->cells[i];
        if (item == 0 || operations_equal(&table->items[item - 1], operation))
            return &table->cells[i];
    }
}

static enum status grow(struct trace_operations *table, struct error *err)
{
    struct trace_operations larger = {.count = table->count,
                                      .cell_count = table->cell_count ? table->cell_count * 2 : 1024};
    if (table->count >= TRACE_SPANS_MAX)
        return error_set(err, STATUS_LIMIT, "too many different operations in a trace (limit is %d)", TRACE_SPANS_MAX);
    enum status status = ARENA_NEW(&larger.arena, larger.cell_count / 2, larger.items, err);
    if (status == STATUS_OK) status = ARENA_NEW(&larger.arena, larger.cell_count, larger.cells, err);
    if (status != STATUS_OK) {
        arena_release(&larger.arena);
        return status;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        larger.items[i] = table->items[i];
        *operation_cell(&larger, &table->items[i]) = i + 1;
    }
    arena_release(&table->arena);
    *table = larger;
    return STATUS_OK;
}

enum status trace_operations_find(struct trace_operations *table, const struct trace_span *span, uint32_t *out,
                                  struct error *err)
{
    if (table->count >= table->cell_count / 2) {
        TRY(grow(table, err));
    }
    struct trace_operation operation = span_operation(span);
    uint32_t *cell = operation_cell(table, &operation);
    if (*cell == 0) {
        table->items[table->count++] = operation;
        *cell = table->count;
    }
    *out = *cell - 1;
    return STATUS_OK;
}

void trace_operations_release(struct trace_operations *table)
{
    arena_release(&table->arena);
    *table = (struct trace_operations){0};
}
