/*
 * All flows with one limit and priority have the same rate, whatever their arm: the limit, or the level. So they share
 * a clock, as a class does in flow.c: the bytes served to an always active flow. A change of the level sets these few
 * clocks and touches no flow.
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
 * Priorities. The second priority's level is found with the remaining bandwidth. The rest of a trunk depends
 * only on the number of partners' flows: either the first priority's flows are at their limits, or they fill the link
 * direction and the second priority's rates are zero, whatever their limits. So a limit is a function of the numbers of
 * flows of an arm and its partner:
 *
 *     trunk 12, caps 5    flows of the first priority   0         1         2        3
 *                         limit of the second           min(5, 12/n)  min(5, 7/n)  2/n      0
 *
 * For statistics, a clock has its flows' time at their limit. Whether the limit is the cap or fills the trunk changes
 * with the arm's number of flows; the arm stores the clock's time of the last change.
 *
 * Cost: O(limits) per event, of which machines of one kind have few, and O(log flows) in the clock's queue.
 *
 * Source: generalized processor sharing, as in flow.c, with a clock per limit.
 */
#include "sim/network/crowd.h"

#include "base/extreme.h"
#include "base/try.h"
#include "sim/engine/allocate.h"

enum { MOVED_MAX = 64 }; /* flows of an arm with several limits */
enum { RANGES_MAX = 64 }; /* entries of all clocks' queues, per place */
#define NOBODY UINT32_MAX
static const double rewind_bytes = 0x1p32; /* as in flow.c */

/* --- limits --------------------------------------------------------------------------------- */

static double limit_of(double cap, double trunk, uint32_t flow_count)
{
    double part = flow_count > 1 ? trunk / flow_count : trunk;
    return part < cap ? part : cap;
}

/* Returns the limit of `flow_count` flows of the arm next to `partner_count` of its partner. */
static double arm_limit(const struct sim_crowd_arm *arms, const struct sim_crowd_arm *arm, uint32_t flow_count,
                        uint32_t partner_count)
{
    if (arm->priority == 0 || partner_count == 0) return limit_of(arm->cap, arm->trunk, flow_count);
    const struct sim_crowd_arm *partner = &arms[arm->partner];
    double left = arm->trunk - partner_count * limit_of(partner->cap, partner->trunk, partner_count);
    return left < arm->trunk * (1 - SIM_FULL) ? 0 : limit_of(arm->cap, left, flow_count);
}

/* A limit of a priority, and the arms that may have it. */
struct crowd_limit {
    double limit;
    uint32_t priority, first_arm, end_arm;
};

struct crowd_limits {
    struct crowd_limit limits[SIM_CROWD_LIMITS_MAX]; /* ascending */
    uint32_t count;
};

static bool is_below(const struct crowd_limit *a, uint32_t priority, double limit)
{
    return a->priority != priority ? a->priority < priority : a->limit < limit;
}

/* Returns false if there are too many limits. */
static bool add_limit(struct crowd_limits *o, uint32_t arm, uint32_t priority, double limit)
{
    uint32_t low = 0, high = o->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_below(&o->limits[middle], priority, limit)) low = middle + 1;
        else high = middle;
    }
    struct crowd_limit *at = &o->limits[low];
    if (low < o->count && at->priority == priority && !(at->limit > limit)) {
        at->first_arm = min_u32(at->first_arm, arm);
        at->end_arm = max_u32(at->end_arm, arm + 1);
        return true;
    }
    if (o->count == SIM_CROWD_LIMITS_MAX) return false;
    for (uint32_t i = o->count; i > low; i--) o->limits[i] = o->limits[i - 1];
    *at = (struct crowd_limit){limit, priority, arm, arm + 1};
    o->count++;
    return true;
}

/* Lists limits of an arm next to `partner_count` flows of its partner. */
static bool list_arm_limits(const struct sim_crowd_arm *arms, uint32_t index, uint32_t partner_count,
                            struct crowd_limits *out)
{
    const struct sim_crowd_arm *arm = &arms[index];
    uint32_t most = arm->flow_limit;
    if (arm->partner != SIM_CROWD_NO_ARM) most = min_u32(most, arm->trunk_flow_limit - partner_count);
    if (most == 0) return true;
    bool stays = arm_limit(arms, arm, most, partner_count) >= arm->cap;
    if (!stays && most > MOVED_MAX) return false;
    for (uint32_t n = stays ? most : 1; n <= most; n++)
        if (!add_limit(out, index, arm->priority, arm_limit(arms, arm, n, partner_count))) return false;
    return true;
}

static bool list_limits(const struct sim_crowd_arm *arms, uint32_t arm_count, struct crowd_limits *out)
{
    out->count = 0;
    for (uint32_t a = 0; a < arm_count; a++) {
        bool follows = arms[a].partner != SIM_CROWD_NO_ARM && arms[a].priority > 0;
        uint32_t partners = follows ? min_u32(arms[arms[a].partner].flow_limit, arms[a].trunk_flow_limit) : 0;
        if (partners > MOVED_MAX) return false;
        for (uint32_t n = 0; n <= partners; n++)
            if (!list_arm_limits(arms, a, n, out)) return false;
    }
    return true;
}

bool sim_crowd_suits(const struct sim_crowd_arm *arms, uint32_t arm_count)
{
    struct crowd_limits limits;
    uint64_t ranges = 0, places = 0;
    if (!list_limits(arms, arm_count, &limits)) return false;
    for (uint32_t a = 0; a < arm_count; a++) places += arms[a].flow_limit;
    for (uint32_t c = 0; c < limits.count; c++)
        for (uint32_t a = limits.limits[c].first_arm; a < limits.limits[c].end_arm; a++) ranges += arms[a].flow_limit;
    return ranges <= places * RANGES_MAX;
}

/* --- creation ------------------------------------------------------------------------------- */

static enum status create_clocks(struct sim_crowd *crowd, const struct crowd_limits *limits, struct arena *arena,
                                 struct error *err)
{
    enum status status = STATUS_OK;
    crowd->clock_count = limits->count;
    crowd->clocks = sim_allocate(arena, limits->count, sizeof *crowd->clocks, &status, err);
    for (uint32_t c = 0; status == STATUS_OK && c < limits->count; c++) {
        const struct crowd_limit *limit = &limits->limits[c];
        const struct sim_crowd_arm *last = &crowd->arms[limit->end_arm - 1];
        uint32_t first_place = crowd->arms[limit->first_arm].first_place;
        crowd->clocks[c] =
            (struct sim_crowd_clock){.limit = limit->limit, .first = NOBODY, .first_place = first_place};
        for (uint32_t p = limit->priority + 1; p <= SIM_PRIORITIES_MAX; p++) crowd->first_clocks[p] = c + 1;
        status = sim_queue_create(arena, last->first_place + last->flow_limit - first_place, &crowd->clocks[c].ends,
                                  err);
    }
    return status;
}

enum status sim_crowd_init(struct sim_crowd *crowd, struct arena *arena, struct error *err)
{
    struct crowd_limits limits;
    bool suits = list_limits(crowd->arms, crowd->arm_count, &limits);
    assert(suits);
    for (uint32_t a = 0; a < crowd->arm_count; a++) {
        crowd->arms[a].first_place = crowd->place_count;
        for (uint32_t i = 0; i < crowd->arms[a].flow_limit; i++) crowd->flows[crowd->place_count++].arm = a;
    }
    TRY(create_clocks(crowd, &limits, arena, err));
    for (uint32_t a = 0; a < crowd->arm_count; a++) crowd->arms[a].clock = crowd->first_clocks[crowd->arms[a].priority];
    return STATUS_OK;
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
    sim_queue_remove(clock->ends, place - clock->first_place);
    if (clock->first == place) clock->first = NOBODY;
    if (--clock->flow_count > 0) return;
    clock->limited = false;
    rewind_clock(clock);
}

static void move_flows(struct sim_crowd *crowd, const struct sim_crowd_arm *arm, struct sim_crowd_clock *from,
                       struct sim_crowd_clock *to)
{
    for (uint32_t place = arm->first_place; place < arm->first_place + arm->flow_limit; place++) {
        if (!crowd->flows[place].active) continue;
        struct sim_event end = sim_queue_entry(from->ends, place - from->first_place);
        double left = end.time_s - from->served;
        sim_queue_set(to->ends, place - to->first_place, to->served + (left > 0 ? left : 0), end.order);
        to->flow_count++;
        leave_clock(from, place);
        crowd->work++;
    }
}

/* Returns the arm's clock for its limit. */
static struct sim_crowd_clock *find_clock(struct sim_crowd *crowd, const struct sim_crowd_arm *arm, double limit)
{
    uint32_t low = crowd->first_clocks[arm->priority], high = crowd->first_clocks[arm->priority + 1];
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (crowd->clocks[middle].limit > limit) high = middle;
        else low = middle;
    }
    return &crowd->clocks[low];
}

/* Sets the arm's number of flows and moves its active ones to their new limit's clock, which it returns. */
static struct sim_crowd_clock *count_flows(struct sim_crowd *crowd, struct sim_crowd_arm *arm, uint32_t flow_count)
{
    struct sim_crowd_clock *before = &crowd->clocks[arm->clock];
    double limited_s = before->limited_s - arm->limited_from_s;
    if (arm->flow_count > 0 && arm->capped) arm->capped_s += limited_s;
    if (arm->flow_count > 0 && arm->fills) arm->trunk_full_s += limited_s;
    arm->flow_count = flow_count;
    if (flow_count == 0) return before;
    const struct sim_crowd_arm *partner = arm->partner == SIM_CROWD_NO_ARM ? NULL : &crowd->arms[arm->partner];
    uint32_t partner_count = partner && arm->priority > 0 ? partner->flow_count : 0;
    double limit = arm_limit(crowd->arms, arm, flow_count, partner_count), load = limit * flow_count;
    if (partner_count > 0) load += partner_count * limit_of(partner->cap, partner->trunk, partner_count);
    struct sim_crowd_clock *clock = find_clock(crowd, arm, limit);
    if (clock != before) move_flows(crowd, arm, before, clock);
    arm->clock = (uint32_t)(clock - crowd->clocks);
    arm->limited_from_s = clock->limited_s;
    arm->capped = limit >= arm->cap * SIM_FULL;
    arm->fills = limit > 0 && load >= arm->trunk * SIM_FULL;
    return clock;
}

/* Sets the partner's limit after a change of the arm's number of flows, if that decides it. */
static void follow(struct sim_crowd *crowd, const struct sim_crowd_arm *arm)
{
    if (arm->priority > 0 || arm->partner == SIM_CROWD_NO_ARM) return;
    struct sim_crowd_arm *partner = &crowd->arms[arm->partner];
    if (partner->flow_count > 0) count_flows(crowd, partner, partner->flow_count);
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
    follow(crowd, arm);
    flow->active = true;
    flow->capped_from_s = arm->capped_s;
    sim_queue_set(clock->ends, place - clock->first_place, clock->served + volume, order);
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
    uint32_t place = clock->first_place + end.owner;
    struct sim_crowd_flow *flow = &crowd->flows[place];
    struct sim_crowd_arm *arm = &crowd->arms[flow->arm];
    flow->active = false;
    crowd->flow_count--;
    leave_clock(clock, place);
    count_flows(crowd, arm, arm->flow_count - 1);
    follow(crowd, arm);
    flow->capped_s += arm->capped_s - flow->capped_from_s;
    if (clock->flow_count > 0 && clock->served > rewind_bytes) rewind_clock(clock);
    return place;
}

/* --- rates ---------------------------------------------------------------------------------- */

/* Demand and level of a priority. */
struct crowd_demand {
    double wanted; /* with all at their limits */
    double level;  /* infinite if they are */
    uint32_t flow_count;
};

static struct crowd_demand sum_demand(const struct sim_crowd *crowd, uint32_t priority)
{
    struct crowd_demand demand = {.level = INFINITY};
    for (uint32_t c = crowd->first_clocks[priority]; c < crowd->first_clocks[priority + 1]; c++) {
        demand.wanted += crowd->clocks[c].limit * crowd->clocks[c].flow_count;
        demand.flow_count += crowd->clocks[c].flow_count;
    }
    return demand;
}

/* Returns the level at which flows of the priority, which want more, use the bandwidth `left`. */
static double find_level(const struct sim_crowd *crowd, uint32_t priority, uint32_t count, double left)
{
    for (uint32_t c = crowd->first_clocks[priority]; c < crowd->first_clocks[priority + 1]; c++) {
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
    uint32_t place = clock->first_place + first.owner;
    double left = place == clock->first && now_s >= clock->first_s ? 0 : first.time_s - clock->served;
    clock->first = place;
    clock->first_s = rate > 0 ? now_s + (left > 0 ? left : 0) / rate : INFINITY;
    return (struct sim_event){.time_s = clock->first_s, .order = first.order, .owner = place};
}

/* Rates the flows of a priority; `end`: replaced by their first end, if that is earlier. */
static void rate_priority(struct sim_crowd *crowd, uint32_t priority, double level, double now_s, struct sim_event *end)
{
    for (uint32_t c = crowd->first_clocks[priority]; c < crowd->first_clocks[priority + 1]; c++) {
        struct sim_crowd_clock *clock = &crowd->clocks[c];
        if (clock->flow_count == 0) continue;
        clock->rate = clock->limit < level ? clock->limit : level;
        clock->limited = clock->rate >= clock->limit * SIM_FULL;
        struct sim_event first = next_end(clock, clock->rate, now_s);
        crowd->work++;
        if (first.time_s > end->time_s || (!(first.time_s < end->time_s) && first.order > end->order)) continue;
        *end = first;
        crowd->first = c;
    }
}

bool sim_crowd_settle(struct sim_crowd *crowd, double now_s, double *end_s, uint64_t *order)
{
    struct sim_event end = {.time_s = INFINITY};
    double load = 0;
    read_clocks(crowd, now_s);
    for (uint32_t p = 0; p < SIM_PRIORITIES_MAX; p++) {
        struct crowd_demand demand = sum_demand(crowd, p);
        if (demand.flow_count == 0) continue;
        double left = crowd->bytes_per_s - load; /* less than rounding may leave is nothing, as in share.c */
        if (p > 0 && left < crowd->bytes_per_s * (1 - SIM_FULL)) demand.level = 0;
        else if (demand.wanted > left) demand.level = find_level(crowd, p, demand.flow_count, left);
        rate_priority(crowd, p, demand.level, now_s, &end);
        load = demand.wanted < left ? load + demand.wanted : crowd->bytes_per_s;
    }
    crowd->full = load >= crowd->bytes_per_s * SIM_FULL;
    *end_s = end.time_s;
    *order = end.order;
    return crowd->flow_count > 0;
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
