/*
 * Most links cannot limit any flow, or limit only one path, and most paths are equal. Finding this out once, before the
 * first flow, saves the solver (share.c) nearly all of its work.
 *
 * A device's own link is crossed by one copy per direction: it is a cap on that copy. A memory bus with more bandwidth
 * than its switches can deliver has no effect. Both are removed. The rest of a path is its shared lanes and the lowest
 * of its caps; paths with equal shared lanes and caps always have equal rates, and become one class:
 *
 *     dev0 --12--+                                 dev0..3, cap 12 --+
 *     dev1 --12--+-- switch 20 --+                                   +-- switch 20
 *     dev2 --12--+               +-- DRAM 80   =>
 *     dev3 --12--+               |                 dev4..7, cap 12 --+
 *     dev4 ...   ---- switch 20 -+                                   +-- switch 20
 *
 * Sixteen devices on a bridge are one class or, with duplex links, two; so are a thousand.
 *
 * A path with weights is its own class, and uses rate * weight of a lane. If it is the only path of a lane, bandwidth /
 * weight is a cap on it.
 *
 * Cost: O(hops of all paths * hops of a path), once; with weights O(hops).
 */
#include "sim/network/path_classes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/extreme.h"
#include "sim/engine/allocate.h"

#define NO_LANE UINT32_MAX

static uint32_t hop_lane(const struct sim_path_classes *o, uint32_t path, uint32_t hop)
{
    const struct sim_crossing crossing = sim_path_crossing(&o->paths[path], hop);
    return sim_lane(o->links, &crossing.hop);
}

/* --- relevant lanes ------------------------------------------------------------------------- */

static void list_lane_paths(struct sim_path_classes *o)
{
    for (uint32_t p = 0; p < o->path_count; p++)
        for (uint32_t h = 0; h < o->paths[p].hop_count; h++) {
            struct sim_path_classes_lane *lane = &o->lanes[hop_lane(o, p, h)];
            lane->path_count++;
            lane->flow_limit += o->paths[p].flow_limit;
        }
    uint32_t total = 0;
    for (uint32_t l = 0; l < o->lane_count; l++) {
        o->lanes[l].first_path = total;
        total += o->lanes[l].path_count;
        o->lanes[l].path_count = 0;
    }
    for (uint32_t p = 0; p < o->path_count; p++)
        for (uint32_t h = 0; h < o->paths[p].hop_count; h++) {
            struct sim_path_classes_lane *lane = &o->lanes[hop_lane(o, p, h)];
            o->lane_paths[lane->first_path + lane->path_count++] = p;
        }
}

static void find_own_lanes(struct sim_path_classes *o)
{
    for (uint32_t p = 0; p < o->path_count; p++) {
        o->base_caps[p] = o->paths[p].cap_bytes_per_s;
        for (uint32_t h = 0; h < o->paths[p].hop_count; h++) {
            struct sim_path_classes_lane *lane = &o->lanes[hop_lane(o, p, h)];
            lane->role = lane->flow_limit == 1 ? SIM_LANE_OWN : SIM_LANE_SHARED;
            if (lane->role == SIM_LANE_OWN)
                o->base_caps[p] =
                    fmin(o->base_caps[p], lane->bytes_per_s / sim_path_crossing(&o->paths[p], h).weight);
        }
    }
}

/* Returns the narrowest other lane of a path that has several paths; NO_LANE: there is none, or weights are not 1. */
static uint32_t narrowest_other(const struct sim_path_classes *o, uint32_t path, uint32_t lane)
{
    uint32_t narrowest = NO_LANE;
    if (o->paths[path].crossings) return NO_LANE;
    for (uint32_t h = 0; h < o->paths[path].hop_count; h++) {
        uint32_t other = hop_lane(o, path, h);
        if (other == lane || o->lanes[other].role == SIM_LANE_OWN) continue;
        if (narrowest == NO_LANE || o->lanes[other].bytes_per_s < o->lanes[narrowest].bytes_per_s)
            narrowest = other;
    }
    return narrowest;
}

static double weight_on(const struct sim_path_classes *o, uint32_t path, uint32_t lane)
{
    const struct sim_path *p = &o->paths[path];
    uint32_t low = 0, high = p->hop_count;
    if (!p->crossings) return 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (hop_lane(o, path, middle) <= lane) low = middle;
        else high = middle;
    }
    assert(hop_lane(o, path, low) == lane);
    return p->crossings[low].weight;
}

/*
 * Returns an upper bound on the rate that can arrive at a lane: the sum of each path's flows at their base caps, where
 * paths that share another lane count at most that lane's bandwidth.
 */
static double most_arriving(struct sim_path_classes *o, uint32_t lane)
{
    const uint32_t *paths = &o->lane_paths[o->lanes[lane].first_path];
    uint32_t count = o->lanes[lane].path_count;
    double most = 0;
    for (uint32_t i = 0; i < count; i++) {
        double rate = o->base_caps[paths[i]] * o->paths[paths[i]].flow_limit;
        uint32_t other = narrowest_other(o, paths[i], lane);
        if (other == NO_LANE)
            most += rate * weight_on(o, paths[i], lane);
        else
            o->lanes[other].arriving += rate;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = narrowest_other(o, paths[i], lane);
        if (other == NO_LANE) continue;
        most += fmin(o->lanes[other].arriving, o->lanes[other].bytes_per_s);
        o->lanes[other].arriving = 0;
    }
    return most;
}

/*
 * Two lanes cannot each be harmless because of the other: a bound that assumes lane q full is at least q's bandwidth,
 * so it proves only wider lanes harmless.
 */
static void find_harmless_lanes(struct sim_path_classes *o)
{
    for (uint32_t l = 0; l < o->lane_count; l++) {
        struct sim_path_classes_lane *lane = &o->lanes[l];
        if (lane->role == SIM_LANE_SHARED &&
            most_arriving(o, l) < lane->bytes_per_s * SIM_FULL)
            lane->role = SIM_LANE_HARMLESS;
    }
}

/* --- classes -------------------------------------------------------------------------------- */

uint32_t sim_path_classes_lanes(const struct sim_path_classes *classes, uint32_t path,
                                enum sim_lane_role role, struct sim_load *out)
{
    uint32_t count = 0;
    for (uint32_t h = 0; h < classes->paths[path].hop_count; h++) {
        uint32_t lane = hop_lane(classes, path, h);
        if (classes->lanes[lane].role != role) continue;
        uint32_t at = count++;
        for (; at > 0 && out[at - 1].lane > lane; at--) out[at] = out[at - 1];
        out[at] = (struct sim_load){lane, sim_path_crossing(&classes->paths[path], h).weight};
    }
    return count;
}

static bool same_class(const struct sim_path_classes *o, uint32_t a, uint32_t b)
{
    if (o->paths[a].group != o->paths[b].group || o->paths[a].priority != o->paths[b].priority) return false;
    if (o->base_caps[a] < o->base_caps[b] || o->base_caps[a] > o->base_caps[b]) return false;
    struct sim_load *of_a = o->scratch, *of_b = o->scratch + o->longest;
    uint32_t count = sim_path_classes_lanes(o, a, SIM_LANE_SHARED, of_a);
    if (count != sim_path_classes_lanes(o, b, SIM_LANE_SHARED, of_b)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (of_a[i].lane != of_b[i].lane) return false;
    return true;
}

/* Returns a number that is equal for the paths of one class. */
static uint32_t class_key(const struct sim_path_classes *o, uint32_t path)
{
    uint32_t count = sim_path_classes_lanes(o, path, SIM_LANE_SHARED, o->scratch);
    uint64_t key = o->paths[path].group, cap;
    memcpy(&cap, &o->base_caps[path], sizeof cap);
    key = (key ^ cap) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < count; i++) key = (key ^ o->scratch[i].lane) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(key >> 32);
}

/* Makes classes, in the order of their first paths. `heads`: `mask` + 1 zeroed entries, a power of two: the first class
 * + 1 of each key; `next`: the next class + 1 with the same key. */
static void find_classes(struct sim_path_classes *o, uint32_t *heads, uint32_t mask, uint32_t *next)
{
    for (uint32_t p = 0; p < o->path_count; p++) {
        uint32_t *head = &heads[class_key(o, p) & mask], class = *head;
        while (class > 0 && !same_class(o, o->class_paths[class - 1], p)) class = next[class - 1];
        if (class == 0) {
            next[o->class_count] = *head;
            o->class_paths[o->class_count++] = p;
            *head = class = o->class_count;
        }
        o->path_classes[p] = class - 1;
    }
}

/* --- public --------------------------------------------------------------------------------- */

static void count_hops(struct sim_path_classes *o)
{
    for (uint32_t p = 0; p < o->path_count; p++) {
        const struct sim_path *path = &o->paths[p];
        assert(path->priority < SIM_PRIORITIES_MAX);
        assert(path->crossings || path->hop_count <= SIM_HOPS_MAX);
        assert(!path->crossings || (path->flow_limit == 1 && path->group != SIM_NO_GROUP));
        assert(path->flow_limit >= 1);
        assert(path->cap_bytes_per_s > 0);
        assert(isfinite(path->cap_bytes_per_s));
        o->hop_count += path->hop_count;
        o->longest = max_u32(o->longest, path->hop_count);
    }
}

enum status sim_path_classes_create(struct arena *arena, const struct sim_link *links,
                                    uint32_t link_count, const struct sim_path *paths,
                                    uint32_t path_count, struct sim_path_classes *out, struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_path_classes o = {.links = links,
                        .paths = paths,
                        .lane_count = link_count * 2,
                        .path_count = path_count};
    count_hops(&o);
    o.lanes = sim_allocate(arena, o.lane_count, sizeof *o.lanes, &status, err);
    o.lane_paths = sim_allocate(arena, o.hop_count, sizeof *o.lane_paths, &status, err);
    o.base_caps = sim_allocate(arena, path_count, sizeof *o.base_caps, &status, err);
    o.path_classes = sim_allocate(arena, path_count, sizeof *o.path_classes, &status, err);
    o.class_paths = sim_allocate(arena, path_count, sizeof *o.class_paths, &status, err);
    o.scratch = sim_allocate(arena, 2 * (size_t)o.longest, sizeof *o.scratch, &status, err);
    uint32_t mask = 0;
    while (mask < path_count) mask = 2 * mask + 1;
    uint32_t *heads = sim_allocate(arena, mask + (size_t)1, sizeof *heads, &status, err);
    uint32_t *next = sim_allocate(arena, path_count, sizeof *next, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t l = 0; l < o.lane_count; l++) {
        assert(links[l / 2].bytes_per_s > 0);
        o.lanes[l].bytes_per_s = links[l / 2].bytes_per_s;
    }
    list_lane_paths(&o);
    find_own_lanes(&o);
    find_harmless_lanes(&o);
    find_classes(&o, heads, mask, next);
    *out = o;
    return STATUS_OK;
}
