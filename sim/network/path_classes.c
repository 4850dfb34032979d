/*
 * Most links cannot limit any flow, or limit only one path, and most paths are equal. Finding this out once, before the
 * first flow, saves the solver (share.c) nearly all of its work.
 *
 * A device's own link is crossed by one copy per direction: it is a cap on that copy. A memory bus with more bandwidth
 * than its switches can deliver has no effect. Both are removed. The rest of a path is its shared link directions and
 * the lowest of its caps; paths with equal shared link directions and caps always have equal rates, and become one
 * class:
 *
 *     dev0 --12--+                                 dev0..3, cap 12 --+
 *     dev1 --12--+-- switch 20 --+                                   +-- switch 20
 *     dev2 --12--+               +-- DRAM 80   =>
 *     dev3 --12--+               |                 dev4..7, cap 12 --+
 *     dev4 ...   ---- switch 20 -+                                   +-- switch 20
 *
 * Sixteen devices on a bridge are one class or, with duplex links, two; so are a thousand.
 *
 * A path with weights is its own class, and uses rate * weight of a link direction. If it is the only path of a link
 * direction, bandwidth / weight is a cap on it.
 *
 * Copies of one device in one direction may have two paths that differ only in priority. The device makes one of these
 * copies at a time, so its link still has a single flow per direction, and the second path adds no load.
 *
 * Cost: O(hops of all paths * hops of a path), once; with weights O(hops).
 */
#include "sim/network/path_classes.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/extreme.h"
#include "sim/engine/allocate.h"

#define NO_LINK_DIR UINT32_MAX

static uint32_t hop_link_dir(const struct sim_path_classes *o, uint32_t path, uint32_t hop)
{
    const struct sim_crossing crossing = sim_path_crossing(&o->paths[path], hop);
    return sim_link_dir(o->links, &crossing.hop);
}

/* --- relevant link directions ----------------------------------------------------------- */

static void list_link_dir_paths(struct sim_path_classes *o)
{
    for (uint32_t p = 0; p < o->path_count; p++)
        for (uint32_t h = 0; h < o->paths[p].hop_count; h++) {
            struct sim_path_classes_link_dir *link_dir = &o->link_dirs[hop_link_dir(o, p, h)];
            link_dir->path_count++;
            if (!o->paths[p].takes_turns) link_dir->flow_limit += o->paths[p].flow_limit;
        }
    uint32_t total = 0;
    for (uint32_t l = 0; l < o->link_dir_count; l++) {
        o->link_dirs[l].first_path = total;
        total += o->link_dirs[l].path_count;
        o->link_dirs[l].path_count = 0;
    }
    for (uint32_t p = 0; p < o->path_count; p++)
        for (uint32_t h = 0; h < o->paths[p].hop_count; h++) {
            struct sim_path_classes_link_dir *link_dir = &o->link_dirs[hop_link_dir(o, p, h)];
            o->link_dir_paths[link_dir->first_path + link_dir->path_count++] = p;
        }
}

static void find_own_link_dirs(struct sim_path_classes *o)
{
    for (uint32_t p = 0; p < o->path_count; p++) {
        o->base_caps[p] = o->paths[p].cap_bytes_per_s;
        for (uint32_t h = 0; h < o->paths[p].hop_count; h++) {
            struct sim_path_classes_link_dir *link_dir = &o->link_dirs[hop_link_dir(o, p, h)];
            link_dir->role = link_dir->flow_limit == 1 ? SIM_LINK_DIR_OWN : SIM_LINK_DIR_SHARED;
            if (link_dir->role == SIM_LINK_DIR_OWN)
                o->base_caps[p] =
                    fmin(o->base_caps[p], link_dir->bytes_per_s / sim_path_crossing(&o->paths[p], h).weight);
        }
    }
}

/* Returns the narrowest other link direction of a path with several paths; NO_LINK_DIR: none, or weights are not 1. */
static uint32_t narrowest_other(const struct sim_path_classes *o, uint32_t path, uint32_t link_dir)
{
    uint32_t narrowest = NO_LINK_DIR;
    if (o->paths[path].crossings) return NO_LINK_DIR;
    for (uint32_t h = 0; h < o->paths[path].hop_count; h++) {
        uint32_t other = hop_link_dir(o, path, h);
        if (other == link_dir || o->link_dirs[other].role == SIM_LINK_DIR_OWN) continue;
        if (narrowest == NO_LINK_DIR || o->link_dirs[other].bytes_per_s < o->link_dirs[narrowest].bytes_per_s)
            narrowest = other;
    }
    return narrowest;
}

static double weight_on(const struct sim_path_classes *o, uint32_t path, uint32_t link_dir)
{
    const struct sim_path *p = &o->paths[path];
    uint32_t low = 0, high = p->hop_count;
    if (!p->crossings) return 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (hop_link_dir(o, path, middle) <= link_dir) low = middle;
        else high = middle;
    }
    assert(hop_link_dir(o, path, low) == link_dir);
    return p->crossings[low].weight;
}

/*
 * Returns an upper bound on the rate into a link direction: the sum of each path's flows at their base caps, where
 * paths that share another link direction count at most its bandwidth.
 */
static double most_arriving(struct sim_path_classes *o, uint32_t link_dir)
{
    const uint32_t *paths = &o->link_dir_paths[o->link_dirs[link_dir].first_path];
    uint32_t count = o->link_dirs[link_dir].path_count;
    double most = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (o->paths[paths[i]].takes_turns) continue;
        double rate = o->base_caps[paths[i]] * o->paths[paths[i]].flow_limit;
        uint32_t other = narrowest_other(o, paths[i], link_dir);
        if (other == NO_LINK_DIR)
            most += rate * weight_on(o, paths[i], link_dir);
        else
            o->link_dirs[other].arriving += rate;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other = narrowest_other(o, paths[i], link_dir);
        if (other == NO_LINK_DIR) continue;
        most += fmin(o->link_dirs[other].arriving, o->link_dirs[other].bytes_per_s);
        o->link_dirs[other].arriving = 0;
    }
    return most;
}

/*
 * Two link directions cannot be harmless because of each other: a bound by a full link direction q is at least q's
 * bandwidth, so it proves only wider ones harmless.
 */
static void find_harmless_link_dirs(struct sim_path_classes *o)
{
    for (uint32_t l = 0; l < o->link_dir_count; l++) {
        struct sim_path_classes_link_dir *link_dir = &o->link_dirs[l];
        if (link_dir->role == SIM_LINK_DIR_SHARED &&
            most_arriving(o, l) < link_dir->bytes_per_s * SIM_FULL)
            link_dir->role = SIM_LINK_DIR_HARMLESS;
    }
}

/* --- classes -------------------------------------------------------------------------------- */

uint32_t sim_path_classes_link_dirs(const struct sim_path_classes *classes, uint32_t path,
                                    enum sim_link_dir_role role, struct sim_load *out)
{
    uint32_t count = 0;
    for (uint32_t h = 0; h < classes->paths[path].hop_count; h++) {
        uint32_t link_dir = hop_link_dir(classes, path, h);
        if (classes->link_dirs[link_dir].role != role) continue;
        uint32_t at = count++;
        for (; at > 0 && out[at - 1].link_dir > link_dir; at--) out[at] = out[at - 1];
        out[at] = (struct sim_load){link_dir, sim_path_crossing(&classes->paths[path], h).weight};
    }
    return count;
}

static bool same_class(const struct sim_path_classes *o, uint32_t a, uint32_t b)
{
    if (o->paths[a].group != o->paths[b].group || o->paths[a].priority != o->paths[b].priority) return false;
    if (o->base_caps[a] < o->base_caps[b] || o->base_caps[a] > o->base_caps[b]) return false;
    struct sim_load *of_a = o->scratch, *of_b = o->scratch + o->longest;
    uint32_t count = sim_path_classes_link_dirs(o, a, SIM_LINK_DIR_SHARED, of_a);
    if (count != sim_path_classes_link_dirs(o, b, SIM_LINK_DIR_SHARED, of_b)) return false;
    for (uint32_t i = 0; i < count; i++)
        if (of_a[i].link_dir != of_b[i].link_dir) return false;
    return true;
}

/* Returns a number equal for paths of one class. */
static uint32_t class_key(const struct sim_path_classes *o, uint32_t path)
{
    uint32_t count = sim_path_classes_link_dirs(o, path, SIM_LINK_DIR_SHARED, o->scratch);
    uint64_t key = o->paths[path].group, cap;
    memcpy(&cap, &o->base_caps[path], sizeof cap);
    key = (key ^ cap) * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < count; i++) key = (key ^ o->scratch[i].link_dir) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(key >> 32);
}

/* Makes classes, in the order of first paths. `heads`: `mask` + 1 zeroed entries, a power of two: each key's first
 * class + 1; `next`: the next class + 1 with the key. */
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
        assert(!path->crossings || (path->flow_limit == 1 && path->group != SIM_NO_GROUP && !path->takes_turns));
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
                                 .link_dir_count = link_count * 2,
                                 .path_count = path_count};
    count_hops(&o);
    o.link_dirs = sim_allocate(arena, o.link_dir_count, sizeof *o.link_dirs, &status, err);
    o.link_dir_paths = sim_allocate(arena, o.hop_count, sizeof *o.link_dir_paths, &status, err);
    o.base_caps = sim_allocate(arena, path_count, sizeof *o.base_caps, &status, err);
    o.path_classes = sim_allocate(arena, path_count, sizeof *o.path_classes, &status, err);
    o.class_paths = sim_allocate(arena, path_count, sizeof *o.class_paths, &status, err);
    o.scratch = sim_allocate(arena, 2 * (size_t)o.longest, sizeof *o.scratch, &status, err);
    uint32_t mask = 0;
    while (mask < path_count) mask = 2 * mask + 1;
    uint32_t *heads = sim_allocate(arena, mask + (size_t)1, sizeof *heads, &status, err);
    uint32_t *next = sim_allocate(arena, path_count, sizeof *next, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t l = 0; l < o.link_dir_count; l++) {
        assert(links[l / 2].bytes_per_s > 0);
        o.link_dirs[l].bytes_per_s = links[l / 2].bytes_per_s;
    }
    list_link_dir_paths(&o);
    find_own_link_dirs(&o);
    find_harmless_link_dirs(&o);
    find_classes(&o, heads, mask, next);
    *out = o;
    return STATUS_OK;
}
