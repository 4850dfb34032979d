/*
 * Cost of collective operations.
 *
 * Members of a group are placed in nodes. Level `inner` joins the members of one node, level `outer` one member of
 * each node; in a flat group it has one member. A level's latency and bandwidth apply to a message while all other
 * members of the level send too. The caller finds routes and shared links.
 *
 * For n members and a tensor of `bytes`, for all algorithms except hierarchical:
 *
 *                    bytes is           ring              tree             halving
 *   all-reduce       each one's         2(n-1), 2b(n-1)/n  2L, 2b          2L, 2b(n-1)/n
 *   reduce-scatter   each one's before   n-1,  b(n-1)/n    -                L,  b(n-1)/n
 *   all-gather       each one's after    n-1,  b(n-1)/n    -                L,  b(n-1)/n
 *   broadcast        each one's after    n-1,  b           L,  b            -
 *   all-to-all       each one's          n-1,  b(n-1)/n    -                L,  about b/2 L
 *   send             the message         1,    b           -                -
 *
 * The columns give steps and bytes sent by the busiest member; L = log2(n) rounded up. Ring and halving send pieces
 * one after the other. A tree (two binary trees that share the work) and a broadcast's chain are pipelined: their
 * steps cost only latency. Hierarchical: a ring inside each node, one between nodes, and one inside again, each for
 * its share.
 *
 *     seconds = start + steps * latency + bytes / bandwidth
 *
 * `start` is the time until a kernel has started on each member and the members have met; single messages have none.
 * `bandwidth` applies to the size that is sent, if the level has measured points. Reductions take no time: they
 * overlap with the transfer on every link slower than memory.
 *
 * Where the machine has measured collectives of a kind for groups of one node, these are the seconds, whatever the
 * algorithm. Groups of a size between two measured ones take seconds in proportion.
 *
 * Sources: Thakur, Rabenseifner and Gropp, IJHPCA 19(1), 2005 (ring, halving); Bruck et al., IEEE TPDS 8(11), 1997
 * (any group size in L steps); Sanders, Speck and Traeff, Parallel Computing 35(12), 2009 (two trees); NVIDIA's NCCL
 * (choice of algorithm).
 */
#ifndef SPILLWAY_MODELS_COST_COLLECTIVE_H
#define SPILLWAY_MODELS_COST_COLLECTIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "models/hardware/collective_kind.h"

struct copy_point; /* models/hardware/hardware.h */
struct device_type;

/*
 * X(enum, name): every algorithm. Jobs, the command line and Chakra traces take the names from here. collective.c has
 * each algorithm's kinds and parts; halving is recursive halving and doubling.
 */
#define COLLECTIVE_ALGORITHMS(X) X(RING, "ring") X(TREE, "tree") X(HALVING, "halving") X(HIERARCHICAL, "hierarchical")

#define COLLECTIVE_ALGORITHM_ENUM(algorithm, name) COLLECTIVE_##algorithm,
enum collective_algorithm { COLLECTIVE_ALGORITHMS(COLLECTIVE_ALGORITHM_ENUM) COLLECTIVE_ALGORITHM_COUNT };
#undef COLLECTIVE_ALGORITHM_ENUM
extern const char *const collective_algorithm_names[COLLECTIVE_ALGORITHM_COUNT]; /* "ring", ... */

struct collective_level {
    uint32_t members;     /* at least 1 */
    double latency_s;     /* of a step; at least 0 */
    double bytes_per_s;   /* above 0 with at least 2 members */
    const struct copy_point *points; /* seconds of messages by size, with latency, sorted; may be NULL */
    uint32_t point_count;
};

struct collective_group {
    struct collective_level inner, outer;
    double start_s;                /* before the first step */
    const struct device_type *measured; /* has rates of collectives of this group; NULL: there are none */
    struct collective_level alone; /* outer while only one member of each node sends; no members: same as outer */
};

/* Returns a group of one level. */
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

/* Routes of the messages of one step, which travel at the same time. Links: models/cost/collective_group.h. */
enum collective_way {
    COLLECTIVE_INSIDE,  /* to the next member of its node */
    COLLECTIVE_BETWEEN, /* to the same place in the next node */
    COLLECTIVE_AROUND,  /* a ring: inside nodes, and from a node's last member to the first of the next */
    COLLECTIVE_SPREAD,  /* to members of the whole group */
    COLLECTIVE_ONE,     /* a single message */
    COLLECTIVE_WAY_COUNT
};

/* Steps on the same routes. */
struct collective_part {
    enum collective_way way;
    uint64_t steps;
    double sent_bytes; /* by the member that sends most */
    double seconds;
    double transfer_s; /* with zero latency */
};
enum { COLLECTIVE_PARTS_MAX = 3 };

/* Writes the parts in order and returns their number. Their sum is collective_cost(). */
uint32_t collective_parts(enum collective_kind kind, enum collective_algorithm algorithm,
                          const struct collective_group *group, uint64_t bytes,
                          struct collective_part parts[COLLECTIVE_PARTS_MAX]);

/* Returns the bandwidth of large messages for each sending member. At least one level has 2 members. */
double collective_way_bytes_per_s(const struct collective_group *group, enum collective_way way);

/*
 * collective_has() must be true. In a group of several nodes, all algorithms except hierarchical take the slower level
 * for each step. A group of one member costs nothing. COLLECTIVE_SEND goes to another node if there is one.
 */
struct collective_cost collective_cost(enum collective_kind kind, enum collective_algorithm algorithm,
                                       const struct collective_group *group, uint64_t bytes);

/*
 * Returns the fastest of ring, tree and, for nodes of several members, hierarchical; ring if equal. Halving is used
 * only on request: by this formula it is never slower than a ring, but its steps join distant members at once, and the
 * formula does not see how such messages share links.
 */
enum collective_algorithm collective_choose(enum collective_kind kind,
                                            const struct collective_group *group, uint64_t bytes);

#endif
