/*
 * Who gets how much of which link, again and again, a few hundred nanoseconds each time.
 *
 * Every start and end of a copy may change the rate of every other copy that is under way. Solved
 * naively, all flows over all links, that is the whole cost of a simulation. Three observations
 * make it small; each is exact.
 *
 * 1. Links that cannot limit anybody are left out, paths that are alike are one class, and a class
 *    of n flows is rated like one flow of weight n (outline.c).
 *
 * 2. A change travels only over contended lanes: those where the caps of all flows together exceed
 *    the bandwidth, now or when they were last rated. Where no lane on the path is contended the
 *    rate is the cap, and nobody else notices.
 *
 * 3. A class that no other class shares a lane with is rated by itself: the lowest of its cap and
 *    bandwidth / flows. Where groups of devices do not contend with each other, that is every class.
 *
 * What is left is rated by progressive filling. All rates of the component rise together from zero.
 * The level at which lane l would be full is (what is left of l) / (flows not yet fixed on l). The
 * lowest such level, over all lanes, is reached first - unless some class reaches its cap before:
 * those classes are fixed at their caps and the levels computed anew (fixing a class below a lane's
 * level never lowers that level, so all of them can be fixed in one round). Otherwise the flows on
 * that lane are fixed at the level. Rounds end when every class is fixed.
 *
 *     two lanes, A 10 and B 9; flows x on A, y on A and B, z on B and B's cap-2 flow w
 *     levels: A 10/2 = 5, B 9/3 = 3; w has cap 2 < 3: fix w = 2
 *     levels: A 5, B (9-2)/2 = 3.5: fix y = z = 3.5;  A (10-3.5)/1 = 6.5: fix x = 6.5
 *
 * Rounding: what is left of a lane is a difference and may come out a little low; the level never
 * falls from round to round in exact arithmetic, so it is kept from falling, which also keeps rates
 * positive.
 *
 * Demands are summed anew from the few classes of a lane whenever one of them changes, rather than
 * kept up to date by differences: no drift, the state depends on the counts alone.
 *
 * Left out: bandwidths that fall with the number of flows (TCP), and flows with unequal weights;
 * PCIe and copy engines show neither.
 *
 * Source: Bertsekas and Gallager, Data Networks, 2nd ed., sec. 6.5.2 (progressive filling); the lazy
 * re-rating of components as in SimGrid's maxmin solver.
 */
#include "sim/share.h"

#include <assert.h>
#include <math.h>

#include "sim/take.h"

#define NO_LANE UINT32_MAX

struct lane {
    double bytes_per_s;
    double demand;     /* of all flows at their caps */
    double left;       /* while filling */
    uint64_t mark;     /* == share->round: in the component at hand */
    uint64_t summed;   /* == share->round: `full` is up to date */
    uint32_t unfixed;  /* flows, while filling */
    uint32_t first_class, class_count; /* in share->lane_classes */
    bool contended;    /* when last rated */
    bool full;         /* likewise */
};

struct rate_class {
    double base_cap, cap;
    double rate;
    uint64_t mark;     /* == share->round: in the component at hand */
    uint32_t flow_count;
    uint32_t first_lane, lane_count; /* in share->class_lanes */
    bool touched;      /* in share->touched */
    bool sole;         /* no other class crosses any of its lanes */
    bool fixed;        /* while filling */
};

struct path_lanes {
    uint32_t class;
    uint32_t first_own, own_count; /* in share->own_lanes */
};

struct sim_share {
    struct lane *lanes;         /* 2 per link */
    struct rate_class *classes;
    struct path_lanes *paths;
    uint32_t *lane_classes;     /* which classes cross a lane */
    uint32_t *class_lanes;      /* which lanes a class crosses */
    uint32_t *own_lanes;
    uint32_t *touched;          /* classes changed since the last solve */
    uint32_t *changed;          /* result: the component, classes ... */
    uint32_t *component_lanes;  /* ... and contended lanes */
    uint32_t *turned;           /* result: lanes that became full or no longer are */
    uint32_t lane_count, class_count, path_count;
    uint32_t touched_count, changed_count, component_lane_count, turned_count;
    uint64_t round;             /* of solving */
};

/* --- creation ------------------------------------------------------------------------------- */

static enum status share_allocate(struct arena *arena, const struct sim_outline *o,
                                  struct sim_share **out, struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_share *share = sim_take(arena, 1, sizeof *share, &status, err);
    if (status != STATUS_OK) return status;
    share->lane_count = o->lane_count;
    share->class_count = o->class_count;
    share->path_count = o->path_count;
    share->lanes = sim_take(arena, o->lane_count, sizeof *share->lanes, &status, err);
    share->classes = sim_take(arena, o->class_count, sizeof *share->classes, &status, err);
    share->paths = sim_take(arena, o->path_count, sizeof *share->paths, &status, err);
    share->lane_classes = sim_take(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->class_lanes = sim_take(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->own_lanes = sim_take(arena, o->hop_count, sizeof(uint32_t), &status, err);
    share->touched = sim_take(arena, o->class_count, sizeof(uint32_t), &status, err);
    share->changed = sim_take(arena, o->class_count, sizeof(uint32_t), &status, err);
    share->component_lanes = sim_take(arena, o->lane_count, sizeof(uint32_t), &status, err);
    share->turned = sim_take(arena, o->lane_count, sizeof(uint32_t), &status, err);
    if (status == STATUS_OK) *out = share;
    return status;
}

static void fill_classes(struct sim_share *share, const struct sim_outline *o)
{
    uint32_t used = 0;
    for (uint32_t c = 0; c < o->class_count; c++) {
        uint32_t path = o->class_paths[c];
        struct rate_class *class = &share->classes[c];
        uint32_t lanes[SIM_HOPS_MAX];
        class->base_cap = class->cap = class->rate = o->base_caps[path];
        class->first_lane = used;
        class->lane_count = sim_outline_lanes(o, path, SIM_LANE_SHARED, lanes);
        for (uint32_t i = 0; i < class->lane_count; i++) {
            share->class_lanes[used++] = lanes[i];
            share->lanes[lanes[i]].class_count++;
        }
    }
    used = 0;
    for (uint32_t l = 0; l < share->lane_count; l++) {
        struct lane *lane = &share->lanes[l];
        lane->bytes_per_s = o->lanes[l].bytes_per_s;
        lane->first_class = used;
        used += lane->class_count;
        lane->class_count = 0;
    }
    for (uint32_t c = 0; c < o->class_count; c++)
        for (uint32_t i = 0; i < share->classes[c].lane_count; i++) {
            struct lane *lane = &share->lanes[share->class_lanes[share->classes[c].first_lane + i]];
            share->lane_classes[lane->first_class + lane->class_count++] = c;
        }
    for (uint32_t c = 0; c < o->class_count; c++) {
        struct rate_class *class = &share->classes[c];
        class->sole = true;
        for (uint32_t i = 0; i < class->lane_count; i++)
            class->sole &= share->lanes[share->class_lanes[class->first_lane + i]].class_count == 1;
    }
}

/* Of a path's own lanes those that are full when it goes at its base cap. */
static void fill_paths(struct sim_share *share, const struct sim_outline *o)
{
    uint32_t used = 0;
    for (uint32_t p = 0; p < o->path_count; p++) {
        uint32_t lanes[SIM_HOPS_MAX];
        uint32_t count = sim_outline_lanes(o, p, SIM_LANE_OWN, lanes);
        share->paths[p].class = o->path_classes[p];
        share->paths[p].first_own = used;
        for (uint32_t i = 0; i < count; i++)
            if (o->base_caps[p] >= o->lanes[lanes[i]].bytes_per_s * SIM_FULL)
                share->own_lanes[used++] = lanes[i];
        share->paths[p].own_count = used - share->paths[p].first_own;
    }
}

enum status sim_share_create(struct arena *arena, const struct sim_link *links, uint32_t link_count,
                             const struct sim_path *paths, uint32_t path_count,
                             struct sim_share **out, struct error *err)
{
    struct arena scratch = {0};
    struct sim_outline outline;
    struct sim_share *share;
    enum status status =
        sim_outline_create(&scratch, links, link_count, paths, path_count, &outline, err);
    if (status == STATUS_OK) status = share_allocate(arena, &outline, &share, err);
    if (status == STATUS_OK) {
        fill_classes(share, &outline);
        fill_paths(share, &outline);
        *out = share;
    }
    arena_release(&scratch);
    return status;
}

/* --- what a change touches ------------------------------------------------------------------ */

static void touch(struct sim_share *share, uint32_t class)
{
    if (share->classes[class].touched) return;
    share->classes[class].touched = true;
    share->touched[share->touched_count++] = class;
}

static void join(struct sim_share *share, uint32_t class)
{
    if (share->classes[class].mark == share->round) return;
    share->classes[class].mark = share->round;
    share->changed[share->changed_count++] = class;
}

static void sum_demand(const struct sim_share *share, struct lane *lane)
{
    const uint32_t *classes = &share->lane_classes[lane->first_class];
    lane->demand = 0;
    for (uint32_t i = 0; i < lane->class_count; i++) {
        const struct rate_class *class = &share->classes[classes[i]];
        lane->demand += class->cap * class->flow_count;
    }
}

/* The touched classes and all that contended lanes connect them with. */
static void collect_component(struct sim_share *share)
{
    share->round++;
    share->changed_count = share->component_lane_count = 0;
    for (uint32_t i = 0; i < share->touched_count; i++) {
        struct rate_class *class = &share->classes[share->touched[i]];
        class->touched = false;
        join(share, share->touched[i]);
        for (uint32_t k = 0; k < class->lane_count; k++)
            sum_demand(share, &share->lanes[share->class_lanes[class->first_lane + k]]);
    }
    share->touched_count = 0;

    for (uint32_t i = 0; i < share->changed_count; i++) {
        const struct rate_class *class = &share->classes[share->changed[i]];
        for (uint32_t k = 0; k < class->lane_count; k++) {
            uint32_t index = share->class_lanes[class->first_lane + k];
            struct lane *lane = &share->lanes[index];
            bool was_contended = lane->contended;
            lane->contended = lane->demand > lane->bytes_per_s;
            if (lane->mark == share->round || !(was_contended || lane->contended)) continue;
            lane->mark = share->round;
            share->component_lanes[share->component_lane_count++] = index;
            for (uint32_t c = 0; c < lane->class_count; c++) {
                uint32_t neighbour = share->lane_classes[lane->first_class + c];
                if (share->classes[neighbour].flow_count > 0) join(share, neighbour);
            }
        }
    }
}

/* --- progressive filling -------------------------------------------------------------------- */

static uint32_t begin_filling(struct sim_share *share)
{
    uint32_t unfixed = 0;
    for (uint32_t i = 0; i < share->component_lane_count; i++) {
        struct lane *lane = &share->lanes[share->component_lanes[i]];
        lane->left = lane->bytes_per_s;
        lane->unfixed = 0;
    }
    for (uint32_t i = 0; i < share->changed_count; i++) {
        struct rate_class *class = &share->classes[share->changed[i]];
        class->fixed = class->flow_count == 0;
        if (class->fixed) continue;
        unfixed++;
        for (uint32_t k = 0; k < class->lane_count; k++) {
            struct lane *lane = &share->lanes[share->class_lanes[class->first_lane + k]];
            if (lane->mark == share->round) lane->unfixed += class->flow_count;
        }
    }
    return unfixed;
}

/* The lowest level at which a lane of the component is full; its index, or NO_LANE when none is. */
static uint32_t lowest_lane(const struct sim_share *share, double *level)
{
    uint32_t lowest = NO_LANE;
    *level = INFINITY;
    for (uint32_t i = 0; i < share->component_lane_count; i++) {
        const struct lane *lane = &share->lanes[share->component_lanes[i]];
        if (lane->unfixed == 0 || lane->left >= *level * lane->unfixed) continue;
        *level = lane->left / lane->unfixed;
        lowest = share->component_lanes[i];
    }
    return lowest;
}

static void fix(struct sim_share *share, struct rate_class *class, double rate)
{
    class->rate = rate;
    class->fixed = true;
    for (uint32_t k = 0; k < class->lane_count; k++) {
        struct lane *lane = &share->lanes[share->class_lanes[class->first_lane + k]];
        if (lane->mark != share->round) continue;
        lane->left -= rate * class->flow_count;
        lane->unfixed -= class->flow_count;
    }
}

/* Fix the classes whose caps are not above `level`; how many. */
static uint32_t fix_capped(struct sim_share *share, double level)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < share->changed_count; i++) {
        struct rate_class *class = &share->classes[share->changed[i]];
        if (class->fixed || class->cap > level) continue;
        fix(share, class, class->cap);
        count++;
    }
    return count;
}

static uint32_t fix_lane(struct sim_share *share, const struct lane *lane, double level)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < lane->class_count; i++) {
        struct rate_class *class = &share->classes[share->lane_classes[lane->first_class + i]];
        if (class->fixed || class->flow_count == 0) continue;
        fix(share, class, level);
        count++;
    }
    return count;
}

static void fill_component(struct sim_share *share)
{
    uint32_t unfixed = begin_filling(share);
    double reached = 0;
    while (unfixed > 0) {
        double level;
        uint32_t lane = lowest_lane(share, &level);
        if (level < reached) level = reached;
        reached = level;
        uint32_t count = fix_capped(share, level);
        if (count == 0) count = fix_lane(share, &share->lanes[lane], level);
        assert(count > 0);
        unfixed -= count;
    }
}

/* --- full or not ---------------------------------------------------------------------------- */

static void note_load(struct sim_share *share, uint32_t index, double load)
{
    struct lane *lane = &share->lanes[index];
    bool full = load >= lane->bytes_per_s * SIM_FULL;
    if (full == lane->full) return;
    lane->full = full;
    share->turned[share->turned_count++] = index;
}

static double sum_load(const struct sim_share *share, const struct lane *lane)
{
    const uint32_t *classes = &share->lane_classes[lane->first_class];
    double load = 0;
    for (uint32_t i = 0; i < lane->class_count; i++) {
        const struct rate_class *class = &share->classes[classes[i]];
        if (class->flow_count > 0) load += class->rate * class->flow_count;
    }
    return load;
}

static void solve_component(struct sim_share *share)
{
    collect_component(share);
    if (share->component_lane_count > 0)
        fill_component(share);
    else
        for (uint32_t i = 0; i < share->changed_count; i++)
            share->classes[share->changed[i]].rate = share->classes[share->changed[i]].cap;

    for (uint32_t i = 0; i < share->changed_count; i++) {
        const struct rate_class *class = &share->classes[share->changed[i]];
        for (uint32_t k = 0; k < class->lane_count; k++) {
            uint32_t index = share->class_lanes[class->first_lane + k];
            struct lane *lane = &share->lanes[index];
            if (lane->summed == share->round) continue;
            lane->summed = share->round;
            note_load(share, index, sum_load(share, lane));
        }
    }
}

/* --- classes that share with nobody --------------------------------------------------------- */

static void rate_sole(struct sim_share *share, struct rate_class *class)
{
    const uint32_t *lanes = &share->class_lanes[class->first_lane];
    double flows = class->flow_count;
    class->rate = class->cap;
    if (class->flow_count > 0)
        for (uint32_t k = 0; k < class->lane_count; k++) {
            double level = share->lanes[lanes[k]].bytes_per_s / flows;
            if (level < class->rate) class->rate = level;
        }
    for (uint32_t k = 0; k < class->lane_count; k++)
        note_load(share, lanes[k], class->rate * flows);
}

/* The usual case on machines whose groups of devices do not contend with each other. False, and
 * nothing is done, when some touched class shares a lane with another class. */
static bool solve_sole(struct sim_share *share)
{
    for (uint32_t i = 0; i < share->touched_count; i++)
        if (!share->classes[share->touched[i]].sole) return false;
    share->changed_count = share->touched_count;
    share->touched_count = 0;
    for (uint32_t i = 0; i < share->changed_count; i++) {
        struct rate_class *class = &share->classes[share->touched[i]];
        share->changed[i] = share->touched[i];
        class->touched = false;
        rate_sole(share, class);
    }
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

uint32_t sim_share_solve(struct sim_share *share, const uint32_t **changed)
{
    share->turned_count = 0;
    if (!solve_sole(share)) solve_component(share);
    *changed = share->changed;
    return share->changed_count;
}

double sim_share_rate(const struct sim_share *share, uint32_t class)
{
    assert(class < share->class_count);
    return share->classes[class].rate;
}

uint32_t sim_share_turned(const struct sim_share *share, const uint32_t **lanes)
{
    *lanes = share->turned;
    return share->turned_count;
}

uint32_t sim_share_own_lanes(const struct sim_share *share, uint32_t path, const uint32_t **lanes)
{
    assert(path < share->path_count);
    *lanes = &share->own_lanes[share->paths[path].first_own];
    return share->paths[path].own_count;
}

bool sim_share_full(const struct sim_share *share, uint32_t lane)
{
    assert(lane < share->lane_count);
    return share->lanes[lane].full;
}
