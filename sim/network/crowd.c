/*
 * All flows with one limit have the same rate, whatever their arm: the limit, or the level. So they share a clock, as a
 * class does in flow.c: the bytes served to an always active flow. A change of the level sets these few clocks and
 * touches no flow.
 *
 *     arms 0 .. 999   ==trunk 12==+                         clock of limit 12   998 flows, each the only one of its arm
 *       998 of them with a flow,  +-- link direction 7098   clock of limit  6     4 flows, of two arms
 *       two with two              +                         level (7098 - 4 * 6) / 998 = 7.09
 *
 * An arm's limit changes with its number of flows, which then move to another clock: their remaining volume is read
 * from the old and set on the new one. These are few flows of one switch; an arm with many flows has one limit and
 * never moves.
 *
 * The level is found by visiting limits from the lowest. Flows keep a limit up to the remaining bandwidth divided by
 * the flows with this or a higher limit; the first higher limit ends the search. Sums are computed from numbers of
 * flows each time, so they do not drift, and rates depend only on these numbers.
 *
 * For statistics, a clock has its flows' time at their limit. Whether the limit is the cap or fills the trunk changes
 * with the arm's number of flows; the arm stores the clock's time of the last change.
 *
 * Cost: O(limits) per event, of which machines of one kind have two, and O(log flows) in the clock's queue.
 *
 * Source: generalized processor sharing, as in flow.c, with a clock per limit.
 */
#include "sim/network/crowd.h"

#include "sim/engine/allocate.h"
#include "sim/network/path_classes.h"

enum { MOVED_MAX = 64 }; /* flows of an arm with several limits */
#define NOBODY UINT32_MAX
static const double rewind_bytes = 0x1p32; /* as in flow.c */

/* --- limits --------------------------------------------------------------------------------- */

static double limit_of(double cap, double trunk, uint32_t flow_count)
{
    double part = flow_count > 1 ? trunk / flow_count : trunk;
    return part < cap ? part : cap;
}

/* Returns the first limit that is not below. */
static uint32_t find_limit(const double *limits, uint32_t count, double limit)
{
    uint32_t low = 0;
    while (low < count && limits[low] < limit) low++;
    return low;
}

/* Returns false if there are too many limits. */
static bool add_limit(double *limits, uint32_t *count, double limit)
{
    uint32_t at = find_limit(limits, *count, limit);
    if (at < *count && !(limits[at] > limit)) return true;
    if (*count == SIM_CROWD_LIMITS_MAX) return false;
    for (uint32_t i = *count; i > at; i--) limits[i] = limits[i - 1];
    limits[at] = limit;
    ++*count;
    return true;
}

static bool list_limits(const struct sim_crowd_arm *arms, uint32_t arm_count, double limits[SIM_CROWD_LIMITS_MAX], uint32_t *count)
{
    *count = 0;
    for (uint32_t a = 0; a < arm_count; a++) {
        bool stays = limit_of(arms[a].cap, arms[a].trunk, arms[a].flow_limit) >= arms[a].cap;
        uint32_t different = stays ? 1 : arms[a].flow_limit;
        if (different > MOVED_MAX) return false;
        for (uint32_t n = 1; n <= different; n++)
            if (!add_limit(limits, count, limit_of(arms[a].cap, arms[a].trunk, n))) return false;
    }
    return true;
}

bool sim_crowd_suits(const struct sim_crowd_arm *arms, uint32_t arm_count)
{
    double limits[SIM_CROWD_LIMITS_MAX];
    uint32_t count;
    return list_limits(arms, arm_count, limits, &count);
}

/* --- creation ------------------------------------------------------------------------------- */

enum status sim_crowd_init(struct sim_crowd *crowd, struct arena *arena, struct error *err)
{
    enum status status = STATUS_OK;
    double limits[SIM_CROWD_LIMITS_MAX];
    bool suits = list_limits(crowd->arms, crowd->arm_count, limits, &crowd->clock_count);
    assert(suits);
    for (uint32_t a = 0; a < crowd->arm_count; a++) {
        crowd->arms[a].first_place = crowd->place_count;
        for (uint32_t i = 0; i < crowd->arms[a].flow_limit; i++) crowd->flows[crowd->place_count++].arm = a;
    }
    for (uint32_t c = 0; status == STATUS_OK && c < crowd->clock_count; c++) {
        crowd->clocks[c] = (struct sim_crowd_clock){.limit = limits[c], .first = NOBODY};
        status = sim_queue_create(arena, crowd->place_count, &crowd->clocks[c].ends, err);
    }
    return status;
}

/* --- clocks --------------------------------------------------------------------------------- */

static void read_clocks(struct sim_crowd *crowd, double now_s)
{
    double elapsed_s = now_s - crowd->read_s;
    assert(elapsed_s >= 0);
    crowd->read_s = now_s;
    if (!(elapsed_s > 0)) return;
    if (crowd->full) crowd->full_s += elapsed_s;
    for (uint32_t c = 0; c < crowd->clock_count; c++) {
        struct sim_crowd_clock *clock = &crowd->clocks[c];
        if (clock->flow_count == 0) continue;
        clock->served += clock->rate * elapsed_s;
        if (clock->limited) clock->limited_s += elapsed_s;
    }
}

static void rewind_clock(struct sim_crowd_clock *clock)
{
    sim_queue_shift(clock->ends, clock->served);
    clock->served = 0;
}

static void leave_clock(struct sim_crowd_clock *clock, uint32_t place)
{
    sim_queue_remove(clock->ends, place);
    if (clock->first == place) clock->first = NOBODY;
    if (--clock->flow_count > 0) return;
    clock->limited = false;
    rewind_clock(clock);
}

static void move_flows(struct sim_crowd *crowd, const struct sim_crowd_arm *arm, struct sim_crowd_clock *from, struct sim_crowd_clock *to)
{
    for (uint32_t place = arm->first_place; place < arm->first_place + arm->flow_limit; place++) {
        if (!crowd->flows[place].active) continue;
        struct sim_event end = sim_queue_entry(from->ends, place);
        double left = end.time_s - from->served;
        sim_queue_set(to->ends, place, to->served + (left > 0 ? left : 0), end.order);
        to->flow_count++;
        leave_clock(from, place);
        crowd->work++;
    }
}

/* Sets the arm's number of flows and moves its active ones to their new limit's clock, which it returns. */
static struct sim_crowd_clock *count_flows(struct sim_crowd *crowd, struct sim_crowd_arm *arm, uint32_t flow_count)
{
    struct sim_crowd_clock *before = &crowd->clocks[arm->clock], *clock = before;
    double limited_s = before->limited_s - arm->limited_from_s;
    if (arm->flow_count > 0 && arm->capped) arm->capped_s += limited_s;
    if (arm->flow_count > 0 && arm->fills) arm->trunk_full_s += limited_s;
    arm->flow_count = flow_count;
    if (flow_count == 0) return before;
    double limit = limit_of(arm->cap, arm->trunk, flow_count);
    for (clock = crowd->clocks; clock->limit < limit; clock++) assert(clock < crowd->clocks + crowd->clock_count - 1);
    if (clock != before) move_flows(crowd, arm, before, clock);
    arm->clock = (uint32_t)(clock - crowd->clocks);
    arm->limited_from_s = clock->limited_s;
    arm->capped = limit >= arm->cap * SIM_FULL;
    arm->fills = limit * flow_count >= arm->trunk * SIM_FULL;
    return clock;
}

/* --- flows ---------------------------------------------------------------------------------- */

void sim_crowd_begin(struct sim_crowd *crowd, uint32_t place, double volume, uint64_t order, double now_s)
{
    assert(place < crowd->place_count);
    struct sim_crowd_flow *flow = &crowd->flows[place];
    struct sim_crowd_arm *arm = &crowd->arms[flow->arm];
    assert(!flow->active);
    read_clocks(crowd, now_s);
    struct sim_crowd_clock *clock = count_flows(crowd, arm, arm->flow_count + 1);
    flow->active = true;
    flow->capped_from_s = arm->capped_s;
    sim_queue_set(clock->ends, place, clock->served + volume, order);
    clock->flow_count++;
    crowd->flow_count++;
}

uint32_t sim_crowd_end(struct sim_crowd *crowd, double now_s)
{
    struct sim_event end;
    struct sim_crowd_clock *clock = &crowd->clocks[crowd->first];
    read_clocks(crowd, now_s);
    bool some = sim_queue_pop(clock->ends, &end);
    assert(some);
    clock->served = end.time_s; /* exact, because flows that end together have one reading */
    struct sim_crowd_flow *flow = &crowd->flows[end.owner];
    struct sim_crowd_arm *arm = &crowd->arms[flow->arm];
    flow->active = false;
    crowd->flow_count--;
    leave_clock(clock, end.owner);
    count_flows(crowd, arm, arm->flow_count - 1);
    flow->capped_s += arm->capped_s - flow->capped_from_s;
    if (clock->flow_count > 0 && clock->served > rewind_bytes) rewind_clock(clock);
    return end.owner;
}

/* --- rates ---------------------------------------------------------------------------------- */

/* Infinite if all flows are at their limits. */
static double find_level(const struct sim_crowd *crowd, double demand)
{
    double left = crowd->bytes_per_s;
    uint32_t count = crowd->flow_count;
    if (!(demand > left)) return INFINITY;
    for (uint32_t c = 0; c < crowd->clock_count; c++) {
        const struct sim_crowd_clock *clock = &crowd->clocks[c];
        if (clock->flow_count == 0) continue;
        if (clock->limit * count > left) return left / count;
        left -= clock->limit * clock->flow_count;
        count -= clock->flow_count;
    }
    return INFINITY; /* rounding: the demand equals the bandwidth */
}

/* Returns the clock's first end at this rate, and its order. */
static struct sim_event next_end(struct sim_crowd_clock *clock, double rate, double now_s)
{
    struct sim_event first;
    bool some = sim_queue_first(clock->ends, &first);
    assert(some);
    /* rounding may leave a flow that ends now a remainder, which would delay its end by a last bit */
    double left = first.owner == clock->first && now_s >= clock->first_s ? 0 : first.time_s - clock->served;
    clock->first = first.owner;
    clock->first_s = now_s + (left > 0 ? left : 0) / rate;
    return (struct sim_event){.time_s = clock->first_s, .order = first.order, .owner = first.owner};
}

bool sim_crowd_settle(struct sim_crowd *crowd, double now_s, double *end_s, uint64_t *order)
{
    double demand = 0;
    read_clocks(crowd, now_s);
    for (uint32_t c = 0; c < crowd->clock_count; c++) demand += crowd->clocks[c].limit * crowd->clocks[c].flow_count;
    crowd->full = demand >= crowd->bytes_per_s * SIM_FULL;
    if (crowd->flow_count == 0) return false;
    double level = find_level(crowd, demand);
    *end_s = INFINITY;
    for (uint32_t c = 0; c < crowd->clock_count; c++) {
        struct sim_crowd_clock *clock = &crowd->clocks[c];
        if (clock->flow_count == 0) continue;
        clock->rate = clock->limit < level ? clock->limit : level;
        clock->limited = clock->rate >= clock->limit * SIM_FULL;
        struct sim_event end = next_end(clock, clock->rate, now_s);
        crowd->work++;
        if (end.time_s > *end_s || (!(end.time_s < *end_s) && end.order > *order)) continue;
        *end_s = end.time_s;
        *order = end.order;
        crowd->first = c;
    }
    return true;
}

/* --- moving the origin of time -------------------------------------------------------------- */

void sim_crowd_rebase(struct sim_crowd *crowd, double seconds)
{
    crowd->read_s = crowd->flow_count > 0 ? crowd->read_s - seconds : 0;
    for (uint32_t a = 0; a < crowd->arm_count; a++)
        crowd->arms[a].limited_from_s -= crowd->clocks[crowd->arms[a].clock].limited_s;
    for (uint32_t c = 0; c < crowd->clock_count; c++) {
        struct sim_crowd_clock *clock = &crowd->clocks[c];
        clock->limited_s = 0;
        clock->first_s -= seconds;
        rewind_clock(clock);
    }
}

void sim_crowd_write(const struct sim_crowd *crowd, uint64_t first_order, struct sim_snapshot *out)
{
    sim_snapshot_put(out, (uint64_t)crowd->flow_count << 1 | crowd->full);
    if (crowd->flow_count == 0) return;
    sim_snapshot_put_real(out, crowd->read_s);
    for (uint32_t c = 0; c < crowd->clock_count; c++) {
        const struct sim_crowd_clock *clock = &crowd->clocks[c];
        sim_snapshot_put(out, clock->flow_count);
        if (clock->flow_count == 0) continue;
        sim_snapshot_put_real(out, clock->served);
        sim_snapshot_put_real(out, clock->rate);
        sim_snapshot_put_real(out, clock->first_s);
        sim_snapshot_put(out, clock->first);
        sim_queue_write(clock->ends, first_order, out);
    }
}
