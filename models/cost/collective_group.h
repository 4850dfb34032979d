/*
 * Which links the members of a collective's groups have: the levels of models/cost/collective.h, from a machine.
 *
 * Members that are in one innermost network are of one node; of those without networks, members on one host, which
 * exchange through its memory. A group with as many members on each of its
 * nodes has two levels; one with unequal parts is a ring over all of its members, as if each were a node of its
 * own. All groups that are asked about at once communicate at the same time: a link's bandwidth is shared
 * equally by the messages that cross it in that direction, so groups whose members share a NIC have a part of
 * it each. The slowest message of a level is the level's.
 *
 *     8 x 2 devices, groups {0, 8}, {1, 9} ...     8 messages leave a node at once: with one NIC of
 *                                                  12.5 GB/s for it a member has 1.56 GB/s
 */
#ifndef SPILLWAY_MODELS_COLLECTIVE_GROUP_H
#define SPILLWAY_MODELS_COLLECTIVE_GROUP_H

#include "models/cost/collective.h"
#include "models/hardware/hardware.h"

struct collective_finder {
    const struct hardware *hardware;
    uint32_t *flows; /* per direction of a link; 0 between calls */
    double *messages; /* likewise */
    uint32_t *order, *nodes, *counts; /* scratch, an entry per device */
};

/* Lives as long as `arena`; `hardware` is borrowed. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status collective_finder_init(struct arena *arena, const struct hardware *hardware,
                                              struct collective_finder *out, struct error *err);

/*
 * devices   count groups of `members`, one after the other, no device twice
 * groups    out: count entries
 * False: lacking[0] does not reach lacking[1] (hardware_reaches()), which it has to send to.
 */
MUST_CHECK bool collective_groups_find(const struct collective_finder *finder, const uint32_t *devices,
                                       uint32_t members, uint32_t count, struct collective_group *groups,
                                       uint32_t lacking[2]);

/* A direction of a link (0 towards devices, 1 away from them; 0 where both are one) that a way's messages cross,
 * and how many at once, for each that a member sends. */
struct collective_lane {
    uint32_t link, direction;
    double messages;
};

/*
 * What the messages of a group cross, in ascending order; how many lanes. `members` devices with a way for each
 * message; `lanes` has room for 2 link_count. Ways that go inside and between: around, a lane has the more of
 * the two, for a step lasts as long as the slower; spread, of members that send equally much to all others each
 * has its part of the messages.
 */
uint32_t collective_group_lanes(const struct collective_finder *finder, const uint32_t *devices,
                                uint32_t members, enum collective_way way, struct collective_lane *lanes);

/* The algorithm `forced`, or where it does not do such (or is COLLECTIVE_ALGORITHM_COUNT) the fastest, see
 * collective_choose(). */
enum collective_algorithm collective_algorithm_of(enum collective_kind kind, enum collective_algorithm forced,
                                                  const struct collective_group *group, uint64_t bytes);

/* Seconds of one by that algorithm. */
double collective_seconds(enum collective_kind kind, enum collective_algorithm forced,
                          const struct collective_group *group, uint64_t bytes);

#endif
