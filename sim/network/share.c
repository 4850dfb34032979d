/*
 * The solver runs at nearly every event, for a few hundred nanoseconds.
 *
 * Every start or end of a copy may change all other rates. Three exact observations avoid solving for all flows over
 * all links.
 *
 * 1. Links that cannot limit flows are removed, equal paths are one class, and a class of n flows is rated like one
 * flow of weight n (path_classes.h).
 *
 * 2. A change spreads only over contended link directions, whose flows' caps exceed the bandwidth, now or when last
 * rated. A path without them has its cap as its rate, and no other class changes.
 *
 * 3. A class that shares no link direction is rated by itself: the lowest of its cap and bandwidth / flows. If groups
 * of devices do not contend, this holds for every class.
 *
 * Other classes are rated by progressive filling. A component's rates rise together from zero. Link direction l would
 * be full at the level (remaining bandwidth) / (flows not yet fixed on l). The lowest level is reached first, unless
 * classes reach their caps before. These are then fixed at their caps and levels computed again (fixing a class below a
 * level never lowers it, so all can be fixed in one round). Otherwise the link direction's flows are fixed at the
 * level, until every class is fixed.
 *
 *     two link directions, A 10 and B 9; flows x on A, y on A and B, z on B and B's cap-2 flow w
 *     levels: A 10/2 = 5, B 9/3 = 3; w has cap 2 < 3: fix w = 2
 *     levels: A 5, B (9-2)/2 = 3.5: fix y = z = 3.5;  A (10-3.5)/1 = 6.5: fix x = 6.5
 *
 * Rounding: remaining bandwidth is a difference and may be slightly low. Exact levels never fall from round to round,
 * so the code keeps them from falling, which also keeps rates positive.
 *
 * Demands are summed anew over a link direction's few classes at every change: so they do not drift, and the state
 * depends only on the counts.
 *
 * Weights. A collective (collective_flow.h) is one flow over all link directions of its messages, and uses `weight`
 * times its rate of each. A level is then divided by the sum of weights.
 *
 * Priorities. Filling visits the component once per priority, with the remaining bandwidth. A remainder of the order of
 * rounding counts as zero, so that a flow either waits or has a meaningful rate.
 *
 * Bandwidths that fall with the number of flows (TCP) are not modelled; PCIe and copy engines do not show this.
 *
 * Source: Bertsekas and Gallager, Data Networks, 2nd ed., sec. 6.5.2 (progressive filling); the lazy re-rating of
 * components as in SimGrid's maxmin solver.
 */
#include "sim/network/share_state.h"

#include <assert.h>
#include <math.h>

/* --- the component of a change -------------------------------------------------------------- */

/* Notes that the class's flows or cap have changed. */
static void touch(struct sim_share *share, uint32_t index)
{
    struct share_class *class = &share->classes[index];
    double part = class->flow_count > 1 ? class->trunk / class->flow_count : class->trunk;
    class->limit = class->cap < part ? class->cap : part;
    if (class->touched) return;
    class->touched = true;
    share->touched[share->touched_count++] = index;
}

static void join(struct sim_share *share, uint32_t class)
{
    if (share->classes[class].mark == share->round) return;
    share->classes[class].mark = share->round;
    share->changed[share->changed_count++].class = class;
}

static void sum_demand(const struct sim_share *share, struct share_link_dir *link_dir)
{
    const uint32_t *classes = &share->link_dir_classes[link_dir->first_class];
    const double *weights = &share->link_dir_weights[link_dir->first_class];
    link_dir->demand = 0;
    for (uint32_t i = 0; i < link_dir->class_count; i++) {
        const struct share_class *class = &share->classes[classes[i]];
        link_dir->demand += class->limit * class->flow_count * weights[i];
    }
}

/* Collects the touched classes and all connected by contended link directions. */
static void collect_component(struct sim_share *share)
{
    share->round++;
    share->component_link_dir_count = 0;
    share->component_first = share->changed_count;
    for (uint32_t i = 0; i < share->touched_count; i++) {
        struct share_class *class = &share->classes[share->touched[i]];
        class->touched = false;
        join(share, share->touched[i]);
        for (uint32_t k = 0; k < class->link_dir_count; k++)
            sum_demand(share, &share->link_dirs[share->class_link_dirs[class->first_link_dir + k]]);
    }
    share->touched_count = 0;

    for (uint32_t i = share->component_first; i < share->changed_count; i++) {
        const struct share_class *class = &share->classes[share->changed[i].class];
        for (uint32_t k = 0; k < class->link_dir_count; k++) {
            uint32_t index = share->class_link_dirs[class->first_link_dir + k];
            struct share_link_dir *link_dir = &share->link_dirs[index];
            bool was_contended = link_dir->contended;
            link_dir->contended = link_dir->demand > link_dir->bytes_per_s;
            if (link_dir->mark == share->round || !(was_contended || link_dir->contended)) continue;
            link_dir->mark = share->round;
            share->component_link_dirs[share->component_link_dir_count++] = index;
            for (uint32_t c = 0; c < link_dir->class_count; c++) {
                uint32_t neighbour = share->link_dir_classes[link_dir->first_class + c];
                if (share->classes[neighbour].flow_count > 0) join(share, neighbour);
            }
        }
    }
}

/* --- progressive filling -------------------------------------------------------------------- */

static uint32_t begin_filling(struct sim_share *share, uint32_t priority)
{
    uint32_t unfixed = 0;
    for (uint32_t i = 0; i < share->component_link_dir_count; i++) {
        struct share_link_dir *link_dir = &share->link_dirs[share->component_link_dirs[i]];
        if (priority == 0) link_dir->left = link_dir->bytes_per_s;
        else if (link_dir->left < link_dir->bytes_per_s * (1 - SIM_FULL)) link_dir->left = 0;
        link_dir->unfixed = 0;
        link_dir->unfixed_weight = 0;
    }
    for (uint32_t i = share->component_first; i < share->changed_count; i++) {
        struct share_class *class = &share->classes[share->changed[i].class];
        class->fixed = class->flow_count == 0 || class->priority != priority;
        if (class->fixed) continue;
        unfixed++;
        for (uint32_t k = 0; k < class->link_dir_count; k++) {
            struct share_link_dir *link_dir = &share->link_dirs[share->class_link_dirs[class->first_link_dir + k]];
            if (link_dir->mark != share->round) continue;
            link_dir->unfixed += class->flow_count;
            link_dir->unfixed_weight += class->flow_count * share->class_weights[class->first_link_dir + k];
        }
    }
    return unfixed;
}

/* Finds the lowest level at which a link direction of the component is full, and that one, or SHARE_NO_LINK_DIR. */
static uint32_t lowest_link_dir(const struct sim_share *share, double *level)
{
    uint32_t lowest = SHARE_NO_LINK_DIR;
    *level = INFINITY;
    for (uint32_t i = 0; i < share->component_link_dir_count; i++) {
        const struct share_link_dir *link_dir = &share->link_dirs[share->component_link_dirs[i]];
        if (link_dir->unfixed == 0 || link_dir->left >= *level * link_dir->unfixed_weight) continue;
        *level = link_dir->left / link_dir->unfixed_weight;
        lowest = share->component_link_dirs[i];
    }
    return lowest;
}

static void fix(struct sim_share *share, struct share_class *class, double rate)
{
    class->rate = rate;
    class->fixed = true;
    for (uint32_t k = 0; k < class->link_dir_count; k++) {
        struct share_link_dir *link_dir = &share->link_dirs[share->class_link_dirs[class->first_link_dir + k]];
        if (link_dir->mark != share->round) continue;
        double weight = class->flow_count * share->class_weights[class->first_link_dir + k];
        link_dir->left -= rate * weight;
        link_dir->unfixed -= class->flow_count;
        link_dir->unfixed_weight -= weight;
    }
}

/* Fixes classes with limits up to `level`, and returns their number. */
static uint32_t fix_capped(struct sim_share *share, double level)
{
    uint32_t count = 0;
    for (uint32_t i = share->component_first; i < share->changed_count; i++) {
        struct share_class *class = &share->classes[share->changed[i].class];
        if (class->fixed || class->limit > level) continue;
        fix(share, class, class->limit);
        count++;
    }
    return count;
}

static uint32_t fix_link_dir(struct sim_share *share, const struct share_link_dir *link_dir, double level)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < link_dir->class_count; i++) {
        struct share_class *class = &share->classes[share->link_dir_classes[link_dir->first_class + i]];
        if (class->fixed || class->flow_count == 0) continue;
        fix(share, class, level);
        count++;
    }
    return count;
}

static void fill_component(struct sim_share *share, uint32_t priority)
{
    uint32_t unfixed = begin_filling(share, priority);
    double reached = 0;
    while (unfixed > 0) {
        double level;
        uint32_t link_dir = lowest_link_dir(share, &level);
        if (level < reached) level = reached;
        reached = level;
        uint32_t count = fix_capped(share, level);
        if (count == 0) count = fix_link_dir(share, &share->link_dirs[link_dir], level);
        assert(count > 0);
        unfixed -= count;
    }
}

/* --- full or not ---------------------------------------------------------------------------- */

static void note_load(struct sim_share *share, uint32_t index, double load)
{
    struct share_link_dir *link_dir = &share->link_dirs[index];
    bool full = load >= link_dir->bytes_per_s * SIM_FULL;
    if (full == link_dir->full) return;
    link_dir->full = full;
    share->turned[share->turned_count++] = index;
}

/* Notes link directions of this class's own: the narrowest, and others equal up to rounding. */
static inline void note_private(struct sim_share *share, struct share_class *class)
{
    bool full = class->rate * class->flow_count >= class->trunk_full;
    if (full == class->filled) return;
    class->filled = full;
    const uint32_t *link_dirs = &share->private_link_dirs[class->first_private];
    for (uint32_t k = 0; k < class->private_count; k++)
        note_load(share, link_dirs[k], class->rate * class->flow_count);
}

static double sum_load(const struct sim_share *share, const struct share_link_dir *link_dir)
{
    const uint32_t *classes = &share->link_dir_classes[link_dir->first_class];
    const double *weights = &share->link_dir_weights[link_dir->first_class];
    double load = 0;
    for (uint32_t i = 0; i < link_dir->class_count; i++) {
        const struct share_class *class = &share->classes[classes[i]];
        if (class->flow_count > 0) load += class->rate * class->flow_count * weights[i];
    }
    return load;
}

/* Sorts, so that results do not depend on which flow began first. */
static void sort_touched(struct sim_share *share)
{
    for (uint32_t i = 1; i < share->touched_count; i++) {
        uint32_t class = share->touched[i], at = i;
        for (; at > 0 && share->touched[at - 1] > class; at--) share->touched[at] = share->touched[at - 1];
        share->touched[at] = class;
    }
}

static void solve_component(struct sim_share *share)
{
    sort_touched(share);
    collect_component(share);
    if (share->component_link_dir_count > 0)
        for (uint32_t priority = 0; priority < share->priority_count; priority++) fill_component(share, priority);
    else
        for (uint32_t i = share->component_first; i < share->changed_count; i++)
            share->classes[share->changed[i].class].rate = share->classes[share->changed[i].class].limit;

    for (uint32_t i = share->component_first; i < share->changed_count; i++) {
        struct share_class *class = &share->classes[share->changed[i].class];
        note_private(share, class);
        for (uint32_t k = 0; k < class->link_dir_count; k++) {
            uint32_t index = share->class_link_dirs[class->first_link_dir + k];
            struct share_link_dir *link_dir = &share->link_dirs[index];
            if (link_dir->summed == share->round) continue;
            link_dir->summed = share->round;
            note_load(share, index, sum_load(share, link_dir));
        }
    }
}

/* --- classes without shared link directions --------------------------------------------- */

/* Solves the usual case of groups that do not contend. Returns false, and changes nothing, if a touched class shares a
 * link direction. */
static bool solve_sole(struct sim_share *share)
{
    for (uint32_t i = 0; i < share->touched_count; i++)
        if (share->classes[share->touched[i]].link_dir_count > 0) return false;
    for (uint32_t i = 0; i < share->touched_count; i++) {
        struct share_class *class = &share->classes[share->touched[i]];
        share->changed[share->changed_count++].class = share->touched[i];
        class->touched = false;
        class->rate = class->limit;
        note_private(share, class);
    }
    share->touched_count = 0;
    return true;
}

/* --- public --------------------------------------------------------------------------------- */

uint32_t sim_share_class_count(const struct sim_share *share)
{
    return share->class_count;
}

uint32_t sim_share_class(const struct sim_share *share, uint32_t path)
{
    assert(path < share->path_count);
    return share->paths[path].class;
}

struct sim_share_limits sim_share_limits(const struct sim_share *share, uint32_t class)
{
    assert(class < share->class_count);
    const struct share_class *c = &share->classes[class];
    struct sim_share_limits limits = {
        .bottleneck = c->bottleneck,
        .partner = c->partner,
        .alone = c->link_dir_count == 0,
        .bottleneck_bytes_per_s = c->bottleneck == SHARE_NO_LINK_DIR ? 0 : share->link_dirs[c->bottleneck].bytes_per_s,
        .trunk_bytes_per_s = c->trunk,
        .full_link_dirs = &share->private_link_dirs[c->first_private],
        .full_link_dir_count = c->private_count};
    if (c->partner == SIM_NO_PARTNER) return limits;
    limits.trunk_bytes_per_s = share->link_dirs[c->shared_trunk].bytes_per_s;
    limits.trunk_flow_limit = share->link_dirs[c->shared_trunk].flow_limit;
    limits.full_link_dirs = &c->shared_trunk;
    limits.full_link_dir_count = 1;
    return limits;
}

double sim_share_base_cap(const struct sim_share *share, uint32_t class)
{
    assert(class < share->class_count);
    return share->classes[class].base_cap;
}

void sim_share_add(struct sim_share *share, uint32_t class)
{
    assert(class < share->class_count);
    share->classes[class].flow_count++;
    touch(share, class);
}

void sim_share_remove(struct sim_share *share, uint32_t class)
{
    assert(class < share->class_count);
    assert(share->classes[class].flow_count > 0);
    share->classes[class].flow_count--;
    touch(share, class);
}

void sim_share_set_cap(struct sim_share *share, uint32_t class, double cap_bytes_per_s)
{
    assert(class < share->class_count);
    assert(isfinite(cap_bytes_per_s));
    assert(cap_bytes_per_s > 0);
    share->classes[class].cap = fmin(cap_bytes_per_s, share->classes[class].base_cap);
    touch(share, class);
}

uint32_t sim_share_flows(const struct sim_share *share, uint32_t class)
{
    assert(class < share->class_count);
    return share->classes[class].flow_count;
}

uint32_t sim_share_solve(struct sim_share *share, const struct sim_rate **changed)
{
    share->turned_count = share->changed_count = 0;
    if (!solve_sole(share)) solve_component(share);
    for (uint32_t i = 0; i < share->changed_count; i++)
        share->changed[i].bytes_per_s = share->classes[share->changed[i].class].rate;
    *changed = share->changed;
    return share->changed_count;
}

double sim_share_rate(const struct sim_share *share, uint32_t class)
{
    assert(class < share->class_count);
    return share->classes[class].rate;
}

uint32_t sim_share_turned(const struct sim_share *share, const uint32_t **link_dirs)
{
    *link_dirs = share->turned;
    return share->turned_count;
}

uint32_t sim_share_own_link_dirs(const struct sim_share *share, uint32_t path, const uint32_t **link_dirs)
{
    assert(path < share->path_count);
    *link_dirs = &share->own_link_dirs[share->paths[path].first_own];
    return share->paths[path].own_count;
}

bool sim_share_full(const struct sim_share *share, uint32_t link_dir)
{
    assert(link_dir < share->link_dir_count);
    return share->link_dirs[link_dir].full;
}

void sim_share_write(const struct sim_share *share, struct sim_snapshot *out)
{
    assert(share->touched_count == 0);
    for (uint32_t c = 0; c < share->class_count; c++) {
        const struct share_class *class = &share->classes[c];
        sim_snapshot_put(out, (uint64_t)class->flow_count << 1 | class->filled);
        sim_snapshot_put_real(out, class->cap);
        sim_snapshot_put_real(out, class->limit);
        sim_snapshot_put_real(out, class->rate);
    }
    for (uint32_t l = 0; l < share->link_dir_count; l++) {
        const struct share_link_dir *link_dir = &share->link_dirs[l];
        sim_snapshot_put(out, (uint64_t)link_dir->contended << 1 | link_dir->full);
        sim_snapshot_put_real(out, link_dir->demand);
    }
}
