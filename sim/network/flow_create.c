/* share.c says which classes form a bottleneck. This file checks that its flows are few and their caps fixed;
 * flow_crowds.c makes crowds of larger ones. */
#include "sim/network/flow_state.h"

#include <math.h>

#include "sim/engine/allocate.h"

static void copy_hops(struct sim_flows *flows, const struct sim_flows_setup *setup)
{
    uint32_t used = 0;
    for (uint32_t p = 0; p < setup->path_count; p++) {
        flows->paths[p].first_link = used;
        flows->paths[p].link_count = setup->paths[p].hop_count;
        const uint32_t *link_dirs;
        flows->paths[p].has_own_link_dirs = sim_share_own_link_dirs(flows->share, p, &link_dirs) > 0;
        for (uint32_t h = 0; h < setup->paths[p].hop_count; h++) {
            const struct sim_crossing crossing = sim_path_crossing(&setup->paths[p], h);
            flows->path_links[used] = crossing.hop.link;
            flows->path_weights[used] = crossing.weight;
            /* A flow with several crossings of a simplex link, a staged copy or a ring, sends equal bytes both ways. */
            bool both = crossing.weight > 1 && !setup->links[crossing.hop.link].duplex;
            flows->path_directions[used++] = both ? FLOW_PATH_BOTH_WAYS : (uint8_t)crossing.hop.direction;
        }
    }
}

static void fill_flows(struct sim_flows *flows, const struct sim_flows_setup *setup)
{
    uint32_t flow = 0;
    for (uint32_t p = 0; p < setup->path_count; p++)
        for (uint32_t i = 0; i < setup->paths[p].flow_limit; i++)
            flows->flows[flow++] = (struct flow_state){
                .path = p, .class = sim_share_class(flows->share, p), .bottleneck = FLOW_NO_BOTTLENECK};
}

/* --- bottlenecks ----------------------------------------------------------------------------------- */

/* Up to this number of flows, a class that shares no link direction is a bottleneck without one. Larger classes are
 * better kept in a queue. */
enum { ALONE_MAX = 8 };

/* An entry per link direction of a bottleneck, then per class. */
struct flow_candidate {
    uint32_t flow_count;
    uint32_t alike_count; /* these and those they stand for, so that folding does not change the choice */
    uint32_t priority; /* common priority */
    bool refused;
    uint32_t bottleneck; /* number of the bottleneck, once it is made */
};

/* Caps of paths in groups may change; a path's trunk and own link directions cannot both count as full. */
static bool fits_bottleneck(const struct sim_flows *flows, const struct sim_path *path, uint32_t class,
                            bool has_own_link_dirs)
{
    double trunk = sim_share_limits(flows->share, class).trunk_bytes_per_s;
    return path->group == SIM_NO_GROUP && (trunk == INFINITY || !has_own_link_dirs);
}

/* Returns a class's entry; NULL: it shares several link directions. */
static struct flow_candidate *candidate_of(const struct sim_flows *flows, uint32_t class,
                                           struct flow_candidate *candidates)
{
    const struct sim_share_limits limits = sim_share_limits(flows->share, class);
    if (limits.alone) return &candidates[flows->link_count * 2 + class];
    return limits.bottleneck != SIM_NO_BOTTLENECK ? &candidates[limits.bottleneck] : NULL;
}

static void count_candidates(const struct sim_flows *flows, const struct sim_flows_setup *setup,
                             struct flow_candidate *candidates)
{
    for (uint32_t p = 0; p < setup->path_count; p++) {
        uint32_t class = sim_share_class(flows->share, p);
        struct flow_candidate *candidate = candidate_of(flows, class, candidates);
        if (!candidate) continue;
        bool alone = sim_share_limits(flows->share, class).alone;
        uint32_t most = alone ? ALONE_MAX : SIM_BOTTLENECK_FLOWS_MAX;
        candidate->flow_count += setup->paths[p].flow_limit;
        if (setup->paths[p].times > 1 && alone) candidate->alike_count += setup->paths[p].times;
        else candidate->alike_count += setup->paths[p].flow_limit;
        if (candidate->flow_count == setup->paths[p].flow_limit) candidate->priority = setup->paths[p].priority;
        candidate->refused |= candidate->alike_count > most || candidate->priority != setup->paths[p].priority ||
                              !fits_bottleneck(flows, &setup->paths[p], class, flows->paths[p].has_own_link_dirs);
    }
}

static void place_flow(struct sim_flows *flows, uint32_t index, struct sim_bottleneck_arm *arms,
                       struct flow_candidate *candidate)
{
    struct flow_state *flow = &flows->flows[index];
    const struct sim_share_limits limits = sim_share_limits(flows->share, flow->class);
    struct sim_bottleneck_arm *arm = &arms[flow->class];
    struct sim_bottleneck *bottleneck = &flows->bottlenecks[candidate->bottleneck];
    flow->bottleneck = candidate->bottleneck;
    flow->member = candidate->flow_count++;
    arm->cap = sim_share_base_cap(flows->share, flow->class);
    arm->trunk = limits.trunk_bytes_per_s;
    arm->places |= UINT64_C(1) << flow->member;
    bottleneck->bytes_per_s = limits.alone ? INFINITY : limits.bottleneck_bytes_per_s;
    bottleneck->flows[flow->member].flow = index;
    bottleneck->flows[flow->member].path = flow->path;
    flows->bottleneck_link_dirs[flow->bottleneck] = limits.bottleneck; /* SIM_NO_BOTTLENECK: none is shared */
}

static enum status create_bottlenecks(struct arena *arena, struct sim_flows *flows,
                                      const struct sim_flows_setup *setup, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    uint32_t count = flows->link_count * 2 + flows->class_count;
    struct flow_candidate *candidates = sim_allocate(&scratch, count, sizeof *candidates, &status, err);
    if (status == STATUS_OK) count_candidates(flows, setup, candidates);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        candidates[i].refused |= candidates[i].flow_count == 0;
        candidates[i].bottleneck = candidates[i].refused ? FLOW_NO_BOTTLENECK : flows->bottleneck_count++;
    }
    struct sim_bottleneck_arm *arms = sim_allocate(&scratch, flows->class_count, sizeof *arms, &status, err);
    flows->bottlenecks = sim_allocate_lines(arena, flows->bottleneck_count, sizeof *flows->bottlenecks, &status, err);
    flows->touched_bottlenecks = sim_allocate(arena, flows->bottleneck_count, sizeof(uint32_t), &status, err);
    flows->bottleneck_link_dirs = sim_allocate(arena, flows->bottleneck_count, sizeof(uint32_t), &status, err);
    flows->bottleneck_places =
        sim_allocate_lines(arena, flows->flow_count, sizeof *flows->bottleneck_places, &status, err);
    for (uint32_t i = 0, used = 0; i < count && status == STATUS_OK; i++) {
        if (candidates[i].refused) continue;
        struct sim_bottleneck *bottleneck = &flows->bottlenecks[candidates[i].bottleneck];
        bottleneck->flows = &flows->bottleneck_places[used];
        used += candidates[i].flow_count;
        candidates[i].flow_count = 0;
        flows->bottleneck_place_count = used;
    }
    for (uint32_t f = 0; f < flows->flow_count && status == STATUS_OK; f++) {
        struct flow_candidate *candidate = candidate_of(flows, flows->flows[f].class, candidates);
        if (candidate && !candidate->refused) place_flow(flows, f, arms, candidate);
    }
    for (uint32_t p = 0; p < flows->path_count && status == STATUS_OK; p++)
        flows->paths[p].arm = arms[sim_share_class(flows->share, p)];
    arena_release(&scratch);
    return status;
}

/* --- clocks ---------------------------------------------------------------------------------- */

static enum status create_clocks(struct arena *arena, struct sim_flows *flows, struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t f = 0; f < flows->flow_count; f++)
        flows->classes[flows->flows[f].class].flow_count += flows->flows[f].bottleneck == FLOW_NO_BOTTLENECK;
    uint32_t used = 0;
    for (uint32_t c = 0; c < flows->class_count && status == STATUS_OK; c++) {
        struct flow_class_clock *class = &flows->classes[c];
        if (class->flow_count == 0) continue; /* in a bottleneck or a crowd */
        class->full_rate = sim_share_base_cap(flows->share, c) * SIM_FULL;
        class->first_member = used;
        used += class->flow_count;
        status = sim_queue_create(arena, class->flow_count, &class->ends, err);
        class->flow_count = 0;
        class->bundle = flows->bundle_count++;
        flows->bundle_classes[class->bundle] = c;
    }
    for (uint32_t f = 0; f < flows->flow_count && status == STATUS_OK; f++) {
        struct flow_class_clock *class = &flows->classes[flows->flows[f].class];
        if (flows->flows[f].bottleneck != FLOW_NO_BOTTLENECK) continue;
        flows->flows[f].member = class->flow_count;
        flows->members[class->first_member + class->flow_count++] = f;
    }
    for (uint32_t c = 0; c < flows->class_count; c++) flows->classes[c].flow_count = 0;
    return status;
}

/* --- public ---------------------------------------------------------------------------------- */

enum status sim_flows_create(struct arena *arena, const struct sim_flows_setup *setup,
                             struct sim_flows **out, struct error *err)
{
    struct sim_share *share;
    enum status status = sim_share_create(arena, setup->links, setup->link_count, setup->paths,
                                          setup->path_count, &share, err);
    if (status != STATUS_OK) return status;
    uint32_t hops = 0, flow_count = 0;
    for (uint32_t p = 0; p < setup->path_count; p++) {
        hops += setup->paths[p].hop_count;
        flow_count += setup->paths[p].flow_limit;
    }
    struct sim_flows *flows = sim_allocate(arena, 1, sizeof *flows, &status, err);
    if (status != STATUS_OK) return status;
    flows->share = share;
    flows->class_count = sim_share_class_count(share);
    flows->flow_count = flow_count;
    flows->path_count = setup->path_count;
    flows->link_count = setup->link_count;
    flows->classes = sim_allocate(arena, flows->class_count, sizeof *flows->classes, &status, err);
    flows->flows = sim_allocate(arena, flow_count, sizeof *flows->flows, &status, err);
    flows->paths = sim_allocate_lines(arena, flows->path_count, sizeof *flows->paths, &status, err);
    flows->full_from_s = sim_allocate(arena, flow_count, sizeof *flows->full_from_s, &status, err);
    flows->links = sim_allocate(arena, flows->link_count, sizeof *flows->links, &status, err);
    flows->link_dirs = sim_allocate(arena, (size_t)flows->link_count * 2, sizeof *flows->link_dirs, &status, err);
    flows->members = sim_allocate(arena, flow_count, sizeof *flows->members, &status, err);
    flows->path_links = sim_allocate(arena, hops, sizeof *flows->path_links, &status, err);
    flows->path_directions = sim_allocate(arena, hops, sizeof *flows->path_directions, &status, err);
    flows->path_weights = sim_allocate(arena, hops, sizeof *flows->path_weights, &status, err);
    if (status != STATUS_OK) return status;
    copy_hops(flows, setup);
    fill_flows(flows, setup);
    status = create_bottlenecks(arena, flows, setup, err);
    if (status == STATUS_OK) status = sim_flow_crowds_create(arena, flows, setup, err);
    flows->bundle_count = flows->bottleneck_count + flows->crowd_count;
    flows->bundle_classes =
        sim_allocate(arena, flows->bundle_count + flows->class_count, sizeof(uint32_t), &status, err);
    if (status == STATUS_OK) status = create_clocks(arena, flows, err);
    if (status == STATUS_OK) *out = flows;
    return status;
}
