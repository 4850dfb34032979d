/* Reads operations and units; a unit has its operations and their accesses. */
#include "base/size.h"
#include "base/try.h"
#include "planner/files/plan_reader.h"

/* --- operations ----------------------------------------------------------------------------- */

static enum status item_flags(struct plan_reader *r, const json_t *row, size_t index, uint32_t *out)
{
    const char *text;
    uint32_t flags = 0;
    TRY(json_item_string(r->in, row, index, &text, r->err));
    for (const char *c = text; *c; c++) {
        uint32_t flag = *c == 'r'   ? ACCESS_READ
                        : *c == 'w' ? ACCESS_WRITE
                        : *c == 'a' ? ACCESS_ACQUIRE
                        : *c == 'x' ? ACCESS_RELEASE
                                    : 0;
        if (flag == 0 || (flags & flag))
            return json_fail_index(r->in, row, index, r->err,
                                   "access '%.20s' is not understood (expected each of r read, "
                                   "w write, a acquire, x release at most once)",
                                   text);
        flags |= flag;
    }
    *out = flags;
    return STATUS_OK;
}

static struct plan_access *next_access(struct plan *plan)
{
    return &plan->accesses[plan->access_count++];
}

/* Reads [buffer, offset, "flags"]. */
static enum status read_copy_end(struct plan_reader *r, struct json_object *object, const char *key)
{
    const json_t *row;
    TRY(json_take_array(object, key, JSON_REQUIRED, &row, r->err));
    if (json_array_size(row) != 3)
        return json_fail_key(r->in, object->value, key, r->err,
                             "'%s' has %zu elements (expected buffer, offset, access)", key,
                             json_array_size(row));
    struct plan_access *access = next_access(r->plan);
    TRY(plan_reader_index(r, row, 0, "buffer", r->plan->buffer_count, &access->buffer));
    TRY(json_item_u64(r->in, row, 1, 0, UINT64_MAX, &access->offset_bytes, r->err));
    return item_flags(r, row, 2, &access->flags);
}

static enum status read_copy(struct plan_reader *r, struct json_object *object, struct plan_op *op)
{
    size_t direction = 0;
    op->kind = OP_COPY;
    op->work = PLAN_NONE;
    static const char *const directions[] = {"h2d", "d2h", "p2p", "read", "write"};
    static const uint8_t streams[] = {STREAM_H2D, STREAM_D2H, STREAM_P2P, STREAM_READ, STREAM_WRITE};
    TRY(json_take_choice(object, "copy", JSON_REQUIRED, directions, ARRAY_COUNT(directions),
                         &direction, r->err));
    op->stream = streams[direction];
    if (!plan_has_stream(r->plan, op->stream))
        return json_fail_key(r->in, object->value, "copy", r->err, "'%s' on a machine without %s",
                             directions[direction],
                             op->stream == STREAM_P2P ? "direct links between devices" : "storage");
    TRY(json_take_u64(object, "bytes", JSON_REQUIRED, 0, UINT64_MAX, &op->bytes, r->err));
    TRY(read_copy_end(r, object, "from"));
    return read_copy_end(r, object, "to");
}

static enum status read_axes(struct plan_reader *r, struct json_object *object, struct plan_op *op)
{
    const json_t *axes;
    TRY(json_take_array(object, "axes", JSON_REQUIRED, &axes, r->err));
    for (size_t a = 0; a < json_array_size(axes); a++) {
        uint32_t axis;
        TRY(plan_reader_choice(r, axes, a, "axis", plan_axis_names, AXIS_COUNT, &axis));
        op->axes |= (uint8_t)(1u << axis);
    }
    return STATUS_OK;
}

static enum status read_collective(struct plan_reader *r, struct json_object *object, struct plan_op *op)
{
    static const char *const streams[] = {"compute", "group", "data"};
    static const uint8_t kinds[] = {STREAM_COMPUTE, STREAM_GROUP, STREAM_DATA};
    size_t kind = 0, stream = 0;
    op->kind = OP_COLLECTIVE;
    op->work = PLAN_NONE;
    if (r->plan->gang_count == 0)
        return json_fail_key(r->in, object->value, "collective", r->err, "a collective in a plan without gangs");
    TRY(json_take_choice(object, "collective", JSON_REQUIRED, collective_kind_names, COLLECTIVE_KIND_COUNT, &kind,
                         r->err));
    TRY(read_axes(r, object, op));
    TRY(json_take_u32(object, "rounds", JSON_REQUIRED, 1, UINT32_MAX, &op->rounds, r->err));
    TRY(json_take_u64(object, "bytes", JSON_REQUIRED, 0, UINT64_MAX, &op->bytes, r->err));
    TRY(json_take_choice(object, "stream", JSON_REQUIRED, streams, ARRAY_COUNT(streams), &stream, r->err));
    op->collective = (uint8_t)kind;
    op->stream = kinds[stream];
    if (!json_object_get(object->value, "from")) return read_copy_end(r, object, "access");
    TRY(read_copy_end(r, object, "from"));
    return read_copy_end(r, object, "to");
}

static enum status read_compute_access(struct plan_reader *r, const json_t *array)
{
    for (size_t a = 0; a < json_array_size(array); a++) {
        const json_t *row;
        TRY(json_item_array(r->in, array, a, 2, &row, r->err));
        struct plan_access *access = next_access(r->plan);
        TRY(plan_reader_index(r, row, 0, "buffer", r->plan->buffer_count, &access->buffer));
        TRY(item_flags(r, row, 1, &access->flags));
    }
    return STATUS_OK;
}

static enum status read_rows(struct plan_reader *r, struct json_object *object, struct plan_op *op)
{
    const json_t *rows;
    if (!json_has(object, "rows")) /* a slice of tokens, or everything */
        return json_take_u32(object, "tokens", JSON_OPTIONAL, 0, PARALLEL_SLICES_MAX - 1, &op->slice, r->err);
    TRY(json_take_array(object, "rows", JSON_REQUIRED, &rows, r->err));
    if (json_array_size(rows) != 2)
        return json_fail_key(r->in, object->value, "rows", r->err,
                             "'rows' has %zu elements (expected first row, count)",
                             json_array_size(rows));
    TRY(json_item_u64(r->in, rows, 0, 0, UINT64_MAX, &op->first_row, r->err));
    TRY(json_item_u64(r->in, rows, 1, 1, UINT64_MAX, &op->row_count, r->err));
    return json_take_u32(object, "slice", JSON_REQUIRED, 0, UINT32_MAX, &op->slice, r->err);
}

static enum status read_compute(struct plan_reader *r, struct json_object *object, struct plan_op *op)
{
    size_t pass = 0;
    const json_t *accesses;
    op->kind = OP_COMPUTE;
    op->work = PLAN_NONE;
    TRY(json_take_choice(object, "compute", JSON_REQUIRED, plan_pass_names, PLAN_PASS_COUNT, &pass,
                         r->err));
    op->pass = (uint8_t)pass;
    bool cpu = false, host = false;
    TRY(json_take_bool(object, "cpu", JSON_OPTIONAL, &cpu, r->err));
    TRY(json_take_bool(object, "host", JSON_OPTIONAL, &host, r->err));
    bool of_host = host || pass == PLAN_BATCH || pass == PLAN_KEEP;
    bool of_files = pass == PLAN_OPEN || pass == PLAN_CLOSE;
    op->stream = of_files ? STREAM_FILE : cpu ? STREAM_CPU : of_host ? STREAM_HOST : STREAM_COMPUTE;
    TRY(json_take_u32(object, "work", JSON_OPTIONAL, 0, PLAN_NONE - 1, &op->work, r->err));
    if (op->work != PLAN_NONE && op->work >= r->plan->work_count)
        return json_fail_key(r->in, object->value, "work", r->err,
                             "work %u does not exist (there are %u)", op->work,
                             r->plan->work_count);
    TRY(read_rows(r, object, op));
    TRY(json_take_array(object, "access", JSON_REQUIRED, &accesses, r->err));
    return read_compute_access(r, accesses);
}

static enum status read_afters(struct plan_reader *r, struct json_object *object, struct plan_op *op)
{
    const json_t *array = NULL;
    op->first_after = r->plan->after_count;
    TRY(json_take_array(object, "after", JSON_OPTIONAL, &array, r->err));
    if (!array) return STATUS_OK;
    op->after_count = (uint32_t)json_array_size(array);
    for (size_t a = 0; a < json_array_size(array); a++) {
        const json_t *row;
        TRY(json_item_array(r->in, array, a, 2, &row, r->err));
        struct plan_after *after = &r->plan->afters[r->plan->after_count++];
        TRY(plan_reader_u32(r, row, 0, 0, PLAN_NONE - 1, &after->tasks));
        TRY(plan_reader_u32(r, row, 1, 0, PLAN_NONE - 1, &after->op));
    }
    return STATUS_OK;
}

static enum status read_op(struct plan_reader *r, const json_t *array, size_t index,
                           struct plan_op *op)
{
    struct json_object object;
    TRY(json_object_open_at(&object, r->in, array, index, "an operation", r->err));
    op->first_access = r->plan->access_count;
    if (json_object_get(object.value, "copy"))
        TRY(read_copy(r, &object, op));
    else if (json_object_get(object.value, "compute"))
        TRY(read_compute(r, &object, op));
    else if (json_object_get(object.value, "collective"))
        TRY(read_collective(r, &object, op));
    else
        return json_fail_index(r->in, array, index, r->err,
                               "an operation without kind (expected 'copy', 'compute' or 'collective')");
    TRY(read_afters(r, &object, op));
    op->access_count = r->plan->access_count - op->first_access;
    return json_object_close(&object, r->err);
}

/* --- units ---------------------------------------------------------------------------------- */

static enum status read_unit(struct plan_reader *r, const json_t *element, void *context)
{
    (void)context;
    struct plan *plan = r->plan;
    struct plan_unit *unit = &plan->units[plan->unit_count];
    struct json_object object;
    const json_t *ops;
    size_t pass = 0;
    TRY(json_object_open(&object, r->in, element, "a unit", r->err));
    TRY(json_take_u32(&object, "job", JSON_REQUIRED, 0, plan->jobs.count - 1, &unit->job, r->err));
    unit->shard = PLAN_NONE;
    TRY(json_take_u32(&object, "shard", JSON_OPTIONAL, 0, PLAN_NONE - 1, &unit->shard, r->err));
    if (unit->shard != PLAN_NONE && unit->shard >= plan_job_shards(plan, unit->job))
        return json_fail_key(r->in, object.value, "shard", r->err,
                             "shard %u does not exist (there are %u)", unit->shard,
                             plan_job_shards(plan, unit->job));
    TRY(json_take_choice(&object, "pass", JSON_REQUIRED, plan_pass_names, PLAN_PASS_COUNT, &pass,
                         r->err));
    unit->pass = (uint32_t)pass;
    TRY(json_take_bool(&object, "ends_minibatch", JSON_REQUIRED, &unit->ends_minibatch, r->err));
    TRY(json_take_array(&object, "ops", JSON_REQUIRED, &ops, r->err));
    unit->first_op = plan->op_count;
    for (size_t o = 0; o < json_array_size(ops); o++) {
        struct plan_op *op = &plan->ops[plan->op_count++];
        TRY(read_op(r, ops, o, op));
        unit->op_count++;
        for (uint32_t a = 0; a < op->access_count; a++)
            if (plan->accesses[op->first_access + a].flags & ACCESS_ACQUIRE) unit->acquire_count++;
    }
    plan->unit_count++;
    return json_object_close(&object, r->err);
}

struct unit_sizes {
    size_t units, ops, accesses, afters;
};

static enum status count_unit(struct plan_reader *r, const json_t *element, void *context)
{
    (void)r;
    struct unit_sizes *sizes = context;
    const json_t *ops = json_object_get(element, "ops");
    sizes->units++;
    sizes->ops += json_array_size(ops);
    for (size_t o = 0; o < json_array_size(ops); o++) {
        const json_t *op = json_array_get(ops, o);
        sizes->accesses += 2 + json_array_size(json_object_get(op, "access")); /* copies, collectives: 2 */
        sizes->afters += json_array_size(json_object_get(op, "after"));
    }
    return STATUS_OK;
}

enum status plan_reader_units(struct plan_reader *r)
{
    struct plan *plan = r->plan;
    struct unit_sizes sizes = {0};
    TRY(plan_reader_each(r, PLAN_TABLE_UNITS, count_unit, &sizes));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_UNITS], sizes.units, PLAN_UNITS_MAX, "units"));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_UNITS], sizes.ops, PLAN_OPS_MAX, "operations"));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_UNITS], sizes.accesses, PLAN_ACCESSES_MAX, "accesses"));
    TRY(plan_reader_limit(r, r->tables[PLAN_TABLE_UNITS], sizes.afters, PLAN_ACCESSES_MAX, "orderings"));
    TRY(ARENA_NEW(&r->plan->arena, sizes.units, plan->units, r->err));
    TRY(ARENA_NEW(&r->plan->arena, sizes.ops, plan->ops, r->err));
    TRY(ARENA_NEW(&r->plan->arena, sizes.accesses, plan->accesses, r->err));
    TRY(ARENA_NEW(&r->plan->arena, sizes.afters, plan->afters, r->err));
    return plan_reader_each(r, PLAN_TABLE_UNITS, read_unit, NULL);
}
