/*
 * What runs at the same time slows each other down (struct interference in models/hardware/hardware.h).
 *
 * Devices of a domain feel each other: all of a machine with the host back end, its processor
 * (hardware_cpu()) included, each alone elsewhere. Computations of an affected device go through
 * here; copies of one have their caps set here. A device that is not affected costs nothing:
 * sim_interference_affects() says so once.
 */
#ifndef SPILLWAY_SIM_INTERFERENCE_H
#define SPILLWAY_SIM_INTERFERENCE_H

#include "sim/engine/queue.h"
#include "sim/network/flow.h"

struct sim_interference; /* opaque */

/* Lives as long as `arena`; `hardware` is borrowed. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_interference_create(struct arena *arena,
                                               const struct hardware *hardware,
                                               struct sim_interference **out, struct error *err);

/* Does some figure of the law matter to the device, or to another of its domain? That of collectives to it? */
bool sim_interference_affects(const struct sim_interference *interference, uint32_t device);
bool sim_interference_by_collectives(const struct sim_interference *interference, uint32_t device);

/* The group for sim/network/share.h that the device's paths must be in, and the most that one of its copies
 * can do when nothing else runs; INFINITY when nothing is known to hold it back. */
uint32_t sim_interference_group(const struct sim_interference *interference, uint32_t device);
double sim_interference_copy_cap(const struct sim_interference *interference, uint32_t device);

/* The flows whose rates matter, the queue that computations end in, and by path the device that its
 * copies belong to (hardware_cpu(): none; of a copy between two devices the one that fetches).
 * Flows and queue are borrowed. Before the first computation. */
MUST_CHECK enum status sim_interference_attach(struct sim_interference *interference,
                                               struct arena *arena, struct sim_flows *flows,
                                               struct sim_queue *queue,
                                               const uint32_t *path_devices, uint32_t path_count,
                                               struct error *err);

/* A computation of an affected device that takes `seconds` when nothing else runs. It ends with the
 * event of `owner`; one per device. */
void sim_interference_compute(struct sim_interference *interference, uint32_t device,
                              uint32_t owner, double seconds, uint64_t order, double now_s);
void sim_interference_computed(struct sim_interference *interference, uint32_t device);

/* A copy of the device began or ended. */
void sim_interference_copies_changed(struct sim_interference *interference, uint32_t device);

/* A collective that the device takes part in began or ended. */
void sim_interference_collective(struct sim_interference *interference, uint32_t device, bool begins);

/* Before sim_flows_settle(): caps of copies. After it, with what that changed: speeds. */
void sim_interference_settle_caps(struct sim_interference *interference);
void sim_interference_settle_speeds(struct sim_interference *interference,
                                    const struct sim_rate *changed, uint32_t changed_count,
                                    double now_s);

/* For sim/steady.h: all times become earlier by `seconds`; what further behaviour depends on, orders less
 * `first_order`. */
void sim_interference_rebase(struct sim_interference *interference, double seconds);
void sim_interference_write(const struct sim_interference *interference, uint64_t first_order, struct sim_words *out);

#endif
