/*
 * The interpreter: what can start, starts; what started, ends; until everything has.
 *
 * At most one operation runs on a stream, so there are as many running operations as streams, and
 * events are few: the end of a stream's computation, the end of its copy's latency, or the end of
 * the first flow of a class (sim/flow.h). The queue holds one entry per stream and class, whatever
 * the length of the plan.
 *
 *     loop:  issue    take operations from the plan until every stream that has any left has one to
 *                     look at; start those that can
 *            settle   caps of copies, rates, speeds of computations: once per event, however much
 *                     started and ended in it
 *            pop      the next event by (time, kind, number); end an operation, and start what waited
 *                     for it and what comes next on its stream - or turn a latency into a flow
 *
 * An operation starts when it is first on its stream and everything it waits for has ended. The
 * first of a stream looks through its waits once: at one that has not ended it signs up there (one
 * stream at most per list entry, for a stream waits for one thing at a time) and goes on from it
 * when woken.
 *
 * How far ahead to issue. A stream without an issued operation might have one, further on in the
 * plan, that could start now; so operations are issued until no stream is in that state, and no
 * further. The window is as wide as the plan makes streams drift apart; a stream that is first used
 * at the end of the plan (say, for storing) makes the window the plan. Streams with nothing left do
 * not count, which takes one pass over the instances to know.
 *
 * A copy waits for its latency, then it is a flow over the links of its device's path. Its volume is
 * not its bytes but whatever makes it last exactly cost_copy_s() when nothing else runs, since what
 * was measured need not be latency + bytes / bandwidth:
 *
 *     8 MB in 1.2 ms, 0.1 ms of it latency, at 10e9 B/s alone: a volume of (1.2e-3 - 1e-4) * 10e9
 *
 * A copy between two devices goes over the links of their direct route, with a path and a latency of
 * its own for each pair of devices that the plan has such copies between.
 *
 * A copy that costs less than the latency is all latency. A computation takes the seconds that
 * models/cost.h says, or is slowed by sim/interference.h where hardware has figures for that.
 * Reading a batch costs nothing.
 *
 *     h2d      [in 1][in 2]      [in 3]            three slots of memory: in 3 waits for out 1
 *     compute        [ 1  ][ 2  ]      [ 3  ]
 *     d2h                  [out 1][out 2]
 *
 * Cost per operation: the plan's walk, a 32-byte record written and read a few times, one or two
 * events, one settling. bench_sim.c on a shared EPYC, CPU time: 160 ns with 8 devices, 235 ns with 64,
 * of which the walk is 35 and 50; the same for 10^5 and 10^7 operations, in 0.08 to 0.6 MB.
 */
#include "sim/sim.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/progress.h"
#include "models/cost.h"
#include "planner/plan_gang.h"
#include "sim/duration.h"
#include "sim/flow.h"
#include "sim/interference.h"
#include "sim/limit.h"
#include "sim/machine.h"
#include "sim/symmetry.h"
#include "sim/take.h"
#include "sim/window.h"

static_assert(DEVICES_MAX * STREAM_HOST + 4 <= SIM_STREAMS_MAX, "a stream's number fits sim_op");

/* The order of what happens at the same time. */
enum event_kind { EVENT_END, EVENT_FLOW };

enum stream_state {
    STREAM_IDLE,
    STREAM_IN_LATENCY,
    STREAM_RUNNING,
    STREAM_JOINING, /* it has come to a collective whose other streams have not all */
    STREAM_JOINED   /* a collective runs, as an event of another stream */
};

enum { PROGRESS_OPERATIONS = 1 << 17 };

struct stream {
    uint32_t first, last;   /* low numbers of what is issued and not started, if pending > 0 */
    uint32_t pending;
    uint32_t waits_passed;  /* of the first one: these have ended */
    uint32_t running;       /* low number, unless idle */
    uint32_t device;
    uint16_t next_waiter;   /* the next stream that waits for the same operation */
    uint8_t kind;           /* enum plan_stream_kind */
    uint8_t state;          /* enum stream_state */
    bool slowed;            /* computations go through sim/interference.h, copies concern it */
    uint64_t unissued;      /* operations of the plan */
    double start_s;         /* of the running one */
    double volume;          /* of the copy in its latency */
    uint32_t path;          /* of its copies, like the two below; P2P: of the running one */
    double latency_s, rate; /* of undisturbed copies */
    double busy_s;
    uint64_t operations;
};

/* Two devices that the plan copies between. */
struct pair {
    uint32_t device, peer; /* to, from */
    double latency_s, rate;
    uint64_t bytes;  /* of the copy before, which took ... */
    double alone_s;  /* ... so long when nothing else ran */
};

struct sim {
    const struct plan *plan;
    const struct hardware *hardware;
    const struct sim_options *options;
    struct trace *trace;
    struct arena arena;
    struct sim_window window;
    struct sim_lifetimes *lifetimes;
    struct sim_durations *durations;
    struct sim_collectives *collectives; /* NULL: the plan has no gangs */
    struct plan_walk *walk;      /* the window's, once that is made */
    uint32_t *stands_for;        /* per device; NULL: nothing is folded */
    uint32_t represented;        /* devices that are not simulated, for others stand for them */
    struct sim_flows *flows;
    struct sim_interference *interference;
    struct sim_queue *queue;     /* owners: streams, then bundles of flows */
    struct stream *streams;
    uint32_t stream_count;
    struct pair *pairs;          /* by device, then peer */
    uint32_t *first_pair;        /* per device, and one more */
    uint32_t pair_count;
    uint32_t first_p2p_path;     /* those of the pairs, behind all others */
    uint32_t *path_streams;      /* by path */
    uint32_t lacking;            /* streams with unissued operations and none pending */
    bool slowed;                 /* some stream is */
    bool flows_changed, slowing_changed; /* since they were settled */
    bool *job_started;
    double now_s;
    uint64_t total, done, events; /* operations */
};

/* --- ends and starts ------------------------------------------------------------------------ */

static struct stream *stream_at(struct sim *sim, uint32_t index)
{
    assert(index < sim->stream_count);
    return &sim->streams[index];
}

static void begin_flow(struct sim *sim, struct stream *stream)
{
    uint64_t number = sim_window_number(&sim->window, stream->running);
    const struct sim_op *op = sim_window_op(&sim->window, stream->running);
    stream->state = STREAM_RUNNING;
    sim_flows_begin(sim->flows, stream->path, stream->volume, sim->plan->ops[op->op].bytes,
                    sim_order(EVENT_END, number), sim->now_s);
    sim->flows_changed = true;
    if (!stream->slowed) return;
    sim_interference_copies_changed(sim->interference, stream->device);
    sim->slowing_changed = true;
}

static void start_copy(struct sim *sim, struct stream *stream, uint32_t owner, double alone_s)
{
    double latency_s = stream->latency_s < alone_s ? stream->latency_s : alone_s;
    stream->volume = (alone_s - latency_s) * stream->rate;
    if (latency_s > 0) {
        stream->state = STREAM_IN_LATENCY;
        uint64_t number = sim_window_number(&sim->window, stream->running);
        sim_queue_set(sim->queue, owner, sim->now_s + latency_s, sim_order(EVENT_FLOW, number));
    } else {
        begin_flow(sim, stream);
    }
}

static void start_compute(struct sim *sim, struct stream *stream, uint32_t owner, double alone_s)
{
    uint64_t order = sim_order(EVENT_END, sim_window_number(&sim->window, stream->running));
    stream->state = STREAM_RUNNING;
    if (stream->slowed) {
        sim_interference_compute(sim->interference, stream->device, owner, alone_s, order,
                                 sim->now_s);
        sim->slowing_changed = true;
    } else {
        sim_queue_set(sim->queue, owner, sim->now_s + alone_s, order);
    }
}

/* A P2P copy's path, latency and rate are its pair's. Returns its seconds alone. */
static double prepare_p2p(struct sim *sim, struct stream *stream, const struct sim_op *op)
{
    uint32_t index = sim->first_pair[stream->device];
    while (sim->pairs[index].peer != op->peer) index++;
    assert(index < sim->first_pair[stream->device + 1]);
    struct pair *pair = &sim->pairs[index];
    uint64_t bytes = sim->plan->ops[op->op].bytes;
    stream->path = sim->first_p2p_path + index;
    stream->latency_s = pair->latency_s;
    stream->rate = pair->rate;
    if (pair->bytes != bytes || pair->alone_s <= 0) {
        pair->bytes = bytes;
        pair->alone_s = cost_p2p_s(sim->hardware, pair->peer, pair->device, bytes);
    }
    return pair->alone_s;
}

/* The first operation of the stream is the one that runs. */
static void begin_op(struct sim *sim, struct stream *stream)
{
    struct sim_window *window = &sim->window;
    uint32_t low = stream->first;
    const struct sim_op *op = sim_window_op(window, low);
    uint32_t end_use = sim_window_behind(window, low)->first_use;
    for (uint32_t use = op->first_use; use != end_use; use++)
        sim_lifetimes_start(sim->lifetimes, window->uses[use & window->use_mask], sim->now_s);
    uint32_t job = sim_window_unit(window, op)->job;
    if (!sim->job_started[job]) {
        sim->job_started[job] = true;
        sim->trace->jobs[job].start_s = sim->now_s;
    }

    stream->first = op->next;
    stream->waits_passed = 0;
    if (--stream->pending == 0 && stream->unissued > 0) sim->lacking++;
    stream->running = low;
    stream->start_s = sim->now_s;
}

/* All streams have come: the first one's event is the end for all of them. */
static void start_collective(struct sim *sim, uint32_t first, uint32_t count)
{
    const struct sim_op *op = sim_window_op(&sim->window, first);
    double alone_s = sim_collectives_s(sim->collectives, op->group, sim_window_unit(&sim->window, op)->job,
                                       &sim->plan->ops[op->op]);
    for (uint32_t i = 0; i < count; i++) {
        struct stream *stream = stream_at(sim, sim_window_op(&sim->window, first + i)->stream);
        begin_op(sim, stream);
        stream->state = STREAM_JOINED;
    }
    stream_at(sim, op->stream)->state = STREAM_RUNNING;
    sim_queue_set(sim->queue, op->stream, sim->now_s + alone_s,
                  sim_order(EVENT_END, sim_window_number(&sim->window, first)));
}

/* The stream has come to a collective. */
static void join(struct sim *sim, struct stream *stream)
{
    const struct sim_op *op = sim_window_op(&sim->window, stream->first);
    uint32_t first = stream->first - (op->peer & SIM_JOINS ? op->peer - SIM_JOINS : 0);
    uint32_t *count = &sim_window_op(&sim->window, first)->peer;
    stream->state = STREAM_JOINING;
    if (--*count % SIM_JOINED == 0) start_collective(sim, first, *count / SIM_JOINED);
}

static void start_op(struct sim *sim, struct stream *stream, uint32_t owner)
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
        start_copy(sim, stream, owner, alone_s);
    else
        start_compute(sim, stream, owner, alone_s);
}

/* Start the stream's first operation, or have it woken by what it waits for. */
static void try_start(struct sim *sim, uint32_t owner)
{
    struct stream *stream = stream_at(sim, owner);
    if (stream->state != STREAM_IDLE || stream->pending == 0) return;
    const struct sim_window *window = &sim->window;
    const struct sim_op *op = sim_window_op(window, stream->first);
    uint32_t end = sim_window_behind(window, stream->first)->first_wait;
    for (uint32_t at = op->first_wait + stream->waits_passed; at != end; at++) {
        uint32_t low = window->waits[at & window->wait_mask];
        if (sim_window_done(window, low)) continue;
        struct sim_op *awaited = sim_window_op(window, low);
        stream->waits_passed = at - op->first_wait;
        stream->next_waiter = awaited->waiter;
        awaited->waiter = (uint16_t)owner;
        return;
    }
    start_op(sim, stream, owner);
}

static void record_span(struct sim *sim, const struct stream *stream, uint32_t owner,
                        const struct sim_op *op)
{
    const struct plan_unit *unit = sim_window_unit(&sim->window, op);
    const struct plan_op *template = &sim->plan->ops[op->op];
    uint32_t op_index = op->op - unit->first_op;
    uint64_t number = sim_window_number(&sim->window, stream->running);
    bool computes = template->kind == OP_COMPUTE;
    sim->trace->spans[number] = (struct trace_span){
        .start_s = stream->start_s,
        .end_s = sim->now_s,
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
}

static void end_op(struct sim *sim, uint32_t owner)
{
    struct sim_window *window = &sim->window;
    struct stream *stream = stream_at(sim, owner);
    const struct sim_op *op = sim_window_op(window, stream->running);
    uint32_t end_use = sim_window_behind(window, stream->running)->first_use;
    for (uint32_t use = op->first_use; use != end_use; use++)
        sim_lifetimes_end(sim->lifetimes, window->uses[use & window->use_mask], sim->now_s);
    sim->trace->jobs[sim_window_unit(window, op)->job].end_s = sim->now_s;
    if (sim->options->record_spans) record_span(sim, stream, owner, op);

    stream->busy_s += sim->now_s - stream->start_s;
    stream->operations++;
    stream->state = STREAM_IDLE;
    sim->done++;
    uint16_t waiter = op->waiter;
    sim_window_finish(window, stream->running);
    try_start(sim, owner);
    while (waiter != SIM_NO_STREAM) {
        uint16_t next = sim->streams[waiter].next_waiter;
        try_start(sim, waiter);
        waiter = next;
    }
}

static void end_collective(struct sim *sim, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) end_op(sim, sim_window_op(&sim->window, first + i)->stream);
}

/* --- the loop ------------------------------------------------------------------------------- */

static enum status issue(struct sim *sim, struct error *err)
{
    while (sim->lacking > 0) {
        bool some;
        uint32_t low;
        enum status status = sim_window_issue(&sim->window, &some, &low, err);
        if (status != STATUS_OK) return status;
        assert(some);
        uint32_t owner = sim_window_op(&sim->window, low)->stream;
        struct stream *stream = stream_at(sim, owner);
        assert(stream->unissued > 0);
        stream->unissued--;
        if (stream->pending++ == 0) {
            sim->lacking--;
            stream->first = low;
        } else {
            sim_window_op(&sim->window, stream->last)->next = low;
        }
        stream->last = low;
        if (stream->pending == 1) try_start(sim, owner);
    }
    return STATUS_OK;
}

static void settle(struct sim *sim)
{
    const struct sim_rate *changed = NULL;
    uint32_t changed_count = 0;
    if (sim->slowing_changed) sim_interference_settle_caps(sim->interference);
    if (sim->flows_changed || sim->slowing_changed)
        changed_count = sim_flows_settle(sim->flows, sim->now_s, &changed);
    if (sim->slowing_changed || (sim->slowed && changed_count > 0))
        sim_interference_settle_speeds(sim->interference, changed, changed_count, sim->now_s);
    sim->flows_changed = sim->slowing_changed = false;
}

static void end_slowed(struct sim *sim, const struct stream *stream)
{
    if (stream->kind == STREAM_COMPUTE || stream->kind == STREAM_CPU)
        sim_interference_computed(sim->interference, stream->device);
    else
        sim_interference_copies_changed(sim->interference, stream->device);
    sim->slowing_changed = true;
}

static void take_event(struct sim *sim, const struct sim_event *event)
{
    uint32_t owner = event->owner;
    if (owner >= sim->stream_count) {
        uint32_t path = sim_flows_finish(sim->flows, owner - sim->stream_count, sim->now_s);
        owner = sim->path_streams[path];
        sim->flows_changed = true;
    }
    struct stream *stream = stream_at(sim, owner);
    if (stream->state == STREAM_IN_LATENCY) {
        begin_flow(sim, stream);
        return;
    }
    assert(stream->state == STREAM_RUNNING);
    const struct sim_op *op = sim_window_op(&sim->window, stream->running);
    if (sim->plan->ops[op->op].kind == OP_COLLECTIVE) {
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
        enum status status = issue(sim, err);
        if (status != STATUS_OK) return status;
        settle(sim);
        struct sim_event event;
        if (!sim_queue_pop(sim->queue, &event)) break;
        assert(event.time_s >= sim->now_s);
        sim->now_s = event.time_s;
        sim->events++;
        take_event(sim, &event);
        if (sim->done >= next_report) {
            report_progress(sim);
            next_report += PROGRESS_OPERATIONS;
        }
    }
    assert(sim->done == sim->total);
    return STATUS_OK;
}

/* --- the machine ---------------------------------------------------------------------------- */

/* Storage's own paths, behind those of the devices: reading and writing share what both reach. */
static void fill_storage_paths(const struct sim *sim, struct sim_link *links,
                               struct sim_path *paths)
{
    const struct hardware *hardware = sim->hardware;
    uint32_t link = hardware->link_count;
    links[link] = (struct sim_link){.bytes_per_s = hardware_storage_rate(hardware)};
    for (uint32_t p = 0; p < 2; p++)
        paths[hardware->device_count * 2 + p] = (struct sim_path){
            .hops = {{.link = link, .direction = p}},
            .hop_count = 1,
            .flow_limit = 1,
            .group = SIM_NO_GROUP,
            .cap_bytes_per_s =
                cost_storage_bandwidth(hardware, p == 0 ? STORAGE_READ : STORAGE_WRITE)};
}

/* Away from the one device and towards the other. */
static void fill_p2p_paths(const struct sim *sim, const struct sim_link *links,
                           struct sim_path *paths)
{
    const struct hardware *hardware = sim->hardware;
    for (uint32_t i = 0; i < sim->pair_count; i++) {
        const struct pair *pair = &sim->pairs[i];
        const struct p2p_route route = hardware_p2p_route(hardware, pair->peer, pair->device);
        struct sim_path *path = &paths[i];
        path->hop_count = route.up_count + route.down_count;
        path->flow_limit = 1;
        path->group = sim_interference_group(sim->interference, pair->device);
        path->cap_bytes_per_s = fmin(cost_p2p_bandwidth(hardware, pair->peer, pair->device),
                                     sim_interference_copy_cap(sim->interference, pair->device));
        for (uint32_t h = 0; h < path->hop_count; h++) {
            path->hops[h] =
                (struct sim_hop){.link = route.links[h], .direction = h < route.up_count ? 1 : 0};
            path->cap_bytes_per_s =
                fmin(path->cap_bytes_per_s, links[route.links[h]].bytes_per_s);
        }
    }
}

/* The device that each path's copies belong to. */
static void fill_owners(const struct sim *sim, uint32_t *devices)
{
    static const uint32_t kinds[2][2] = {{STREAM_H2D, STREAM_D2H}, {STREAM_READ, STREAM_WRITE}};
    uint32_t cpu = hardware_cpu(sim->hardware);
    for (uint32_t p = 0; p < sim->first_p2p_path; p++) {
        devices[p] = p / 2;
        sim->path_streams[p] = plan_stream(sim->plan, p / 2, kinds[p / 2 == cpu][p % 2]);
    }
    for (uint32_t i = 0; i < sim->pair_count; i++) {
        uint32_t p = sim->first_p2p_path + i;
        devices[p] = sim->pairs[i].device;
        sim->path_streams[p] = plan_stream(sim->plan, devices[p], STREAM_P2P);
    }
}

static enum status create_flows(struct sim *sim, struct arena *scratch, struct sim_path **out,
                                struct error *err)
{
    enum status status = STATUS_OK;
    bool storage = hardware_has_storage(sim->hardware);
    sim->first_p2p_path = (sim->hardware->device_count + storage) * 2;
    struct sim_flows_setup setup = {.link_count = sim->hardware->link_count + storage,
                                    .path_count = sim->first_p2p_path + sim->pair_count};
    struct sim_link *links = sim_take(scratch, setup.link_count, sizeof *links, &status, err);
    struct sim_path *paths = sim_take(scratch, setup.path_count, sizeof *paths, &status, err);
    uint32_t *devices = sim_take(scratch, setup.path_count, sizeof *devices, &status, err);
    sim->path_streams =
        sim_take(&sim->arena, setup.path_count, sizeof *sim->path_streams, &status, err);
    if (status != STATUS_OK) return status;
    sim_machine_links(sim->hardware, links);
    sim_machine_paths(sim->hardware, sim->interference, links, 1, paths);
    if (storage) fill_storage_paths(sim, links, paths);
    fill_p2p_paths(sim, links, paths + sim->first_p2p_path);
    fill_owners(sim, devices);
    setup.links = links;
    setup.paths = paths;
    status = sim_flows_create(&sim->arena, &setup, &sim->flows, err);
    if (status != STATUS_OK) return status;
    uint32_t owners = sim->stream_count + sim_flows_bundle_count(sim->flows);
    status = sim_queue_create(&sim->arena, owners, &sim->queue, err);
    if (status != STATUS_OK) return status;
    uint32_t *bundle_owners = sim_take(&sim->arena, owners, sizeof *bundle_owners, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t b = 0; b < owners - sim->stream_count; b++) bundle_owners[b] = sim->stream_count + b;
    sim_flows_attach(sim->flows, sim->queue, bundle_owners);
    *out = paths;
    return sim_interference_attach(sim->interference, &sim->arena, sim->flows, sim->queue, devices,
                                   setup.path_count, err);
}

static void fill_stream(struct sim *sim, struct stream *stream, const struct sim_path *paths)
{
    bool out = stream->kind == STREAM_D2H || stream->kind == STREAM_WRITE;
    stream->path = stream->device * 2 + out;
    if (stream->kind == STREAM_READ || stream->kind == STREAM_WRITE) {
        stream->latency_s = sim->hardware->storage.latency.value;
        stream->rate = paths[stream->path].cap_bytes_per_s;
        return;
    }
    stream->slowed = sim_interference_affects(sim->interference, stream->device);
    sim->slowed |= stream->slowed;
    if (stream->kind != STREAM_H2D && stream->kind != STREAM_D2H) return;
    stream->latency_s =
        cost_copy_latency_s(sim->hardware, stream->device, out ? COPY_D2H : COPY_H2D);
    stream->rate = paths[stream->path].cap_bytes_per_s;
}

static void fill_streams(struct sim *sim, const struct sim_path *paths)
{
    uint32_t own = plan_device_streams(sim->plan), first_host = plan_stream(sim->plan, 0, STREAM_HOST);
    for (uint32_t s = 0; s < sim->stream_count; s++) {
        struct stream *stream = &sim->streams[s];
        bool host = s >= first_host;
        stream->device = host ? hardware_cpu(sim->hardware) : s / own;
        stream->kind = (uint8_t)(host ? STREAM_HOST + (s - first_host) : s % own);
        bool joins = stream->kind == STREAM_GROUP || stream->kind == STREAM_DATA;
        if (stream->kind != STREAM_HOST && !joins) fill_stream(sim, stream, paths);
    }
    for (uint32_t i = 0; i < sim->pair_count; i++) {
        struct pair *pair = &sim->pairs[i];
        pair->latency_s = cost_p2p_latency_s(sim->hardware, pair->peer, pair->device);
        pair->rate = paths[sim->first_p2p_path + i].cap_bytes_per_s;
    }
}

static enum status create_machine(struct sim *sim, struct error *err)
{
    struct arena scratch = {0};
    struct sim_path *paths = NULL;
    enum status status =
        sim_interference_create(&sim->arena, sim->hardware, &sim->interference, err);
    if (status == STATUS_OK) status = create_flows(sim, &scratch, &paths, err);
    if (status == STATUS_OK) fill_streams(sim, paths);
    arena_release(&scratch);
    return status;
}

/* --- the plan ------------------------------------------------------------------------------- */

struct unit_counts {
    uint32_t operations[STREAM_KIND_COUNT];
};

static void count_unit(const struct plan *plan, const struct plan_unit *unit,
                       struct unit_counts *out)
{
    for (uint32_t o = 0; o < unit->op_count; o++)
        out->operations[plan->ops[unit->first_op + o].stream]++;
}

/* An instance of a gang, `times` over. */
static void count_gang(struct sim *sim, const struct plan_instance *instance, uint64_t times,
                       uint64_t *acquires)
{
    const struct plan *plan = sim->plan;
    const struct plan_unit *unit = &plan->units[instance->unit];
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        uint32_t members = plan_walk_members(sim->walk, instance, op);
        sim->total += members * times;
        *acquires += (uint64_t)members * op->access_count * times; /* at most */
        for (uint32_t i = 0; i < members; i++) {
            uint32_t device = plan_walk_member(sim->walk, instance, op, i).device;
            stream_at(sim, plan_stream(plan, device, op->stream))->unissued += times;
        }
    }
}

/* Operations per stream and in all. *acquires: ACQUIREs, which bound the memory levels. */
static enum status count_operations(struct sim *sim, uint64_t *acquires, struct error *err)
{
    const struct plan *plan = sim->plan;
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct unit_counts *counts = sim_take(&scratch, plan->unit_count, sizeof *counts, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t u = 0; u < plan->unit_count; u++) count_unit(plan, &plan->units[u], &counts[u]);
    *acquires = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        for (uint32_t i = 0; i < segment->instance_count; i++) {
            const struct plan_instance *instance = &plan->instances[segment->first_instance + i];
            const struct plan_unit *unit = &plan->units[instance->unit];
            if (instance->gang != PLAN_NONE) {
                count_gang(sim, instance, segment->repeat_count, acquires);
                continue;
            }
            *acquires += (uint64_t)unit->acquire_count * segment->repeat_count;
            sim->total += (uint64_t)unit->op_count * segment->repeat_count;
            for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++)
                if (plan_has_stream(plan, k))
                    stream_at(sim, plan_stream(plan, instance->device, k))->unissued +=
                        (uint64_t)counts[instance->unit].operations[k] * segment->repeat_count;
        }
    }
    for (uint32_t s = 0; s < sim->stream_count; s++) sim->lacking += sim->streams[s].unissued > 0;
    arena_release(&scratch);
    return STATUS_OK;
}

static enum status check_hardware(const struct sim *sim, struct error *err)
{
    const struct plan *plan = sim->plan;
    if (sim->hardware == &plan->hardware) return STATUS_OK;
    if (sim->hardware->device_count != plan->hardware.device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' has %" PRIu32 " devices, but the plan is for %" PRIu32,
                         sim->hardware->name, sim->hardware->device_count,
                         plan->hardware.device_count);
    if (hardware_has_storage(&plan->hardware) != hardware_has_storage(sim->hardware))
        return error_set(err, STATUS_BAD_INPUT, "machine '%s' has %s storage, but the plan is for one %s",
                         sim->hardware->name, hardware_has_storage(sim->hardware) ? "a" : "no",
                         hardware_has_storage(&plan->hardware) ? "with" : "without");
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) {
        if (sim->hardware->devices[d].memory_bytes >= plan->hardware.devices[d].memory_bytes)
            continue; /* the plan fits what it was made for */
        uint64_t needed = plan_device_bytes(plan, d);
        if (needed > sim->hardware->devices[d].memory_bytes)
            return error_set(err, STATUS_BAD_INPUT,
                             "device %" PRIu32 " of machine '%s' has %" PRIu64
                             " bytes of memory, but the plan uses %" PRIu64,
                             d, sim->hardware->name, sim->hardware->devices[d].memory_bytes,
                             needed);
    }
    return STATUS_OK;
}

/* Some P2P copy of a unit of an instance with a peer. */
static const struct plan_op *p2p_op(const struct plan *plan, const struct plan_unit *unit)
{
    uint32_t o = unit->first_op;
    while (plan->ops[o].stream != STREAM_P2P) o++;
    assert(o < unit->first_op + unit->op_count);
    return &plan->ops[o];
}

static int compare_pairs(const void *left, const void *right)
{
    const struct pair *a = left, *b = right;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return a->peer < b->peer ? -1 : a->peer > b->peer;
}

/* Sorted, each once; how many that are. */
static uint32_t merge_pairs(struct pair *pairs, uint32_t count)
{
    uint32_t kept = 0;
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || compare_pairs(&pairs[kept - 1], &pairs[i]) != 0) pairs[kept++] = pairs[i];
    return kept;
}

/* The pairs of devices that instances of the plan copy between into pairs[room], some of them several times;
 * NULL: only count. A device's last two peers are told. */
static uint32_t list_pairs(const struct sim *sim, struct plan_gang_peers *peers, struct pair *pairs)
{
    const struct plan *plan = sim->plan;
    uint32_t count = 0;
    for (uint32_t d = 0; d < plan->hardware.device_count; d++) peers[d] = PLAN_GANG_NO_PEERS;
    for (uint32_t i = 0; i < plan->instance_count; i++) {
        const struct plan_instance *instance = &plan->instances[i];
        if (instance->peer == PLAN_NONE) continue;
        const struct plan_op *fetch = p2p_op(plan, &plan->units[instance->unit]);
        for (uint32_t m = 0; m < plan_walk_members(sim->walk, instance, fetch); m++) {
            struct plan_walk_member member = plan_walk_member(sim->walk, instance, fetch, m);
            if (plan_gang_peers_note(&peers[member.device], member.peer)) continue;
            if (pairs) pairs[count] = (struct pair){.device = member.device, .peer = member.peer};
            count++;
        }
    }
    return count;
}

/* Those pairs, each once, and where each device's begin. */
static enum status find_pairs(struct sim *sim, struct error *err)
{
    const struct plan *plan = sim->plan;
    enum status status = STATUS_OK;
    uint32_t devices = plan->hardware.device_count;
    if (!hardware_has_p2p(&plan->hardware)) return STATUS_OK;
    struct arena scratch = {0};
    struct plan_gang_peers *peers = sim_take(&scratch, devices, sizeof *peers, &status, err);
    uint32_t count = status == STATUS_OK ? list_pairs(sim, peers, NULL) : 0;
    struct pair *pairs = sim_take(&scratch, count, sizeof *pairs, &status, err);
    if (status == STATUS_OK) {
        list_pairs(sim, peers, pairs);
        sim->pair_count = count > 0 ? merge_pairs(pairs, count) : 0;
        sim->pairs = sim_take(&sim->arena, sim->pair_count, sizeof *sim->pairs, &status, err);
        sim->first_pair = sim_take(&sim->arena, devices + 1u, sizeof *sim->first_pair, &status, err);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < sim->pair_count; i++) {
        sim->pairs[i] = pairs[i];
        sim->first_pair[pairs[i].device + 1] = i + 1;
        if (!hardware_p2p_pair(sim->hardware, pairs[i].peer, pairs[i].device))
            status = error_set(err, STATUS_BAD_INPUT,
                               "machine '%s' has no direct link from device %" PRIu32 " to device %" PRIu32
                               ", but the plan copies over one",
                               sim->hardware->name, pairs[i].peer, pairs[i].device);
    }
    for (uint32_t d = 0; status == STATUS_OK && d < devices; d++) /* of devices without any */
        if (sim->first_pair[d + 1] < sim->first_pair[d]) sim->first_pair[d + 1] = sim->first_pair[d];
    arena_release(&scratch);
    return status;
}

static enum status create_trace(struct sim *sim, uint64_t acquires, struct error *err)
{
    struct trace *trace = sim->trace;
    bool record = sim->options->record_spans;
    enum status status = trace_init(trace, sim->plan, TRACE_PREDICTED, record ? sim->total : 0,
                                    record ? 2 * acquires + 1 : 0, err);
    if (status != STATUS_OK) return status;
    status = arena_string(&trace->arena, sim->hardware->name, &trace->hardware, err);
    if (status != STATUS_OK) return status;
    trace->places[0].capacity_bytes = (uint64_t)sim->hardware->host_bytes.value;
    trace->places[0].peak_bytes = plan_host_bytes(sim->plan);
    for (uint32_t d = 0; d < sim->hardware->device_count; d++)
        trace->places[1 + d].capacity_bytes = sim->hardware->devices[d].memory_bytes;
    if (record)
        trace->levels[trace->level_count++] =
            (struct trace_level){.bytes = trace->places[0].peak_bytes};
    return STATUS_OK;
}

/* What collectives cost, and which devices need not be simulated. */
static enum status join_devices(struct sim *sim, struct error *err)
{
    enum status status =
        sim_collectives_create(&sim->arena, sim->plan, sim->hardware, &sim->collectives, err);
    if (status != STATUS_OK || sim->options->no_fold || sim->options->record_spans) return status;
    sim->stands_for =
        sim_take(&sim->arena, sim->hardware->device_count, sizeof *sim->stands_for, &status, err);
    if (status != STATUS_OK) return status;
    return sim_symmetry_find(sim->plan, sim->hardware, sim->collectives, sim->stands_for, &sim->represented,
                             err);
}

static enum status create(struct sim *sim, struct error *err)
{
    enum status status = check_hardware(sim, err);
    if (status == STATUS_OK && sim->plan->gang_count > 0) status = join_devices(sim, err);
    if (status == STATUS_OK) status = plan_walk_create(sim->plan, sim->stands_for, &sim->walk, err);
    if (status == STATUS_OK) status = find_pairs(sim, err);
    if (status != STATUS_OK) return status;
    sim->stream_count = plan_stream_count(sim->plan);
    sim->streams =
        sim_take(&sim->arena, sim->stream_count, sizeof *sim->streams, &status, err);
    sim->job_started =
        sim_take(&sim->arena, sim->plan->jobs.count, sizeof *sim->job_started, &status, err);
    if (status != STATUS_OK) return status;
    uint64_t acquires;
    status = count_operations(sim, &acquires, err);
    if (status == STATUS_OK) status = create_trace(sim, acquires, err);
    if (status == STATUS_OK)
        status = sim_durations_create(&sim->arena, sim->plan, sim->hardware, &sim->durations, err);
    if (status == STATUS_OK) status = create_machine(sim, err);
    if (status == STATUS_OK)
        status = sim_lifetimes_create(sim->plan, sim->trace, sim->options->record_spans,
                                      &sim->lifetimes, err);
    if (status == STATUS_OK)
        status = sim_window_create(sim->plan, sim->walk, sim->lifetimes, sim->collectives, &sim->window, err);
    return status;
}

/* --- the result ----------------------------------------------------------------------------- */

/* Devices did what the one did that stands for them. */
static void copy_to_represented(const struct sim *sim, struct sim_result *result)
{
    for (uint32_t d = 0; d < sim->hardware->device_count; d++) {
        uint32_t stands = sim->stands_for[d];
        if (stands == d) continue;
        for (uint32_t k = 0; k < plan_device_streams(sim->plan); k++)
            result->streams[plan_stream(sim->plan, d, k)] = result->streams[plan_stream(sim->plan, stands, k)];
        sim->trace->places[1 + d].peak_bytes = sim->trace->places[1 + stands].peak_bytes;
    }
}

static enum status fill_result(const struct sim *sim, struct sim_result *result, struct error *err)
{
    enum status status = STATUS_OK;
    result->streams =
        sim_take(&result->arena, sim->stream_count, sizeof *result->streams, &status, err);
    uint32_t links = sim->hardware->link_count + hardware_has_storage(sim->hardware);
    result->links = sim_take(&result->arena, links, sizeof *result->links, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t s = 0; s < sim->stream_count; s++)
        result->streams[s] = (struct sim_stream_use){.busy_s = sim->streams[s].busy_s,
                                                     .operations = sim->streams[s].operations};
    if (sim->represented > 0) copy_to_represented(sim, result);
    if (sim_flows_uses(sim->flows, result->links, err) != STATUS_OK) return err->status;
    result->makespan_s = sim->now_s; /* the first operation starts at 0 */
    result->operations = sim->total;
    result->events = sim->events;
    result->window_peak = sim->window.peak;
    result->represented = sim->represented;
    result->memory_bytes = sizeof *sim + sim->arena.total_bytes + sim_window_bytes(&sim->window) +
                           sim_lifetimes_bytes(sim->lifetimes);
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
    enum status status = create(&sim, err);
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
    if (options->record_spans) {
        trace->span_count = sim.total;
        trace_finish(trace);
    }
out:
    if (!sim.window.walk) plan_walk_destroy(sim.walk);
    sim_window_release(&sim.window);
    sim_lifetimes_destroy(sim.lifetimes);
    arena_release(&sim.arena);
    return status;
}

void sim_result_release(struct sim_result *result)
{
    arena_release(&result->arena);
    *result = (struct sim_result){0};
}
