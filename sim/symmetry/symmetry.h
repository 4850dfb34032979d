/*
 * Which devices of a plan do the same at the same times, so that one of them need be simulated.
 *
 * Found in the plan and the machine, never taken on trust: devices, the copies between them, the groups of
 * collectives and the links that these cross are coloured (sim/symmetry/colouring.h) until nodes of one colour have neighbours
 * of equal colours. Then a timing in which all of a colour do everything together is the simulation's own: it starts
 * what can start, and for none of them can anything start earlier than for another. A slow device is so told apart
 * from its neighbours, and they from theirs as far as they have to wait for it differently; the rest stays folded.
 *
 * To the last bit, since flows that share a link come in the same order for all of a colour, and two flows of one
 * colour never share one: they are told apart. But how long links were saturated is a sum that events at one time cut
 * into parts, more of them where more is simulated: that may differ by as much as it is rounded. So may
 * times where collectives are flows, which are read more often where more is simulated: a last bit or two, seen in one
 * of some thousand random plans.
 */
#ifndef SPILLWAY_SIM_SYMMETRY_H
#define SPILLWAY_SIM_SYMMETRY_H

#include "sim/network/collective_flow.h"

/* Two devices of which one copies to the other. */
struct sim_symmetry_pair {
    uint32_t to, from;
    uint32_t times; /* so many pairs do the same, this one among them */
};

struct sim_symmetry {
    uint32_t represented;   /* devices that others stand for; where it is 0 there is nothing else */
    uint32_t *stands_for;   /* per device: which one does what it does; itself where it is that one */
    uint32_t *link_for;     /* per link: likewise */
    bool *kept;             /* per group of collectives, as sim_collectives_group() numbers them: simulated */
    struct sim_symmetry_pair *pairs; /* all that the plan copies between, by `to`, then `from` */
    uint32_t pair_count;
};

struct sim_symmetry_setup {
    const struct plan *plan;
    const struct hardware *hardware;
    const double *slow;     /* per device, as in struct sim_options; NULL: none is */
    const struct sim_collectives *collectives;
    const struct sim_collective_flows *flows; /* NULL: no collective is one */
};

/* Lives as long as `arena`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_symmetry_find(struct arena *arena, const struct sim_symmetry_setup *setup,
                                         struct sim_symmetry *out, struct error *err);

/* How many pairs do what this one does. */
uint32_t sim_symmetry_times(const struct sim_symmetry *symmetry, uint32_t to, uint32_t from);

#endif
