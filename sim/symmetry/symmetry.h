/*
 * Finds devices of a plan that do the same at the same times, so that only one of them is simulated.
 *
 * The symmetry is computed from plan and machine: devices, copies between them, groups of collectives and the links
 * that these cross are coloured (sim/symmetry/refinement.h) until nodes of one colour have equally coloured neighbours.
 * Then the timing in which all nodes of a colour act together is the simulator's own timing: it starts every operation
 * as early as possible, and the earliest time is equal for all of them. A slow device therefore gets its own colour,
 * and so do its neighbours as far as they wait for it differently; other devices stay folded.
 *
 * Results are equal to the last bit, since flows that share a link have the same order for all nodes of a colour, and
 * two flows of one colour never share a link: they get different colours. There are two exceptions. The saturated
 * seconds of links are a sum that simultaneous events split into parts, into more parts without folding, so it may
 * differ by rounding. Times of collectives that are flows may differ by a last bit or two, because flows are updated
 * more often without folding; this was seen in one of some thousand random plans. If that bit decides which of two
 * events of different jobs comes first, times differ by more: by 0.02 % in the one plan in which it was seen.
 */
#ifndef SPILLWAY_SIM_SYMMETRY_SYMMETRY_H
#define SPILLWAY_SIM_SYMMETRY_SYMMETRY_H

#include "sim/network/collective_flow.h"

/* Two devices between which the plan copies. */
struct sim_symmetry_pair {
    uint32_t to, from;
    uint32_t times; /* number of pairs that do the same, with this one */
};

struct sim_symmetry {
    uint32_t represented;   /* devices that another device stands for; if it is 0, all other fields are empty */
    uint32_t *stands_for;   /* per device: the device that is simulated instead; itself if it is simulated */
    uint32_t *link_for;     /* per link, likewise */
    bool *kept;             /* per group of collectives, by sim_collectives_group(): it is simulated */
    struct sim_symmetry_pair *pairs; /* all pairs between which the plan copies, by `to`, then `from` */
    uint32_t pair_count;
};

struct sim_symmetry_setup {
    const struct plan *plan;
    const struct hardware *hardware;
    const double *slow;     /* factors as in struct sim_options; NULL: none */
    const struct sim_collectives *collectives;
    const struct sim_collective_flows *flows; /* NULL: no collective is a flow */
};

/* Finds the symmetry; *out lives as long as `arena`. */
MUST_CHECK enum status sim_symmetry_find(struct arena *arena, const struct sim_symmetry_setup *setup,
                                         struct sim_symmetry *out, struct error *err);

/* Returns how many pairs do the same as this one, with it. */
uint32_t sim_symmetry_times(const struct sim_symmetry *symmetry, uint32_t to, uint32_t from);

#endif
