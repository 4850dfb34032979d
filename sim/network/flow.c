/*
 * Rates change far more often than flows end, so a change must not touch every flow.
 *
 * All flows of a class have the same rate at every moment. So one number per class is enough: the bytes served to a
 * flow that is always active, a clock that runs at the rate. A flow that begins at reading v with b bytes ends at
 * reading v + b, however the rate changes meanwhile:
 *
 *     served  0----------1e8-----------------2e8---------3e8
 *     flow 1  |------------------- 2e8 -------|
 *     flow 2             |------------- 2e8 -------------|      rate halved when flow 2 began,
 *                                                              and nothing was recomputed
 *
 * The flows of a class are in a queue by the reading at which they end, and the class knows the first one. The class
 * has one entry in the event queue for it. A change of rate reads the clock, sets the rate and moves that entry: O(1)
 * for any number of flows. (This is the virtual time of fair queueing, used in reverse.)
 *
 * Precision. Readings are sums, and differences of large readings lose digits. So the clock is reset to zero whenever
 * the class is idle or has passed 2^32 bytes: a reading is then exact to 1e-6 bytes, 1e-16 s on a fast link.
 *
 * Flows of a bottleneck (bottleneck.h) need neither clocks nor the general solver: they are few, an event concerns all
 * of them, and their remaining volumes are reduced at every event, which rounds like the textbook's "remaining -= rate
 * * elapsed". More flows that meet in one link direction are a crowd (crowd.h), with a clock for each limit of flows,
 * whatever their class. A bottleneck and a crowd have one entry each in the event queue. Bottlenecks, crowds and other
 * classes are called *bundles*: each has one event.
 *
 * Statistics cost O(path length) per copy: links count the flows that cross them. Shared link directions are noted when
 * they become full or not full. Link directions with a single path are full while the path is at its base cap, for
 * which each class has a second clock.
 *
 * Source: the flow model of SimGrid (lazy updates of changed flows only); virtual time after Parekh and Gallager, "A
 * generalized processor sharing approach to flow control", IEEE/ACM ToN 1(3), 1993.
 */
#include "sim/network/flow_state.h"

#include <assert.h>
#include <math.h>

#include "sim/engine/allocate.h"

static const double rewind_bytes = 0x1p32;

uint32_t sim_flows_class_count(const struct sim_flows *flows)
{
    return flows->class_count;
}

uint32_t sim_flows_bundle_count(const struct sim_flows *flows)
{
    return flows->bundle_count;
}

uint32_t sim_flows_bundle(const struct sim_flows *flows, uint32_t flow)
{
    assert(flow < flows->flow_count);
    const struct flow_state *f = &flows->flows[flow];
    return f->bottleneck != FLOW_NO_BOTTLENECK ? f->bottleneck : flows->classes[f->class].bundle;
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

static void clock_read(struct flow_class_clock *class, double now_s)
{
    assert(now_s >= class->read_s);
    double elapsed_s = now_s - class->read_s;
    class->read_s = now_s;
    class->served += class->rate * elapsed_s;
    if (class->full) class->full_s += elapsed_s;
}

static void clock_rewind(struct flow_class_clock *class)
{
    sim_queue_shift(class->ends, class->served);
    class->first_end -= class->served;
    class->served = 0;
}

/* Sets the rate from now on and the first end. */
static void clock_set(struct sim_flows *flows, struct flow_class_clock *class, double rate, double now_s)
{
    clock_read(class, now_s);
    if (class->flow_count == 0) return;
    class->rate = rate;
    class->full = rate >= class->full_rate;
    if (!(rate > 0)) { /* until flows of higher priority end */
        class->first_s = INFINITY;
        sim_queue_remove(flows->queue, flows->owners[class->bundle]);
        return;
    }
    /* rounding may leave a flow that ends now a remainder, which would delay its end by a last bit */
    double left = now_s < class->first_s ? class->first_end - class->served : 0;
    class->first_s = now_s + (left > 0 ? left : 0) / rate;
    sim_queue_set(flows->queue, flows->owners[class->bundle], class->first_s, class->first_order);
}

static void clock_begin(struct flow_class_clock *class, uint32_t member, double volume, uint64_t order,
                        double now_s)
{
    clock_read(class, now_s);
    double end = class->served + volume;
    sim_queue_set(class->ends, member, end, order);
    if (class->flow_count++ > 0 &&
        (end > class->first_end || (!(end < class->first_end) && order > class->first_order)))
        return;
    class->first_s = INFINITY;
    class->first_end = end;
    class->first_order = order;
}

/* Removes the first flow and returns its number in the class. */
static uint32_t clock_finish(struct flow_class_clock *class, double now_s)
{
    struct sim_event end, first;
    clock_read(class, now_s);
    bool some = sim_queue_pop(class->ends, &end);
    assert(some);
    class->served = end.time_s; /* exact, because flows that end together have one reading */
    if (--class->flow_count == 0) {
        class->rate = 0;
        class->full = false;
        clock_rewind(class);
        return end.owner;
    }
    some = sim_queue_first(class->ends, &first);
    assert(some);
    class->first_s = INFINITY;
    class->first_end = first.time_s;
    class->first_order = first.order;
    if (class->served > rewind_bytes) clock_rewind(class);
    return end.owner;
}

/* --- statistics ----------------------------------------------------------------------------- */

static void links_enter(struct sim_flows *flows, const struct flow_path *path, double now_s)
{
    for (uint32_t i = 0; i < path->link_count; i++) {
        struct flow_link_state *link = &flows->links[flows->path_links[path->first_link + i]];
        link->busy_s -= now_s * (link->flow_count++ == 0);
    }
}

static void links_leave(struct sim_flows *flows, const struct flow_path *path, double now_s)
{
    for (uint32_t i = 0; i < path->link_count; i++) {
        struct flow_link_state *link = &flows->links[flows->path_links[path->first_link + i]];
        assert(link->flow_count > 0);
        link->busy_s += now_s * (--link->flow_count == 0);
    }
}

static void turned_link_dirs_note(struct sim_flows *flows, double now_s)
{
    const uint32_t *link_dirs;
    uint32_t count = sim_share_turned(flows->share, &link_dirs);
    for (uint32_t i = 0; i < count; i++) {
        struct flow_link_dir_state *link_dir = &flows->link_dirs[link_dirs[i]];
        if (sim_share_full(flows->share, link_dirs[i]))
            link_dir->full_from_s = now_s;
        else
            link_dir->full_s += now_s - link_dir->full_from_s;
    }
}

static void own_link_dirs_note(struct sim_flows *flows, uint32_t index)
{
    const struct flow_state *flow = &flows->flows[index];
    const uint32_t *link_dirs;
    uint32_t count = sim_share_own_link_dirs(flows->share, flow->path, &link_dirs);
    double full_s = flows->classes[flow->class].full_s - flows->full_from_s[index];
    for (uint32_t i = 0; i < count; i++) flows->link_dirs[link_dirs[i]].full_s += full_s;
}

static void add_own_link_dirs(const struct sim_flows *flows, uint32_t path, double seconds, double *full_s)
{
    const uint32_t *own;
    uint32_t count = sim_share_own_link_dirs(flows->share, path, &own);
    for (uint32_t i = 0; i < count; i++) full_s[own[i]] += seconds;
}

static void add_trunks(const struct sim_flows *flows, uint32_t class, double seconds, double *full_s)
{
    const struct sim_share_limits limits = sim_share_limits(flows->share, class);
    for (uint32_t i = 0; i < limits.full_link_dir_count; i++) full_s[limits.full_link_dirs[i]] += seconds;
}

/* Adds full times of a crowd's link direction, and of its paths' trunks and link directions. */
static void crowd_link_dirs_note(const struct sim_flows *flows, double *full_s)
{
    for (uint32_t i = 0; i < flows->crowd_count; i++) full_s[flows->crowd_link_dirs[i]] += flows->crowds[i].full_s;
    for (uint32_t a = 0; a < flows->crowd_arm_count; a++)
        add_trunks(flows, flows->crowd_arm_classes[a], flows->crowd_arms[a].trunk_full_s, full_s);
    for (uint32_t i = 0; i < flows->crowd_place_count; i++)
        add_own_link_dirs(flows, flows->flows[flows->crowd_flow_indexes[i]].path, flows->crowd_flows[i].capped_s,
                          full_s);
}

static void bottleneck_link_dirs_note(const struct sim_flows *flows, double *full_s)
{
    for (uint32_t i = 0; i < flows->bottleneck_count; i++)
        if (flows->bottleneck_link_dirs[i] != SIM_NO_BOTTLENECK)
            full_s[flows->bottleneck_link_dirs[i]] += flows->bottlenecks[i].full_s;
    for (uint32_t f = 0; f < flows->flow_count; f++) {
        const struct flow_state *flow = &flows->flows[f];
        if (flow->bottleneck >= flows->bottleneck_count) continue;
        double flow_full_s = flows->bottlenecks[flow->bottleneck].flows[flow->member].full_s;
        add_trunks(flows, flow->class, flow_full_s, full_s);
        add_own_link_dirs(flows, flow->path, flow_full_s, full_s);
    }
}

static void count_bytes(const struct sim_flows *flows, uint32_t crossing, double bytes, struct sim_link_use *use)
{
    uint8_t direction = flows->path_directions[crossing];
    if (direction != FLOW_PATH_BOTH_WAYS) {
        use->bytes[direction] += bytes;
        return;
    }
    use->bytes[0] += bytes / 2;
    use->bytes[1] += bytes / 2;
}

enum status sim_flows_uses(const struct sim_flows *flows, struct sim_link_use *uses, struct error *err)
{
    struct arena scratch = {0};
    enum status status = STATUS_OK;
    double *full_s = sim_allocate(&scratch, (size_t)flows->link_count * 2, sizeof *full_s, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t l = 0; l < flows->link_count * 2; l++) full_s[l] = flows->link_dirs[l].full_s;
    bottleneck_link_dirs_note(flows, full_s);
    crowd_link_dirs_note(flows, full_s);
    for (uint32_t l = 0; l < flows->link_count; l++) {
        assert(flows->links[l].flow_count == 0);
        uses[l] = (struct sim_link_use){.busy_s = flows->links[l].busy_s,
                                        .saturated_s = fmax(full_s[l * 2], full_s[l * 2 + 1])};
    }
    for (uint32_t p = 0; p < flows->path_count; p++) {
        const struct flow_path *path = &flows->paths[p];
        for (uint32_t i = path->first_link; i < path->first_link + path->link_count; i++)
            count_bytes(flows, i, (double)path->bytes * flows->path_weights[i], &uses[flows->path_links[i]]);
    }
    arena_release(&scratch);
    return STATUS_OK;
}

/* --- flows ---------------------------------------------------------------------------------- */

static inline struct sim_bottleneck *touch_bottleneck(struct sim_flows *flows, uint32_t index)
{
    struct sim_bottleneck *bottleneck = &flows->bottlenecks[index];
    if (!bottleneck->touched) flows->touched_bottlenecks[flows->touched_bottleneck_count++] = index;
    bottleneck->touched = true;
    return bottleneck;
}

/* `index` starts after the bottlenecks, as in flow_state. */
static struct sim_crowd *touch_crowd(struct sim_flows *flows, uint32_t index)
{
    struct sim_crowd *crowd = &flows->crowds[index - flows->bottleneck_count];
    if (!crowd->touched) flows->touched_crowds[flows->touched_crowd_count++] = index - flows->bottleneck_count;
    crowd->touched = true;
    return crowd;
}

void sim_flows_begin(struct sim_flows *flows, uint32_t flow, double volume, uint64_t bytes,
                     uint64_t order, double now_s)
{
    assert(flow < flows->flow_count);
    assert(volume >= 0);
    struct flow_state *f = &flows->flows[flow];
    struct flow_path *path = &flows->paths[f->path];
    if (f->bottleneck < flows->bottleneck_count) {
        sim_bottleneck_begin(touch_bottleneck(flows, f->bottleneck), &path->arm, f->member, volume, order);
    } else if (f->bottleneck != FLOW_NO_BOTTLENECK) {
        sim_crowd_begin(touch_crowd(flows, f->bottleneck), f->member, volume, order, now_s);
    } else {
        struct flow_class_clock *class = &flows->classes[f->class];
        clock_begin(class, f->member, volume, order, now_s);
        flows->full_from_s[flow] = class->full_s;
        sim_share_add(flows->share, f->class);
    }
    path->bytes += bytes;
    links_enter(flows, path, now_s);
}

uint32_t sim_flows_finish(struct sim_flows *flows, uint32_t bundle, double now_s)
{
    assert(bundle < flows->bundle_count);
    struct flow_path *path;
    uint32_t flow;
    if (bundle < flows->bottleneck_count) {
        struct sim_bottleneck *bottleneck = touch_bottleneck(flows, bundle);
        const struct sim_bottleneck_flow *place = sim_bottleneck_end(bottleneck, now_s);
        flow = place->flow;
        path = &flows->paths[place->path];
        sim_bottleneck_limit(bottleneck, &path->arm);
    } else if (bundle < flows->bottleneck_count + flows->crowd_count) {
        struct sim_crowd *crowd = touch_crowd(flows, bundle);
        uint32_t place = sim_crowd_end(crowd, now_s);
        flow = flows->crowd_flow_indexes[(uint32_t)(crowd->flows - flows->crowd_flows) + place];
        path = &flows->paths[flows->flows[flow].path];
    } else {
        uint32_t index = flows->bundle_classes[bundle];
        struct flow_class_clock *class = &flows->classes[index];
        flow = flows->members[class->first_member + clock_finish(class, now_s)];
        path = &flows->paths[flows->flows[flow].path];
        if (path->has_own_link_dirs) own_link_dirs_note(flows, flow);
        sim_share_remove(flows->share, index);
    }
    links_leave(flows, path, now_s);
    return flow;
}

static void settle_bottlenecks(struct sim_flows *flows, double now_s)
{
    for (uint32_t i = 0; i < flows->touched_bottleneck_count; i++) {
        uint32_t index = flows->touched_bottlenecks[i];
        struct sim_bottleneck *bottleneck = &flows->bottlenecks[index];
        bottleneck->touched = false;
        if (bottleneck->active == 0) { /* and its event is being handled */
            sim_bottleneck_rest(bottleneck, now_s);
            continue;
        }
        double end_s = sim_bottleneck_settle(bottleneck, now_s);
        sim_queue_set(flows->queue, flows->owners[index], end_s, bottleneck->flows[bottleneck->first].order);
    }
    flows->touched_bottleneck_count = 0;
}

static void settle_crowds(struct sim_flows *flows, double now_s)
{
    for (uint32_t i = 0; i < flows->touched_crowd_count; i++) {
        uint32_t index = flows->touched_crowds[i];
        double end_s;
        uint64_t order;
        flows->crowds[index].touched = false;
        if (sim_crowd_settle(&flows->crowds[index], now_s, &end_s, &order)) /* else its event is being handled */
            sim_queue_set(flows->queue, flows->owners[flows->bottleneck_count + index], end_s, order);
    }
    flows->touched_crowd_count = 0;
}

uint32_t sim_flows_settle(struct sim_flows *flows, double now_s, const struct sim_rate **changed)
{
    settle_bottlenecks(flows, now_s);
    if (flows->crowd_count > 0) settle_crowds(flows, now_s);
    if (flows->bundle_count == flows->bottleneck_count + flows->crowd_count) return 0;
    uint32_t count = sim_share_solve(flows->share, changed);
    if (count == 0) return 0;
    flows->work += count;
    for (uint32_t i = 0; i < count; i++)
        clock_set(flows, &flows->classes[(*changed)[i].class], (*changed)[i].bytes_per_s, now_s);
    turned_link_dirs_note(flows, now_s);
    return count;
}

uint64_t sim_flows_work(const struct sim_flows *flows)
{
    uint64_t work = flows->work;
    for (uint32_t i = 0; i < flows->crowd_count; i++) work += flows->crowds[i].work;
    return work;
}
