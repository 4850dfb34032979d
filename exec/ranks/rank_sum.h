/*
 * Sums over members in several processes, in the order of members: ((x0 + x1) + x2) + ..., the bits of one process.
 *
 * Members of a process that follow each other are a station. A piece of the values travels from station to station,
 * each of which adds its members' values, and the sums travel back the same way. Pieces follow each other, so all
 * stations work at once, and no rank sends more than the values once in each direction.
 *
 *     members   0   1   2   3   4   5
 *     stations  [ a   a ]  [ b   b ]  [ c   c ]
 *     piece        x0+x1 ---> +x2+x3 ---> +x4+x5
 *     sum                <---         <---
 */
#ifndef SPILLWAY_EXEC_RANKS_RANK_SUM_H
#define SPILLWAY_EXEC_RANKS_RANK_SUM_H

#include <stdbool.h>

#include "exec/ranks/rank_mesh.h"

struct rank_sum {
    struct ranks *ranks;
    uint64_t number;       /* names its messages */
    uint32_t members;
    const uint32_t *ranks_of; /* by member: the rank that has it */
    float *const *values;  /* by member; NULL: of another rank */
    const bool *repeats;   /* by member: another one has the same values, which are added once; NULL: none, as in
                              trees */
    void (*add)(float *restrict sum, const float *x, uint64_t count); /* another way to combine values; NULL: they are
                                                                         added */
    uint64_t count;
    bool tree;             /* of fp64 numbers: the order of sums */
    bool halves;           /* values are bf16 numbers: rank_tree_work() adds them up by member */
    uint32_t workers;      /* members of this rank: each takes its share of the pieces */
};

/* Does the share of a worker. It returns when its pieces of all members of this rank are sums. Other workers' pieces
 * may not be. Returns false when the ranks were left meanwhile, or no memory is left: that is noted as a failure. */
bool rank_sum_work(const struct rank_sum *sum, uint32_t worker);

/* The same for sums as a tree of members (models/job/parallel.h), or of bf16 numbers in fp32, each rounded once: the
 * values go to one rank, which adds them. */
bool rank_tree_work(const struct rank_sum *sum, uint32_t worker);

/* Adds up fp64 numbers at `values` of all members of this rank: for a few, which go from each member to each rank. One
 * worker does it. Returns false as rank_sum_work(). */
bool rank_sum_doubles(const struct rank_sum *sum);

#endif
