/* The links of a machine, and the ways of its copies over them, as the solver wants them (share.h). */
#ifndef SPILLWAY_SIM_MACHINE_H
#define SPILLWAY_SIM_MACHINE_H

#include "planner/plan.h"
#include "sim/network/interference.h"
#include "sim/network/outline.h"

/* Does it have the devices, the storage and the memory that the plan uses? Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status sim_machine_suits(const struct plan *plan, const struct hardware *hardware, struct error *err);

/* hardware->link_count of them. */
void sim_machine_links(const struct hardware *hardware, struct sim_link *links);

/* Between the host and each device: path 2 d leads to device d, path 2 d + 1 back. `flow_limit` copies at
 * a time on each. */
void sim_machine_paths(const struct hardware *hardware, const struct sim_interference *interference,
                       const struct sim_link *links, uint32_t flow_limit, struct sim_path *paths);

/* Storage, behind both, of each host in its turn: the link that reading and writing share, and a path for each. Where there
 * is some. */
void sim_machine_storage(const struct hardware *hardware, struct sim_link *links, struct sim_path *paths);

/* By device: does the plan copy anything between it and host memory? */
void sim_machine_host_copies(const struct plan *plan, bool *copies);

/*
 * From one device to another that fetches, straight or staged, where hardware_reaches(). One copy at a time. `own_group` is
 * the path's group if a lane is crossed twice (then it has crossings, in `arena`). Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_machine_p2p_path(struct arena *arena, const struct hardware *hardware,
                                            const struct sim_interference *interference, const struct sim_link *links,
                                            uint32_t from, uint32_t to, uint32_t own_group, struct sim_path *out,
                                            struct error *err);

#endif
