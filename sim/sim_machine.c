/*
 * A simulation's links, and its paths: for each direction of a device's copies, for reading and writing storage, and
 * for each pair of devices with copies.
 *
 *     0 .. 2 D - 1   to device d: 2 d; back: 2 d + 1
 *     2 D, 2 D + 1   from storage, to storage; host by host; only on machines with storage
 *     then           the pairs, by device, then peer
 *     then           to device d again, for copies that are not on demand; only if priorities matter
 *     then           collectives that are flows (collective_flow.h); computations are not affected by them
 */
#include "base/try.h"
#include "sim/sim_state.h"

#include <inttypes.h>
#include <stdlib.h>

#include "models/cost/cost.h"
#include "planner/plan_gang.h"
#include "sim/engine/allocate.h"
#include "sim/network/machine.h"

/* --- pairs of devices ----------------------------------------------------------------------- */

static int compare_pairs(const void *left, const void *right)
{
    const struct sim_pair *a = left, *b = right;
    if (a->device != b->device) return a->device < b->device ? -1 : 1;
    return a->peer < b->peer ? -1 : a->peer > b->peer;
}

/* Sorts and removes duplicates. Returns the number of pairs. */
static uint32_t merge_pairs(struct sim_pair *pairs, uint32_t count)
{
    uint32_t kept = 0;
    qsort(pairs, count, sizeof *pairs, compare_pairs);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || compare_pairs(&pairs[kept - 1], &pairs[i]) != 0) pairs[kept++] = pairs[i];
    return kept;
}

/* Returns both devices, or their representatives. */
static struct sim_pair pair_of(const struct plan *plan, const struct plan_task *task,
                               const struct plan_walk_member *member)
{
    struct sim_pair pair = {.device = member->device, .peer = member->peer, .route_device = member->device,
                            .route_peer = member->peer};
    if (task->gang == PLAN_NONE) return pair;
    pair.route_device = plan->gang_devices[plan->gangs[task->gang].first + member->place];
    pair.route_peer = plan->gang_devices[plan->gangs[task->peer].first + member->place];
    return pair;
}

/* Lists the pairs of the plan's copies in pairs[room], with repetitions; NULL: only counts. `peers` remembers the last
 * two peers of each device, then of each gang. */
static uint32_t list_pairs(const struct sim *sim, struct plan_gang_peers *peers, struct sim_pair *pairs)
{
    static const struct plan_op fetch = {.kind = OP_COPY, .stream = STREAM_P2P};
    const struct plan *plan = sim->plan;
    uint32_t count = 0;
    struct plan_gang_peers *gang_peers = peers + plan->hardware.device_count;
    for (uint32_t p = 0; p < plan->hardware.device_count + plan->gang_count; p++) peers[p] = PLAN_GANG_NO_PEERS;
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        if (task->peer == PLAN_NONE) continue;
        if (task->gang != PLAN_NONE && plan_gang_peers_note(&gang_peers[task->gang], task->peer)) continue;
        for (uint32_t m = 0; m < plan_walk_members(sim->walk, task, &fetch); m++) {
            struct plan_walk_member member = plan_walk_member(sim->walk, task, &fetch, m);
            if (plan_gang_peers_note(&peers[member.device], member.peer)) continue;
            if (pairs) pairs[count] = pair_of(plan, task, &member);
            count++;
        }
    }
    return count;
}

/* Sorts the pairs, and finds each device's first. */
enum status sim_find_pairs(struct sim *sim, struct error *err)
{
    const struct plan *plan = sim->plan;
    enum status status = STATUS_OK;
    uint32_t devices = plan->hardware.device_count;
    if (!plan_has_stream(plan, STREAM_P2P)) return STATUS_OK;
    struct arena scratch = {0};
    struct plan_gang_peers *peers = sim_allocate(&scratch, devices + plan->gang_count, sizeof *peers, &status, err);
    uint32_t count = status == STATUS_OK ? list_pairs(sim, peers, NULL) : 0;
    struct sim_pair *pairs = sim_allocate(&scratch, count, sizeof *pairs, &status, err);
    if (status == STATUS_OK) {
        list_pairs(sim, peers, pairs);
        sim->pair_count = count > 0 ? merge_pairs(pairs, count) : 0;
        sim->pairs = sim_allocate(&sim->arena, sim->pair_count, sizeof *sim->pairs, &status, err);
        sim->first_pair = sim_allocate(&sim->arena, devices + 1u, sizeof *sim->first_pair, &status, err);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < sim->pair_count; i++) {
        sim->pairs[i] = pairs[i];
        sim->first_pair[pairs[i].device + 1] = i + 1;
        if (!hardware_reaches(sim->hardware, pairs[i].peer, pairs[i].device))
            status = error_set(err, STATUS_BAD_INPUT,
                               "on machine '%s' device %" PRIu32 " does not reach device %" PRIu32
                               ", but the plan copies from one to the other",
                               sim->hardware->name, pairs[i].peer, pairs[i].device);
    }
    for (uint32_t d = 0; status == STATUS_OK && d < devices; d++) /* devices without pairs */
        if (sim->first_pair[d + 1] < sim->first_pair[d]) sim->first_pair[d + 1] = sim->first_pair[d];
    arena_release(&scratch);
    return status;
}

/* --- links and paths ------------------------------------------------------------------------ */

static void fill_owners(const struct sim *sim, uint32_t path_count, uint32_t *devices)
{
    uint32_t cpu = hardware_cpu(sim->hardware);
    for (uint32_t p = 0; p < sim->first_p2p_path; p++) {
        bool storage = p / 2 >= cpu;
        devices[p] = storage ? cpu : p / 2;
        if (storage)
            sim->path_streams[p] = plan_host_stream(sim->plan, p / 2 - cpu, p % 2 ? STREAM_WRITE : STREAM_READ);
        else
            sim->path_streams[p] = plan_stream(sim->plan, p / 2, p % 2 ? STREAM_D2H : STREAM_H2D);
    }
    for (uint32_t i = 0; i < sim->pair_count; i++) {
        uint32_t p = sim->first_p2p_path + i;
        devices[p] = sim->pairs[i].device;
        sim->path_streams[p] = plan_stream(sim->plan, devices[p], STREAM_P2P);
    }
    for (uint32_t p = sim->first_prefetch_path; p < sim->first_joint_path; p++) {
        devices[p] = p - sim->first_prefetch_path;
        sim->path_streams[p] = plan_stream(sim->plan, devices[p], STREAM_H2D);
    }
    for (uint32_t p = sim->first_joint_path; p < path_count; p++) devices[p] = cpu;
}

/* Clears paths without copies, so that a link does not depend on devices that others stand for. Only for gangs, whose
 * devices may never use host memory. */
static enum status clear_host_paths(const struct sim *sim, struct arena *scratch, struct sim_path *paths,
                                    struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t devices = sim->hardware->device_count;
    if (sim->plan->gang_count == 0) return STATUS_OK;
    bool *copies = sim_allocate(scratch, devices, sizeof *copies, &status, err);
    if (status != STATUS_OK) return status;
    sim_machine_host_copies(sim->plan, copies);
    for (uint32_t p = 0; p < 2 * devices; p++)
        if (!copies[p / 2]) paths[p].hop_count = 0;
    return STATUS_OK;
}

/* Sets priorities, and adds paths for copies on demand or not. */
static void tell_demand(const struct sim *sim, struct sim_path *paths)
{
    for (uint32_t p = 1; p < sim->first_p2p_path; p += 2) paths[p].priority = 1; /* copies out, and copies to storage */
    for (uint32_t d = 0; d < sim->hardware->device_count; d++) {
        struct sim_path *prefetch = &paths[sim->first_prefetch_path + d];
        *prefetch = paths[2 * d];
        prefetch->priority = 1;
        prefetch->takes_turns = true; /* a device copies in one thing at a time */
    }
}

/* Makes the path over the representatives of the links of the pair's route. */
static enum status pair_path(struct sim *sim, const struct sim_link *links, uint32_t index, struct sim_path *out,
                             struct error *err)
{
    const struct sim_pair *pair = &sim->pairs[index];
    uint32_t own_group = hardware_cpu(sim->hardware) + 1 + sim_collective_flows_path_count(sim->collective_flows) +
                         index;
    enum status status = sim_machine_p2p_path(&sim->arena, sim->hardware, sim->interference, links, pair->route_peer,
                                              pair->route_device, own_group, out, err);
    if (status != STATUS_OK || sim->symmetry.represented == 0) return status;
    out->times = sim_symmetry_times(&sim->symmetry, pair->route_device, pair->route_peer);
    if (out->crossings) return sim_collective_flows_fold_path(&sim->arena, sim->symmetry.link_for, out, err);
    for (uint32_t h = 0; h < out->hop_count; h++) out->hops[h].link = sim->symmetry.link_for[out->hops[h].link];
    return STATUS_OK;
}

/* --- the queue ------------------------------------------------------------------------------ */

enum { AT_ONCE = SIM_QUEUE_BLOCK / 2 }; /* a device's streams and bundles that often change together */

static bool is_used(const struct sim *sim, uint32_t stream)
{
    return sim->live || sim->streams[stream].unissued > 0;
}

struct numbering {
    uint32_t *bundle_owners; /* UINT32_MAX: no owner yet */
    uint32_t next;
};

static void number_bundle(struct sim *sim, struct numbering *n, uint32_t path)
{
    uint32_t bundle = sim_flows_bundle(sim->flows, path);
    if (n->bundle_owners[bundle] != UINT32_MAX) return; /* the bundle has an owner, from another path */
    if (path < sim->first_joint_path && !is_used(sim, sim->path_streams[path])) return;
    n->bundle_owners[bundle] = n->next;
    sim->owner_events[n->next++] = sim->stream_count + bundle;
}

static void number_stream(struct sim *sim, struct numbering *n, uint32_t stream)
{
    if (!is_used(sim, stream)) return;
    sim->streams[stream].owner = n->next;
    sim->owner_events[n->next++] = stream;
}

/* Numbers the owners of events, a device's next to each other. Streams without operations and bundles without traffic
 * get none, so the queue ignores thousands of represented devices. */
static void number_owners(struct sim *sim, struct numbering *n, uint32_t path_count)
{
    uint32_t own = plan_device_streams(sim->plan);
    bool some = sim->pair_count > 0;
    for (uint32_t d = 0; d < sim->hardware->device_count; d++) {
        if (n->next % SIM_QUEUE_BLOCK > AT_ONCE) n->next += SIM_QUEUE_BLOCK - n->next % SIM_QUEUE_BLOCK;
        for (uint32_t k = 0; k < own; k++) number_stream(sim, n, plan_stream(sim->plan, d, k));
        for (uint32_t i = some ? sim->first_pair[d] : 0; i < (some ? sim->first_pair[d + 1] : 0); i++)
            number_bundle(sim, n, sim->first_p2p_path + i);
        number_bundle(sim, n, 2 * d);
        number_bundle(sim, n, 2 * d + 1);
    }
    for (uint32_t s = plan_stream(sim->plan, 0, STREAM_HOST); s < sim->stream_count; s++) number_stream(sim, n, s);
    for (uint32_t p = 0; p < path_count; p++) number_bundle(sim, n, p);
}

static enum status create_queue(struct sim *sim, uint32_t path_count, struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t bundles = sim_flows_bundle_count(sim->flows);
    size_t most = (size_t)sim->stream_count + bundles + sim->hardware->device_count * (size_t)AT_ONCE;
    struct numbering n = {.bundle_owners = sim_allocate(&sim->arena, bundles, sizeof(uint32_t), &status, err)};
    sim->owner_events = sim_allocate(&sim->arena, most, sizeof *sim->owner_events, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t b = 0; b < bundles; b++) n.bundle_owners[b] = UINT32_MAX;
    number_owners(sim, &n, path_count);
    status = sim_queue_create(&sim->arena, n.next, &sim->queue, err);
    if (status == STATUS_OK) sim_flows_attach(sim->flows, sim->queue, n.bundle_owners);
    return status;
}

static enum status create_flows(struct sim *sim, struct arena *scratch, struct sim_path **out,
                                struct error *err)
{
    enum status status = STATUS_OK;
    uint32_t storage = hardware_storage_count(sim->hardware);
    sim->first_p2p_path = (sim->hardware->device_count + storage) * 2;
    sim->first_prefetch_path = sim->first_p2p_path + sim->pair_count;
    sim->first_joint_path = sim->first_prefetch_path;
    if (sim->options->demand_first) sim->first_joint_path += sim->hardware->device_count;
    struct sim_flows_setup setup = {
        .link_count = sim->hardware->link_count + storage,
        .path_count = sim->first_joint_path + sim_collective_flows_path_count(sim->collective_flows)};
    struct sim_link *links = sim_allocate(scratch, setup.link_count, sizeof *links, &status, err);
    struct sim_path *paths = sim_allocate(scratch, setup.path_count, sizeof *paths, &status, err);
    uint32_t *devices = sim_allocate(scratch, setup.path_count, sizeof *devices, &status, err);
    sim->path_streams =
        sim_allocate(&sim->arena, setup.path_count, sizeof *sim->path_streams, &status, err);
    if (status != STATUS_OK) return status;
    sim_machine_links(sim->hardware, links);
    sim_machine_paths(sim->hardware, sim->interference, links, 1, paths);
    status = clear_host_paths(sim, scratch, paths, err);
    if (status != STATUS_OK) return status;
    if (storage > 0) sim_machine_storage(sim->hardware, links, paths);
    for (uint32_t i = 0; status == STATUS_OK && i < sim->pair_count; i++)
        status = pair_path(sim, links, i, &paths[sim->first_p2p_path + i], err);
    if (status != STATUS_OK) return status;
    if (sim->options->demand_first) tell_demand(sim, paths);
    sim_collective_flows_paths(sim->collective_flows, hardware_cpu(sim->hardware) + 1, paths + sim->first_joint_path);
    fill_owners(sim, setup.path_count, devices);
    setup.links = links;
    setup.paths = paths;
    TRY(sim_flows_create(&sim->arena, &setup, &sim->flows, err));
    TRY(create_queue(sim, setup.path_count, err));
    *out = paths;
    return sim_interference_attach(sim->interference, &sim->arena, sim->flows, sim->queue, devices,
                                   setup.path_count, err);
}

/* --- streams -------------------------------------------------------------------------------- */

/* `host`: of streams that belong to a host. */
static void fill_stream(struct sim *sim, struct sim_stream *stream, uint32_t host, const struct sim_path *paths)
{
    bool out = stream->kind == STREAM_D2H || stream->kind == STREAM_WRITE;
    stream->path = stream->device * 2 + out;
    if (stream->kind == STREAM_READ || stream->kind == STREAM_WRITE) {
        stream->path += host * 2;
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
    uint32_t own = plan_device_streams(sim->plan), first_host = plan_host_stream(sim->plan, 0, STREAM_HOST);
    uint32_t of_host = plan_host_streams(sim->plan);
    for (uint32_t s = 0; s < sim->stream_count; s++) {
        struct sim_stream *stream = &sim->streams[s];
        bool host = s >= first_host;
        stream->device = host ? hardware_cpu(sim->hardware) : s / own;
        uint32_t kind = host ? STREAM_HOST + (s - first_host) % of_host : s % own;
        bool files = host && (s - first_host) % of_host == plan_host_streams_before_files(sim->plan);
        stream->kind = (uint8_t)(files ? STREAM_FILE : kind);
        bool joins = stream->kind == STREAM_GROUP || stream->kind == STREAM_DATA;
        if (stream->kind != STREAM_HOST && !files && !joins)
            fill_stream(sim, stream, host ? (s - first_host) / of_host : 0, paths);
        if (joins) stream->slowed = sim_interference_by_collectives(sim->interference, stream->device);
    }
    for (uint32_t i = 0; i < sim->pair_count; i++) {
        struct sim_pair *pair = &sim->pairs[i];
        pair->latency_s = cost_p2p_latency_s(sim->hardware, pair->route_peer, pair->route_device);
        pair->rate = paths[sim->first_p2p_path + i].cap_bytes_per_s;
    }
}

enum status sim_create_machine(struct sim *sim, struct error *err)
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
