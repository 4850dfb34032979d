/*
 * The lanes and classes of path classes (path_classes.h), laid out for the solver (share.c).
 *
 * A lane that only one class crosses is a *trunk* of that class: each of n flows gets at most 1/n of it, a cap that
 * depends on n. If all classes of a lane share only that lane, the lane is marked as a bottleneck, for callers that rate
 * those classes without this solver (bottleneck.h).
 */
#include "sim/network/share_state.h"

#include <math.h>

#include "sim/engine/allocate.h"

static enum status share_allocate(struct arena *arena, const struct sim_path_classes *o,
                                  struct sim_share **out, struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_share *share = sim_allocate(arena, 1, sizeof *share, &status, err);
    if (status != STATUS_OK) return status;
    share->priority_count = 1;
    share->lane_count = o->lane_count;
    share->class_count = o->class_count;
    share->path_count = o->path_count;
    share->lanes = sim_allocate(arena, o->lane_count, sizeof *share->lanes, &status, err);
    share->classes = sim_allocate(arena, o->class_count, sizeof *share->classes, &status, err);
    share->paths = sim_allocate(arena, o->path_count, sizeof *share->paths, &status, err);
    share->lane_classes = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->lane_weights = sim_allocate(arena, o->hop_count, sizeof(double), &status, err);
    share->class_lanes = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->class_weights = sim_allocate(arena, o->hop_count, sizeof(double), &status, err);
    share->private_lanes = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->own_lanes = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->touched = sim_allocate(arena, o->class_count, sizeof(uint32_t), &status, err);
    share->changed = sim_allocate(arena, o->class_count, sizeof *share->changed, &status, err);
    share->component_lanes = sim_allocate(arena, o->lane_count, sizeof(uint32_t), &status, err);
    share->turned = sim_allocate(arena, o->lane_count, sizeof(uint32_t), &status, err);
    if (status == STATUS_OK) *out = share;
    return status;
}

/* Lists the classes that cross each lane, shared or not. */
static void list_lane_classes(struct sim_share *share, const struct sim_path_classes *o)
{
    struct sim_load *lanes = o->scratch;
    uint32_t used = 0;
    for (uint32_t c = 0; c < o->class_count; c++) {
        uint32_t count = sim_path_classes_lanes(o, o->class_paths[c], SIM_LANE_SHARED, lanes);
        for (uint32_t i = 0; i < count; i++) share->lanes[lanes[i].lane].class_count++;
    }
    for (uint32_t l = 0; l < share->lane_count; l++) {
        struct share_lane *lane = &share->lanes[l];
        lane->bytes_per_s = o->lanes[l].bytes_per_s;
        lane->first_class = used;
        used += lane->class_count;
        lane->class_count = 0;
    }
    for (uint32_t c = 0; c < o->class_count; c++) {
        uint32_t count = sim_path_classes_lanes(o, o->class_paths[c], SIM_LANE_SHARED, lanes);
        for (uint32_t i = 0; i < count; i++) {
            struct share_lane *lane = &share->lanes[lanes[i].lane];
            share->lane_weights[lane->first_class + lane->class_count] = lanes[i].weight;
            share->lane_classes[lane->first_class + lane->class_count++] = c;
        }
    }
}

/* Fills in each class's shared lanes and trunks. Classes with weights have no trunks: their single flow has such a lane
 * to itself (path_classes.h). */
static void fill_classes(struct sim_share *share, const struct sim_path_classes *o)
{
    uint32_t shared = 0, private = 0;
    for (uint32_t c = 0; c < o->class_count; c++) {
        uint32_t path = o->class_paths[c];
        struct sim_load *lanes = o->scratch;
        uint32_t count = sim_path_classes_lanes(o, path, SIM_LANE_SHARED, lanes);
        struct share_class *class = &share->classes[c];
        class->base_cap = class->cap = class->limit = class->rate = o->base_caps[path];
        class->priority = o->paths[path].priority;
        if (class->priority >= share->priority_count) share->priority_count = class->priority + 1;
        class->trunk = INFINITY;
        class->bottleneck = SHARE_NO_LANE;
        class->first_lane = shared;
        class->first_private = private;
        for (uint32_t i = 0; i < count; i++) {
            const struct share_lane *lane = &share->lanes[lanes[i].lane];
            if (lane->class_count == 1) {
                class->trunk = fmin(class->trunk, lane->bytes_per_s);
                continue;
            }
            share->class_weights[shared] = lanes[i].weight;
            share->class_lanes[shared++] = lanes[i].lane;
        }
        for (uint32_t i = 0; i < count; i++) {
            const struct share_lane *lane = &share->lanes[lanes[i].lane];
            if (lane->class_count == 1 && class->trunk >= lane->bytes_per_s * SIM_FULL)
                share->private_lanes[private++] = lanes[i].lane;
        }
        class->trunk_full = class->trunk * SIM_FULL;
        class->lane_count = shared - class->first_lane;
        class->private_count = private - class->first_private;
    }
}

static bool is_bottleneck(const struct sim_share *share, const struct share_lane *lane)
{
    for (uint32_t i = 0; i < lane->class_count; i++)
        if (share->classes[share->lane_classes[lane->first_class + i]].lane_count != 1) return false;
    return lane->class_count > 1;
}

static void find_bottlenecks(struct sim_share *share)
{
    for (uint32_t l = 0; l < share->lane_count; l++) {
        const struct share_lane *lane = &share->lanes[l];
        if (!is_bottleneck(share, lane)) continue;
        for (uint32_t i = 0; i < lane->class_count; i++)
            share->classes[share->lane_classes[lane->first_class + i]].bottleneck = l;
    }
}

/* Lists, among the own lanes of each path, those that are full when the path is at its base cap. */
static void fill_paths(struct sim_share *share, const struct sim_path_classes *o)
{
    uint32_t used = 0;
    for (uint32_t p = 0; p < o->path_count; p++) {
        struct sim_load *lanes = o->scratch;
        uint32_t count = sim_path_classes_lanes(o, p, SIM_LANE_OWN, lanes);
        share->paths[p].class = o->path_classes[p];
        share->paths[p].first_own = used;
        for (uint32_t i = 0; i < count; i++)
            if (o->base_caps[p] * lanes[i].weight >= o->lanes[lanes[i].lane].bytes_per_s * SIM_FULL)
                share->own_lanes[used++] = lanes[i].lane;
        share->paths[p].own_count = used - share->paths[p].first_own;
    }
}

enum status sim_share_create(struct arena *arena, const struct sim_link *links, uint32_t link_count,
                             const struct sim_path *paths, uint32_t path_count,
                             struct sim_share **out, struct error *err)
{
    struct arena scratch = {0};
    struct sim_path_classes classes;
    struct sim_share *share;
    enum status status =
        sim_path_classes_create(&scratch, links, link_count, paths, path_count, &classes, err);
    if (status == STATUS_OK) status = share_allocate(arena, &classes, &share, err);
    if (status == STATUS_OK) {
        list_lane_classes(share, &classes);
        fill_classes(share, &classes);
        fill_paths(share, &classes);
        find_bottlenecks(share);
        *out = share;
    }
    arena_release(&scratch);
    return status;
}
