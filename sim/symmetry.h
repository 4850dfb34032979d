/*
 * Which devices of a plan do the same at the same times, so that one of them need be simulated.
 *
 * Found in the plan and the machine, never taken on trust. The devices of a gang stand for each other when
 *   - each runs in gangs alone, and they are always in the same ones;
 *   - they are of one type and equally slow, and the copies between them and a peer gang's devices take equally long over
 *     links that nothing else of the plan crosses;
 *   - every group of a collective has equally good links.
 * Then a timing in which all of them do everything together is the simulation's own: it starts what can
 * start, and on none of them can anything start earlier than on another.
 */
#ifndef SPILLWAY_SIM_SYMMETRY_H
#define SPILLWAY_SIM_SYMMETRY_H

#include "sim/joining.h"

/*
 * slow           per device, as in struct sim_options; NULL: none is
 * stands_for[d] (device_count entries): which device does what d does; d itself where it is that one, or
 * where nothing was found. *represented: how many devices are left out.
 * Errors: STATUS_NO_MEMORY.
 */
MUST_CHECK enum status sim_symmetry_find(const struct plan *plan, const struct hardware *hardware,
                                         const double *slow, const struct sim_collectives *collectives,
                                         uint32_t *stands_for, uint32_t *represented, struct error *err);

#endif
