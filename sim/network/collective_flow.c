/*
 * A ring always has one message on each edge, all with the slowest edge's rate. So it is one flow, which uses a link
 * direction by its rate times its messages there:
 *
 *     nodes of 2, one NIC each   0 - 1 | NIC ====== NIC | 2 - 3
 *     ring 0 1 2 3               once up and once down each NIC, once each device's link
 *     rings {0, 2} and {1, 3}    two flows, which share the NICs as in the closed form
 *
 * Volume and latency give a flow without other traffic its group's closed form: it has its slowest level's bandwidth,
 * and a part's time without latencies is its transfer. Latencies come first, as for copies.
 *
 *     volume = transfer_s * bandwidth of the level      latency = seconds - transfer_s
 *
 * If all groups of a gang begin together on equal link directions, fair sharing gives each the closed form's share. If
 * they drift apart or differ in link directions, flows are faster, because the closed form assumes that they always
 * coincide. Collectives between all pairs (all-to-all, halving) on several nodes are faster too: in the closed form
 * each step is as slow as between nodes, but some messages stay in a node.
 *
 * Source: flows in place of chunks as in SimGrid's flow model (Velho, Schnorr, Casanova and Legrand, ACM TOMACS 23(4),
 * 2013).
 */
#include "sim/network/collective_flow.h"

#include <math.h>
#include <stdlib.h>

#include "base/size.h"
#include "base/try.h"
#include "planner/plan_gang.h"
#include "sim/engine/allocate.h"

const char *const sim_collectives_by_names[] = {
    [SIM_COLLECTIVES_CLOSED] = "closed", [SIM_COLLECTIVES_AUTO] = "auto", [SIM_COLLECTIVES_FLOWS] = "flows", NULL};
static_assert(ARRAY_COUNT(sim_collectives_by_names) == SIM_COLLECTIVES_BY_COUNT + 1, "a name each");

/* A group's collectives on a kind of stream. */
struct collective_flow_joint {
    uint32_t paths[COLLECTIVE_WAY_COUNT]; /* PLAN_NONE: no collective in this direction */
};

struct sim_collective_flows {
    struct arena *arena;
    const struct plan *plan;
    const struct hardware *hardware;
    const struct sim_collectives *collectives;
    struct collective_group *alone;                      /* by group: its levels while it is active by itself */
    struct collective_flow_joint (*joints)[STREAM_HOST]; /* by group, then stream */
    struct sim_path *paths;
    uint32_t path_count;
};

/* --- visiting all collectives -------------------------------------------------------------------- */

typedef enum status (*visitor)(void *context, uint32_t gang, const struct plan_unit *unit, const struct plan_op *op,
                             struct error *err);

/* By unit, then gang: number of the last visit. */
struct collective_seen {
    uint8_t *rounds;
    uint8_t round;
};

/* Visits each unit's collectives, once per gang. */
static enum status each_collective(const struct plan *plan, struct collective_seen *seen, visitor visit, void *context,
                                   struct error *err)
{
    seen->round++;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        if (task->gang == PLAN_NONE) continue;
        uint8_t *round = &seen->rounds[(size_t)task->unit * plan->gang_count + task->gang];
        if (*round == seen->round) continue;
        *round = seen->round;
        const struct plan_unit *unit = &plan->units[task->unit];
        for (uint32_t o = 0; o < unit->op_count; o++) {
            const struct plan_op *op = &plan->ops[unit->first_op + o];
            if (op->kind != OP_COLLECTIVE) continue;
            TRY(visit(context, task->gang, unit, op, err));
        }
    }
    return STATUS_OK;
}

static uint32_t group_count(const struct plan *plan, uint32_t gang, uint32_t axes)
{
    return plan_gang_size(&plan->gangs[gang]) / plan_gang_group_size(&plan->gangs[gang], axes);
}

static uint32_t parts_of(const struct sim_collective_flows *f, uint32_t group, uint32_t job,
                         const struct plan_op *op, struct collective_part parts[COLLECTIVE_PARTS_MAX])
{
    enum collective_algorithm algorithm = sim_collectives_algorithm(f->collectives, group, job, op);
    return collective_parts(op->collective, algorithm, &f->alone[group], op->bytes, parts);
}

/* --- paths ----------------------------------------------------------------------------------- */

struct making {
    struct sim_collective_flows *flows;
    struct arena *arena;
    struct collective_finder finder;
    struct collective_link_dir *link_dirs; /* scratch, like devices */
    uint32_t *devices;
    uint32_t room;                 /* room in flows->paths; 0: only count */
};

static enum status fill_path(struct making *m, uint32_t group, const uint32_t *devices, uint32_t members,
                             enum collective_way way, struct sim_path *path, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t count = collective_group_link_dirs(&m->finder, devices, members, way, m->link_dirs);
    struct sim_crossing *crossings = sim_allocate(m->arena, count, sizeof *crossings, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t i = 0; i < count; i++)
        crossings[i] =
            (struct sim_crossing){{m->link_dirs[i].link, m->link_dirs[i].direction}, m->link_dirs[i].messages};
    *path = (struct sim_path){.crossings = crossings,
                              .hop_count = count,
                              .flow_limit = 1,
                              .cap_bytes_per_s = collective_way_bytes_per_s(&m->flows->alone[group], way)};
    return STATUS_OK;
}

/* Adds paths that the gang's groups lack. */
static enum status add_paths(void *context, uint32_t gang, const struct plan_unit *unit, const struct plan_op *op,
                             struct error *err)
{
    struct making *m = context;
    struct sim_collective_flows *f = m->flows;
    uint32_t members = plan_gang_group_size(&f->plan->gangs[gang], op->axes);
    sim_collectives_devices(f->plan, gang, op->axes, m->devices);
    for (uint32_t g = 0; g < group_count(f->plan, gang, op->axes); g++) {
        struct collective_part parts[COLLECTIVE_PARTS_MAX];
        uint32_t group = sim_collectives_group(f->collectives, gang, op->axes, g);
        uint32_t count = parts_of(f, group, unit->job, op, parts);
        for (uint32_t i = 0; i < count; i++) {
            uint32_t *path = &f->joints[group][op->stream].paths[parts[i].way];
            if (*path != PLAN_NONE) continue;
            *path = f->path_count++;
            if (m->room == 0) continue;
            TRY(fill_path(m, group, m->devices + (size_t)g * members, members, parts[i].way,
                                           &f->paths[*path], err));
        }
    }
    return STATUS_OK;
}

static void clear_joints(struct sim_collective_flows *f)
{
    f->path_count = 0;
    for (uint32_t g = 0; g < sim_collectives_group_count(f->collectives); g++)
        for (uint32_t s = 0; s < STREAM_HOST; s++)
            for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++) f->joints[g][s].paths[w] = PLAN_NONE;
}

/* Finds the levels of all groups by themselves, which are connected. */
static void find_alone(struct making *m, uint32_t gang, uint32_t axes)
{
    struct sim_collective_flows *f = m->flows;
    uint32_t members = plan_gang_group_size(&f->plan->gangs[gang], axes), lacking[2];
    sim_collectives_devices(f->plan, gang, axes, m->devices);
    for (uint32_t g = 0; g < group_count(f->plan, gang, axes); g++) {
        uint32_t group = sim_collectives_group(f->collectives, gang, axes, g);
        bool found = collective_groups_find(&m->finder, m->devices + (size_t)g * members, members, 1,
                                            &f->alone[group], lacking);
        assert(found);
    }
}

static enum status find_group(void *context, uint32_t gang, const struct plan_unit *unit, const struct plan_op *op,
                              struct error *err)
{
    (void)unit;
    (void)err;
    struct making *m = context;
    uint32_t first = sim_collectives_group(m->flows->collectives, gang, op->axes, 0);
    if (m->flows->alone[first].inner.members == 0) find_alone(m, gang, op->axes);
    return STATUS_OK;
}

static enum status make_paths(struct making *m, struct arena *scratch, struct collective_seen *seen, struct error *err)
{
    struct sim_collective_flows *f = m->flows;
    enum status status = collective_finder_init(scratch, f->hardware, &m->finder, err);
    m->link_dirs = sim_allocate(scratch, 2 * (size_t)f->hardware->link_count, sizeof *m->link_dirs, &status, err);
    m->devices = sim_allocate(scratch, f->hardware->device_count, sizeof *m->devices, &status, err);
    if (status == STATUS_OK) status = each_collective(f->plan, seen, find_group, m, err);
    if (status != STATUS_OK) return status;
    clear_joints(f);
    status = each_collective(f->plan, seen, add_paths, m, err); /* counts */
    m->room = f->path_count;
    f->paths = sim_allocate(m->arena, m->room, sizeof *f->paths, &status, err);
    clear_joints(f);
    return status == STATUS_OK && m->room > 0 ? each_collective(f->plan, seen, add_paths, m, err) : status;
}

/* --- other traffic ------------------------------------------------------------------------------- */

/* Users of a link direction: none, a *party* (all groups of a gang, axes and stream, or all copies), or several. */
enum { PARTY_NONE, PARTY_COPIES, PARTY_SEVERAL, PARTY_FIRST };

struct company {
    struct sim_collective_flows *flows;
    uint32_t *link_dirs;    /* by link direction */
    bool *copies_in, *copies_out; /* by device: marked */
};

static void meet(struct company *c, uint32_t link_dir, uint32_t party)
{
    c->link_dirs[link_dir] =
        c->link_dirs[link_dir] == PARTY_NONE || c->link_dirs[link_dir] == party ? party : PARTY_SEVERAL;
}

static uint32_t party_of(uint32_t gang, const struct plan_op *op)
{
    return PARTY_FIRST + (gang * (1u << AXIS_COUNT) + op->axes) * STREAM_HOST + op->stream;
}

static uint32_t crossing_link_dir(const struct sim_crossing *crossing)
{
    return 2 * crossing->hop.link + crossing->hop.direction;
}

static enum status mark_collective(void *context, uint32_t gang, const struct plan_unit *unit,
                                   const struct plan_op *op, struct error *err)
{
    (void)unit;
    (void)err;
    struct company *c = context;
    const struct sim_collective_flows *f = c->flows;
    for (uint32_t g = 0; g < group_count(f->plan, gang, op->axes); g++) {
        const struct collective_flow_joint *joint =
            &f->joints[sim_collectives_group(f->collectives, gang, op->axes, g)][op->stream];
        for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++) {
            if (joint->paths[w] == PLAN_NONE) continue;
            const struct sim_path *path = &f->paths[joint->paths[w]];
            for (uint32_t i = 0; i < path->hop_count; i++)
                meet(c, crossing_link_dir(&path->crossings[i]), party_of(gang, op));
        }
    }
    return STATUS_OK;
}

static void mark_host_copies(struct company *c, uint32_t device, uint32_t direction)
{
    bool *marked = direction == 0 ? &c->copies_in[device] : &c->copies_out[device];
    const struct hardware *hardware = c->flows->hardware;
    const struct hardware_device *of = &hardware->devices[device];
    for (uint32_t h = 0; h < of->path_count && !*marked; h++)
        meet(c, 2 * of->path[h] + (hardware->links[of->path[h]].duplex ? direction : 0), PARTY_COPIES);
    *marked = true;
}

static void mark_p2p_copy(struct company *c, uint32_t device, uint32_t peer)
{
    const struct hardware *hardware = c->flows->hardware;
    if (!hardware_reaches(hardware, peer, device)) return; /* no route; the simulation will refuse the copy */
    const struct p2p_route route = hardware_p2p_route(hardware, peer, device);
    for (uint32_t h = 0; h < route.up_count + route.down_count; h++)
        meet(c, hardware_route_link_dir(hardware, &route, h), PARTY_COPIES);
}

/* Includes single devices. `peers`: by gang. */
static void mark_copies(struct company *c, struct plan_gang_peers *peers)
{
    const struct plan *plan = c->flows->plan;
    for (uint32_t g = 0; g < plan->gang_count; g++) peers[g] = PLAN_GANG_NO_PEERS;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        const struct plan_unit *unit = &plan->units[task->unit];
        const struct plan_gang *gang = task->gang == PLAN_NONE ? NULL : &plan->gangs[task->gang];
        const uint32_t *devices = gang ? plan->gang_devices + gang->first : &task->device;
        uint32_t size = gang ? plan_gang_size(gang) : 1;
        for (uint32_t o = 0; o < unit->op_count; o++) {
            uint32_t stream = plan->ops[unit->first_op + o].stream;
            if (stream != STREAM_H2D && stream != STREAM_D2H) continue;
            for (uint32_t d = 0; d < size; d++) mark_host_copies(c, devices[d], stream == STREAM_D2H);
        }
        if (task->peer == PLAN_NONE) continue;
        if (gang && plan_gang_peers_note(&peers[task->gang], task->peer)) continue;
        const uint32_t *from = gang ? plan->gang_devices + plan->gangs[task->peer].first : &task->peer;
        for (uint32_t d = 0; d < size; d++) mark_p2p_copy(c, devices[d], from[d]);
    }
}

static bool meets_others(const struct company *c, const struct collective_flow_joint *joint)
{
    for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++) {
        if (joint->paths[w] == PLAN_NONE) continue;
        const struct sim_path *path = &c->flows->paths[joint->paths[w]];
        for (uint32_t i = 0; i < path->hop_count; i++)
            if (c->link_dirs[crossing_link_dir(&path->crossings[i])] == PARTY_SEVERAL) return true;
    }
    return false;
}

static enum status drop_lonely(void *context, uint32_t gang, const struct plan_unit *unit,
                               const struct plan_op *op, struct error *err)
{
    (void)unit;
    (void)err;
    struct company *c = context;
    const struct sim_collective_flows *f = c->flows;
    bool meets = false;
    uint32_t count = group_count(f->plan, gang, op->axes);
    uint32_t first = sim_collectives_group(f->collectives, gang, op->axes, 0);
    for (uint32_t g = 0; g < count && !meets; g++) meets = meets_others(c, &f->joints[first + g][op->stream]);
    for (uint32_t g = 0; g < count && !meets; g++)
        for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++)
            f->joints[first + g][op->stream].paths[w] = PLAN_NONE;
    return STATUS_OK;
}

static void compact(struct sim_collective_flows *f, uint32_t *numbers)
{
    uint32_t kept = 0;
    for (uint32_t p = 0; p < f->path_count; p++) numbers[p] = PLAN_NONE;
    for (uint32_t g = 0; g < sim_collectives_group_count(f->collectives); g++)
        for (uint32_t s = 0; s < STREAM_HOST; s++)
            for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++)
                if (f->joints[g][s].paths[w] != PLAN_NONE) numbers[f->joints[g][s].paths[w]] = 0;
    for (uint32_t p = 0; p < f->path_count; p++) {
        if (numbers[p] == PLAN_NONE) continue;
        f->paths[kept] = f->paths[p];
        numbers[p] = kept++;
    }
    for (uint32_t g = 0; g < sim_collectives_group_count(f->collectives); g++)
        for (uint32_t s = 0; s < STREAM_HOST; s++)
            for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++) {
                uint32_t *path = &f->joints[g][s].paths[w];
                if (*path != PLAN_NONE) *path = numbers[*path];
            }
    f->path_count = kept;
}

static enum status keep_company(struct sim_collective_flows *f, struct arena *scratch, struct collective_seen *seen,
                                struct error *err)
{
    enum status status = STATUS_OK;
    struct company c = {.flows = f};
    c.link_dirs = sim_allocate(scratch, 2 * (size_t)f->hardware->link_count, sizeof *c.link_dirs, &status, err);
    c.copies_in = sim_allocate(scratch, f->hardware->device_count, sizeof *c.copies_in, &status, err);
    c.copies_out = sim_allocate(scratch, f->hardware->device_count, sizeof *c.copies_out, &status, err);
    struct plan_gang_peers *peers = sim_allocate(scratch, f->plan->gang_count, sizeof *peers, &status, err);
    uint32_t *numbers = sim_allocate(scratch, f->path_count, sizeof *numbers, &status, err);
    if (status != STATUS_OK) return status;
    mark_copies(&c, peers);
    status = each_collective(f->plan, seen, mark_collective, &c, err);
    if (status == STATUS_OK) status = each_collective(f->plan, seen, drop_lonely, &c, err);
    if (status == STATUS_OK) compact(f, numbers);
    return status;
}

/* --- folding --------------------------------------------------------------------------------- */

static int compare_crossings(const void *left, const void *right)
{
    uint32_t a = crossing_link_dir(left), b = crossing_link_dir(right);
    return (a > b) - (a < b);
}

/* Sorts link directions without duplicates, which have equal weights. */
enum status sim_collective_flows_fold_path(struct arena *arena, const uint32_t *link_for, struct sim_path *path,
                                           struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t kept = 0;
    struct sim_crossing *crossings = sim_allocate(arena, path->hop_count, sizeof *crossings, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t i = 0; i < path->hop_count; i++) {
        crossings[i] = path->crossings[i];
        crossings[i].hop.link = link_for[crossings[i].hop.link];
    }
    if (path->hop_count > 1) qsort(crossings, path->hop_count, sizeof *crossings, compare_crossings);
    for (uint32_t i = 0; i < path->hop_count; i++)
        if (kept == 0 || compare_crossings(&crossings[kept - 1], &crossings[i]) != 0) crossings[kept++] = crossings[i];
    path->crossings = crossings;
    path->hop_count = kept;
    return STATUS_OK;
}

enum status sim_collective_flows_fold(struct sim_collective_flows *f, const bool *kept, const uint32_t *link_for,
                                      struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t *numbers = sim_allocate(&scratch, f->path_count, sizeof *numbers, &status, err);
    for (uint32_t g = 0; status == STATUS_OK && g < sim_collectives_group_count(f->collectives); g++)
        for (uint32_t s = 0; !kept[g] && s < STREAM_HOST; s++)
            for (uint32_t w = 0; w < COLLECTIVE_WAY_COUNT; w++) f->joints[g][s].paths[w] = PLAN_NONE;
    if (status == STATUS_OK) compact(f, numbers);
    for (uint32_t p = 0; p < f->path_count && status == STATUS_OK; p++)
        status = sim_collective_flows_fold_path(f->arena, link_for, &f->paths[p], err);
    arena_release(&scratch);
    return status;
}

/* --- public ---------------------------------------------------------------------------------- */

const struct sim_path *sim_collective_flows_path(const struct sim_collective_flows *flows, uint32_t group,
                                                 uint32_t stream, enum collective_way way, uint32_t *number)
{
    *number = flows->joints[group][stream].paths[way];
    return *number == PLAN_NONE ? NULL : &flows->paths[*number];
}

const struct collective_group *sim_collective_flows_alone(const struct sim_collective_flows *flows, uint32_t group)
{
    return &flows->alone[group];
}

enum status sim_collective_flows_create(struct arena *arena, const struct plan *plan,
                                        const struct hardware *hardware,
                                        const struct sim_collectives *collectives, enum sim_collectives_by by,
                                        struct sim_collective_flows **out, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    *out = NULL;
    if (by == SIM_COLLECTIVES_CLOSED) return STATUS_OK;
    uint32_t groups = sim_collectives_group_count(collectives);
    struct sim_collective_flows *f = sim_allocate(arena, 1, sizeof *f, &status, err);
    if (status != STATUS_OK) return status;
    *f = (struct sim_collective_flows){
        .arena = arena, .plan = plan, .hardware = hardware, .collectives = collectives};
    f->alone = sim_allocate(arena, groups, sizeof *f->alone, &status, err);
    f->joints = sim_allocate(arena, groups, sizeof *f->joints, &status, err);
    struct collective_seen seen = {.rounds = NULL};
    seen.rounds = sim_allocate(&scratch, (size_t)plan->unit_count * plan->gang_count, 1, &status, err);
    struct making making = {.flows = f, .arena = arena};
    if (status == STATUS_OK) status = make_paths(&making, &scratch, &seen, err);
    if (status == STATUS_OK && by == SIM_COLLECTIVES_AUTO) status = keep_company(f, &scratch, &seen, err);
    if (status == STATUS_OK && f->path_count > 0) *out = f;
    arena_release(&scratch);
    return status;
}

uint32_t sim_collective_flows_path_count(const struct sim_collective_flows *flows)
{
    return flows ? flows->path_count : 0;
}

void sim_collective_flows_paths(const struct sim_collective_flows *flows, uint32_t first_group,
                                struct sim_path *paths)
{
    for (uint32_t p = 0; p < sim_collective_flows_path_count(flows); p++) {
        paths[p] = flows->paths[p];
        paths[p].group = first_group + p;
    }
}

bool sim_collective_flows_part(const struct sim_collective_flows *flows, uint32_t group, uint32_t job,
                               const struct plan_op *op, uint32_t part, struct sim_collective_part *out)
{
    struct collective_part parts[COLLECTIVE_PARTS_MAX];
    if (!flows || part >= parts_of(flows, group, job, op, parts)) return false;
    uint32_t path = flows->joints[group][op->stream].paths[parts[part].way];
    if (path == PLAN_NONE) return false;
    double transfer_s = op->rounds * parts[part].transfer_s;
    *out = (struct sim_collective_part){
        .latency_s = fmax(0, op->rounds * parts[part].seconds - transfer_s),
        .volume = transfer_s * flows->paths[path].cap_bytes_per_s,
        .bytes = (uint64_t)(op->rounds * parts[part].sent_bytes),
        .path = path,
    };
    return true;
}
