/*
 * Copies over time: how much of each is left while the rates change.
 *
 * As many flows as its limit says may be under way on a path. Flows have numbers: first those of path
 * 0, then those of path 1, and so on; with limits of 1 a flow has the number of its path. A flow is
 * begun with its volume; an event of its bundle in the queue says when the first flow of the bundle ends.
 * A bundle is a star (star.h), a crowd (crowd.h) or a class of flows that is of neither (share.h). Beginning and finishing take
 * effect on the others at the next sim_flows_settle(), which must come before the next event is taken.
 */
#ifndef SPILLWAY_SIM_FLOW_H
#define SPILLWAY_SIM_FLOW_H

#include "sim/engine/meter.h"
#include "sim/engine/queue.h"
#include "sim/network/share.h"

struct sim_flows; /* opaque */

struct sim_link_use {
    double bytes[2];      /* [0] towards the devices, [1] back */
    double busy_s;        /* some flow crosses it */
    double saturated_s;   /* its whole bandwidth is used, in the direction where that lasts longer */
};

struct sim_flows_setup {
    const struct sim_link *links;
    uint32_t link_count;
    const struct sim_path *paths;
    uint32_t path_count;
};

/* Lives as long as `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_flows_create(struct arena *arena, const struct sim_flows_setup *setup,
                                        struct sim_flows **out, struct error *err);

uint32_t sim_flows_class_count(const struct sim_flows *flows);
uint32_t sim_flows_bundle_count(const struct sim_flows *flows);
uint32_t sim_flows_bundle(const struct sim_flows *flows, uint32_t flow);

/* Where events go: bundle b is the owner owners[b]. Both are borrowed. Before the first flow. */
void sim_flows_attach(struct sim_flows *flows, struct sim_queue *queue, const uint32_t *owners);

/* The rates of classes whose paths are of a group, and who are of no star for that: read them, set caps;
 * flows are added and removed here alone. Borrowed. */
struct sim_share *sim_flows_share(const struct sim_flows *flows);

/* `volume` is what is to be served, in bytes at the path's bandwidth; `bytes` what the statistics of
 * the links count; `order` decides between flows that end at the same time. */
void sim_flows_begin(struct sim_flows *flows, uint32_t flow, double volume, uint64_t bytes,
                     uint64_t order, double now_s);

/* The event of a bundle came: its first flow is over. Returns the flow. */
uint32_t sim_flows_finish(struct sim_flows *flows, uint32_t bundle, double now_s);

/* Rate anew what changed. Returns the classes whose rates may have, as sim_share_solve() does. */
uint32_t sim_flows_settle(struct sim_flows *flows, double now_s, const struct sim_rate **changed);

/* What links did, when no flow is under way. `bytes` by direction; a link is saturated while its
 * whole bandwidth is used, in the direction where that lasted longer. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_flows_uses(const struct sim_flows *flows, struct sim_link_use *uses,
                                      struct error *err);

/* For tests: how often a flow's or a clock's rate was found, or a flow moved to another clock. Stars are not counted. */
uint64_t sim_flows_work(const struct sim_flows *flows);

/* For sim/steady.h: all times become earlier by `seconds`; what further flows depend on, orders less `first_order`;
 * what is added up, SIM_FLOWS_METERS of them. */
enum { SIM_FLOWS_METERS = 8 };
void sim_flows_rebase(struct sim_flows *flows, double seconds);
void sim_flows_write(const struct sim_flows *flows, uint64_t first_order, struct sim_words *out);
size_t sim_flows_meters(const struct sim_flows *flows, struct sim_meter *meters);

#endif
