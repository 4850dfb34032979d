/*
 * A forward pass of a swapped layer ends with its copies out, a backward pass begins with its copies in:
 *
 *     FORWARD s       compute: state, boundary s -> boundary s + 1, activations s
 *                     [d2h  activations s, boundary s -> host; free]
 *     LOSS            [h2d batch] compute -> gradient; d2h loss
 *     BACKWARD s      [h2d  boundary s, activations s]
 *                     compute: state, boundary s, activations s, gradient s + 1 -> gradient s; all but the
 *                     state free
 *
 * In plan order a copy in follows the previous backward pass; on its stream it runs as soon as its ranges are free: a
 * prefetch.
 */
#include "planner/swap/swap_units.h"

#include "planner/spill/emit/emit_pass.h"

enum { LAST_USE = ACCESS_READ | ACCESS_RELEASE };

struct swap_unit {
    const struct swap_writing *w;
    struct emit_context *e;
    struct emit_shard_view v;
    enum chain_choice choice;
    uint64_t work_offset;
};

/* --- units ----------------------------------------------------------------------------------- */

static struct swap_unit begin(const struct swap_writing *w, uint32_t shard, enum plan_pass pass, bool ends)
{
    const struct swap_job *job = w->job;
    struct emit_context *e = w->emitter;
    struct swap_unit u = {.w = w, .e = e, .choice = (enum chain_choice)w->choices[shard]};
    u.v = (struct emit_shard_view){.job = job->job,
                                   .trains = job->layers[shard].bytes.trained_bytes > 0,
                                   .goes_back = shard >= swap_lowest(job),
                                   .lowest = shard == swap_lowest(job),
                                   .footprint = &job->layers[shard].bytes,
                                   .job_index = job->index,
                                   .shard = shard,
                                   .global = e->partition->job_first_shard[job->index] + shard,
                                   .shard_count = job->layer_count,
                                   .embedding = shard == 0 && footprint_has_embedding(job->job),
                                   .last = shard + 1 == job->layer_count,
                                   .resident = true,
                                   .persistent = true,
                                   .pass = pass};
    e->acquire_count = 0;
    e->current = (struct emit_unit_slots){0};
    plan_builder_unit_begin(e->builder, job->index, shard, pass, ends);
    return u;
}

/* Ends a unit; all slots except scratch are placed. */
static void end(const struct swap_unit *u)
{
    struct emit_context *e = u->e;
    uint32_t slots[EMIT_ACCESSES_MAX], count = (uint32_t)e->acquire_count;
    uint32_t unit = plan_builder_unit_end(e->builder);
    if (e->status) return;
    for (uint32_t i = 0; i < count; i++) {
        const struct emit_acquire *a = &e->acquires[i];
        uint64_t base = a->area == EMIT_AREA_WORKSPACE ? u->work_offset : 0;
        slots[i] = plan_builder_slot(e->builder, base + a->offset_bytes, a->bytes);
    }
    plan_builder_task(e->builder, unit, u->w->job->device, slots, count);
}

static const struct swap_range *range_of(const struct swap_unit *u, uint32_t layer, enum swap_thing thing)
{
    return swap_range(u->w->places, layer, thing);
}

/* --- buffers --------------------------------------------------------------------------------- */

static uint32_t name(const struct swap_unit *u, uint32_t kind, uint32_t shard, bool on_device, uint64_t bytes)
{
    return emit_buffer(u->e, &u->v, kind, shard, 0, on_device, bytes);
}

static uint32_t here(const struct swap_unit *u, uint32_t kind, uint32_t shard, uint64_t bytes)
{
    return name(u, kind, shard, true, bytes);
}

/* Adds a buffer that the next computation makes. */
static void use_new(const struct swap_unit *u, uint32_t kind, uint32_t shard, const struct swap_range *range,
                    uint32_t flags)
{
    if (range->bytes == 0) return;
    emit_use_new(u->e, here(u, kind, shard, range->bytes), flags, EMIT_AREA_KEEP, range->offset, range->bytes);
}

/* Adds the gradient of the layer's input, which ends with the pass where no layer before it takes it. */
static void use_new_gradient(const struct swap_unit *u, uint32_t shard)
{
    use_new(u, BUFFER_BOUNDARY_GRADIENT, shard, range_of(u, shard, SWAP_GRADIENT), u->v.lowest ? ACCESS_RELEASE : 0);
}

static void use(const struct swap_unit *u, uint32_t kind, uint32_t shard, uint64_t bytes, uint32_t flags)
{
    if (bytes > 0) emit_use(u->e, here(u, kind, shard, bytes), flags);
}

/* Copies from the buffer of the same name on the host; and to it. */
static void fetch(const struct swap_unit *u, uint32_t kind, uint32_t shard, const struct swap_range *range)
{
    uint64_t bytes = range->bytes;
    if (bytes == 0) return;
    uint32_t host = name(u, kind, shard, false, bytes), device = here(u, kind, shard, bytes);
    emit_slot(u->e, EMIT_AREA_KEEP, range->offset, bytes);
    emit_copy(u->e, STREAM_H2D, host, 0, 0, device, 0, ACCESS_ACQUIRE, bytes);
}

static void send(const struct swap_unit *u, uint32_t kind, uint32_t shard, uint64_t bytes)
{
    if (bytes == 0) return;
    emit_send(u->e, here(u, kind, shard, bytes), ACCESS_RELEASE, name(u, kind, shard, false, bytes), 0, bytes);
}

static void use_state(const struct swap_unit *u, uint32_t shard, uint32_t flags)
{
    emit_use(u->e, here(u, BUFFER_STATE, shard, u->w->job->layers[shard].bytes.state_bytes), flags);
}

static uint64_t batch_bytes(const struct swap_unit *u) { return job_batch_bytes(u->v.job); }

/* Returns the bytes that the layer keeps without its input, if any. */
static uint64_t kept_bytes(const struct swap_unit *u)
{
    return u->choice == CHAIN_RECOMPUTE ? 0 : swap_kept_bytes(u->w->job, u->v.shard);
}

static uint32_t way_of(const struct swap_unit *u)
{
    return (u->choice != CHAIN_RECOMPUTE && u->v.goes_back) || u->v.embedding ? UNIT_KEEP : 0;
}

static void compute(struct swap_unit *u, enum unit_pass pass, uint32_t how)
{
    enum swap_thing work = pass == UNIT_FORWARD ? SWAP_WORK : SWAP_WORK_BACK;
    u->work_offset = range_of(u, u->v.shard, work)->offset;
    emit_compute(u->e, &u->v, u->v.pass, pass, how, 0, 0, 0);
}

/* --- passes ---------------------------------------------------------------------------------- */

static void make_batch(const struct swap_unit *u)
{
    uint64_t bytes = batch_bytes(u);
    if (bytes == 0) return;
    emit_use(u->e, name(u, BUFFER_BATCH, PLAN_NONE, false, bytes), ACCESS_WRITE);
    emit_host(u->e, PLAN_BATCH);
}

static void write_forward(const struct swap_writing *w, uint32_t s)
{
    struct swap_unit u = begin(w, s, PLAN_FORWARD, false);
    bool swapped = u.choice == CHAIN_SWAP;
    uint64_t input = u.v.footprint->input_bytes;
    if (s == 0) make_batch(&u);
    if (s == 0) fetch(&u, BUFFER_BATCH, PLAN_NONE, range_of(&u, 0, SWAP_BATCH));
    use_state(&u, s, ACCESS_READ);
    if (s == 0) use(&u, BUFFER_BATCH, PLAN_NONE, batch_bytes(&u), LAST_USE);
    else use(&u, BUFFER_BOUNDARY, s, input, u.v.goes_back ? ACCESS_READ : LAST_USE);
    use_new(&u, BUFFER_BOUNDARY, s + 1, range_of(&u, s + 1, SWAP_INPUT), 0);
    use_new(&u, BUFFER_ACTIVATIONS, s, range_of(&u, s, SWAP_KEPT), 0);
    compute(&u, UNIT_FORWARD, way_of(&u));
    if (swapped) send(&u, BUFFER_ACTIVATIONS, s, kept_bytes(&u));
    if (swapped && s > 0) send(&u, BUFFER_BOUNDARY, s, input);
    end(&u);
}

static void write_loss(const struct swap_writing *w)
{
    uint32_t s = w->job->layer_count - 1;
    struct swap_unit u = begin(w, s, PLAN_LOSS, s == swap_lowest(w->job));
    bool text = batch_bytes(&u) > 0, table = footprint_has_table(u.v.job);
    if (s == 0) make_batch(&u);
    fetch(&u, BUFFER_BATCH, PLAN_NONE, range_of(&u, 0, SWAP_BATCH_AGAIN));
    use_state(&u, s, ACCESS_READ | (u.v.trains ? ACCESS_WRITE : 0));
    use(&u, BUFFER_BATCH, PLAN_NONE, batch_bytes(&u), LAST_USE);
    use(&u, BUFFER_BOUNDARY, s, u.v.footprint->input_bytes, LAST_USE);
    if (s > 0) use_new_gradient(&u, s);
    use_new(&u, BUFFER_LOSS, PLAN_NONE, range_of(&u, 0, SWAP_LOSS), 0);
    if (table) use_state(&u, 0, ACCESS_READ); /* the embedding's table is here */
    if (table) use_new(&u, BUFFER_TABLE_GRADIENT, PLAN_NONE, range_of(&u, 0, SWAP_TABLE_GRADIENT), 0);
    compute(&u, UNIT_LOSS, 0);
    if (text) send(&u, BUFFER_LOSS, PLAN_NONE, sizeof(double));
    end(&u);
}

static void write_backward(const struct swap_writing *w, uint32_t s)
{
    struct swap_unit u = begin(w, s, PLAN_BACKWARD, s == swap_lowest(w->job));
    const struct footprint *f = u.v.footprint;
    bool swapped = u.choice == CHAIN_SWAP, table = u.v.embedding && footprint_has_table(u.v.job);
    if (swapped && s > 0) fetch(&u, BUFFER_BOUNDARY, s, range_of(&u, s, SWAP_INPUT_AGAIN));
    if (swapped) fetch(&u, BUFFER_ACTIVATIONS, s, range_of(&u, s, SWAP_KEPT_AGAIN));
    if (s == 0) fetch(&u, BUFFER_BATCH, PLAN_NONE, range_of(&u, 0, SWAP_BATCH_AGAIN));
    use_state(&u, s, ACCESS_READ | (u.v.trains ? ACCESS_WRITE : 0));
    if (table) use(&u, BUFFER_TABLE_GRADIENT, PLAN_NONE, footprint_table_gradient_bytes(u.v.job), LAST_USE);
    use(&u, BUFFER_ACTIVATIONS, s, kept_bytes(&u), LAST_USE);
    if (s == 0) use(&u, BUFFER_BATCH, PLAN_NONE, batch_bytes(&u), LAST_USE);
    if (s > 0) use(&u, BUFFER_BOUNDARY, s, f->input_bytes, LAST_USE);
    use(&u, BUFFER_BOUNDARY_GRADIENT, s + 1, f->output_bytes, LAST_USE);
    if (s > 0) use_new_gradient(&u, s);
    compute(&u, UNIT_BACKWARD, way_of(&u));
    end(&u);
}

void swap_emit_minibatch(const struct swap_writing *w)
{
    uint32_t last = w->job->layer_count - 1;
    for (uint32_t s = 0; s < last; s++) write_forward(w, s);
    write_loss(w);
    for (uint32_t s = last; s-- > swap_lowest(w->job);) write_backward(w, s);
}

/* --- states ---------------------------------------------------------------------------------- */

/* Copies states as the partition places them. */
static void move_states(const struct swap_writing *w, enum plan_pass pass)
{
    for (uint32_t s = 0; s < w->job->layer_count; s++) {
        struct swap_unit u = begin(w, s, pass, false);
        emit_pass(u.e, &u.v);
        end(&u);
    }
}

void swap_emit_load(const struct swap_writing *w) { move_states(w, PLAN_LOAD); }

void swap_emit_store(const struct swap_writing *w) { move_states(w, PLAN_STORE); }
