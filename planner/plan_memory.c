/*
 * The uses of a device's memory. Slots may overlap, so their ends divide the arena. From the lowest end to the highest,
 * a counter for each use has the number of its slots that cover the bytes up to the next end:
 *
 *     slot 0   |------ workspace ------|
 *     slot 1                           |---- state ----|
 *     slot 2                           |- activations -----|
 *     uses      workspace               state or act.   act.
 *
 * Cost: O(tasks + slots log slots).
 */
#include "planner/plan_memory.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"

static const char *const use_names[] = {
    [MEMORY_STAYING] = "states that stay", [MEMORY_STATES] = "states",
    [MEMORY_ACTIVATIONS] = "activations",  [MEMORY_TABLES] = "token tables",
    [MEMORY_BOUNDARIES] = "boundaries",    [MEMORY_WORKSPACE] = "workspace",
};
static_assert(ARRAY_COUNT(use_names) == MEMORY_USE_COUNT, "a name per use");

enum plan_memory_use plan_memory_use_of(const struct plan *plan, const struct plan_unit *unit,
                                        uint32_t buffer)
{
    switch ((enum plan_buffer_kind)plan->buffers[buffer].kind) {
    case BUFFER_WORKSPACE: return MEMORY_WORKSPACE;
    case BUFFER_ACTIVATIONS: return MEMORY_ACTIVATIONS;
    case BUFFER_TABLE:
    case BUFFER_TABLE_GRADIENT: return MEMORY_TABLES;
    case BUFFER_BATCH:
    case BUFFER_LOSS:
    case BUFFER_OUTPUTS:
    case BUFFER_BOUNDARY:
    case BUFFER_BOUNDARY_GRADIENT: return MEMORY_BOUNDARIES;
    default: return unit->pass == PLAN_LOAD ? MEMORY_STAYING : MEMORY_STATES;
    }
}

/* --- adding up -------------------------------------------------------------------------------- */

struct memory_edge {
    uint64_t at;
    uint8_t uses;
    bool begins;
};

static int by_place(const void *left, const void *right)
{
    const struct memory_edge *a = left, *b = right;
    return a->at < b->at ? -1 : a->at > b->at;
}

static uint32_t uses_here(const uint32_t covers[MEMORY_USE_COUNT])
{
    uint32_t uses = 0;
    for (uint32_t u = 0; u < MEMORY_USE_COUNT; u++)
        if (covers[u] > 0) uses |= 1u << u;
    return uses;
}

static void add_up(const struct memory_edge *edges, size_t count, struct plan_memory *out)
{
    uint64_t bytes[1 << MEMORY_USE_COUNT] = {0}, from = 0;
    uint32_t covers[MEMORY_USE_COUNT] = {0};
    for (size_t i = 0; i < count; i++) {
        bytes[uses_here(covers)] += edges[i].at - from;
        from = edges[i].at;
        for (uint32_t u = 0; u < MEMORY_USE_COUNT; u++)
            if (edges[i].uses >> u & 1) covers[u] += edges[i].begins ? 1 : UINT32_MAX;
    }
    *out = (struct plan_memory){.bytes = from};
    for (uint32_t n = 0; n < ARRAY_COUNT(bytes); n++) {
        uint32_t uses = (n + 1) % ARRAY_COUNT(bytes); /* unused bytes come last */
        if (bytes[uses] > 0)
            out->lines[out->count++] = (struct plan_memory_line){uses, bytes[uses]};
    }
}

enum status plan_memory_count(const struct plan *plan, const uint8_t *uses, struct plan_memory *out,
                              struct error *err)
{
    size_t count = 0;
    struct memory_edge *edges = alloc_zeroed(2 * (size_t)plan->slot_count + 1, sizeof *edges);
    if (!edges) return error_memory(err, "a table of memory", plan->slot_count * 2 * sizeof *edges);
    for (uint32_t s = 0; s < plan->slot_count; s++) {
        const struct plan_slot *slot = &plan->slots[s];
        if (uses[s] == 0 || slot->bytes == 0) continue;
        edges[count++] = (struct memory_edge){slot->offset_bytes, uses[s], true};
        edges[count++] = (struct memory_edge){slot->offset_bytes + slot->bytes, uses[s], false};
    }
    qsort(edges, count, sizeof *edges, by_place);
    add_up(edges, count, out);
    free(edges);
    return STATUS_OK;
}

/* --- of a plan -------------------------------------------------------------------------------- */

static void note_task(const struct plan *plan, const struct plan_task *task,
                      uint8_t *uses)
{
    const struct plan_unit *unit = &plan->units[task->unit];
    uint32_t next = task->layout;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_access *accesses = &plan->accesses[plan->ops[o].first_access];
        for (uint32_t a = 0; a < plan->ops[o].access_count; a++) {
            if (!(accesses[a].flags & ACCESS_ACQUIRE)) continue;
            uint32_t slot = plan->layouts[next++], buffer = accesses[a].buffer;
            if (plan->buffers[buffer].on_device)
                uses[slot] |= (uint8_t)(1u << plan_memory_use_of(plan, unit, buffer));
        }
    }
}

enum status plan_memory_planned(const struct plan *plan, uint32_t device, struct plan_memory *out,
                                struct error *err)
{
    static_assert(MEMORY_USE_COUNT <= 8, "a bit each");
    uint8_t *uses = alloc_zeroed((size_t)plan->slot_count + 1, sizeof *uses);
    if (!uses) return error_memory(err, "a table of memory", plan->slot_count);
    for (uint32_t i = 0; i < plan->task_count; i++)
        if (plan_runs_on(plan, &plan->tasks[i], device)) note_task(plan, &plan->tasks[i], uses);
    enum status status = plan_memory_count(plan, uses, out, err);
    free(uses);
    return status;
}

const char *plan_memory_text(uint32_t uses, char text[PLAN_MEMORY_TEXT_BYTES])
{
    size_t used = 0;
    if (uses == 0) return "between slots";
    for (uint32_t u = 0; u < MEMORY_USE_COUNT; u++) {
        if (!(uses >> u & 1)) continue;
        used += (size_t)snprintf(text + used, PLAN_MEMORY_TEXT_BYTES - used, "%s%s",
                                 used > 0 ? " or " : "", use_names[u]);
        assert(used < PLAN_MEMORY_TEXT_BYTES);
    }
    return text;
}
