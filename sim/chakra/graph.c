/*
 * The loop of sim.c without a plan: all nodes are there from the beginning, with lists of successors.
 *
 *     loop:  settle   rates and speeds, once
 *            pop      the next event: a latency ends and a flow begins; or a node ends, its queue begins the
 *                     next ready node, and its successors become ready
 *
 * Nodes without time end when ready. A list of nodes to handle replaces recursion, since chains may be as long as the
 * trace. It shares one array of links with the queues' lists: a node is in at most one.
 */
#include "sim/chakra/graph.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/plan.h"
#include "sim/engine/allocate.h"
#include "sim/limit.h"
#include "sim/network/flow.h"
#include "sim/network/interference.h"
#include "sim/network/machine.h"

enum event_kind { EVENT_END, EVENT_FLOW }; /* the order of events at equal times */

enum { PROGRESS_NODES = 1 << 17 };

struct graph_list {
    uint32_t first, last; /* SIM_GRAPH_NONE: empty */
};

struct graph_stream {
    struct graph_list ready;
    uint32_t running;     /* node, or SIM_GRAPH_NONE */
    bool copies, slowed, in_latency;
    uint32_t path;        /* of the running copy */
    uint32_t device;      /* hardware_cpu() if the queue has no device */
    double latency_s, rate;
    double volume, start_s;
    uint64_t span;
};

struct graph_run {
    const struct sim_graph *graph;
    const struct hardware *hardware;
    const struct sim_graph_options *options;
    struct trace *trace;
    struct arena arena;
    struct graph_stream *streams;        /* by queue */
    uint32_t *links;           /* by node: the next of its list */
    struct graph_list ended;         /* nodes that have just ended */
    uint32_t *path_streams;
    struct sim_path *paths;
    uint32_t first_p2p_path, path_count;
    struct sim_flows *flows;
    struct sim_interference *interference;
    struct sim_queue *queue;   /* owners: streams, then bundles of flows */
    struct sim_stream_use *uses;
    bool slowed, flows_changed, slowing_changed;
    double now_s;
    uint64_t done, begun, events, spans;
};

/* --- lists ---------------------------------------------------------------------------------- */

static void push(struct graph_run *run, struct graph_list *list, uint32_t node)
{
    run->links[node] = SIM_GRAPH_NONE;
    if (list->first == SIM_GRAPH_NONE) list->first = node;
    else run->links[list->last] = node;
    list->last = node;
}

static uint32_t pop(struct graph_run *run, struct graph_list *list)
{
    uint32_t node = list->first;
    if (node != SIM_GRAPH_NONE) list->first = run->links[node];
    return node;
}

/* --- begins ------------------------------------------------------------------------------------ */

static void begin_flow(struct graph_run *run, struct graph_stream *stream)
{
    stream->in_latency = false;
    sim_flows_begin(run->flows, stream->path, stream->volume, run->graph->nodes[stream->running].bytes,
                    sim_order(EVENT_END, stream->span), run->now_s);
    run->flows_changed = true;
    if (!stream->slowed) return;
    sim_interference_copies_changed(run->interference, stream->device);
    run->slowing_changed = true;
}

static void begin_copy(struct graph_run *run, struct graph_stream *stream, uint32_t owner,
                       const struct sim_graph_node *node)
{
    if (run->graph->queues[owner].kind == STREAM_P2P) {
        const struct sim_graph_pair *pair = &run->graph->pairs[node->pair];
        stream->path = run->first_p2p_path + node->pair;
        stream->latency_s = cost_p2p_latency_s(run->hardware, pair->from, pair->to);
        stream->rate = run->paths[stream->path].cap_bytes_per_s;
    }
    double latency_s = fmin(stream->latency_s, node->seconds);
    stream->volume = (node->seconds - latency_s) * stream->rate;
    stream->in_latency = latency_s > 0;
    if (stream->in_latency)
        sim_queue_set(run->queue, owner, run->now_s + latency_s, sim_order(EVENT_FLOW, stream->span));
    else
        begin_flow(run, stream);
}

/* Begins the queue's next node, if possible. */
static void begin_next(struct graph_run *run, uint32_t owner)
{
    struct graph_stream *stream = &run->streams[owner];
    if (stream->running != SIM_GRAPH_NONE) return;
    stream->running = pop(run, &stream->ready);
    if (stream->running == SIM_GRAPH_NONE) return;
    const struct sim_graph_node *node = &run->graph->nodes[stream->running];
    stream->start_s = run->now_s;
    stream->span = run->begun++;
    if (stream->copies) {
        begin_copy(run, stream, owner, node);
    } else if (stream->slowed) {
        sim_interference_compute(run->interference, stream->device, owner, node->seconds,
                                 sim_order(EVENT_END, stream->span), run->now_s);
        run->slowing_changed = true;
    } else {
        sim_queue_set(run->queue, owner, run->now_s + node->seconds, sim_order(EVENT_END, stream->span));
    }
}

static void become_ready(struct graph_run *run, uint32_t node)
{
    uint32_t queue = run->graph->nodes[node].queue;
    if (queue == SIM_GRAPH_NONE) {
        push(run, &run->ended, node);
        return;
    }
    push(run, &run->streams[queue].ready, node);
    begin_next(run, queue);
}

/* --- ends ----------------------------------------------------------------------------------- */

/* Handles nodes that have ended, and successors that take no time. */
static void go_on(struct graph_run *run)
{
    const struct sim_graph *graph = run->graph;
    for (uint32_t n; (n = pop(run, &run->ended)) != SIM_GRAPH_NONE;) {
        const struct sim_graph_node *node = &graph->nodes[n];
        run->done++;
        for (uint32_t i = 0; i < node->next_count; i++) {
            uint32_t next = graph->next[node->first_next + i];
            assert(graph->nodes[next].waits > 0);
            if (--graph->nodes[next].waits == 0) become_ready(run, next);
        }
    }
}

static void record_span(struct graph_run *run, uint32_t owner)
{
    const struct graph_stream *stream = &run->streams[owner];
    const struct sim_graph_node *node = &run->graph->nodes[stream->running];
    uint32_t kind = run->graph->queues[owner].kind;
    bool joins = (kind == STREAM_GROUP || kind == STREAM_DATA) && node->bytes > 0;
    run->trace->spans[run->spans++] = (struct trace_span){
        .start_s = stream->start_s,
        .end_s = run->now_s,
        .number = stream->span,
        .bytes = stream->copies || joins ? node->bytes : 0,
        .stream = owner,
        .kind = stream->copies ? OP_COPY : joins ? OP_COLLECTIVE : OP_COMPUTE,
    };
}

static void end_node(struct graph_run *run, uint32_t owner)
{
    struct graph_stream *stream = &run->streams[owner];
    if (stream->slowed) {
        if (stream->copies) sim_interference_copies_changed(run->interference, stream->device);
        else sim_interference_computed(run->interference, stream->device);
        run->slowing_changed = true;
    }
    run->uses[owner].busy_s += run->now_s - stream->start_s;
    run->uses[owner].operations++;
    if (run->options->record_spans) record_span(run, owner);
    push(run, &run->ended, stream->running);
    stream->running = SIM_GRAPH_NONE;
    begin_next(run, owner);
    go_on(run);
}

static void handle_event(struct graph_run *run, const struct sim_event *event)
{
    uint32_t owner = event->owner;
    if (owner >= run->graph->queue_count) {
        uint32_t bundle = owner - run->graph->queue_count;
        owner = run->path_streams[sim_flows_finish(run->flows, bundle, run->now_s)];
        run->flows_changed = true;
    } else if (run->streams[owner].in_latency) {
        begin_flow(run, &run->streams[owner]);
        return;
    }
    end_node(run, owner);
}

static void settle(struct graph_run *run)
{
    sim_interference_settle(run->interference, run->flows, run->flows_changed, run->slowing_changed, run->slowed,
                            run->now_s);
    run->flows_changed = run->slowing_changed = false;
}

static void report_progress(const struct graph_run *run)
{
    if (run->options->on_progress)
        run->options->on_progress(run->options->context, (double)run->done, (double)run->graph->node_count);
}

static void run_events(struct graph_run *run)
{
    uint64_t next_report = PROGRESS_NODES;
    for (uint32_t n = 0; n < run->graph->node_count; n++)
        if (run->graph->nodes[n].waits == 0) become_ready(run, n);
    go_on(run);
    for (struct sim_event event;;) {
        settle(run);
        if (!sim_queue_pop(run->queue, &event)) break;
        run->now_s = event.time_s;
        run->events++;
        handle_event(run, &event);
        if (run->done < next_report) continue;
        report_progress(run);
        next_report += PROGRESS_NODES;
    }
}

/* --- the machine ---------------------------------------------------------------------------- */

static void fill_stream(struct graph_run *run, uint32_t q)
{
    const struct sim_graph_queue *queue = &run->graph->queues[q];
    struct graph_stream *stream = &run->streams[q];
    uint32_t cpu = hardware_cpu(run->hardware);
    bool host = queue->device == PLAN_NONE, joins = queue->kind == STREAM_GROUP || queue->kind == STREAM_DATA;
    bool out = queue->kind == STREAM_D2H || queue->kind == STREAM_WRITE;
    *stream = (struct graph_stream){.ready = {SIM_GRAPH_NONE, SIM_GRAPH_NONE},
                          .running = SIM_GRAPH_NONE,
                          .copies = plan_stream_copies(queue->kind),
                          .device = host ? cpu : queue->device};
    if (queue->kind == STREAM_READ || queue->kind == STREAM_WRITE)
        stream->latency_s = run->hardware->storage.latency.value;
    else if (queue->kind != STREAM_HOST && !joins)
        stream->slowed = sim_interference_affects(run->interference, stream->device);
    run->slowed |= stream->slowed;
    if (!stream->copies || queue->kind == STREAM_P2P) return;
    stream->path = (stream->device + queue->host) * 2 + out; /* storage's paths have the place of the processors'
                                                                paths */
    stream->rate = run->paths[stream->path].cap_bytes_per_s;
    run->path_streams[stream->path] = q;
    if (!host) stream->latency_s = cost_copy_latency_s(run->hardware, stream->device, out ? COPY_D2H : COPY_H2D);
}

/* Fills in the stream of each fetching device, for the paths of pairs. */
static void fill_p2p_lanes(struct graph_run *run)
{
    for (uint32_t q = 0; q < run->graph->queue_count; q++) {
        if (run->graph->queues[q].kind != STREAM_P2P) continue;
        for (uint32_t i = 0; i < run->graph->pair_count; i++)
            if (run->graph->pairs[i].to == run->graph->queues[q].device)
                run->path_streams[run->first_p2p_path + i] = q;
    }
}

static enum status create_flows(struct graph_run *run, struct error *err)
{
    enum status status = STATUS_OK;
    const struct hardware *hardware = run->hardware;
    uint32_t storage = hardware_storage_count(hardware);
    uint32_t link_count = hardware->link_count + storage, queues = run->graph->queue_count;
    run->first_p2p_path = (hardware->device_count + storage) * 2;
    run->path_count = run->first_p2p_path + run->graph->pair_count;
    struct sim_link *links = sim_allocate(&run->arena, link_count, sizeof *links, &status, err);
    uint32_t *devices = sim_allocate(&run->arena, run->path_count, sizeof *devices, &status, err);
    run->paths = sim_allocate(&run->arena, run->path_count, sizeof *run->paths, &status, err);
    run->path_streams = sim_allocate(&run->arena, run->path_count, sizeof *run->path_streams, &status, err);
    if (status != STATUS_OK) return status;
    sim_machine_links(hardware, links);
    sim_machine_paths(hardware, run->interference, links, 1, run->paths);
    if (storage > 0) sim_machine_storage(hardware, links, run->paths);
    for (uint32_t p = 0; p < run->first_p2p_path; p++)
        devices[p] = p / 2 < hardware->device_count ? p / 2 : hardware_cpu(hardware);
    for (uint32_t i = 0; i < run->graph->pair_count; i++) {
        const struct sim_graph_pair *pair = &run->graph->pairs[i];
        TRY(sim_machine_p2p_path(&run->arena, hardware, run->interference, links, pair->from, pair->to,
                                 hardware_cpu(hardware) + 1 + i, &run->paths[run->first_p2p_path + i], err));
        devices[run->first_p2p_path + i] = pair->to;
    }
    const struct sim_flows_setup setup = {
        .links = links, .link_count = link_count, .paths = run->paths, .path_count = run->path_count};
    status = sim_flows_create(&run->arena, &setup, &run->flows, err);
    uint32_t bundles = status == STATUS_OK ? sim_flows_bundle_count(run->flows) : 0;
    if (status == STATUS_OK) status = sim_queue_create(&run->arena, queues + bundles, &run->queue, err);
    uint32_t *owners = sim_allocate(&run->arena, bundles, sizeof *owners, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t b = 0; b < bundles; b++) owners[b] = queues + b;
    sim_flows_attach(run->flows, run->queue, owners);
    return sim_interference_attach(run->interference, &run->arena, run->flows, run->queue, devices,
                                   run->path_count, err);
}

static enum status create_trace(struct graph_run *run, struct error *err)
{
    enum status status = STATUS_OK;
    struct trace *trace = run->trace;
    const char *prefix = strcmp(run->hardware->backend, "cuda") == 0 ? "gpu" : "dev";
    uint32_t spans = run->options->record_spans ? run->graph->node_count : 0;
    trace->source = TRACE_PREDICTED;
    trace->policy = "trace";
    trace->streams = sim_allocate(&trace->arena, run->graph->queue_count, sizeof *trace->streams, &status, err);
    uint32_t hosts = hardware_host_count(run->hardware);
    trace->places =
        sim_allocate(&trace->arena, run->hardware->device_count + hosts, sizeof *trace->places, &status, err);
    trace->jobs = sim_allocate(&trace->arena, 1, sizeof *trace->jobs, &status, err);
    trace->spans = sim_allocate(&trace->arena, spans, sizeof *trace->spans, &status, err);
    if (status == STATUS_OK) status = arena_string(&trace->arena, run->hardware->name, &trace->hardware, err);
    if (status == STATUS_OK) status = arena_string(&trace->arena, run->graph->name, &trace->jobs[0].name, err);
    if (status != STATUS_OK) return status;
    trace->job_count = 1;
    trace->stream_count = run->graph->queue_count;
    trace->place_count = run->hardware->device_count + hosts;
    trace->more_hosts = hosts - 1;
    for (uint32_t h = 0; h < hosts && status == STATUS_OK; h++) status = trace_name_host(trace, h, err);
    for (uint32_t q = 0; q < trace->stream_count && status == STATUS_OK; q++) {
        trace->streams[q].device = run->graph->queues[q].device;
        trace->streams[q].host = run->graph->queues[q].host;
        trace->streams[q].kind = run->graph->queues[q].kind;
        status = arena_string(&trace->arena, run->graph->queues[q].name, &trace->streams[q].name, err);
    }
    for (uint32_t d = 0; d < run->hardware->device_count && status == STATUS_OK; d++) {
        char text[32];
        snprintf(text, sizeof text, "%s%" PRIu32, prefix, d);
        trace->places[1 + d].capacity_bytes = run->hardware->devices[d].memory_bytes;
        status = arena_string(&trace->arena, text, &trace->places[1 + d].name, err);
    }
    return status;
}

static enum status create(struct graph_run *run, struct error *err)
{
    enum status status = STATUS_OK;
    run->streams = sim_allocate(&run->arena, run->graph->queue_count, sizeof *run->streams, &status, err);
    run->uses = sim_allocate(&run->arena, run->graph->queue_count, sizeof *run->uses, &status, err);
    run->links = sim_allocate(&run->arena, run->graph->node_count, sizeof *run->links, &status, err);
    if (status == STATUS_OK)
        status = sim_interference_create(&run->arena, run->hardware, &run->interference, err);
    if (status == STATUS_OK) status = create_flows(run, err);
    if (status == STATUS_OK) status = create_trace(run, err);
    if (status != STATUS_OK) return status;
    for (uint32_t q = 0; q < run->graph->queue_count; q++) fill_stream(run, q);
    fill_p2p_lanes(run);
    return STATUS_OK;
}

/* --- public --------------------------------------------------------------------------------- */

static enum status fill_result(struct graph_run *run, struct sim_result *result, struct error *err)
{
    enum status status = STATUS_OK;
    struct trace *trace = run->trace;
    uint32_t links = run->hardware->link_count + hardware_storage_count(run->hardware);
    result->streams = sim_allocate(&result->arena, trace->stream_count, sizeof *result->streams, &status, err);
    result->links = sim_allocate(&result->arena, links, sizeof *result->links, &status, err);
    if (status != STATUS_OK) return status;
    memcpy(result->streams, run->uses, trace->stream_count * sizeof *result->streams);
    TRY(sim_flows_uses(run->flows, result->links, err));
    result->makespan_s = run->now_s;
    result->operations = run->done;
    result->events = run->events;
    result->memory_bytes = sizeof *run + run->arena.total_bytes;
    trace->makespan_s = trace->jobs[0].end_s = run->now_s;
    trace->complete = true;
    trace->span_count = run->spans;
    trace_finish(trace);
    char text[SIM_LIMIT_TEXT_BYTES];
    sim_limit_text(run->hardware, result, trace, text);
    return arena_string(&result->arena, text, &result->binds, err);
}

/* Returns a node of a cycle, or one that waits for a cycle. */
static uint32_t find_waiting(const struct sim_graph *graph)
{
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (graph->nodes[n].waits > 0) return n;
    return SIM_GRAPH_NONE;
}

enum status sim_graph_run(struct sim_graph *graph, const struct sim_graph_options *options,
                          struct sim_result *result, struct trace *trace, uint32_t *never, struct error *err)
{
    struct graph_run run = {.graph = graph,
                            .hardware = graph->hardware,
                            .options = options,
                            .trace = trace,
                            .ended = {SIM_GRAPH_NONE, SIM_GRAPH_NONE}};
    enum status status = create(&run, err);
    if (status == STATUS_OK) {
        double begun_s = clock_s();
        run_events(&run);
        result->wall_s = clock_s() - begun_s;
        *never = find_waiting(graph);
        assert((*never == SIM_GRAPH_NONE) == (run.done == graph->node_count));
        if (*never == SIM_GRAPH_NONE) {
            status = fill_result(&run, result, err);
            report_progress(&run);
        }
    }
    arena_release(&run.arena);
    return status;
}
