/*
 * Concurrent operations slow each other down (struct hardware_interference in models/hardware/hardware.h).
 *
 * A domain's devices affect each other: with the host back end, all devices and the processor (hardware_cpu()); else
 * each device by itself. This module times affected devices' computations and caps their copies.
 * sim_interference_affects() reports unaffected devices, which cost nothing.
 */
#ifndef SPILLWAY_SIM_NETWORK_INTERFERENCE_H
#define SPILLWAY_SIM_NETWORK_INTERFERENCE_H

#include "sim/engine/queue.h"
#include "sim/network/flow.h"

struct sim_interference; /* opaque */

/* The model lives as long as `arena`; `hardware` is borrowed. */
MUST_CHECK enum status sim_interference_create(struct arena *arena,
                                               const struct hardware *hardware,
                                               struct sim_interference **out, struct error *err);

/* Return true if interference changes the speed of a device of the domain; if collectives slow the device down. */
bool sim_interference_affects(const struct sim_interference *interference, uint32_t device);
bool sim_interference_by_collectives(const struct sim_interference *interference, uint32_t device);

/* Return the group for sim/network/share.h of the device's paths; the highest rate in bytes/s of one of its copies
 * without contention, or INFINITY. */
uint32_t sim_interference_group(const struct sim_interference *interference, uint32_t device);
double sim_interference_copy_cap(const struct sim_interference *interference, uint32_t device);

/* Sets the flows whose rates matter, the queue for ends of computations, and for each path the device of its copies
 * (hardware_cpu(): none; between two devices, the one that fetches). Flows and queue are borrowed. Called before the
 * first computation. */
MUST_CHECK enum status sim_interference_attach(struct sim_interference *interference,
                                               struct arena *arena, struct sim_flows *flows,
                                               struct sim_queue *queue,
                                               const uint32_t *path_devices, uint32_t path_count,
                                               struct error *err);

/* Begins an affected device's computation of `seconds` without contention. It ends with `owner`'s event; there is one
 * per device. */
void sim_interference_compute(struct sim_interference *interference, uint32_t device,
                              uint32_t owner, double seconds, uint64_t order, double now_s);
void sim_interference_computed(struct sim_interference *interference, uint32_t device);

/* Reports a copy's begin or end. */
void sim_interference_copies_changed(struct sim_interference *interference, uint32_t device);

/* Reports a collective's begin or end. */
void sim_interference_collective(struct sim_interference *interference, uint32_t device, bool begins);

/* Set caps of copies, before sim_flows_settle(); set speeds from changed rates, after it. */
void sim_interference_settle_caps(struct sim_interference *interference);
void sim_interference_settle_speeds(struct sim_interference *interference, const struct sim_rate *changed,
                                    uint32_t changed_count, double now_s);

/* Sets caps of copies, settles the flows (sim_flows_settle()), and sets speeds from changed rates; each if flows or
 * slow-downs changed. `slowed`: rates of flows affect a device's speed. Inline, because it follows every event. */
static inline void sim_interference_settle(struct sim_interference *interference, struct sim_flows *flows,
                                           bool flows_changed, bool slowing_changed, bool slowed, double now_s)
{
    const struct sim_rate *changed = NULL;
    uint32_t changed_count = 0;
    if (slowing_changed) sim_interference_settle_caps(interference);
    if (flows_changed || slowing_changed) changed_count = sim_flows_settle(flows, now_s, &changed);
    if (slowing_changed || (slowed && changed_count > 0))
        sim_interference_settle_speeds(interference, changed, changed_count, now_s);
}

/* For sim/steady.h: decreases all times by `seconds`; lists the state that later behaviour depends on, orders relative
 * to `first_order`. */
void sim_interference_rebase(struct sim_interference *interference, double seconds);
void sim_interference_write(const struct sim_interference *interference, uint64_t first_order,
                            struct sim_snapshot *out);

#endif
