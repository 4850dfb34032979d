#include "planner/files/plan_reader.h"

#include <inttypes.h>
#include <string.h>

#include "base/text/suggest.h"
#include "base/try.h"

/* --- elements of rows ----------------------------------------------------------------------- */

enum status plan_reader_u32(struct plan_reader *r, const json_t *row, size_t index, uint32_t min,
                                   uint32_t max, uint32_t *out)
{
    uint64_t value;
    TRY(json_item_u64(r->in, row, index, min, max, &value, r->err));
    *out = (uint32_t)value;
    return STATUS_OK;
}

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

enum status plan_reader_shard(struct plan_reader *r, const json_t *row, size_t index, uint32_t job,
                                     uint32_t *out)
{
    if (json_is_null(json_array_get(row, index))) {
        *out = PLAN_NONE;
        return STATUS_OK;
    }
    return plan_reader_index(r, row, index, "shard", plan_job_shards(r->plan, job), out);
}

/* --- limits ---------------------------------------------------------------------------------- */

enum status plan_reader_limit(struct plan_reader *r, const json_t *array, size_t count, size_t limit,
                              const char *what)
{
    if (count <= limit) return STATUS_OK;
    return json_fail_index(r->in, array, JSON_SELF, r->err, "too many %s (limit is %zu)", what,
                           limit);
}

/* --- tables element by element -------------------------------------------------------------- */

enum status plan_reader_count(struct plan_reader *r, enum plan_table table, size_t *count, size_t *inner)
{
    struct json_element element;
    bool more;
    *count = *inner = 0;
    TRY(json_stream_begin(r->file, table, r->err));
    for (;; ++*count) {
        TRY(json_stream_next(r->file, &element, &more, r->err));
        if (!more) return STATUS_OK;
        *inner += json_element_size(&element);
    }
}

enum status plan_reader_parse(struct plan_reader *r, const struct json_stream *stream,
                              const struct json_element *element, plan_reader_take take, void *context)
{
    const struct json_input *outer = r->in;
    struct json_input *in = NULL;
    TRY(json_stream_parse(stream, element, &in, r->err));
    r->in = in;
    r->element = element->index;
    enum status status = take(r, json_input_root(in), context);
    r->in = outer;
    json_input_destroy(in);
    return status;
}

enum status plan_reader_each(struct plan_reader *r, enum plan_table table, plan_reader_take take, void *context)
{
    struct json_element element;
    bool more;
    TRY(json_stream_begin(r->file, table, r->err));
    for (;;) {
        TRY(json_stream_next(r->file, &element, &more, r->err));
        if (!more) return STATUS_OK;
        TRY(plan_reader_parse(r, r->file, &element, take, context));
    }
}

enum status plan_reader_row(struct plan_reader *r, const json_t *element, size_t length)
{
    size_t found = json_array_size(element);
    if (!json_is_array(element))
        return json_fail_key(r->in, element, NULL, r->err, "element %" PRIu64 " is not an array", r->element);
    if (length != SIZE_MAX && found != length)
        return json_fail_key(r->in, element, NULL, r->err, "element %" PRIu64 " has %zu elements (expected %zu)",
                             r->element, found, length);
    return STATUS_OK;
}
