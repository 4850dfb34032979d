/*
 * Nodes become activities in steps: matching (chakra_match.c), durations, queues, dependencies. Queues first have fixed
 * numbers; then queues without nodes are removed:
 *
 *     4 d + 0 .. 3   device d: computations, copies in, copies out, receives
 *     4 D + r        host thread of rank r
 *     5 D + 0 .. 3   of the machine: host, cpu, read, write
 *     5 D + 4 + g    process group g
 */
#include "sim/chakra/chakra_import.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "models/cost/collective_group.h"
#include "models/cost/cost.h"
#include "planner/plan.h"
#include "sim/chakra/chakra_state.h"
#include "sim/engine/allocate.h"

enum { OWN_QUEUES = 4, SHARED_QUEUES = 4, EDGES_MAX = INT32_MAX };

/* --- process groups ------------------------------------------------------------------------- */

/* Takes the trace's groups, then the group of all ranks. */
static enum status resolve_groups(struct chakra_import *import, struct error *err)
{
    const struct chakra_trace *trace = import->trace;
    enum status status = STATUS_OK;
    import->group_count = trace->group_count + 1;
    import->groups = sim_allocate(&import->arena, import->group_count, sizeof *import->groups, &status, err);
    import->members = sim_allocate(&import->arena, import->group_count, sizeof *import->members, &status, err);
    uint32_t *all = sim_allocate(&import->arena, trace->rank_count, sizeof *all, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t g = 0; g < trace->group_count; g++) {
        import->groups[g] = trace->groups[g];
        import->members[g] = trace->members + trace->groups[g].first;
    }
    for (uint32_t r = 0; r < trace->rank_count; r++) all[r] = r;
    import->groups[trace->group_count] = (struct chakra_group){.count = trace->rank_count};
    import->members[trace->group_count] = all;
    return STATUS_OK;
}

struct group_use {
    uint32_t rank, node; /* of its first collective */
    uint32_t family;     /* number of its family, or CHAKRA_NONE */
    bool used, found;
    struct collective_group links;
};

/* Adds to a family, from group `first` on, groups of its size without common members: rank_marks[r] is r's family.
 * Their members go to `devices`. Returns their number. */
static uint32_t gather_family(const struct chakra_import *import, struct group_use *uses, uint32_t first,
                              uint32_t *rank_marks, uint32_t *devices, uint32_t *family)
{
    uint32_t count = 0, members = import->groups[first].count;
    for (uint32_t g = first; g < import->group_count; g++) {
        if (!uses[g].used || uses[g].found || import->groups[g].count != members ||
            uses[g].family != uses[first].family)
            continue;
        bool apart = true;
        for (uint32_t i = 0; i < members && apart; i++) apart = rank_marks[import->members[g][i]] != first;
        if (!apart) continue;
        for (uint32_t i = 0; i < members; i++) {
            rank_marks[import->members[g][i]] = first;
            devices[(size_t)count * members + i] = import->members[g][i];
        }
        uses[g].found = true;
        family[count++] = g;
    }
    return count;
}

static enum status find_links(struct chakra_import *import, struct group_use *uses, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct collective_finder finder;
    uint32_t ranks = import->trace->rank_count, lacking[2];
    uint32_t *marks = sim_allocate(&scratch, ranks, sizeof *marks, &status, err);
    uint32_t *devices = sim_allocate(&scratch, ranks, sizeof *devices, &status, err);
    uint32_t *family = sim_allocate(&scratch, ranks, sizeof *family, &status, err);
    struct collective_group *links = sim_allocate(&scratch, ranks, sizeof *links, &status, err);
    if (status == STATUS_OK) status = collective_finder_init(&scratch, import->hardware, &finder, err);
    for (uint32_t r = 0; status == STATUS_OK && r < ranks; r++) marks[r] = CHAKRA_NONE;
    for (uint32_t g = 0; status == STATUS_OK && g < import->group_count; g++) {
        if (!uses[g].used || uses[g].found) continue;
        uint32_t count = gather_family(import, uses, g, marks, devices, family);
        if (!collective_groups_find(&finder, devices, import->groups[g].count, count, links, lacking))
            status = chakra_import_fail(import, uses[g].rank, uses[g].node, err,
                                        "needs a way from device %" PRIu32 " to device %" PRIu32
                                        ", which machine '%s' does not have",
                                        lacking[0], lacking[1], import->hardware->name);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) uses[family[i]].links = links[i];
    }
    arena_release(&scratch);
    return status;
}

static enum status use_groups(struct chakra_import *import, struct group_use *uses, struct error *err)
{
    for (uint32_t r = 0; r < import->trace->rank_count; r++)
        for (uint32_t n = 0; n < import->trace->ranks[r].count; n++) {
            const struct chakra_node *node = &import->trace->ranks[r].nodes[n];
            uint32_t group;
            if (node->type != CHAKRA_COLLECTIVE) continue;
            TRY(chakra_group_of(import, r, n, &group, err));
            if (uses[group].used) continue;
            uses[group] = (struct group_use){.used = true, .rank = r, .node = n, .family = node->family};
        }
    return find_links(import, uses, err);
}

/* --- durations --------------------------------------------------------------------------------- */

static enum status compute_s(const struct chakra_import *import, uint32_t rank, uint32_t index, double *out,
                             struct error *err)
{
    const struct chakra_node *node = &import->trace->ranks[rank].nodes[index];
    double peak = cost_peak_flops_per_s(import->hardware, rank);
    *out = node->has_seconds ? node->seconds : (double)node->duration_micros * 1e-6;
    if (node->has_seconds || node->duration_micros > 0 || node->num_ops == 0) return STATUS_OK;
    if (node->is_cpu_op)
        return chakra_import_fail(import, rank, index, err, "is a computation of the host without a duration");
    if (!(peak > 0))
        return chakra_import_fail(import, rank, index, err, "has no duration, and the peak of device %" PRIu32
                                  " of machine '%s' is not known", rank, import->hardware->name);
    *out = (double)node->num_ops / peak;
    return STATUS_OK;
}

static enum status collective_s(const struct chakra_import *import, const struct group_use *use, uint32_t members,
                                uint32_t rank, uint32_t index, struct sim_graph_node *out, struct error *err)
{
    static const enum collective_kind kinds[CHAKRA_COLLECTIVE_COUNT] = {
        [CHAKRA_ALL_REDUCE] = COLLECTIVE_ALL_REDUCE,         [CHAKRA_REDUCE] = COLLECTIVE_BROADCAST,
        [CHAKRA_ALL_GATHER] = COLLECTIVE_ALL_GATHER,         [CHAKRA_BROADCAST] = COLLECTIVE_BROADCAST,
        [CHAKRA_ALL_TO_ALL] = COLLECTIVE_ALL_TO_ALL,         [CHAKRA_REDUCE_SCATTER] = COLLECTIVE_REDUCE_SCATTER,
        [CHAKRA_REDUCE_SCATTER_BLOCK] = COLLECTIVE_REDUCE_SCATTER, [CHAKRA_BARRIER] = COLLECTIVE_ALL_REDUCE};
    const struct chakra_node *node = &import->trace->ranks[rank].nodes[index];
    uint32_t forced = COLLECTIVE_ALGORITHM_COUNT;
    if (node->comm_type == CHAKRA_GATHER || node->comm_type == CHAKRA_SCATTER)
        return chakra_import_fail(import, rank, index, err, "is a %s, which is not simulated",
                                  chakra_collective_names[node->comm_type]);
    for (uint32_t a = 0; node->algorithm && a < COLLECTIVE_ALGORITHM_COUNT; a++)
        if (strcmp(node->algorithm, collective_algorithm_names[a]) == 0) forced = a;
    if (node->algorithm && forced == COLLECTIVE_ALGORITHM_COUNT)
        return chakra_import_fail(import, rank, index, err, "asks for unknown algorithm '%s'", node->algorithm);
    out->bytes = node->comm_size > 0 ? node->comm_size : 1;
    if (node->comm_type == CHAKRA_ALL_GATHER) out->bytes *= members; /* the bytes of all members together */
    out->seconds = collective_seconds(kinds[node->comm_type], forced, &use->links, out->bytes);
    return STATUS_OK;
}

/* --- queues and other fields of nodes ------------------------------------------------------------ */

/* Finds the plan's stream that the node names; STREAM_KIND_COUNT: none. */
static enum status stream_of(const struct chakra_import *import, uint32_t rank, uint32_t index, uint32_t *out,
                             struct error *err)
{
    static const uint32_t allowed[CHAKRA_TYPE_COUNT] = {
        [CHAKRA_MEM_LOAD] = 1u << STREAM_H2D | 1u << STREAM_READ,
        [CHAKRA_MEM_STORE] = 1u << STREAM_D2H | 1u << STREAM_WRITE,
        [CHAKRA_COMP] = 1u << STREAM_COMPUTE | 1u << STREAM_HOST | 1u << STREAM_CPU,
        [CHAKRA_SEND] = 1u << STREAM_P2P,
        [CHAKRA_RECV] = 1u << STREAM_P2P,
        [CHAKRA_COLLECTIVE] = 1u << STREAM_COMPUTE | 1u << STREAM_GROUP | 1u << STREAM_DATA};
    const struct chakra_node *node = &import->trace->ranks[rank].nodes[index];
    *out = STREAM_KIND_COUNT;
    if (!node->stream) return STATUS_OK;
    for (uint32_t k = 0; k < STREAM_KIND_COUNT; k++)
        if (strcmp(node->stream, plan_stream_names[k]) == 0) *out = k;
    if (*out == STREAM_KIND_COUNT || !(allowed[node->type] & 1u << *out))
        return chakra_import_fail(import, rank, index, err, "is of type %" PRIu32 " on stream '%s'", node->type,
                                  node->stream);
    if ((*out == STREAM_READ || *out == STREAM_WRITE) && !hardware_has_storage(import->hardware))
        return chakra_import_fail(import, rank, index, err, "is a copy of storage, which machine '%s' has not",
                                  import->hardware->name);
    return STATUS_OK;
}

/* Returns a host's queue, shared by its ranks; these follow the devices' queues, host by host. */
static uint32_t host_queue(const struct hardware *hardware, uint32_t rank, uint32_t which)
{
    return 5 * hardware->device_count + hardware->devices[rank].host * SHARED_QUEUES + which;
}

static uint32_t first_group_queue(const struct hardware *hardware)
{
    return 5 * hardware->device_count + hardware_host_count(hardware) * SHARED_QUEUES;
}

static void fill_copy(const struct chakra_import *import, uint32_t rank, const struct chakra_node *node,
                      uint32_t stream, struct sim_graph_node *out)
{
    bool in = node->type == CHAKRA_MEM_LOAD, storage = stream == STREAM_READ || stream == STREAM_WRITE;
    const struct hardware *hardware = import->hardware;
    out->bytes = node->tensor_size;
    out->seconds = storage ? cost_storage_s(hardware, in ? STORAGE_READ : STORAGE_WRITE, out->bytes)
                           : cost_copy_s(hardware, rank, in ? COPY_H2D : COPY_D2H, out->bytes);
    out->queue = storage ? host_queue(hardware, rank, in ? 2 : 3) : rank * OWN_QUEUES + (in ? 1u : 2u);
}

static enum status fill_message(const struct chakra_import *import, uint32_t rank, uint32_t index,
                                struct sim_graph_node *out, struct error *err)
{
    const struct chakra_node *node = &import->trace->ranks[rank].nodes[index];
    uint32_t from, to;
    chakra_message_ranks(node, rank, &from, &to);
    if (node->is_signal) return STATUS_OK;
    out->bytes = chakra_message_bytes(node);
    if (!hardware_reaches(import->hardware, from, to))
        return chakra_import_fail(import, rank, index, err,
                                  "is a message from device %" PRIu32 " to device %" PRIu32
                                  ", and machine '%s' has no way between them",
                                  from, to, import->hardware->name);
    out->seconds = cost_p2p_s(import->hardware, from, to, out->bytes);
    out->queue = to * OWN_QUEUES + 3;
    return STATUS_OK;
}

static enum status fill_compute(const struct chakra_import *import, uint32_t rank, uint32_t index,
                                uint32_t stream, struct sim_graph_node *out, struct error *err)
{
    uint32_t devices = import->hardware->device_count;
    bool host = import->trace->ranks[rank].nodes[index].is_cpu_op;
    if (stream == STREAM_HOST || stream == STREAM_CPU)
        out->queue = host_queue(import->hardware, rank, stream == STREAM_CPU);
    else out->queue = host ? OWN_QUEUES * devices + rank : rank * OWN_QUEUES;
    return compute_s(import, rank, index, &out->seconds, err);
}

static enum status fill_node(const struct chakra_import *import, const struct group_use *uses, uint32_t rank,
                             uint32_t index, struct sim_graph_node *out, struct error *err)
{
    const struct chakra_node *node = &import->trace->ranks[rank].nodes[index];
    uint32_t stream, group;
    out->queue = SIM_GRAPH_NONE;
    TRY(stream_of(import, rank, index, &stream, err));
    switch (node->type) {
    case CHAKRA_COMP: return fill_compute(import, rank, index, stream, out, err);
    case CHAKRA_MEM_LOAD:
    case CHAKRA_MEM_STORE: fill_copy(import, rank, node, stream, out); return STATUS_OK;
    case CHAKRA_SEND:
    case CHAKRA_RECV: return fill_message(import, rank, index, out, err);
    case CHAKRA_COLLECTIVE:
        TRY(chakra_group_of(import, rank, index, &group, err));
        out->queue = first_group_queue(import->hardware) + group;
        return collective_s(import, &uses[group], import->groups[group].count, rank, index, out, err);
    default: return STATUS_OK;
    }
}

/* Fills activities; an activity of several ranks is filled from the first of them. */
static enum status fill_nodes(struct chakra_import *import, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct sim_graph *graph = &import->graph;
    graph->nodes = sim_allocate(&import->arena, graph->node_count, sizeof *graph->nodes, &status, err);
    struct group_use *uses = sim_allocate(&scratch, import->group_count, sizeof *uses, &status, err);
    bool *filled = sim_allocate(&scratch, graph->node_count, sizeof *filled, &status, err);
    if (status == STATUS_OK) status = use_groups(import, uses, err);
    for (uint32_t r = 0; r < import->trace->rank_count; r++)
        for (uint32_t n = 0; n < import->trace->ranks[r].count && status == STATUS_OK; n++) {
            uint32_t activity = import->activity[import->first[r] + n];
            if (filled[activity]) continue;
            filled[activity] = true;
            status = fill_node(import, uses, r, n, &graph->nodes[activity], err);
        }
    arena_release(&scratch);
    return status;
}

/* --- pairs of devices ----------------------------------------------------------------------- */

static int compare_pairs(const void *a, const void *b)
{
    const struct sim_graph_pair *left = a, *right = b;
    if (left->to != right->to) return left->to < right->to ? -1 : 1;
    return (left->from > right->from) - (left->from < right->from);
}

/* Finds the pairs of all messages, each once, and sets the pair of each node. */
static enum status find_pairs(struct chakra_import *import, struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_graph *graph = &import->graph;
    const struct chakra_trace *trace = import->trace;
    uint32_t count = 0, kept = 0;
    for (uint32_t pass = 0; pass < 2 && status == STATUS_OK; pass++) {
        if (pass == 1) graph->pairs = sim_allocate(&import->arena, count, sizeof *graph->pairs, &status, err);
        count = 0;
        for (uint32_t r = 0; r < trace->rank_count && status == STATUS_OK; r++)
            for (uint32_t n = 0; n < trace->ranks[r].count; n++) {
                struct sim_graph_pair pair;
                bool real = graph->nodes[import->activity[import->first[r] + n]].queue != SIM_GRAPH_NONE;
                if (trace->ranks[r].nodes[n].type != CHAKRA_SEND || !real) continue;
                chakra_message_ranks(&trace->ranks[r].nodes[n], r, &pair.from, &pair.to);
                if (pass == 1) graph->pairs[count] = pair;
                count++;
            }
    }
    if (status != STATUS_OK || count == 0) return status;
    qsort(graph->pairs, count, sizeof *graph->pairs, compare_pairs);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || compare_pairs(&graph->pairs[kept - 1], &graph->pairs[i]) != 0)
            graph->pairs[kept++] = graph->pairs[i];
    graph->pair_count = kept;
    for (uint32_t r = 0; r < trace->rank_count; r++)
        for (uint32_t n = 0; n < trace->ranks[r].count; n++) {
            struct sim_graph_pair key, *found;
            if (trace->ranks[r].nodes[n].type != CHAKRA_SEND) continue;
            chakra_message_ranks(&trace->ranks[r].nodes[n], r, &key.from, &key.to);
            found = bsearch(&key, graph->pairs, kept, sizeof key, compare_pairs);
            if (found) graph->nodes[import->activity[import->first[r] + n]].pair = (uint32_t)(found - graph->pairs);
        }
    return STATUS_OK;
}

/* --- queues --------------------------------------------------------------------------------- */

static struct sim_graph_queue describe_queue(const struct chakra_import *import, uint32_t number, char *name,
                                             size_t size)
{
    static const uint32_t own[OWN_QUEUES] = {STREAM_COMPUTE, STREAM_H2D, STREAM_D2H, STREAM_P2P};
    static const uint32_t shared[SHARED_QUEUES] = {STREAM_HOST, STREAM_CPU, STREAM_READ, STREAM_WRITE};
    uint32_t devices = import->hardware->device_count;
    const char *prefix = strcmp(import->hardware->backend, "cuda") == 0 ? "gpu" : "dev";
    struct sim_graph_queue queue = {.device = PLAN_NONE};
    if (number < OWN_QUEUES * devices) {
        queue.kind = own[number % OWN_QUEUES];
        queue.device = number / OWN_QUEUES;
        snprintf(name, size, "%s%" PRIu32 " %s", prefix, queue.device, plan_stream_names[queue.kind]);
    } else if (number < 5 * devices) {
        queue.kind = STREAM_HOST;
        snprintf(name, size, "host of rank %" PRIu32, number - OWN_QUEUES * devices);
    } else if (number < first_group_queue(import->hardware)) {
        queue.kind = shared[(number - 5 * devices) % SHARED_QUEUES];
        queue.host = (number - 5 * devices) / SHARED_QUEUES;
        const char *kind = plan_stream_names[queue.kind];
        if (hardware_host_count(import->hardware) > 1) snprintf(name, size, "host%" PRIu32 " %s", queue.host, kind);
        else snprintf(name, size, "%s", kind);
    } else {
        uint32_t group = number - first_group_queue(import->hardware);
        queue.kind = STREAM_GROUP;
        queue.device = import->members[group][0];
        if (group + 1 < import->group_count) snprintf(name, size, "group %" PRIu32, import->groups[group].number);
        else snprintf(name, size, "all ranks");
    }
    return queue;
}

static enum status make_queues(struct chakra_import *import, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct sim_graph *graph = &import->graph;
    uint32_t most = first_group_queue(import->hardware) + import->group_count;
    uint32_t *numbers = sim_allocate(&scratch, most, sizeof *numbers, &status, err);
    for (uint32_t n = 0; n < graph->node_count && status == STATUS_OK; n++)
        if (graph->nodes[n].queue != SIM_GRAPH_NONE) numbers[graph->nodes[n].queue] = 1;
    for (uint32_t q = 0; q < most && status == STATUS_OK; q++) graph->queue_count += numbers[q];
    graph->queues = sim_allocate(&import->arena, graph->queue_count, sizeof *graph->queues, &status, err);
    for (uint32_t q = 0, used = 0; q < most && status == STATUS_OK; q++) {
        char name[64];
        if (numbers[q] == 0) continue;
        graph->queues[used] = describe_queue(import, q, name, sizeof name);
        status = arena_string(&import->arena, name, &graph->queues[used].name, err);
        numbers[q] = used++;
    }
    for (uint32_t n = 0; n < graph->node_count && status == STATUS_OK; n++)
        if (graph->nodes[n].queue != SIM_GRAPH_NONE) graph->nodes[n].queue = numbers[graph->nodes[n].queue];
    arena_release(&scratch);
    return status;
}

/* --- dependencies ------------------------------------------------------------------------------ */

/* Visits each dependency: counts it or, with `fill`, stores it with its node's others. */
static void visit_deps(struct chakra_import *import, uint32_t *fill)
{
    struct sim_graph *graph = &import->graph;
    for (uint32_t r = 0; r < import->trace->rank_count; r++) {
        const struct chakra_rank *rank = &import->trace->ranks[r];
        for (uint32_t n = 0; n < rank->count; n++) {
            const struct chakra_node *node = &rank->nodes[n];
            uint32_t to = import->activity[import->first[r] + n];
            for (uint32_t i = 0; i < node->ctrl_count + node->data_count; i++) {
                uint64_t id = i < node->ctrl_count ? node->ctrl_deps[i] : node->data_deps[i - node->ctrl_count];
                uint32_t from = import->activity[import->first[r] + chakra_rank_find(rank, id)];
                if (fill) graph->next[fill[from]++] = to;
                else graph->nodes[from].next_count++;
                graph->nodes[to].waits += !fill;
            }
        }
    }
}

static enum status link_nodes(struct chakra_import *import, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    struct sim_graph *graph = &import->graph;
    uint64_t edges = 0;
    for (uint32_t r = 0; r < import->trace->rank_count; r++)
        for (uint32_t n = 0; n < import->trace->ranks[r].count; n++)
            edges += import->trace->ranks[r].nodes[n].ctrl_count + import->trace->ranks[r].nodes[n].data_count;
    if (edges > EDGES_MAX)
        return error_set(err, STATUS_LIMIT, "%s: too many dependencies (limit is %d)", import->trace->prefix,
                         EDGES_MAX);
    visit_deps(import, NULL);
    graph->next = sim_allocate(&import->arena, edges, sizeof *graph->next, &status, err);
    uint32_t *at = sim_allocate(&scratch, graph->node_count, sizeof *at, &status, err);
    for (uint32_t n = 0, first = 0; n < graph->node_count && status == STATUS_OK; n++) {
        graph->nodes[n].first_next = at[n] = first;
        first += graph->nodes[n].next_count;
    }
    if (status == STATUS_OK) visit_deps(import, at);
    arena_release(&scratch);
    return status;
}

/* --- public --------------------------------------------------------------------------------- */

static enum status number_nodes(struct chakra_import *import, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t ranks = import->trace->rank_count;
    uint64_t count = 0;
    import->first = sim_allocate(&import->arena, ranks + 1u, sizeof *import->first, &status, err);
    for (uint32_t r = 0; r < ranks && status == STATUS_OK; r++) {
        import->first[r] = (uint32_t)count;
        count += import->trace->ranks[r].count;
        if (count > CHAKRA_NODES_MAX)
            status = error_set(err, STATUS_LIMIT, "%s: too many nodes of all ranks (limit is %d)",
                               import->trace->prefix, CHAKRA_NODES_MAX);
    }
    if (status == STATUS_OK) import->first[ranks] = (uint32_t)count;
    import->activity = sim_allocate(&import->arena, count, sizeof *import->activity, &status, err);
    return status;
}

/* Reports the node of the trace that never begins. */
static enum status fail_never(const struct chakra_import *import, uint32_t activity, struct error *err)
{
    for (uint32_t r = 0; r < import->trace->rank_count; r++)
        for (uint32_t n = 0; n < import->trace->ranks[r].count; n++)
            if (import->activity[import->first[r] + n] == activity)
                return chakra_import_fail(import, r, n, err,
                                          "never begins: it is in a cycle of dependencies, "
                                          "or waits for a node that is");
    assert(!"an activity is some node's");
    return STATUS_BAD_INPUT;
}

enum status sim_chakra_run(const struct chakra_trace *trace, const struct hardware *hardware,
                           const struct sim_graph_options *options, struct sim_result *result,
                           struct trace *out, struct error *err)
{
    struct chakra_import import = {.trace = trace,
                                   .hardware = hardware,
                                   .graph = {.name = trace->prefix, .hardware = hardware}};
    uint32_t never = SIM_GRAPH_NONE;
    if (trace->rank_count > hardware->device_count)
        return error_set(err, STATUS_BAD_INPUT, "%s has %" PRIu32 " ranks, and machine '%s' %" PRIu32 " devices",
                         trace->prefix, trace->rank_count, hardware->name, hardware->device_count);
    enum status status = number_nodes(&import, err);
    if (status == STATUS_OK) status = resolve_groups(&import, err);
    if (status == STATUS_OK) status = chakra_match(&import, err);
    if (status == STATUS_OK) status = fill_nodes(&import, err);
    if (status == STATUS_OK) status = find_pairs(&import, err);
    if (status == STATUS_OK) status = make_queues(&import, err);
    if (status == STATUS_OK) status = link_nodes(&import, err);
    if (status == STATUS_OK) status = sim_graph_run(&import.graph, options, result, out, &never, err);
    if (status == STATUS_OK && never != SIM_GRAPH_NONE) status = fail_never(&import, never, err);
    arena_release(&import.arena);
    return status;
}
