/*
 * What a collective operation costs: steps, bytes that members send, seconds.
 *
 * Members of a group stand in nodes: `inner` is the level inside of a node (its members), `outer` the level
 * between nodes (one member for each node); a flat group has an outer level of one member. A level's
 * latency and bandwidth are those of one member that sends to another while all members of its level do so
 * too: routes, and what they share, are the caller's to find.
 *
 * Where n members have a tensor of `bytes`, in all algorithms but hierarchical:
 *
 *                    bytes is           ring              tree             halving
 *   all-reduce       each one's         2(n-1), 2b(n-1)/n  2L, 2b          2L, 2b(n-1)/n
 *   reduce-scatter   each one's before   n-1,  b(n-1)/n    -                L,  b(n-1)/n
 *   all-gather       each one's after    n-1,  b(n-1)/n    -                L,  b(n-1)/n
 *   broadcast        each one's after    n-1,  b           L,  b            -
 *   all-to-all       each one's          n-1,  b(n-1)/n    -                L,  about b/2 L
 *   send             the message         1,    b           -                -
 *
 * steps and bytes that the busiest member sends, L = log2(n) rounded up. Steps of ring and halving send
 * pieces one after the other; a tree (two binary trees that share the work) and the chain of a broadcast
 * are pipelined in pieces so small that their steps are latency alone. Hierarchical: ring inside of nodes,
 * ring between them, ring inside again, each of its share.
 *
 *     seconds = start + steps * latency + bytes / bandwidth
 *
 * A start is there where there is a group to speak of: a kernel on each member, which meet. Messages have none.
 * with the bandwidth of messages of the size that is sent where the level has measured points. Adding
 * numbers up takes no time: it is hidden behind the links where they are slower than memory, which all but
 * those inside of a device are.
 *
 * Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005 (ring, halving); Bruck et al., IEEE TPDS
 * 8(11), 1997 (groups of any size in L steps); Sanders, Speck and Traeff, Parallel Computing 35(12),
 * 2009 (two trees); NVIDIA's NCCL (which of them when).
 */
#ifndef SPILLWAY_MODELS_COLLECTIVE_H
#define SPILLWAY_MODELS_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

struct copy_point; /* models/hardware/hardware.h */

enum collective_kind {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_BROADCAST,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_SEND, /* of one member to another */
    COLLECTIVE_KIND_COUNT
};
extern const char *const collective_kind_names[COLLECTIVE_KIND_COUNT]; /* "all-reduce", ... */

enum collective_algorithm {
    COLLECTIVE_RING,
    COLLECTIVE_TREE,
    COLLECTIVE_HALVING, /* recursive halving and doubling */
    COLLECTIVE_HIERARCHICAL,
    COLLECTIVE_ALGORITHM_COUNT
};
extern const char *const collective_algorithm_names[COLLECTIVE_ALGORITHM_COUNT]; /* "ring", ... */

struct collective_level {
    uint32_t members;     /* at least 1 */
    double latency_s;     /* at least 0; of a step */
    double bytes_per_s;   /* above 0 where there are 2 members */
    const struct copy_point *points; /* seconds of messages by size, latency included, sorted; NULL: none */
    uint32_t point_count;
};

struct collective_group {
    struct collective_level inner, outer;
    double start_s;                /* before the first step of each collective */
    struct collective_level alone; /* as outer, when one member of each node sends and the others do not;
                                      no members: it is the same */
};

/* One level: no nodes, or one node. */
static inline struct collective_group collective_flat(struct collective_level level)
{
    return (struct collective_group){.inner = level, .outer = {.members = 1}};
}

struct collective_cost {
    uint64_t steps;
    double sent_bytes; /* by the member that sends most */
    double seconds;
};

bool collective_has(enum collective_kind kind, enum collective_algorithm algorithm);

/* Which messages of a group travel at the same time (models/cost/collective_group.h: over which links). */
enum collective_way {
    COLLECTIVE_INSIDE,  /* each member to the next one of its node */
    COLLECTIVE_BETWEEN, /* each member to the one at its place in the next node */
    COLLECTIVE_AROUND,  /* a ring through all members: inside, and from each node's last to the next one's first */
    COLLECTIVE_SPREAD,  /* each member to others all over the group: inside and between */
    COLLECTIVE_ONE,     /* a single message */
    COLLECTIVE_WAY_COUNT
};

/* Steps on one way. */
struct collective_part {
    enum collective_way way;
    uint64_t steps;
    double sent_bytes; /* by the member that sends most */
    double seconds;
    double transfer_s; /* of these: as if messages had no latency */
};
enum { COLLECTIVE_PARTS_MAX = 3 };

/* What it consists of, one part after the other; how many parts. Their sum is collective_cost(). */
uint32_t collective_parts(enum collective_kind kind, enum collective_algorithm algorithm,
                          const struct collective_group *group, uint64_t bytes,
                          struct collective_part parts[COLLECTIVE_PARTS_MAX]);

/* What each member that sends on that way does, of large messages. At least one level has 2 members. */
double collective_way_bytes_per_s(const struct collective_group *group, enum collective_way way);

/*
 * The cost of one that collective_has(). Algorithms other than hierarchical, in a group of several
 * nodes, take the slower of both levels for each step: some member is always on it. In rings and trees that is
 * one member of a node. A group of one member costs nothing; COLLECTIVE_SEND goes to another node where there is one.
 */
struct collective_cost collective_cost(enum collective_kind kind, enum collective_algorithm algorithm,
                                       const struct collective_group *group, uint64_t bytes);

/*
 * The fastest of ring, tree and, in nodes of several members, hierarchical; ring of equals. As libraries
 * choose: trees for small tensors, rings for large ones. Halving is only done when asked for: by this
 * formula it is never slower than a ring, but its steps are between members far apart, all at once, where
 * a ring's are between neighbours; and the formula knows nothing of what such messages share.
 */
enum collective_algorithm collective_choose(enum collective_kind kind,
                                            const struct collective_group *group, uint64_t bytes);

#endif
