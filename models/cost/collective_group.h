/*
 * Finds the levels of models/cost/collective.h for groups on a machine.
 *
 * Members in the same innermost network form a node; without a network, members on the same host do. A group with
 * equally many members on each of its nodes has two levels; other groups are a ring over all members. All groups of
 * one call communicate at the same time, and messages that cross a link in one direction share it equally. A level's
 * slowest message determines it.
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
    uint32_t *flows; /* per direction of a link; all 0 between calls */
    double *messages; /* as `flows` */
    uint32_t *order, *nodes, *counts; /* scratch, per device */
};

/* Initialises a finder, which lives as long as `arena`; `hardware` is borrowed. */
MUST_CHECK enum status collective_finder_init(struct arena *arena, const struct hardware *hardware,
                                              struct collective_finder *out, struct error *err);

/*
 * Finds the levels of `count` groups.
 *   devices   groups of `members` devices each, one after the other, no device twice
 *   groups    out: count entries
 * Returns false when lacking[0] does not reach lacking[1] (hardware_reaches()).
 */
MUST_CHECK bool collective_groups_find(const struct collective_finder *finder, const uint32_t *devices,
                                       uint32_t members, uint32_t count, struct collective_group *groups,
                                       uint32_t lacking[2]);

/* A link direction (0: towards devices or simplex, 1: away), and the messages that cross it at once, per message that
 * a member sends. */
struct collective_link_dir {
    uint32_t link, direction;
    double messages;
};

/*
 * Writes the link directions that the group's messages cross, ascending, and returns their number. `members` devices
 * have routes for each message; `link_dirs` has room for 2 link_count entries. COLLECTIVE_AROUND counts the larger of
 * the messages inside and between nodes, COLLECTIVE_SPREAD each level's share.
 */
uint32_t collective_group_link_dirs(const struct collective_finder *finder, const uint32_t *devices,
                                    uint32_t members, enum collective_way way, struct collective_link_dir *link_dirs);

/* Returns `forced`, or collective_choose() when `forced` does not support the kind or is
 * COLLECTIVE_ALGORITHM_COUNT. */
enum collective_algorithm collective_algorithm_of(enum collective_kind kind, enum collective_algorithm forced,
                                                  const struct collective_group *group, uint64_t bytes);

/* Returns the seconds by collective_algorithm_of(). */
double collective_seconds(enum collective_kind kind, enum collective_algorithm forced,
                          const struct collective_group *group, uint64_t bytes);

#endif
