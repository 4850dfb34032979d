/*
 * The interpreter: start every operation that can start, end the next one, until all have ended.
 *
 * A stream runs one operation at a time, and events are few: the end of a stream's computation, of its copy's latency,
 * or of a bundle's first flow (sim/network/flow.h). The queue holds one entry per stream and bundle.
 *
 *     loop:  issue    take operations from the plan until every unfinished stream has one; start those
 *                     that can start
 *            settle   caps of copies, rates, speeds of computations: once per event, even if several
 *                     operations started and ended in it
 *            pop      the next event by (time, kind, number); end an operation, and start the operations
 *                     that waited for it and the next one on its stream - or turn a latency into a flow
 *
 * An operation starts when it is first on its stream and all it waits for has ended. A stream's first operation goes
 * through its waits once. At a wait that has not ended, the stream registers (in one list at a time) and continues
 * there when woken.
 *
 * How far to issue. A stream's next unissued operation might start now, so operations are issued until every stream has
 * one. The window is as wide as streams drift apart; a stream first used at the plan's end (for storing, say) makes it
 * the whole plan. Finished streams do not count, nor streams whose next operation cannot begin yet (sim/lookahead.h),
 * found by one pass over the tasks. A job's files could be read at any time: they are, if the job begins within
 * FILES_AHEAD operations.
 *
 * Under live policies (sim/dispatch.h), operations are issued as they are decided. Repetitions proven equal to earlier
 * ones are skipped (sim/steady.h).
 *
 * A copy waits for its latency, then it is a flow over its path's links. Its volume makes it last exactly cost_copy_s()
 * without contention, since measured times need not equal latency + bytes / bandwidth:
 *
 *     8 MB in 1.2 ms, 0.1 ms of it latency, at 10e9 B/s: a volume of (1.2e-3 - 1e-4) * 10e9
 *
 * A copy between devices uses their direct route; each such pair has its own path and latency.
 *
 * A collective is one operation on several streams, with its events on the first: one event with a closed form, else a
 * latency and a flow per part (sim/network/collective_flow.h).
 *
 * A copy that costs less than the latency is all latency. A computation takes models/cost/cost.h's seconds, slowed by
 * sim/network/interference.h on machines with values for it. Reading a batch costs nothing.
 *
 *     h2d      [in 1][in 2]      [in 3]            three slots of memory: in 3 waits for out 1
 *     compute        [ 1  ][ 2  ]      [ 3  ]
 *     d2h                  [out 1][out 2]
 *
 * Cost per operation: the plan's walk, a 32-byte record, one or two events, one settling. bench_sim.c on a shared EPYC,
 * CPU time: 160 ns with 8 devices, 235 ns with 64, of which the walk takes 35 and 50; equal for 10^5 and 10^7
 * operations, in 0.08 to 0.6 MB.
 */
#include "sim/sim.h"

#include "base/process/clock.h"
#include "base/random.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "sim/engine/allocate.h"
#include "sim/limit.h"
#include "sim/sim_state.h"

/* The order of events at equal times. */
enum event_kind { EVENT_END, EVENT_FLOW };

enum {
    PROGRESS_OPERATIONS = 1 << 17,
    FILES_AHEAD = 8192 /* operations in the window, as in the executor's (RUN_WINDOW of exec/state/run_loop.h) */
};

/* --- streams that need operations ----------------------------------------------------------- */

static uint32_t *lacking_of(struct sim *sim, const struct sim_stream *stream)
{
    return stream->kind == STREAM_FILE ? &sim->lacking_files : &sim->lacking;
}

void sim_stream_lacks(struct sim *sim, uint32_t index)
{
    struct sim_stream *stream = sim_stream_at(sim, index);
    if (stream->pending > 0 || stream->unissued == 0 || stream->lacks) return;
    const struct sim_lookahead_limit *limit = sim_lookahead_next(&sim->lookahead, index, stream->unissued);
    if (!limit || sim_stream_at(sim, limit->awaited)->operations >= limit->count) {
        stream->lacks = true;
        ++*lacking_of(sim, stream);
        return;
    }
    struct sim_stream *awaited = sim_stream_at(sim, limit->awaited);
    sim->lookahead.next_shut[index] = sim->lookahead.first_shut[limit->awaited];
    sim->lookahead.first_shut[limit->awaited] = index;
    if (limit->count < awaited->opens) awaited->opens = limit->count;
}

/* Lifts lookahead limits that needed this number of ended operations. */
static void lift_limits(struct sim *sim, uint32_t awaited)
{
    uint32_t index = sim->lookahead.first_shut[awaited];
    sim->lookahead.first_shut[awaited] = PLAN_NONE;
    sim_stream_at(sim, awaited)->opens = UINT64_MAX;
    while (index != PLAN_NONE) {
        uint32_t next = sim->lookahead.next_shut[index];
        sim_stream_lacks(sim, index);
        index = next;
    }
}

/* --- ends and starts ------------------------------------------------------------------------ */

static void begin_flow(struct sim *sim, struct sim_stream *stream)
{
    uint64_t number = sim_window_number(&sim->window, stream->running);
    stream->state = SIM_STREAM_RUNNING;
    sim_flows_begin(sim->flows, stream->path, stream->volume, stream->bytes, sim_order(EVENT_END, number),
                    sim->now_s);
    sim->flows_changed = true;
    if (!stream->slowed || stream->path >= sim->first_joint_path) return;
    sim_interference_copies_changed(sim->interference, stream->device);
    sim->slowing_changed = true;
}

static void start_flow(struct sim *sim, struct sim_stream *stream, double latency_s)
{
    if (latency_s > 0) {
        stream->state = SIM_STREAM_IN_LATENCY;
        uint64_t number = sim_window_number(&sim->window, stream->running);
        sim_queue_set(sim->queue, stream->owner, sim->now_s + latency_s, sim_order(EVENT_FLOW, number));
    } else {
        begin_flow(sim, stream);
    }
}

/* Chooses the path of a copy from the host if copies on demand come first. */
static void choose_path(struct sim *sim, struct sim_stream *stream)
{
    uint32_t compute = plan_stream(sim->plan, stream->device, STREAM_COMPUTE);
    bool on_demand = sim_stream_at(sim, compute)->state == SIM_STREAM_IDLE;
    stream->path = on_demand ? 2 * stream->device : sim->first_prefetch_path + stream->device;
}

static void start_copy(struct sim *sim, struct sim_stream *stream, double alone_s, uint64_t bytes)
{
    if (stream->kind == STREAM_H2D && sim->options->demand_first) choose_path(sim, stream);
    double latency_s = stream->latency_s < alone_s ? stream->latency_s : alone_s;
    stream->volume = (alone_s - latency_s) * stream->rate;
    stream->bytes = bytes;
    start_flow(sim, stream, latency_s);
}

static void start_compute(struct sim *sim, struct sim_stream *stream, double alone_s)
{
    uint64_t number = sim_window_number(&sim->window, stream->running), order = sim_order(EVENT_END, number);
    if (sim->options->noise > 0)
        alone_s *= 1 + sim->options->noise * (2 * random_unit(sim->options->seed, number) - 1);
    stream->state = SIM_STREAM_RUNNING;
    if (stream->slowed) {
        sim_interference_compute(sim->interference, stream->device, stream->owner, alone_s, order,
                                 sim->now_s);
        sim->slowing_changed = true;
    } else {
        sim_queue_set(sim->queue, stream->owner, sim->now_s + alone_s, order);
    }
}

/* Sets path, latency and rate of a P2P copy. Returns its seconds without contention. */
static double prepare_p2p(struct sim *sim, struct sim_stream *stream, const struct sim_op *op)
{
    uint32_t index = sim->first_pair[stream->device];
    while (sim->pairs[index].peer != op->peer) index++;
    assert(index < sim->first_pair[stream->device + 1]);
    struct sim_pair *pair = &sim->pairs[index];
    uint64_t bytes = sim->plan->ops[op->op].bytes;
    stream->path = sim->first_p2p_path + index;
    stream->latency_s = pair->latency_s;
    stream->rate = pair->rate;
    if (pair->bytes != bytes || pair->alone_s <= 0) {
        pair->bytes = bytes;
        pair->alone_s = cost_p2p_s(sim->hardware, pair->route_peer, pair->route_device, bytes);
    }
    return pair->alone_s;
}

static void begin_op(struct sim *sim, struct sim_stream *stream)
{
    struct sim_window *window = &sim->window;
    uint32_t low = stream->first;
    const struct sim_op *op = sim_window_op(window, low);
    const struct sim_uses uses = sim_window_uses(window, low);
    double time_s = sim_time_s(sim);
    sim_lifetimes_start(sim->lifetimes, &uses, time_s);
    uint32_t job = sim_window_unit(window, op)->job;
    if (!sim->job_started[job]) {
        sim->job_started[job] = true;
        sim->trace->jobs[job].start_s = time_s;
    }

    stream->first = op->next;
    stream->waits_passed = 0;
    if (--stream->pending == 0 && stream->unissued > 0) sim_stream_lacks(sim, (uint32_t)(stream - sim->streams));
    stream->running = low;
    stream->start_s = sim->now_s;
}

/* Starts the next part of the collective that the stream runs for all its streams. Returns false without parts left, or
 * with a closed form. */
static bool start_part(struct sim *sim, struct sim_stream *stream, uint32_t owner)
{
    const struct sim_op *op = sim_window_op(&sim->window, stream->running);
    struct sim_collective_part part;
    if (!sim_collective_flows_part(sim->collective_flows, op->group, sim_window_unit(&sim->window, op)->job,
                                   &sim->plan->ops[op->op], stream->part, &part))
        return false;
    stream->part++;
    stream->volume = part.volume;
    stream->bytes = part.bytes;
    stream->path = sim->first_joint_path + part.path;
    sim->path_streams[stream->path] = owner;
    start_flow(sim, stream, part.latency_s);
    return true;
}

static void slow_by_collective(struct sim *sim, const struct sim_stream *stream, bool begins)
{
    sim_interference_collective(sim->interference, stream->device, begins);
    sim->slowing_changed = true;
}

/* Starts a collective when all its streams have reached it; the first one has its events. */
static void start_collective(struct sim *sim, uint32_t first, uint32_t count)
{
    const struct sim_op *op = sim_window_op(&sim->window, first);
    for (uint32_t i = 0; i < count; i++) {
        struct sim_stream *stream = sim_stream_at(sim, sim_window_op(&sim->window, first + i)->stream);
        begin_op(sim, stream);
        stream->state = SIM_STREAM_JOINED;
        if (stream->slowed) slow_by_collective(sim, stream, true);
    }
    struct sim_stream *stream = sim_stream_at(sim, op->stream);
    stream->state = SIM_STREAM_RUNNING;
    stream->part = 0;
    if (start_part(sim, stream, op->stream)) return;
    double alone_s = sim_collectives_s(sim->collectives, op->group, sim_window_unit(&sim->window, op)->job,
                                       &sim->plan->ops[op->op]);
    sim_queue_set(sim->queue, stream->owner, sim->now_s + alone_s,
                  sim_order(EVENT_END, sim_window_number(&sim->window, first)));
}

/* Reports that the stream has reached a collective. */
static void join(struct sim *sim, struct sim_stream *stream)
{
    const struct sim_op *op = sim_window_op(&sim->window, stream->first);
    uint32_t first = stream->first - (op->peer & SIM_JOINS ? op->peer - SIM_JOINS : 0);
    uint32_t *count = &sim_window_op(&sim->window, first)->peer;
    stream->state = SIM_STREAM_JOINING;
    stream->joined_s = sim->now_s;
    if (--*count % SIM_JOINED == 0) start_collective(sim, first, *count / SIM_JOINED);
}

static void start_op(struct sim *sim, struct sim_stream *stream)
{
    const struct sim_op *op = sim_window_op(&sim->window, stream->first);
    if (sim->plan->ops[op->op].kind == OP_COLLECTIVE) {
        join(sim, stream);
        return;
    }
    begin_op(sim, stream);
    double alone_s = stream->kind == STREAM_P2P
                         ? prepare_p2p(sim, stream, op)
                         : sim_durations_alone_s(sim->durations, stream->device, op->op);
    if (plan_stream_copies(stream->kind))
        start_copy(sim, stream, alone_s, alone_s > 0 ? sim->plan->ops[op->op].bytes : 0);
    else
        start_compute(sim, stream, alone_s);
}

/* Starts the stream's first operation, or registers at one that it waits for. */
static void try_start(struct sim *sim, uint32_t owner)
{
    struct sim_stream *stream = sim_stream_at(sim, owner);
    if (stream->state != SIM_STREAM_IDLE || stream->pending == 0) return;
    const struct sim_window *window = &sim->window;
    const struct sim_op *op = sim_window_op(window, stream->first);
    uint32_t end = sim_window_behind(window, stream->first)->first_wait;
    for (uint32_t at = op->first_wait + stream->waits_passed; at != end; at++) {
        uint32_t low = window->waits[at & window->wait_mask];
        if (sim_window_done(window, low)) continue;
        struct sim_op *awaited = sim_window_op(window, low);
        stream->waits_passed = at - op->first_wait;
        stream->next_waiter = awaited->waiter;
        awaited->waiter = owner & SIM_NO_STREAM;
        return;
    }
    start_op(sim, stream);
}

/* Hands on the span, and the spans that waited for it. */
static void write_span(struct sim *sim, const struct trace_span *span)
{
    struct trace_span next;
    if (sim->order_failed) return;
    sim->order_failed = !trace_order_put(&sim->order, span);
    while (!sim->order_failed && trace_order_take(&sim->order, &next)) {
        if (sim->options->writer) trace_writer_span(sim->options->writer, &next);
        if (sim->options->on_span) sim->options->on_span(sim->options->spans, &next);
    }
}

static void record_span(struct sim *sim, const struct sim_stream *stream, uint32_t owner,
                        const struct sim_op *op)
{
    const struct plan_unit *unit = sim_window_unit(&sim->window, op);
    const struct plan_op *template = &sim->plan->ops[op->op];
    uint32_t op_index = op->op - unit->first_op;
    uint64_t number = sim_window_number(&sim->window, stream->running);
    bool computes = template->kind == OP_COMPUTE;
    const struct trace_span span = {
        .start_s = stream->start_s,
        .end_s = sim->now_s,
        .waited_s = template->kind == OP_COLLECTIVE ? stream->start_s - stream->joined_s : 0,
        .number = number,
        .bytes = computes ? 0 : template->bytes,
        .minibatch = op->minibatch,
        .stream = owner,
        .job = unit->job,
        .shard = unit->shard,
        .kind = template->kind,
        .pass = computes ? template->pass : (uint8_t)unit->pass,
        .op_index = op_index < UINT8_MAX ? (uint8_t)op_index : UINT8_MAX,
    };
    if (sim->options->record_spans) sim->trace->spans[number] = span;
    if (sim->options->writer || sim->options->on_span) write_span(sim, &span);
}

/* Returns true for operations that move states on a compute stream (planner/plan_charges.h). */
static bool moves_states(const struct sim *sim, const struct sim_op *op)
{
    const struct plan_op *template = &sim->plan->ops[op->op];
    return template->kind == OP_COMPUTE && (template->pass == PLAN_LOAD || template->pass == PLAN_STORE);
}

static void end_op(struct sim *sim, uint32_t owner)
{
    struct sim_window *window = &sim->window;
    struct sim_stream *stream = sim_stream_at(sim, owner);
    const struct sim_op *op = sim_window_op(window, stream->running);
    const struct sim_uses uses = sim_window_uses(window, stream->running);
    double time_s = sim_time_s(sim);
    sim_lifetimes_end(sim->lifetimes, &uses, time_s);
    sim->trace->jobs[sim_window_unit(window, op)->job].end_s = time_s;
    if (sim_records(sim)) record_span(sim, stream, owner, op);

    if (!moves_states(sim, op)) stream->busy_s += sim->now_s - stream->start_s;
    stream->operations++;
    if (stream->operations >= stream->opens) lift_limits(sim, owner);
    stream->state = SIM_STREAM_IDLE;
    sim->done++;
    if (sim->live)
        sim_dispatch_ended(sim->live, sim_window_unit(window, op), sim_window_number(window, stream->running),
                           stream->kind, sim->now_s);
    uint32_t waiter = op->waiter;
    sim_window_finish(window, stream->running);
    try_start(sim, owner);
    while (waiter != SIM_NO_STREAM) {
        uint32_t next = sim->streams[waiter].next_waiter;
        try_start(sim, waiter);
        waiter = next;
    }
}

static void end_collective(struct sim *sim, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t owner = sim_window_op(&sim->window, first + i)->stream;
        const struct sim_stream *stream = sim_stream_at(sim, owner);
        if (stream->slowed) slow_by_collective(sim, stream, false);
        end_op(sim, owner);
    }
}

/* --- the loop ------------------------------------------------------------------------------- */

static void append(struct sim *sim, uint32_t low)
{
    uint32_t owner = sim_window_op(&sim->window, low)->stream;
    struct sim_stream *stream = sim_stream_at(sim, owner);
    if (stream->pending++ == 0) stream->first = low;
    else sim_window_op(&sim->window, stream->last)->next = low;
    stream->last = low;
    if (stream->pending == 1) try_start(sim, owner);
}

/* Issues all units that the policy chooses now. */
static enum status issue_live(struct sim *sim, struct error *err)
{
    for (;;) {
        bool some;
        uint32_t low;
        enum status status =
            sim_dispatch_push(sim->live, sim->window.walk, sim->window.issued, sim->now_s, &some, err);
        if (status != STATUS_OK || !some) return status;
        while (!(status = sim_window_issue(&sim->window, &some, &low, err)) && some) append(sim, low);
        if (status != STATUS_OK) return status;
    }
}

static enum status issue(struct sim *sim, struct error *err)
{
    if (sim->live) return issue_live(sim, err);
    while (sim->lacking > 0 ||
           (sim->lacking_files > 0 && sim->window.issued - sim->window.base < FILES_AHEAD)) {
        bool some;
        uint32_t low;
        TRY(sim_window_issue(&sim->window, &some, &low, err));
        assert(some);
        struct sim_stream *stream = sim_stream_at(sim, sim_window_op(&sim->window, low)->stream);
        assert(stream->unissued > 0);
        stream->unissued--;
        *lacking_of(sim, stream) -= stream->lacks;
        stream->lacks = false;
        append(sim, low);
    }
    return STATUS_OK;
}

static void settle(struct sim *sim)
{
    sim_interference_settle(sim->interference, sim->flows, sim->flows_changed, sim->slowing_changed, sim->slowed,
                            sim->now_s);
    sim->flows_changed = sim->slowing_changed = false;
}

static void end_slowed(struct sim *sim, const struct sim_stream *stream)
{
    if (stream->kind == STREAM_COMPUTE || stream->kind == STREAM_CPU)
        sim_interference_computed(sim->interference, stream->device);
    else
        sim_interference_copies_changed(sim->interference, stream->device);
    sim->slowing_changed = true;
}

static void handle_event(struct sim *sim, const struct sim_event *event)
{
    uint32_t owner = sim->owner_events[event->owner];
    if (owner >= sim->stream_count) {
        uint32_t path = sim_flows_finish(sim->flows, owner - sim->stream_count, sim->now_s);
        owner = sim->path_streams[path];
        sim->flows_changed = true;
    }
    struct sim_stream *stream = sim_stream_at(sim, owner);
    if (stream->state == SIM_STREAM_IN_LATENCY) {
        begin_flow(sim, stream);
        return;
    }
    assert(stream->state == SIM_STREAM_RUNNING);
    const struct sim_op *op = sim_window_op(&sim->window, stream->running);
    if (sim->plan->ops[op->op].kind == OP_COLLECTIVE) {
        if (stream->part == 0 || !start_part(sim, stream, owner))
            end_collective(sim, stream->running, op->peer / SIM_JOINED);
        return;
    }
    if (stream->slowed) end_slowed(sim, stream);
    end_op(sim, owner);
}

static void report_progress(const struct sim *sim)
{
    if (sim->options->on_progress)
        sim->options->on_progress(sim->options->context, (double)sim->done, (double)sim->total);
}

static enum status run_events(struct sim *sim, struct error *err)
{
    uint64_t next_report = PROGRESS_OPERATIONS;
    for (;;) {
        TRY(issue(sim, err));
        settle(sim);
        struct sim_event event;
        if (sim->steady.watching) sim_steady_look(sim);
        if (!sim_queue_pop(sim->queue, &event)) break;
        assert(event.time_s >= sim->now_s);
        sim->now_s = event.time_s;
        sim->events++;
        handle_event(sim, &event);
        if (sim->done >= next_report) {
            report_progress(sim);
            next_report += PROGRESS_OPERATIONS;
        }
    }
    assert(sim->done == sim->total);
    return STATUS_OK;
}

/* --- the result ----------------------------------------------------------------------------- */

/* Copies results of simulated devices and links to the devices and links that they represent. */
static void copy_to_represented(const struct sim *sim, struct sim_result *result)
{
    for (uint32_t l = 0; l < sim->hardware->link_count; l++)
        result->links[l] = result->links[sim->symmetry.link_for[l]];
    for (uint32_t d = 0; d < sim->hardware->device_count; d++) {
        uint32_t stands = sim->symmetry.stands_for[d];
        if (stands == d) continue;
        for (uint32_t k = 0; k < plan_device_streams(sim->plan); k++)
            result->streams[plan_stream(sim->plan, d, k)] = result->streams[plan_stream(sim->plan, stands, k)];
        sim->trace->places[1 + d].peak_bytes = sim->trace->places[1 + stands].peak_bytes;
        sim->trace->places[1 + d].peak_time_s = sim->trace->places[1 + stands].peak_time_s;
    }
}

static enum status fill_reserved(const struct sim *sim, struct sim_result *result, struct error *err)
{
    enum status status = STATUS_OK;
    if (!sim->options->caching) return STATUS_OK;
    result->reserved = sim_allocate(&result->arena, sim->hardware->device_count, sizeof *result->reserved, &status,
                                    err);
    for (uint32_t d = 0; status == STATUS_OK && d < sim->hardware->device_count; d++)
        if (!sim_lifetimes_reserved(sim->lifetimes, d, &result->reserved[d]))
            status = error_memory(err, "the books of a caching allocator", 0);
    return status;
}

static enum status fill_result(const struct sim *sim, struct sim_result *result, struct error *err)
{
    enum status status = STATUS_OK;
    result->streams =
        sim_allocate(&result->arena, sim->stream_count, sizeof *result->streams, &status, err);
    uint32_t links = sim->hardware->link_count + hardware_storage_count(sim->hardware);
    result->links = sim_allocate(&result->arena, links, sizeof *result->links, &status, err);
    if (status != STATUS_OK || fill_reserved(sim, result, err) != STATUS_OK) return err->status;
    for (uint32_t s = 0; s < sim->stream_count; s++)
        result->streams[s] = (struct sim_stream_use){.busy_s = sim->streams[s].busy_s,
                                                     .operations = sim->streams[s].operations};
    TRY(sim_flows_uses(sim->flows, result->links, err));
    if (sim->symmetry.represented > 0) copy_to_represented(sim, result);
    result->makespan_s = sim_time_s(sim); /* the first operation starts at 0 */
    result->operations = sim->total;
    result->skipped = sim->skipped;
    result->events = sim->events;
    result->window_peak = sim->window.peak;
    result->represented = sim->symmetry.represented;
    result->collective_paths = sim_collective_flows_path_count(sim->collective_flows);
    result->memory_bytes = sizeof *sim + sim->arena.total_bytes + sim_window_bytes(&sim->window) +
                           sim_lifetimes_bytes(sim->lifetimes) + trace_order_bytes(&sim->order);
    char text[SIM_LIMIT_TEXT_BYTES];
    sim_limit_text(sim->hardware, result, sim->trace, text);
    return arena_string(&result->arena, text, &result->binds, err);
}

/* --- public --------------------------------------------------------------------------------- */

enum status sim_run(const struct plan *plan, const struct sim_options *options,
                    struct sim_result *result, struct trace *trace, struct error *err)
{
    struct sim sim = {.plan = plan,
                      .hardware = options->hardware ? options->hardware : &plan->hardware,
                      .options = options,
                      .trace = trace};
    enum status status = sim_create(&sim, err);
    if (status != STATUS_OK) goto out;
    double begun_s = clock_s();
    status = run_events(&sim, err);
    if (status != STATUS_OK) goto out;
    result->wall_s = clock_s() - begun_s;
    status = fill_result(&sim, result, err);
    if (status != STATUS_OK) goto out;
    report_progress(&sim);
    trace->makespan_s = result->makespan_s;
    trace->complete = true;
    sim_lifetimes_finish(sim.lifetimes);
    if (sim.order_failed) status = error_memory(err, "spans in order", trace_order_bytes(&sim.order));
    if (options->writer) trace_writer_total(options->writer, trace);
    if (options->record_spans) {
        trace->span_count = sim.total;
        trace_finish(trace);
    }
out:
    if (!sim.window.walk) plan_walk_destroy(sim.walk);
    sim_window_release(&sim.window);
    sim_steady_release(&sim.steady);
    trace_order_release(&sim.order);
    sim_lifetimes_destroy(sim.lifetimes);
    sim_dispatch_destroy(sim.live);
    arena_release(&sim.arena);
    return status;
}

void sim_result_release(struct sim_result *result)
{
    arena_release(&result->arena);
    *result = (struct sim_result){0};
}

enum status sim_seconds(void *context, const struct plan *plan, double *seconds, struct error *err)
{
    (void)context;
    struct sim_result result = {0};
    struct trace trace = {0};
    enum status status = sim_run(plan, &(struct sim_options){0}, &result, &trace, err);
    *seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return status;
}
