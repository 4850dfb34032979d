/*
 * Copies over time: flows' remaining volume as rates change.
 *
 * A path has active flows up to its limit. Flows are numbered: all of path 0, then of path 1, ... A flow begins with
 * its volume. A bundle's event is its first flow's end. A bundle is a bottleneck (bottleneck.h), a crowd (crowd.h) or
 * another class of flows (share.h). Begins and ends change other rates at the next sim_flows_settle(), which must
 * precede the next event.
 */
#ifndef SPILLWAY_SIM_NETWORK_FLOW_H
#define SPILLWAY_SIM_NETWORK_FLOW_H

#include "sim/engine/counters.h"
#include "sim/engine/queue.h"
#include "sim/network/share.h"

struct sim_flows; /* opaque */

struct sim_link_use {
    double bytes[2];      /* [0] towards the devices, [1] back */
    double busy_s;        /* time with an active flow */
    double saturated_s;   /* at full bandwidth, in the direction where that lasts longer */
};

struct sim_flows_setup {
    const struct sim_link *links;
    uint32_t link_count;
    const struct sim_path *paths;
    uint32_t path_count;
};

/* Creates the flows, which live as long as `arena`. */
MUST_CHECK enum status sim_flows_create(struct arena *arena, const struct sim_flows_setup *setup,
                                        struct sim_flows **out, struct error *err);

uint32_t sim_flows_class_count(const struct sim_flows *flows);
uint32_t sim_flows_bundle_count(const struct sim_flows *flows);
uint32_t sim_flows_bundle(const struct sim_flows *flows, uint32_t flow);

/* Sets the queue before the first flow. Bundle b has the owner owners[b]. Both are borrowed. */
void sim_flows_attach(struct sim_flows *flows, struct sim_queue *queue, const uint32_t *owners);

/* Returns the solver of classes with a group, which are in no bottleneck. Callers may read rates and set caps; only
 * flow.c adds and removes flows. Borrowed. */
struct sim_share *sim_flows_share(const struct sim_flows *flows);

/* `volume`: in bytes at the path's bandwidth; `bytes`: for links' statistics; `order`: decides between flows that end
 * at once. */
void sim_flows_begin(struct sim_flows *flows, uint32_t flow, double volume, uint64_t bytes,
                     uint64_t order, double now_s);

/* Ends and returns a bundle's first flow, at its event. */
uint32_t sim_flows_finish(struct sim_flows *flows, uint32_t bundle, double now_s);

/* Returns the classes whose rates may have changed, as sim_share_solve() does. */
uint32_t sim_flows_settle(struct sim_flows *flows, double now_s, const struct sim_rate **changed);

/* Reads all links' use, when no flow is active. `bytes` by direction; saturated_s is at full bandwidth, in the
 * direction where that lasted longer. */
MUST_CHECK enum status sim_flows_uses(const struct sim_flows *flows, struct sim_link_use *uses,
                                      struct error *err);

/* For tests: counts computed rates of flows and clocks, and moves to other clocks, without bottlenecks. */
uint64_t sim_flows_work(const struct sim_flows *flows);

/* For sim/steady.h: decreases all times by `seconds`; writes the state that later behaviour depends on, orders relative
 * to `first_order`; returns SIM_FLOWS_COUNTERS counters. */
enum { SIM_FLOWS_COUNTERS = 8 };
void sim_flows_rebase(struct sim_flows *flows, double seconds);
void sim_flows_write(const struct sim_flows *flows, uint64_t first_order, struct sim_snapshot *out);
size_t sim_flows_counters(const struct sim_flows *flows, struct sim_counter *counters);

#endif
