/* A machine's links and the paths of copies, for share.h. */
#ifndef SPILLWAY_SIM_NETWORK_MACHINE_H
#define SPILLWAY_SIM_NETWORK_MACHINE_H

#include "planner/plan.h"
#include "sim/network/interference.h"
#include "sim/network/path_classes.h"

/* Checks for the devices, storage and memory that the plan uses. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status sim_machine_suits(const struct plan *plan, const struct hardware *hardware, struct error *err);

/* Fills (hardware->link_count) links. */
void sim_machine_links(const struct hardware *hardware, struct sim_link *links);

/* Fills the host's paths: 2 d leads to device d, 2 d + 1 back. `flow_limit`: copies at once on each. */
void sim_machine_paths(const struct hardware *hardware, const struct sim_interference *interference,
                       const struct sim_link *links, uint32_t flow_limit, struct sim_path *paths);

/* Appends each host's storage, after links and paths: the link shared by reading and writing, and a path for each. Only
 * for machines with storage. */
void sim_machine_storage(const struct hardware *hardware, struct sim_link *links, struct sim_path *paths);

/* Sets copies[d] if the plan copies between device d and host memory. */
void sim_machine_host_copies(const struct plan *plan, bool *copies);

/*
 * Makes the path to a device that fetches from another, direct or staged, if hardware_reaches(); one copy at a time.
 * `own_group`: the path's group if it crosses a link direction twice (then with crossings, in `arena`).
 */
MUST_CHECK enum status sim_machine_p2p_path(struct arena *arena, const struct hardware *hardware,
                                            const struct sim_interference *interference, const struct sim_link *links,
                                            uint32_t from, uint32_t to, uint32_t own_group, struct sim_path *out,
                                            struct error *err);

#endif
