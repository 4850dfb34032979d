/*
 * The links of a collective's groups: finds the levels of models/cost/collective.h for a machine.
 *
 * Members in the same innermost network form a node. Members without a network form a node if they are on the same
 * host; they exchange data through its memory. A group with equally many members on each of its nodes has two levels.
 * A group with unequal parts is a ring over all members, as if each member were its own node. All groups of one call
 * communicate at the same time. The messages that cross a link in one direction share its bandwidth equally, so
 * groups whose members share a NIC each get a share of the NIC. The slowest message of a level determines the level.
 *
 *     8 x 2 devices, groups {0, 8}, {1, 9} ...     8 messages leave a node at once: with one NIC of
 *                                                  12.5 GB/s per node each member has 1.56 GB/s
 */
#ifndef SPILLWAY_MODELS_COST_COLLECTIVE_GROUP_H
#define SPILLWAY_MODELS_COST_COLLECTIVE_GROUP_H

#include "models/cost/collective.h"
#include "models/hardware/hardware.h"

struct collective_finder {
    const struct hardware *hardware;
    uint32_t *flows; /* one entry per direction of a link; all 0 between calls */
    double *messages; /* as `flows` */
    uint32_t *order, *nodes, *counts; /* scratch, an entry per device */
};

/* Initialises a finder, which lives as long as `arena`; `hardware` is borrowed. */
MUST_CHECK enum status collective_finder_init(struct arena *arena, const struct hardware *hardware,
                                              struct collective_finder *out, struct error *err);

/*
 * Finds the levels of `count` groups.
 *   devices   groups of `members` devices each, one after the other, no device twice
 *   groups    out: count entries
 * Returns false when lacking[0] must send to lacking[1] but does not reach it (hardware_reaches()).
 */
MUST_CHECK bool collective_groups_find(const struct collective_finder *finder, const uint32_t *devices,
                                       uint32_t members, uint32_t count, struct collective_group *groups,
                                       uint32_t lacking[2]);

/* A direction of a link that messages cross (0: towards devices or simplex, 1: away from devices), and the number of
 * messages that cross it at once, per message that a member sends. */
struct collective_link_dir {
    uint32_t link, direction;
    double messages;
};

/*
 * Writes the link directions that the group's messages cross, in ascending order, and returns their number. `members`
 * devices have routes for each message; `link_dirs` has room for 2 link_count entries. Two kinds of routes go both
 * inside and between nodes. COLLECTIVE_AROUND counts the larger number of the two, since a step lasts as long as the
 * slower level. COLLECTIVE_SPREAD, where each member sends equally much to all others, counts each level's share of the
 * messages.
 */
uint32_t collective_group_link_dirs(const struct collective_finder *finder, const uint32_t *devices,
                                    uint32_t members, enum collective_way way, struct collective_link_dir *link_dirs);

/* Returns the algorithm `forced`. Returns the fastest one, see collective_choose(), when `forced` does not support
 * the kind or is COLLECTIVE_ALGORITHM_COUNT. */
enum collective_algorithm collective_algorithm_of(enum collective_kind kind, enum collective_algorithm forced,
                                                  const struct collective_group *group, uint64_t bytes);

/* Returns the seconds of one collective by that algorithm. */
double collective_seconds(enum collective_kind kind, enum collective_algorithm forced,
                          const struct collective_group *group, uint64_t bytes);

#endif
