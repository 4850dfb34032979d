/*
 * Link directions and classes of path_classes.h, laid out for share.c.
 *
 * A class's *trunk* is a link direction that only it crosses: each of n flows gets at most 1/n of it, a cap that
 * depends on n. A link direction whose classes share no other one is marked as a bottleneck, for callers that rate
 * those classes without this solver (bottleneck.h, crowd.h). There a class may share its trunk with one of another
 * priority: copies in of the devices behind one switch, on demand and ahead of time.
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
    share->link_dir_count = o->link_dir_count;
    share->class_count = o->class_count;
    share->path_count = o->path_count;
    share->link_dirs = sim_allocate(arena, o->link_dir_count, sizeof *share->link_dirs, &status, err);
    share->classes = sim_allocate(arena, o->class_count, sizeof *share->classes, &status, err);
    share->paths = sim_allocate(arena, o->path_count, sizeof *share->paths, &status, err);
    share->link_dir_classes = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->link_dir_weights = sim_allocate(arena, o->hop_count, sizeof(double), &status, err);
    share->class_link_dirs = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->class_weights = sim_allocate(arena, o->hop_count, sizeof(double), &status, err);
    share->private_link_dirs = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->own_link_dirs = sim_allocate(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->touched = sim_allocate(arena, o->class_count, sizeof(uint32_t), &status, err);
    share->changed = sim_allocate(arena, o->class_count, sizeof *share->changed, &status, err);
    share->component_link_dirs = sim_allocate(arena, o->link_dir_count, sizeof(uint32_t), &status, err);
    share->turned = sim_allocate(arena, o->link_dir_count, sizeof(uint32_t), &status, err);
    if (status == STATUS_OK) *out = share;
    return status;
}

static void list_link_dir_classes(struct sim_share *share, const struct sim_path_classes *o)
{
    struct sim_load *link_dirs = o->scratch;
    uint32_t used = 0;
    for (uint32_t c = 0; c < o->class_count; c++) {
        uint32_t count = sim_path_classes_link_dirs(o, o->class_paths[c], SIM_LINK_DIR_SHARED, link_dirs);
        for (uint32_t i = 0; i < count; i++) share->link_dirs[link_dirs[i].link_dir].class_count++;
    }
    for (uint32_t l = 0; l < share->link_dir_count; l++) {
        struct share_link_dir *link_dir = &share->link_dirs[l];
        link_dir->bytes_per_s = o->link_dirs[l].bytes_per_s;
        link_dir->flow_limit = o->link_dirs[l].flow_limit;
        link_dir->first_class = used;
        used += link_dir->class_count;
        link_dir->class_count = 0;
    }
    for (uint32_t c = 0; c < o->class_count; c++) {
        uint32_t count = sim_path_classes_link_dirs(o, o->class_paths[c], SIM_LINK_DIR_SHARED, link_dirs);
        for (uint32_t i = 0; i < count; i++) {
            struct share_link_dir *link_dir = &share->link_dirs[link_dirs[i].link_dir];
            share->link_dir_weights[link_dir->first_class + link_dir->class_count] = link_dirs[i].weight;
            share->link_dir_classes[link_dir->first_class + link_dir->class_count++] = c;
        }
    }
}

/* Classes with weights have no trunks: their single flow has such a link direction to itself (path_classes.h). */
static void fill_classes(struct sim_share *share, const struct sim_path_classes *o)
{
    uint32_t shared = 0, private = 0;
    for (uint32_t c = 0; c < o->class_count; c++) {
        uint32_t path = o->class_paths[c];
        struct sim_load *link_dirs = o->scratch;
        uint32_t count = sim_path_classes_link_dirs(o, path, SIM_LINK_DIR_SHARED, link_dirs);
        struct share_class *class = &share->classes[c];
        class->base_cap = class->cap = class->limit = class->rate = o->base_caps[path];
        class->priority = o->paths[path].priority;
        if (class->priority >= share->priority_count) share->priority_count = class->priority + 1;
        class->trunk = INFINITY;
        class->bottleneck = SHARE_NO_LINK_DIR;
        class->partner = SIM_NO_PARTNER;
        class->first_link_dir = shared;
        class->first_private = private;
        for (uint32_t i = 0; i < count; i++) {
            const struct share_link_dir *link_dir = &share->link_dirs[link_dirs[i].link_dir];
            if (link_dir->class_count == 1) {
                class->trunk = fmin(class->trunk, link_dir->bytes_per_s);
                continue;
            }
            share->class_weights[shared] = link_dirs[i].weight;
            share->class_link_dirs[shared++] = link_dirs[i].link_dir;
        }
        for (uint32_t i = 0; i < count; i++) {
            const struct share_link_dir *link_dir = &share->link_dirs[link_dirs[i].link_dir];
            if (link_dir->class_count == 1 && class->trunk >= link_dir->bytes_per_s * SIM_FULL)
                share->private_link_dirs[private++] = link_dirs[i].link_dir;
        }
        class->trunk_full = class->trunk * SIM_FULL;
        class->link_dir_count = shared - class->first_link_dir;
        class->private_count = private - class->first_private;
    }
}

/* Returns the other one of the class's two link directions. */
static uint32_t other_link_dir(const struct sim_share *share, const struct share_class *class, uint32_t link_dir)
{
    const uint32_t *link_dirs = &share->class_link_dirs[class->first_link_dir];
    return link_dirs[0] == link_dir ? link_dirs[1] : link_dirs[0];
}

/* Returns the other class of its trunk, if that has two classes of different priorities, which cross only it and
 * `bottleneck`; else SIM_NO_PARTNER. */
static uint32_t find_partner(const struct sim_share *share, uint32_t index, uint32_t bottleneck)
{
    const struct share_class *class = &share->classes[index];
    if (class->link_dir_count != 2 || class->trunk < INFINITY) return SIM_NO_PARTNER;
    const struct share_link_dir *trunk = &share->link_dirs[other_link_dir(share, class, bottleneck)];
    if (trunk->class_count != 2) return SIM_NO_PARTNER;
    const uint32_t *classes = &share->link_dir_classes[trunk->first_class];
    uint32_t partner = classes[0] == index ? classes[1] : classes[0];
    const struct share_class *other = &share->classes[partner];
    bool crosses = false;
    for (uint32_t k = 0; k < other->link_dir_count; k++)
        crosses |= share->class_link_dirs[other->first_link_dir + k] == bottleneck;
    bool suits = crosses && other->link_dir_count == 2 && !(other->trunk < INFINITY) &&
                 other->priority != class->priority;
    return suits ? partner : SIM_NO_PARTNER;
}

static bool is_bottleneck(const struct sim_share *share, uint32_t index)
{
    const struct share_link_dir *link_dir = &share->link_dirs[index];
    for (uint32_t i = 0; i < link_dir->class_count; i++) {
        uint32_t class = share->link_dir_classes[link_dir->first_class + i];
        if (share->classes[class].bottleneck != SHARE_NO_LINK_DIR) return false; /* of two with the same two classes */
        if (share->classes[class].link_dir_count != 1 && find_partner(share, class, index) == SIM_NO_PARTNER)
            return false;
    }
    return link_dir->class_count > 1;
}

static void find_bottlenecks(struct sim_share *share)
{
    for (uint32_t l = 0; l < share->link_dir_count; l++) {
        const struct share_link_dir *link_dir = &share->link_dirs[l];
        if (!is_bottleneck(share, l)) continue;
        for (uint32_t i = 0; i < link_dir->class_count; i++) {
            uint32_t index = share->link_dir_classes[link_dir->first_class + i];
            struct share_class *class = &share->classes[index];
            class->bottleneck = l;
            if (class->link_dir_count == 1) continue;
            class->partner = find_partner(share, index, l);
            class->shared_trunk = other_link_dir(share, class, l);
        }
    }
}

/* Lists each path's own link directions that are full at its base cap. */
static void fill_paths(struct sim_share *share, const struct sim_path_classes *o)
{
    uint32_t used = 0;
    for (uint32_t p = 0; p < o->path_count; p++) {
        struct sim_load *link_dirs = o->scratch;
        uint32_t count = sim_path_classes_link_dirs(o, p, SIM_LINK_DIR_OWN, link_dirs);
        share->paths[p].class = o->path_classes[p];
        share->paths[p].first_own = used;
        for (uint32_t i = 0; i < count; i++)
            if (o->base_caps[p] * link_dirs[i].weight >= o->link_dirs[link_dirs[i].link_dir].bytes_per_s * SIM_FULL)
                share->own_link_dirs[used++] = link_dirs[i].link_dir;
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
        list_link_dir_classes(share, &classes);
        fill_classes(share, &classes);
        fill_paths(share, &classes);
        find_bottlenecks(share);
        *out = share;
    }
    arena_release(&scratch);
    return status;
}
