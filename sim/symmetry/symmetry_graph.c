/*
 * Devices are nodes 0, 1, ... Labels contain everything that durations and rates are computed from. The order in which
 * flows cross a link is in the link's label and the roles of its flows; it is equal for all links of a colour, so that
 * sums over flows are rounded equally.
 *
 * Devices that share something with all others (the host's memory or processor, or storage), or whose computations slow
 * others down, cannot be folded: their own number is their label.
 */
#include "sim/symmetry/symmetry_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "planner/plan_gang.h"
#include "sim/engine/allocate.h"
#include "sim/network/machine.h"

enum label { LABEL_DEVICE, LABEL_PAIR, LABEL_GROUP, LABEL_JOINT, LABEL_HOST, LABEL_LINK };

/* Roles of neighbours. For links and the flows that cross them, numbers of hops and positions start at ROLE_FIRST. */
enum role { ROLE_TO, ROLE_FROM, ROLE_PAIR_TO, ROLE_PAIR_FROM, ROLE_MEMBER, ROLE_GROUP, ROLE_JOINT, ROLE_FIRST };

enum { AXES_SETS = 1 << AXIS_COUNT, LIST_MAX = 1 << 28 };

static void label(struct symmetry_graph *g, uint64_t number)
{
    sim_refinement_label(g->refinement, number);
}

static void label_seconds(struct symmetry_graph *g, double number)
{
    uint64_t bits;
    memcpy(&bits, &number, sizeof bits);
    label(g, bits);
}

/* --- the plan's operations ----------------------------------------------------------------------- */

static size_t sort_keys(uint64_t *keys, size_t count)
{
    size_t kept = 0;
    if (count > 1) qsort(keys, count, sizeof *keys, order_u64);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || keys[kept - 1] != keys[i]) keys[kept++] = keys[i];
    return kept;
}

struct unit_use {
    uint32_t axes; /* sets of axes of its collectives */
    bool host;     /* it copies to or from host memory, or computes there */
};

static struct unit_use use_of(const struct plan *plan, const struct plan_unit *unit)
{
    struct unit_use use = {.axes = 1};
    for (uint32_t o = 0; o < unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[unit->first_op + o];
        if (op->kind == OP_COLLECTIVE) use.axes |= 1u << op->axes;
        use.host |= op->stream == STREAM_H2D || op->stream == STREAM_D2H || plan_stream_is_host(op->stream);
    }
    return use;
}

/* `peers`: of gangs, then of devices. */
static enum status note_task(struct symmetry_graph *g, const struct plan_task *task,
                             const struct unit_use *use, struct plan_gang_peers *peers, struct error *err)
{
    const struct plan *plan = g->setup->plan;
    bool single = task->gang == PLAN_NONE;
    if (single) g->alone[task->device] = true;
    else g->axes_used[task->gang] |= use->axes;
    for (uint32_t i = 0; !single && use->host && i < plan_gang_size(&plan->gangs[task->gang]); i++)
        g->alone[plan->gang_devices[plan->gangs[task->gang].first + i]] = true;
    if (task->peer == PLAN_NONE) return STATUS_OK;
    uint32_t to = single ? task->device : task->gang;
    if (plan_gang_peers_note(&peers[single ? plan->gang_count + to : to], task->peer)) return STATUS_OK;
    uint64_t key = (uint64_t)to << 32 | task->peer;
    if (single) {
        enum status status = array_reserve(&g->device_pairs, &g->device_pair_capacity, g->device_pair_count,
                                           sizeof key, LIST_MAX, "pairs of devices", err);
        if (status == STATUS_OK) g->device_pairs[g->device_pair_count++] = key;
        return status;
    }
    enum status status = array_reserve(&g->gang_pairs, &g->gang_pair_capacity, g->gang_pair_count, sizeof key, LIST_MAX,
                                       "pairs of gangs", err);
    if (status == STATUS_OK) g->gang_pairs[g->gang_pair_count++] = key;
    return status;
}

static enum status note_tasks(struct symmetry_graph *g, struct error *err)
{
    const struct plan *plan = g->setup->plan;
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t peer_count = plan->gang_count + plan->hardware.device_count;
    struct unit_use *uses = sim_allocate(&scratch, plan->unit_count, sizeof *uses, &status, err);
    struct plan_gang_peers *peers = sim_allocate(&scratch, peer_count, sizeof *peers, &status, err);
    for (uint32_t u = 0; status == STATUS_OK && u < plan->unit_count; u++) uses[u] = use_of(plan, &plan->units[u]);
    for (uint32_t p = 0; status == STATUS_OK && p < peer_count; p++) peers[p] = PLAN_GANG_NO_PEERS;
    for (uint32_t i = 0; status == STATUS_OK && i < plan->task_count; i++)
        status = note_task(g, &plan->tasks[i], &uses[plan->tasks[i].unit], peers, err);
    arena_release(&scratch);
    g->gang_pair_count = sort_keys(g->gang_pairs, g->gang_pair_count);
    g->device_pair_count = sort_keys(g->device_pairs, g->device_pair_count);
    return status;
}

/* --- devices --------------------------------------------------------------------------------- */

/* Returns true if operations slow each other down on some device, whichever. */
static bool interferes(const struct hardware *hardware)
{
    for (uint32_t d = 0; d < hardware->device_count; d++) {
        const struct compute_profile *profile = hardware_profile(hardware, d);
        if (!profile) continue;
        const struct hardware_interference *slows = &profile->interference;
        if (slows->compute_by_compute.value > 0 || slows->compute_by_copy.value > 0 ||
            slows->compute_by_collective.value > 0 || slows->copy_by_compute.value > 0 || slows->copy_by_copy.value > 0)
            return true;
    }
    return false;
}

/* Lists the gangs of each device in ascending order, the gangs of device d from first[d] on. */
static enum status list_gangs(const struct symmetry_graph *g, struct arena *scratch, uint32_t **first, uint32_t **gangs,
                              struct error *err)
{
    const struct plan *plan = g->setup->plan;
    enum status status = STATUS_OK;
    uint32_t devices = plan->hardware.device_count;
    *first = sim_allocate(scratch, devices + 2u, sizeof **first, &status, err);
    *gangs = sim_allocate(scratch, plan->gang_device_count, sizeof **gangs, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < plan->gang_count; i++)
            for (uint32_t k = 0; g->axes_used[i] && k < plan_gang_size(&plan->gangs[i]); k++) {
                uint32_t device = plan->gang_devices[plan->gangs[i].first + k];
                if (pass == 0) (*first)[device + 2]++;
                else (*gangs)[(*first)[device + 1]++] = i;
            }
        for (uint32_t d = 0; pass == 0 && d < devices; d++) (*first)[d + 2] += (*first)[d + 1];
    }
    return STATUS_OK;
}

/* Adds devices. Devices in the same gangs run the same tasks. Devices in no gang are not folded. */
static enum status add_devices(struct symmetry_graph *g, struct error *err)
{
    const struct sim_symmetry_setup *s = g->setup;
    struct arena scratch = {0};
    uint32_t *first, *gangs;
    enum status status = list_gangs(g, &scratch, &first, &gangs, err);
    for (uint32_t d = 0; status == STATUS_OK && d < s->plan->hardware.device_count; d++) {
        sim_refinement_node(g->refinement);
        label(g, LABEL_DEVICE);
        label(g, g->alone[d] || first[d] == first[d + 1] ? 1 + d : 0);
        label(g, s->hardware->devices[d].type);
        label_seconds(g, s->slow ? s->slow[d] : 1);
        for (uint32_t i = first[d]; i < first[d + 1]; i++) label(g, gangs[i]);
    }
    arena_release(&scratch);
    return status;
}

/* --- copies between devices ------------------------------------------------------------------ */

static int compare_pairs(const void *left, const void *right)
{
    const struct symmetry_pair *a = left, *b = right;
    if (a->to != b->to) return a->to < b->to ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    if (a->gang != b->gang) return a->gang < b->gang ? -1 : 1;
    return (a->peer_gang > b->peer_gang) - (a->peer_gang < b->peer_gang);
}

/* Fills g->pairs; if it is NULL, only counts. */
static void list_pairs(struct symmetry_graph *g)
{
    const struct plan *plan = g->setup->plan;
    g->pair_count = 0;
    for (size_t i = 0; i < g->gang_pair_count; i++) {
        uint32_t gang = (uint32_t)(g->gang_pairs[i] >> 32), peer = (uint32_t)g->gang_pairs[i];
        for (uint32_t k = 0; k < plan_gang_size(&plan->gangs[gang]); k++, g->pair_count++)
            if (g->pairs)
                g->pairs[g->pair_count] = (struct symmetry_pair){
                    .to = plan->gang_devices[plan->gangs[gang].first + k],
                    .from = plan->gang_devices[plan->gangs[peer].first + k],
                    .gang = gang, .peer_gang = peer, .place = k};
    }
    for (size_t i = 0; i < g->device_pair_count; i++, g->pair_count++)
        if (g->pairs)
            g->pairs[g->pair_count] = (struct symmetry_pair){
                .to = (uint32_t)(g->device_pairs[i] >> 32), .from = (uint32_t)g->device_pairs[i],
                .gang = PLAN_NONE, .peer_gang = PLAN_NONE};
}

static enum status add_crossing(struct symmetry_graph *g, struct symmetry_crossing crossing, struct error *err)
{
    enum status status = array_reserve(&g->crossings, &g->crossing_capacity, g->crossing_count, sizeof crossing,
                                       LIST_MAX, "crossings of links", err);
    if (status == STATUS_OK) g->crossings[g->crossing_count++] = crossing;
    return status;
}

static bool crosses_before(const struct hardware *hardware, const struct p2p_route *route, uint32_t hop)
{
    for (uint32_t h = 0; h < hop; h++)
        if (hardware_route_link_dir(hardware, route, h) == hardware_route_link_dir(hardware, route, hop)) return true;
    return false;
}

static enum status add_pair(struct symmetry_graph *g, const struct symmetry_pair *pair, struct error *err)
{
    const struct hardware *hardware = g->setup->hardware;
    const struct p2p_route route = hardware_p2p_route(hardware, pair->from, pair->to);
    const uint64_t series = (uint64_t)pair->gang << 32 | pair->peer_gang;
    enum status status = STATUS_OK;
    label(g, LABEL_PAIR);
    label_seconds(g, cost_p2p_latency_s(hardware, pair->from, pair->to));
    label_seconds(g, cost_p2p_bandwidth(hardware, pair->from, pair->to));
    label(g, route.innermost);
    label(g, route.staged);
    sim_refinement_edge(g->refinement, pair->node, pair->to, ROLE_TO, ROLE_PAIR_TO);
    sim_refinement_edge(g->refinement, pair->node, pair->from, ROLE_FROM, ROLE_PAIR_FROM);
    for (uint32_t h = 0; status == STATUS_OK && h < route.up_count + route.down_count; h++) {
        if (crosses_before(hardware, &route, h)) continue;
        status = add_crossing(g, (struct symmetry_crossing){.link = route.links[h], .direction = h < route.up_count,
                                                            .hop = h, .series = series, .place = pair->place,
                                                            .node = pair->node,
                                                            .weight = hardware_route_crossings(hardware, &route, h)},
                                                            err);
    }
    return status;
}

/* *possible: false if a copy has no route; the simulation will refuse it. */
static enum status add_pairs(struct symmetry_graph *g, bool *possible, struct error *err)
{
    enum status status = STATUS_OK;
    list_pairs(g);
    g->pairs = sim_allocate(g->arena, g->pair_count, sizeof *g->pairs, &status, err);
    if (status != STATUS_OK) return status;
    list_pairs(g);
    if (g->pair_count > 1) qsort(g->pairs, g->pair_count, sizeof *g->pairs, compare_pairs);
    for (uint32_t i = 0; status == STATUS_OK && i < g->pair_count; i++) {
        struct symmetry_pair *pair = &g->pairs[i];
        const struct symmetry_pair *before = i > 0 ? &g->pairs[i - 1] : NULL;
        *possible = *possible && hardware_reaches(g->setup->hardware, pair->from, pair->to);
        if (!*possible) return STATUS_OK;
        bool again = before && before->to == pair->to && before->from == pair->from;
        pair->node = again ? before->node : sim_refinement_node(g->refinement);
        if (!again) status = add_pair(g, pair, err);
        label(g, pair->gang);
        label(g, pair->peer_gang);
    }
    return status;
}

/* --- collectives ----------------------------------------------------------------------------- */

static void label_group(struct symmetry_graph *g, const struct collective_group *group)
{
    const struct collective_level *levels[] = {&group->inner, &group->outer, &group->alone};
    for (uint32_t l = 0; l < 3; l++) {
        label(g, levels[l]->members);
        label_seconds(g, levels[l]->latency_s);
        label_seconds(g, levels[l]->bytes_per_s);
        label(g, (uintptr_t)levels[l]->points);
    }
    label(g, (uintptr_t)group->measured);
}

static void add_group(struct symmetry_graph *g, uint32_t gang, uint32_t axes, uint32_t group, const uint32_t *devices,
                      uint32_t members)
{
    uint32_t node = g->group_nodes[group] = sim_refinement_node(g->refinement);
    label(g, LABEL_GROUP);
    label(g, gang);
    label(g, axes);
    label_group(g, sim_collectives_at(g->setup->collectives, group));
    if (g->setup->flows) label_group(g, sim_collective_flows_alone(g->setup->flows, group));
    for (uint32_t i = 0; i < members; i++)
        sim_refinement_edge(g->refinement, node, devices[i], ROLE_MEMBER, ROLE_GROUP);
}

static enum status add_groups(struct symmetry_graph *g, struct error *err)
{
    const struct plan *plan = g->setup->plan;
    enum status status = STATUS_OK;
    uint32_t count = sim_collectives_group_count(g->setup->collectives);
    g->group_nodes = sim_allocate(g->arena, count, sizeof *g->group_nodes, &status, err);
    uint32_t *devices = sim_allocate(g->arena, plan->hardware.device_count, sizeof *devices, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t i = 0; i < count; i++) g->group_nodes[i] = PLAN_NONE;
    for (uint32_t i = 0; i < plan->gang_count; i++)
        for (uint32_t axes = 1; axes < AXES_SETS; axes++) {
            if (!(g->axes_used[i] & 1u << axes)) continue;
            uint32_t members = plan_gang_group_size(&plan->gangs[i], axes);
            sim_collectives_devices(plan, i, axes, devices);
            for (uint32_t k = 0; k < plan_gang_size(&plan->gangs[i]) / members; k++)
                add_group(g, i, axes, sim_collectives_group(g->setup->collectives, i, axes, k), devices + k * members,
                          members);
        }
    return STATUS_OK;
}

/* A flow of a collective over its links; by number of the path. */
struct symmetry_graph_joint {
    uint64_t series;
    uint32_t node, place;
};

static void add_joint(struct symmetry_graph *g, uint32_t group, uint32_t stream, enum collective_way way,
                      struct symmetry_graph_joint *joints)
{
    uint32_t number;
    const struct sim_path *path = sim_collective_flows_path(g->setup->flows, group, stream, way, &number);
    if (!path || g->group_nodes[group] == PLAN_NONE) return;
    uint32_t node = sim_refinement_node(g->refinement);
    joints[number] = (struct symmetry_graph_joint){~(uint64_t)(stream * COLLECTIVE_WAY_COUNT + way), node, group};
    label(g, LABEL_JOINT);
    label(g, stream);
    label(g, way);
    label_seconds(g, path->cap_bytes_per_s);
    sim_refinement_edge(g->refinement, node, g->group_nodes[group], ROLE_GROUP, ROLE_JOINT);
}

static enum status add_joints(struct symmetry_graph *g, struct error *err)
{
    const struct sim_collective_flows *flows = g->setup->flows;
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t count = sim_collective_flows_path_count(flows);
    struct symmetry_graph_joint *joints = sim_allocate(&scratch, count, sizeof *joints, &status, err);
    struct sim_path *paths = sim_allocate(&scratch, count, sizeof *paths, &status, err);
    for (uint32_t i = 0; status == STATUS_OK && count > 0 && i < sim_collectives_group_count(g->setup->collectives);
         i++)
        for (uint32_t s = 0; s < STREAM_HOST; s++)
            for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++) add_joint(g, i, s, w, joints);
    if (status == STATUS_OK) sim_collective_flows_paths(flows, 0, paths);
    for (uint32_t p = 0; status == STATUS_OK && p < count; p++)
        for (uint32_t i = 0; status == STATUS_OK && i < paths[p].hop_count; i++) {
            const struct sim_crossing *at = &paths[p].crossings[i];
            status = add_crossing(g, (struct symmetry_crossing){.link = at->hop.link, .direction = at->hop.direction,
                                                                .series = joints[p].series, .place = joints[p].place,
                                                                .node = joints[p].node, .weight = at->weight}, err);
        }
    arena_release(&scratch);
    return status;
}

/* --- links ----------------------------------------------------------------------------------- */

static enum status add_hosts(struct symmetry_graph *g, struct error *err)
{
    const struct hardware *hardware = g->setup->hardware;
    enum status status = STATUS_OK;
    bool *copies = sim_allocate(g->arena, hardware->device_count, sizeof *copies, &status, err);
    if (status == STATUS_OK) sim_machine_host_copies(g->setup->plan, copies);
    for (uint32_t p = 0; status == STATUS_OK && p < 2 * hardware->device_count; p++) {
        const struct hardware_device *device = &hardware->devices[p / 2];
        if (!copies[p / 2]) continue;
        uint32_t node = sim_refinement_node(g->refinement);
        label(g, LABEL_HOST);
        label(g, p);
        for (uint32_t h = 0; status == STATUS_OK && h < device->path_count; h++)
            status = add_crossing(g, (struct symmetry_crossing){.link = device->path[h], .direction = p % 2, .hop = h,
                                                                .series = ~(uint64_t)0, .node = node, .weight = 1},
                                                                err);
    }
    return status;
}

/* Returns true if the i-th crossing's place is after the previous crossing's of its series. Flows that begin at one
 * time do so in this order. */
static bool behind_its_like(const struct symmetry_crossing *crossings, uint32_t i)
{
    for (uint32_t k = i; k > 0; k--)
        if (crossings[k - 1].series == crossings[i].series) return crossings[k - 1].place < crossings[i].place;
    return false;
}

static void add_link(struct symmetry_graph *g, const struct symmetry_crossing *crossings, uint32_t count)
{
    const struct hardware_link *link = &g->setup->hardware->links[crossings->link];
    uint32_t node = g->link_nodes[crossings->link] = sim_refinement_node(g->refinement);
    label(g, LABEL_LINK);
    label(g, link->duplex);
    label_seconds(g, link->bandwidth.value);
    for (uint32_t i = 0; i < count; i++) {
        const struct symmetry_crossing *at = &crossings[i];
        label(g, at->direction);
        label(g, at->hop);
        label(g, behind_its_like(crossings, i));
        label_seconds(g, at->weight);
        sim_refinement_edge(g->refinement, node, at->node, ROLE_FIRST + i, ROLE_FIRST + 2 * at->hop + at->direction);
    }
}

/* Sorts crossings by link, and within a link in the order of paths: the first `paths` of them come after the others,
 * which are routes to host memory. */
static enum status sort_crossings(struct symmetry_graph *g, size_t paths, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t links = g->setup->hardware->link_count;
    struct symmetry_crossing *sorted = sim_allocate(g->arena, g->crossing_count, sizeof *sorted, &status, err);
    size_t *ends = sim_allocate(g->arena, links + (size_t)1, sizeof *ends, &status, err);
    if (status != STATUS_OK) return status;
    for (size_t i = 0; i < g->crossing_count; i++) ends[g->crossings[i].link + 1]++;
    for (uint32_t l = 0; l < links; l++) ends[l + 1] += ends[l];
    for (size_t i = paths; i < g->crossing_count; i++) sorted[ends[g->crossings[i].link]++] = g->crossings[i];
    for (size_t i = 0; i < paths; i++) sorted[ends[g->crossings[i].link]++] = g->crossings[i];
    free(g->crossings);
    g->crossing_capacity = 0;
    g->crossings = sorted;
    return STATUS_OK;
}

static enum status add_links(struct symmetry_graph *g, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t links = g->setup->hardware->link_count;
    size_t paths = g->crossing_count;
    g->link_nodes = sim_allocate(g->arena, links, sizeof *g->link_nodes, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t l = 0; l < links; l++) g->link_nodes[l] = PLAN_NONE;
    status = add_hosts(g, err);
    if (status == STATUS_OK) status = sort_crossings(g, paths, err);
    for (size_t begin = 0, end; status == STATUS_OK && begin < g->crossing_count; begin = end) {
        for (end = begin + 1; end < g->crossing_count && g->crossings[end].link == g->crossings[begin].link;) end++;
        add_link(g, g->crossings + begin, (uint32_t)(end - begin));
    }
    return status;
}

/* --- public ---------------------------------------------------------------------------------- */

enum status symmetry_graph_make(struct arena *arena, const struct sim_symmetry_setup *setup, struct symmetry_graph *out,
                                bool *possible, struct error *err)
{
    const struct plan *plan = setup->plan;
    enum status status = STATUS_OK;
    struct symmetry_graph *g = out;
    *g = (struct symmetry_graph){.setup = setup, .arena = arena};
    *possible = plan->gang_count > 0 && plan->after_count == 0 && plan->choice_count == 0 &&
                !interferes(setup->hardware);
    if (!*possible) return STATUS_OK;
    g->alone = sim_allocate(arena, plan->hardware.device_count, sizeof *g->alone, &status, err);
    g->axes_used = sim_allocate(arena, plan->gang_count, sizeof *g->axes_used, &status, err);
    if (status != STATUS_OK) return status;
    g->refinement = sim_refinement_create();
    if (!g->refinement) return error_memory(err, "finding out which devices do the same", 0);
    status = note_tasks(g, err);
    if (status == STATUS_OK) status = add_devices(g, err);
    if (status == STATUS_OK) status = add_pairs(g, possible, err);
    if (status != STATUS_OK || !*possible) return status;
    TRY(add_groups(g, err));
    TRY(add_joints(g, err));
    return add_links(g, err);
}

void symmetry_graph_release(struct symmetry_graph *graph)
{
    sim_refinement_destroy(graph->refinement);
    free(graph->gang_pairs);
    free(graph->device_pairs);
    if (graph->crossing_capacity > 0) free(graph->crossings); /* otherwise owned by the arena */
}
