/*
 * An embedding that exceeds a weight buffer is cut into slices in turn: rows of the parameters (forward) or of
 * parameters, moments and table gradient (backward) come in, are used and go out while the next slice comes in.
 *
 * If the host's processor has the optimizer, both passes run there without weight buffers or edges.
 */
#include "planner/spill/emit/emit_embedding.h"

#include "models/job/memory.h"
#include "planner/spill/emit/emit_boundary.h"
#include "planner/spill/emit/emit_state.h"
#include "planner/spill/emit/emit_trained.h"

/* --- in slices ----------------------------------------------------------------------------------- */

/* Finds rows [*first, *first + *count) of slice k. */
static uint32_t slice_range(const struct emit_shard_view *v, uint32_t k, uint64_t *first,
                            uint64_t *count)
{
    uint64_t rows = footprint_embedding_rows(v->job);
    *first = k * v->slice_rows;
    *count = rows - *first < v->slice_rows ? rows - *first : v->slice_rows;
    return (uint32_t)((rows + v->slice_rows - 1) / v->slice_rows);
}

void emit_embedding_forward_sliced(struct emit_context *e, const struct emit_shard_view *v)
{
    uint64_t row = footprint_table_row_bytes(v->job), first, count;
    uint32_t out = emit_boundary(e, v, BUFFER_BOUNDARY, 1, true, v->footprint->output_bytes);
    uint32_t tokens = emit_boundary(e, v, BUFFER_BATCH, PLAN_NONE, true, job_batch_bytes(v->job));
    uint32_t slices = slice_range(v, 0, &first, &count);
    emit_fetch_batch(e, v);
    for (uint32_t k = 0; k < slices; k++) {
        slice_range(v, k, &first, &count);
        uint32_t rows = emit_buffer(e, v, BUFFER_PARAMETERS, 0, 1 + k, true, count * row);
        emit_fetch_state(e, v, 0, EMIT_STAGED_TRANSIENT + k, first * row, rows, EMIT_AREA_WEIGHT_BUFFER, count * row);
        emit_use(e, rows, ACCESS_READ | ACCESS_RELEASE);
        emit_use(e, tokens, ACCESS_READ | (k + 1 == slices ? ACCESS_RELEASE : 0));
        if (k == 0) emit_use_new(e, out, 0, EMIT_AREA_EDGE, 0, v->footprint->output_bytes);
        else emit_use(e, out, ACCESS_READ | ACCESS_WRITE);
        emit_compute(e, v, v->pass, UNIT_FORWARD, true, k, first, count);
        emit_turn_end(e);
    }
}

/* A slice of rows and their optimizer state, in host memory and on the device. */
struct row_slice {
    struct state_layout whole, slice;
    uint32_t number, last_part; /* number of slices; the last part that has bytes */
    uint32_t host, rows;        /* buffers: the state in host memory; the slice on the device */
    uint64_t first;
    bool stored;                /* the state is on storage, and goes through a buffer in host memory */
};

static uint64_t host_offset(const struct row_slice *s, uint32_t part)
{
    return s->whole.parts[part].offset_bytes + s->first * s->whole.parts[part].row_bytes;
}

static void fetch_slice(struct emit_context *e, const struct emit_shard_view *v, const struct row_slice *s)
{
    uint64_t bytes = s->slice.bytes;
    uint32_t to = s->rows;
    if (s->stored) to = emit_stage(e, v, 0, EMIT_STAGED_TRANSIENT + s->number, EMIT_AREA_TRANSIENT, bytes);
    if (!s->stored) emit_slot(e, EMIT_AREA_WEIGHT_BUFFER, 0, bytes);
    for (uint32_t part = 0; part <= s->last_part; part++)
        if (s->slice.parts[part].bytes > 0)
            emit_copy(e, s->stored ? STREAM_READ : STREAM_H2D, s->host, host_offset(s, part), 0, to,
                      s->slice.parts[part].offset_bytes, part == STATE_WEIGHTS ? ACCESS_ACQUIRE : 0,
                      s->slice.parts[part].bytes);
    if (!s->stored) return;
    emit_slot(e, EMIT_AREA_WEIGHT_BUFFER, 0, bytes);
    emit_copy(e, STREAM_H2D, to, 0, ACCESS_RELEASE, s->rows, 0, ACCESS_ACQUIRE, bytes);
}

static void store_slice(struct emit_context *e, const struct emit_shard_view *v, const struct row_slice *s)
{
    uint32_t from = s->rows;
    if (s->stored) {
        from = emit_stage(e, v, 0, EMIT_STAGED_TRANSIENT + s->number, EMIT_AREA_TRANSIENT, s->slice.bytes);
        emit_copy(e, STREAM_D2H, s->rows, 0, ACCESS_RELEASE, from, 0, ACCESS_ACQUIRE, s->slice.bytes);
    }
    for (uint32_t part = 0; part <= s->last_part; part++)
        if (s->slice.parts[part].bytes > 0)
            emit_copy(e, s->stored ? STREAM_WRITE : STREAM_D2H, from, s->slice.parts[part].offset_bytes,
                      part == s->last_part ? ACCESS_RELEASE : 0, s->host, host_offset(s, part), 0,
                      s->slice.parts[part].bytes);
}

void emit_embedding_backward_sliced(struct emit_context *e, const struct emit_shard_view *v)
{
    const struct footprint *f = v->footprint;
    uint64_t row = v->job->network.width * sizeof(float), first, count; /* of a gradient row */
    struct row_slice s = {.whole = job_state(v->job, 0, 1), .last_part = STATE_PARTS - 1,
                          .stored = emit_is_stored(e, v, 0)};
    while (s.whole.parts[s.last_part].bytes == 0) s.last_part--;
    uint32_t tokens = emit_boundary(e, v, BUFFER_BATCH, PLAN_NONE, true, job_batch_bytes(v->job));
    uint32_t dx = emit_boundary(e, v, BUFFER_BOUNDARY_GRADIENT, 1, true, f->output_bytes);
    uint32_t slices = slice_range(v, 0, &first, &count);
    s.host = emit_host_state(e, v, 0);
    emit_fetch_batch(e, v);
    emit_fetch_input(e, v, BUFFER_BOUNDARY_GRADIENT, 1, f->output_bytes, v->origin);
    for (uint32_t k = 0; k < slices; k++) {
        slice_range(v, k, &first, &count);
        uint64_t vocabulary = v->job->network.vocabulary, gradient_rows = 0;
        uint32_t gradient = 0;
        s.slice = memory_state_rows(&v->job->network, count, job_state_format(v->job));
        s.number = k;
        s.first = first;
        s.rows = emit_buffer(e, v, BUFFER_STATE, 0, 1 + k, true, s.slice.bytes);
        fetch_slice(e, v, &s);
        if (footprint_has_table(v->job) && first < vocabulary) {
            gradient_rows = vocabulary - first < count ? vocabulary - first : count;
            gradient = emit_buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 1 + k, true,
                                   gradient_rows * row);
            emit_fetch(e, emit_buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false, 0), first * row,
                       gradient, EMIT_AREA_WEIGHT_BUFFER, 0, gradient_rows * row);
        }
        uint32_t release = k + 1 == slices ? ACCESS_RELEASE : 0;
        emit_use(e, s.rows, ACCESS_READ | ACCESS_WRITE);
        emit_use(e, tokens, ACCESS_READ | release);
        emit_use(e, dx, ACCESS_READ | release);
        if (gradient_rows) emit_use(e, gradient, ACCESS_READ | ACCESS_RELEASE);
        emit_compute(e, v, PLAN_BACKWARD, UNIT_BACKWARD, true, k, first, count);
        store_slice(e, v, &s);
        emit_turn_end(e);
    }
}

/* --- on the host's processor ------------------------------------------------------------------- */

void emit_embedding_forward_cpu(struct emit_context *e, const struct emit_shard_view *v)
{
    if (v->base_bytes > 0) emit_use(e, emit_base_buffer(e, v, BUFFER_BASE, 0, false, v->base_bytes), ACCESS_READ);
    if (v->footprint->weight_bytes > 0) emit_use(e, emit_host_state(e, v, 0), ACCESS_READ);
    emit_use(e, emit_boundary(e, v, BUFFER_BATCH, PLAN_NONE, false, job_batch_bytes(v->job)),
             ACCESS_READ);
    emit_use(e, emit_boundary(e, v, BUFFER_BOUNDARY, 1, false, v->footprint->output_bytes),
             ACCESS_WRITE);
    emit_cpu(e, v, v->pass, v->footprint->workspace_bytes[UNIT_FORWARD][UNIT_KEEP]);
}

void emit_embedding_backward_cpu(struct emit_context *e, const struct emit_shard_view *v)
{
    bool clips = job_clips(v->job);
    if (clips) emit_use(e, emit_host_gradient(e, v), ACCESS_WRITE);
    else emit_use(e, emit_host_state(e, v, 0), ACCESS_READ | ACCESS_WRITE);
    if (footprint_has_table(v->job))
        emit_use(e, emit_buffer(e, v, BUFFER_TABLE_GRADIENT, PLAN_NONE, 0, false,
                                footprint_table_gradient_bytes(v->job)),
                 ACCESS_READ);
    emit_use(e, emit_boundary(e, v, BUFFER_BATCH, PLAN_NONE, false, job_batch_bytes(v->job)),
             ACCESS_READ);
    emit_use(e, emit_boundary(e, v, BUFFER_BOUNDARY_GRADIENT, 1, false, v->footprint->output_bytes),
             ACCESS_READ);
    uint32_t how = UNIT_KEEP | (clips ? UNIT_GRADIENTS_OUT : 0);
    emit_cpu(e, v, PLAN_BACKWARD, v->footprint->workspace_bytes[UNIT_BACKWARD][how]);
    if (clips) emit_norm(e, v);
}
