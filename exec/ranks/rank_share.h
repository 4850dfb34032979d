/*
 * Shares of members in several processes: each member has a share of whole data, in pieces.
 *
 *     scatter   a piece of all members' values goes from station to station (rank_sum.h), each of which adds its
 *               members' values, and the sum from the last station to the piece's owner: the bits of one process
 *     gather    each owner sends its pieces to all other ranks of the group
 *
 * Both go through the pieces in the same order on all ranks.
 */
#ifndef SPILLWAY_EXEC_RANKS_RANK_SHARE_H
#define SPILLWAY_EXEC_RANKS_RANK_SHARE_H

#include "exec/ranks/rank_sum.h"
#include "models/cost/compression.h"

/* The most bytes of a piece that is added up. */
enum { RANK_PIECE_BYTES = 1 << 18 };

/* Bytes of whole data, and their place in the owner's share. */
struct rank_piece {
    uint32_t owner; /* a member */
    uint64_t whole, share, bytes;
};

struct rank_share {
    struct ranks *ranks;
    uint64_t number; /* names its messages */
    uint32_t members;
    const uint32_t *ranks_of;   /* by member: the rank that has it */
    const char *const *from;    /* by member; NULL: of another rank. Scatter: whole fp32 values; gather: the member's
                                   share */
    char *const *to;            /* by member. Scatter: the member's share; gather: whole data */
    bool adds;                  /* scatter: sums are added to the share */
    enum compression_code code; /* scatter: sums are rounded to it; blocks of a code begin with a piece */
    const struct rank_piece *pieces;
    uint32_t piece_count;
    uint32_t workers; /* members of this rank: each takes its share of the pieces */
};

/* Do the share of a worker. Scatter: its pieces of this rank's members are sums; gather: its pieces of other ranks'
 * members are at `to` of the worker's member. Other workers' pieces may not be. Return false as rank_sum_work(). */
bool rank_scatter_work(const struct rank_share *share, uint32_t worker);
bool rank_gather_work(const struct rank_share *share, uint32_t worker);

/* Returns the member of a worker. */
uint32_t rank_share_member(const struct rank_share *share, uint32_t worker);

#endif
