/*
 * Interference: concurrent operations slow each other down (struct hardware_interference in
 * models/hardware/hardware.h).
 *
 * The devices of a domain affect each other. With the host back end, all devices of a machine and its processor
 * (hardware_cpu()) are one domain; otherwise each device is its own domain. This module times the computations of
 * affected devices and sets the caps of their copies. An unaffected device costs nothing: sim_interference_affects()
 * reports it once.
 */
#ifndef SPILLWAY_SIM_NETWORK_INTERFERENCE_H
#define SPILLWAY_SIM_NETWORK_INTERFERENCE_H

#include "sim/engine/queue.h"
#include "sim/network/flow.h"

struct sim_interference; /* opaque */

/* Creates the model, which lives as long as `arena`; `hardware` is borrowed. */
MUST_CHECK enum status sim_interference_create(struct arena *arena,
                                               const struct hardware *hardware,
                                               struct sim_interference **out, struct error *err);

/* Return true if interference changes the speed of the device or of another one in its domain; if collectives slow it
 * down. */
bool sim_interference_affects(const struct sim_interference *interference, uint32_t device);
bool sim_interference_by_collectives(const struct sim_interference *interference, uint32_t device);

/* Return the group for sim/network/share.h that the device's paths must be in; the highest rate in bytes/s of one of
 * its copies without contention, INFINITY if nothing limits it. */
uint32_t sim_interference_group(const struct sim_interference *interference, uint32_t device);
double sim_interference_copy_cap(const struct sim_interference *interference, uint32_t device);

/* Sets the flows whose rates matter, the queue for ends of computations, and for each path the device of its copies
 * (hardware_cpu(): none; for a copy between two devices, the one that fetches). Flows and queue are borrowed. Called
 * before the first computation. */
MUST_CHECK enum status sim_interference_attach(struct sim_interference *interference,
                                               struct arena *arena, struct sim_flows *flows,
                                               struct sim_queue *queue,
                                               const uint32_t *path_devices, uint32_t path_count,
                                               struct error *err);

/* Begins a computation of an affected device that takes `seconds` without contention. It ends with the event of
 * `owner`; there is one per device. */
void sim_interference_compute(struct sim_interference *interference, uint32_t device,
                              uint32_t owner, double seconds, uint64_t order, double now_s);
void sim_interference_computed(struct sim_interference *interference, uint32_t device);

/* Reports that a copy of the device began or ended. */
void sim_interference_copies_changed(struct sim_interference *interference, uint32_t device);

/* Reports that a collective of the device began or ended. */
void sim_interference_collective(struct sim_interference *interference, uint32_t device, bool begins);

/* Set the caps of copies, before sim_flows_settle(); set speeds, after it, from the changed rates. */
void sim_interference_settle_caps(struct sim_interference *interference);
void sim_interference_settle_speeds(struct sim_interference *interference,
                                    const struct sim_rate *changed, uint32_t changed_count,
                                    double now_s);

/* For sim/steady.h. Rebasing decreases all times by `seconds`; writing lists the state that later behaviour depends on,
 * orders relative to `first_order`. */
void sim_interference_rebase(struct sim_interference *interference, double seconds);
void sim_interference_write(const struct sim_interference *interference, uint64_t first_order, struct sim_snapshot *out);

#endif
