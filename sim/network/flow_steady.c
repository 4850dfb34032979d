/*
 * For sim/steady.h: moving the origin of time, writing the state, listing counters.
 *
 * Idle bottlenecks and classes, and link directions that are not full, have no state: their times are of their last use
 * and not read again.
 */
#include "sim/network/flow_state.h"

/* Resets the clock of a class that is never idle, which would grow without limit. */
static void rebase_class(struct flow_class_clock *class, double seconds)
{
    if (class->flow_count == 0) {
        class->read_s = 0;
        return;
    }
    class->read_s -= seconds;
    class->first_s -= seconds;
    sim_queue_shift(class->ends, class->served);
    class->first_end -= class->served;
    class->served = 0;
}

void sim_flows_rebase(struct sim_flows *flows, double seconds)
{
    for (uint32_t c = 0; c < flows->class_count; c++)
        if (flows->classes[c].ends) rebase_class(&flows->classes[c], seconds);
    for (uint32_t i = 0; i < flows->bottleneck_count; i++) {
        struct sim_bottleneck *bottleneck = &flows->bottlenecks[i];
        bottleneck->read_s = bottleneck->active ? bottleneck->read_s - seconds : 0;
        bottleneck->first_s -= seconds;
    }
    for (uint32_t i = 0; i < flows->crowd_count; i++) sim_crowd_rebase(&flows->crowds[i], seconds);
    for (uint32_t l = 0; l < flows->link_count; l++)
        if (flows->links[l].flow_count > 0) flows->links[l].busy_s += seconds;
    for (uint32_t l = 0; l < 2 * flows->link_count; l++) {
        struct flow_link_dir_state *link_dir = &flows->link_dirs[l];
        if (!sim_share_full(flows->share, l)) continue;
        link_dir->full_s += seconds - link_dir->full_from_s;
        link_dir->full_from_s = 0;
    }
    /* seconds at the base cap count from here, also for active flows */
    for (uint32_t f = 0; f < flows->flow_count; f++)
        if (flows->flows[f].bottleneck == FLOW_NO_BOTTLENECK)
            flows->full_from_s[f] -= flows->classes[flows->flows[f].class].full_s;
    for (uint32_t c = 0; c < flows->class_count; c++) flows->classes[c].full_s = 0;
}

static void write_class(const struct flow_class_clock *class, uint64_t first_order, struct sim_snapshot *out)
{
    sim_snapshot_put(out, class->flow_count);
    if (class->flow_count == 0) return;
    sim_snapshot_put_real(out, class->served);
    sim_snapshot_put_real(out, class->read_s);
    sim_snapshot_put_real(out, class->rate);
    sim_snapshot_put_real(out, class->first_s);
    sim_snapshot_put_real(out, class->first_end);
    sim_snapshot_put(out, class->first_order - first_order);
    sim_snapshot_put(out, class->full);
    sim_queue_write(class->ends, first_order, out);
}

static void write_bottleneck(const struct sim_bottleneck *bottleneck, uint64_t first_order, struct sim_snapshot *out)
{
    sim_snapshot_put(out, bottleneck->active);
    if (bottleneck->active == 0) return;
    sim_snapshot_put_real(out, bottleneck->read_s);
    sim_snapshot_put_real(out, bottleneck->first_s);
    sim_snapshot_put(out, bottleneck->ending);
    sim_snapshot_put(out, (uint64_t)bottleneck->first << 1 | bottleneck->full);
    for (uint64_t left = bottleneck->active; left; left &= left - 1) {
        const struct sim_bottleneck_flow *flow = &bottleneck->flows[sim_bottleneck_bit(left)];
        sim_snapshot_put_real(out, flow->left);
        sim_snapshot_put_real(out, flow->rate);
        sim_snapshot_put_real(out, flow->limit);
        sim_snapshot_put_real(out, flow->full_rate);
        sim_snapshot_put(out, flow->order - first_order);
    }
}

void sim_flows_write(const struct sim_flows *flows, uint64_t first_order, struct sim_snapshot *out)
{
    for (uint32_t i = 0; i < flows->bottleneck_count; i++) write_bottleneck(&flows->bottlenecks[i], first_order, out);
    for (uint32_t i = 0; i < flows->crowd_count; i++) sim_crowd_write(&flows->crowds[i], first_order, out);
    for (uint32_t c = 0; c < flows->class_count; c++)
        if (flows->classes[c].ends) write_class(&flows->classes[c], first_order, out);
    if (flows->bundle_count > flows->bottleneck_count + flows->crowd_count) sim_share_write(flows->share, out);
}

size_t sim_flows_counters(const struct sim_flows *flows, struct sim_counter *counters)
{
    size_t count = 0;
#define COUNTER(array, length, field, shows) \
    counters[count++] = (struct sim_counter){(length) > 0 ? &(array)[0].field : NULL, sizeof *(array), length, shows}
    COUNTER(flows->links, flows->link_count, busy_s, SIM_COUNTER_REAL);
    COUNTER(flows->link_dirs, 2 * (size_t)flows->link_count, full_s, SIM_COUNTER_REAL);
    COUNTER(flows->paths, flows->path_count, bytes, SIM_COUNTER_COUNT);
    COUNTER(flows->bottlenecks, flows->bottleneck_count, full_s, SIM_COUNTER_REAL);
    COUNTER(flows->bottleneck_places, flows->bottleneck_place_count, full_s, SIM_COUNTER_REAL);
    COUNTER(flows->crowds, flows->crowd_count, full_s, SIM_COUNTER_REAL);
    COUNTER(flows->crowd_arms, flows->crowd_arm_count, trunk_full_s, SIM_COUNTER_REAL);
    COUNTER(flows->crowd_flows, flows->crowd_place_count, capped_s, SIM_COUNTER_REAL);
#undef COUNTER
    assert(count == SIM_FLOWS_COUNTERS);
    return count;
}
