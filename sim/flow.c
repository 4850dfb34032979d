/*
 * Rates change far more often than flows end, so a change must not touch every flow.
 *
 * All flows of a class have the same rate at every moment. So it is enough to know, per class, how
 * many bytes have been served to a flow that was there all the time: a clock that runs at the rate.
 * A flow that begins when the clock shows v and has b bytes to go ends when the clock shows v + b,
 * whatever the rate does in between:
 *
 *     served  0----------1e8-----------------2e8---------3e8
 *     flow 1  |------------------- 2e8 -------|
 *     flow 2             |------------- 2e8 -------------|      rate halved when flow 2 began,
 *                                                              and nothing was recomputed
 *
 * The flows of a class lie in a queue by the reading at which they end, and the class knows the first
 * of them, for which it has one entry in the event queue. A change of rate reads the clock, sets the
 * rate and moves that one entry: O(1) for any number of flows. (The virtual time of fair queueing, read
 * backwards.)
 *
 * Precision. Readings are sums, and a difference of two large ones is worth less; so the clock is
 * set back to zero whenever the class is idle, or has passed 2^32 bytes: a reading is then good to
 * 1e-6 bytes, 1e-16 s on a fast link.
 *
 * A class of up to eight flows, as most are, does without a queue: for each flow it keeps what is left,
 * taken off whenever the clock is read, and looks through them for the least. That is as fast, and rounds
 * like the textbook's "remaining -= rate * elapsed".
 *
 * Statistics cost O(path length) per copy: links count the flows that cross them; lanes that several
 * paths share are noted when they become full or no longer are; lanes of one path
 * alone are full while the path goes at its base cap, for which each class keeps a second clock.
 *
 * Source: the flow model of SimGrid (lazy updates of only what changed); virtual time after Parekh
 * and Gallager, "A generalized processor sharing approach to flow control", IEEE/ACM ToN 1(3), 1993.
 */
#include "sim/flow.h"

#include <assert.h>
#include <math.h>

#include "sim/sim.h"
#include "sim/take.h"

static const double rewind_bytes = 0x1p32;

enum { FEW = 8 };

struct class_clock {
    double served;     /* bytes, at `read_s`, to each flow since the clock was at zero; few: always 0 */
    double read_s;
    double rate;       /* bytes/s; 0 without flows: the clock stands still */
    double first_end;  /* of the flows under way: the least reading, and the order there; few: not kept */
    uint64_t first_order;
    struct sim_queue *ends; /* owner: the flow's number in the class; NULL: few flows, and then ... */
    struct few_flow *few;   /* ... for each what is left */
    uint32_t few_active;    /* bits: under way */
    double full_rate;  /* from here on it goes at its base cap */
    double full_s;     /* spent at the base cap */
    uint32_t first_member; /* in flows->members */
    uint32_t flow_count;   /* under way */
    bool full;         /* goes at its base cap */
};

struct few_flow {
    double left; /* bytes, at the class's read_s */
    uint64_t order;
};

struct flow_state {
    uint32_t path, class;
    uint32_t member;    /* number in its class */
    double full_from_s; /* the class's full_s when the flow began */
};

struct flow_path {
    uint64_t bytes;     /* of all its flows */
    uint32_t first_link, link_count; /* in flows->path_links */
    bool has_own_lanes;
};

struct link_state {
    uint32_t flow_count;
    double busy_from_s;
    double busy_s;
};

struct lane_state {
    double full_from_s;
    double full_s;
};

struct sim_flows {
    struct sim_share *share;
    struct class_clock *classes;
    struct flow_state *flows;
    struct flow_path *paths;
    struct link_state *links;
    struct lane_state *lanes;  /* 2 per link */
    uint32_t *members;         /* the flows of each class */
    uint32_t *path_links;
    uint8_t *path_directions;  /* beside path_links */
    struct sim_queue *queue;
    const uint32_t *owners;    /* by class: its entry in the queue */
    uint32_t class_count, flow_count, path_count, link_count;
};

/* --- creation ------------------------------------------------------------------------------- */

static void copy_hops(struct sim_flows *flows, const struct sim_flows_setup *setup)
{
    uint32_t used = 0;
    for (uint32_t p = 0; p < setup->path_count; p++) {
        flows->paths[p].first_link = used;
        flows->paths[p].link_count = setup->paths[p].hop_count;
        const uint32_t *lanes;
        flows->paths[p].has_own_lanes = sim_share_own_lanes(flows->share, p, &lanes) > 0;
        for (uint32_t h = 0; h < setup->paths[p].hop_count; h++) {
            flows->path_links[used] = setup->paths[p].hops[h].link;
            flows->path_directions[used++] = (uint8_t)setup->paths[p].hops[h].direction;
        }
    }
}

/* The flows of all paths, in their order. */
static void fill_flows(struct sim_flows *flows, const struct sim_flows_setup *setup)
{
    uint32_t flow = 0;
    for (uint32_t p = 0; p < setup->path_count; p++)
        for (uint32_t i = 0; i < setup->paths[p].flow_limit; i++)
            flows->flows[flow++] =
                (struct flow_state){.path = p, .class = sim_share_class(flows->share, p)};
}

static enum status create_clocks(struct arena *arena, struct sim_flows *flows, struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t f = 0; f < flows->flow_count; f++) flows->classes[flows->flows[f].class].flow_count++;
    uint32_t used = 0;
    for (uint32_t c = 0; c < flows->class_count && status == STATUS_OK; c++) {
        struct class_clock *class = &flows->classes[c];
        class->full_rate = sim_share_base_cap(flows->share, c) * SIM_FULL;
        class->first_member = used;
        used += class->flow_count;
        if (class->flow_count <= FEW)
            class->few = sim_take(arena, class->flow_count, sizeof *class->few, &status, err);
        else
            status = sim_queue_create(arena, class->flow_count, &class->ends, err);
        class->flow_count = 0;
    }
    for (uint32_t f = 0; f < flows->flow_count && status == STATUS_OK; f++) {
        struct class_clock *class = &flows->classes[flows->flows[f].class];
        flows->flows[f].member = class->flow_count;
        flows->members[class->first_member + class->flow_count++] = f;
    }
    for (uint32_t c = 0; c < flows->class_count; c++) flows->classes[c].flow_count = 0;
    return status;
}

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
    struct sim_flows *flows = sim_take(arena, 1, sizeof *flows, &status, err);
    if (status != STATUS_OK) return status;
    flows->share = share;
    flows->class_count = sim_share_class_count(share);
    flows->flow_count = flow_count;
    flows->path_count = setup->path_count;
    flows->link_count = setup->link_count;
    flows->classes = sim_take(arena, flows->class_count, sizeof *flows->classes, &status, err);
    flows->flows = sim_take(arena, flow_count, sizeof *flows->flows, &status, err);
    flows->paths = sim_take(arena, flows->path_count, sizeof *flows->paths, &status, err);
    flows->links = sim_take(arena, flows->link_count, sizeof *flows->links, &status, err);
    flows->lanes = sim_take(arena, (size_t)flows->link_count * 2, sizeof *flows->lanes, &status, err);
    flows->members = sim_take(arena, flow_count, sizeof *flows->members, &status, err);
    flows->path_links = sim_take(arena, hops, sizeof *flows->path_links, &status, err);
    flows->path_directions = sim_take(arena, hops, sizeof *flows->path_directions, &status, err);
    if (status != STATUS_OK) return status;
    copy_hops(flows, setup);
    fill_flows(flows, setup);
    status = create_clocks(arena, flows, err);
    if (status == STATUS_OK) *out = flows;
    return status;
}

uint32_t sim_flows_class_count(const struct sim_flows *flows)
{
    return flows->class_count;
}

void sim_flows_attach(struct sim_flows *flows, struct sim_queue *queue, const uint32_t *owners)
{
    flows->queue = queue;
    flows->owners = owners;
}

struct sim_share *sim_flows_share(const struct sim_flows *flows)
{
    return flows->share;
}

/* --- the clock of a class ------------------------------------------------------------------- */

static inline void clock_read(struct class_clock *class, double now_s)
{
    assert(now_s >= class->read_s);
    double elapsed_s = now_s - class->read_s;
    double served = class->rate * elapsed_s;
    class->read_s = now_s;
    if (class->full) class->full_s += elapsed_s;
    if (class->ends)
        class->served += served;
    else
        for (uint32_t active = class->few_active; active; active &= active - 1)
            class->few[__builtin_ctz(active)].left -= served;
}

/* The number of the first of few flows to end; there is one. */
static inline uint32_t few_first(const struct class_clock *class)
{
    uint32_t active = class->few_active, first = (uint32_t)__builtin_ctz(active);
    for (active &= active - 1; active; active &= active - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(active);
        const struct few_flow *a = &class->few[i], *b = &class->few[first];
        if (a->left < b->left || (!(a->left > b->left) && a->order < b->order)) first = i;
    }
    return first;
}

static void clock_rewind(struct class_clock *class)
{
    sim_queue_shift(class->ends, class->served);
    class->first_end -= class->served;
    class->served = 0;
}

/* The rate is in force from now on; the first flow ends accordingly. */
static inline void clock_set(struct sim_flows *flows, uint32_t index, double rate, double now_s)
{
    struct class_clock *class = &flows->classes[index];
    clock_read(class, now_s);
    if (class->flow_count == 0) return;
    class->rate = rate;
    class->full = rate >= class->full_rate;
    double left;
    uint64_t order;
    if (class->ends) {
        left = class->first_end - class->served;
        order = class->first_order;
    } else {
        const struct few_flow *first = &class->few[few_first(class)];
        left = first->left;
        order = first->order;
    }
    if (left < 0) left = 0;
    sim_queue_set(flows->queue, flows->owners[index], now_s + left / rate, order);
}

/* --- statistics ----------------------------------------------------------------------------- */

static void links_enter(struct sim_flows *flows, const struct flow_path *path, double now_s)
{
    for (uint32_t i = 0; i < path->link_count; i++) {
        struct link_state *link = &flows->links[flows->path_links[path->first_link + i]];
        if (link->flow_count++ == 0) link->busy_from_s = now_s;
    }
}

static void links_leave(struct sim_flows *flows, const struct flow_path *path, double now_s)
{
    for (uint32_t i = 0; i < path->link_count; i++) {
        struct link_state *link = &flows->links[flows->path_links[path->first_link + i]];
        assert(link->flow_count > 0);
        if (--link->flow_count == 0) link->busy_s += now_s - link->busy_from_s;
    }
}

static void turned_lanes_note(struct sim_flows *flows, double now_s)
{
    const uint32_t *lanes;
    uint32_t count = sim_share_turned(flows->share, &lanes);
    for (uint32_t i = 0; i < count; i++) {
        struct lane_state *lane = &flows->lanes[lanes[i]];
        if (sim_share_full(flows->share, lanes[i]))
            lane->full_from_s = now_s;
        else
            lane->full_s += now_s - lane->full_from_s;
    }
}

static void own_lanes_note(struct sim_flows *flows, const struct flow_state *flow)
{
    const uint32_t *lanes;
    uint32_t count = sim_share_own_lanes(flows->share, flow->path, &lanes);
    double full_s = flows->classes[flow->class].full_s - flow->full_from_s;
    for (uint32_t i = 0; i < count; i++) flows->lanes[lanes[i]].full_s += full_s;
}

void sim_flows_uses(const struct sim_flows *flows, struct sim_link_use *uses)
{
    for (uint32_t l = 0; l < flows->link_count; l++) {
        assert(flows->links[l].flow_count == 0);
        uses[l] = (struct sim_link_use){
            .busy_s = flows->links[l].busy_s,
            .saturated_s = fmax(flows->lanes[l * 2].full_s, flows->lanes[l * 2 + 1].full_s)};
    }
    for (uint32_t p = 0; p < flows->path_count; p++) {
        const struct flow_path *path = &flows->paths[p];
        for (uint32_t i = path->first_link; i < path->first_link + path->link_count; i++)
            uses[flows->path_links[i]].bytes[flows->path_directions[i]] += (double)path->bytes;
    }
}

/* --- flows ---------------------------------------------------------------------------------- */

static void many_begin(struct class_clock *class, uint32_t member, double volume, uint64_t order)
{
    double end = class->served + volume;
    sim_queue_set(class->ends, member, end, order);
    if (class->flow_count > 0 && (end > class->first_end || (!(end < class->first_end) && order > class->first_order)))
        return;
    class->first_end = end;
    class->first_order = order;
}

/* Takes the first flow out; its number in the class. */
static uint32_t many_finish(struct class_clock *class)
{
    struct sim_event end, first;
    bool some = sim_queue_pop(class->ends, &end);
    assert(some);
    class->served = end.time_s; /* exactly: flows that end together do so at one reading */
    if (sim_queue_first(class->ends, &first)) {
        class->first_end = first.time_s;
        class->first_order = first.order;
        if (class->served > rewind_bytes) clock_rewind(class);
    } else {
        clock_rewind(class);
    }
    return end.owner;
}

static uint32_t few_finish(struct class_clock *class)
{
    uint32_t member = few_first(class);
    class->few_active &= ~(UINT32_C(1) << member);
    return member;
}

void sim_flows_begin(struct sim_flows *flows, uint32_t flow, double volume, uint64_t bytes,
                     uint64_t order, double now_s)
{
    assert(flow < flows->flow_count);
    assert(volume >= 0);
    struct flow_state *f = &flows->flows[flow];
    struct class_clock *class = &flows->classes[f->class];
    clock_read(class, now_s);
    if (class->ends) {
        many_begin(class, f->member, volume, order);
    } else {
        class->few[f->member] = (struct few_flow){volume, order};
        class->few_active |= UINT32_C(1) << f->member;
    }
    class->flow_count++;
    f->full_from_s = class->full_s;
    flows->paths[f->path].bytes += bytes;
    links_enter(flows, &flows->paths[f->path], now_s);
    sim_share_add(flows->share, f->class);
}

uint32_t sim_flows_finish(struct sim_flows *flows, uint32_t class, double now_s)
{
    assert(class < flows->class_count);
    struct class_clock *c = &flows->classes[class];
    assert(c->flow_count > 0);
    clock_read(c, now_s);
    uint32_t member = c->ends ? many_finish(c) : few_finish(c);
    if (--c->flow_count == 0) {
        c->rate = 0;
        c->full = false;
    }
    uint32_t flow = flows->members[c->first_member + member];
    const struct flow_path *path = &flows->paths[flows->flows[flow].path];
    if (path->has_own_lanes) own_lanes_note(flows, &flows->flows[flow]);
    links_leave(flows, path, now_s);
    sim_share_remove(flows->share, class);
    return flow;
}

uint32_t sim_flows_settle(struct sim_flows *flows, double now_s, const struct sim_rate **changed)
{
    uint32_t count = sim_share_solve(flows->share, changed);
    for (uint32_t i = 0; i < count; i++)
        clock_set(flows, (*changed)[i].class, (*changed)[i].bytes_per_s, now_s);
    turned_lanes_note(flows, now_s);
    return count;
}
