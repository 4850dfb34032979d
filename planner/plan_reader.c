/* See plan_reader.h. */
#include "planner/plan_reader.h"

#include <string.h>

#include "base/suggest.h"
#include "models/try.h"

/* --- elements of rows ----------------------------------------------------------------------- */

enum status plan_reader_u32(struct plan_reader *r, const json_t *row, size_t index, uint32_t min,
                                   uint32_t max, uint32_t *out)
{
    uint64_t value;
    TRY(json_item_u64(r->in, row, index, min, max, &value, r->err));
    *out = (uint32_t)value;
    return STATUS_OK;
}

/* An index into a table of `count`; `what` names its elements. */
enum status plan_reader_index(struct plan_reader *r, const json_t *row, size_t index, const char *what,
                                     uint32_t count, uint32_t *out)
{
    uint32_t value;
    TRY(plan_reader_u32(r, row, index, 0, PLAN_NONE - 1, &value));
    if (value >= count)
        return json_fail_index(r->in, row, index, r->err, "%s %u does not exist (there are %u)",
                               what, value, count);
    *out = value;
    return STATUS_OK;
}

enum status plan_reader_choice(struct plan_reader *r, const json_t *row, size_t index, const char *what,
                                      const char *const *names, uint32_t count, uint32_t *out)
{
    const char *name;
    TRY(json_item_string(r->in, row, index, &name, r->err));
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) != 0) continue;
        *out = i;
        return STATUS_OK;
    }
    char ending[SUGGEST_BYTES];
    return json_fail_index(r->in, row, index, r->err, "unknown %s '%s'%s", what, name,
                           suggest_ending_or(name, names, count, "", ending));
}

uint32_t plan_reader_shards(const struct plan *plan, uint32_t job)
{
    return plan->job_first_shard[job + 1] - plan->job_first_shard[job];
}

/* A shard of `job`, or null. */
enum status plan_reader_shard(struct plan_reader *r, const json_t *row, size_t index, uint32_t job,
                                     uint32_t *out)
{
    if (json_is_null(json_array_get(row, index))) {
        *out = PLAN_NONE;
        return STATUS_OK;
    }
    return plan_reader_index(r, row, index, "shard", plan_reader_shards(r->plan, job), out);
}

/* --- allocation ----------------------------------------------------------------------------- */

enum status plan_reader_allocate(struct plan_reader *r, size_t count, size_t size, void *out)
{
    void *memory;
    TRY(arena_array(&r->plan->arena, count, size, &memory, r->err));
    memcpy(out, &memory, sizeof memory); /* any object pointer */
    return STATUS_OK;
}

enum status plan_reader_limit(struct plan_reader *r, const json_t *array, size_t count, size_t limit,
                                     const char *what)
{
    if (count <= limit) return STATUS_OK;
    return json_fail_index(r->in, array, JSON_SELF, r->err, "too many %s (limit is %zu)", what,
                           limit);
}

/* Elements of all the arrays in `array`, those of other types counted as empty. */
size_t plan_reader_inner(const json_t *array)
{
    size_t total = 0;
    for (size_t i = 0; i < json_array_size(array); i++)
        total += json_array_size(json_array_get(array, i));
    return total;
}
