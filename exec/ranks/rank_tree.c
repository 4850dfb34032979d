/*
 * Each piece has a rank that adds it up, in turn: it gets the values of all members, and sends back the sum. All ranks
 * go through their pieces in ascending order, so the first piece that is not a sum never waits for another one.
 */
#include "exec/ranks/rank_sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/kernels/kernels_sum.h"

enum { PIECE = 1 << 16, BACK = 1u << 31 }; /* numbers; a bit of the part of messages with sums */

struct work {
    const struct rank_sum *sum;
    uint32_t *ranks; /* with members, each once */
    uint32_t rank_count, own_first; /* the first member of this rank */
    char *others;    /* [member][PIECE]: values of other ranks' members */
    const bf16 **halves; /* per member: its numbers of a piece */
    struct ranks_request *requests; /* per member */
};

struct piece {
    const struct work *work;
    uint64_t index;
};

static uint64_t number_bytes(const struct work *w)
{
    return w->sum->halves ? sizeof(bf16) : sizeof(float);
}

static void *value_of(const struct work *w, uint64_t piece, uint32_t member)
{
    char *const own = (char *)w->sum->values[member];
    const uint64_t bytes = PIECE * number_bytes(w);
    return own ? own + piece * bytes : w->others + member * bytes;
}

/* Returns a member's numbers of a piece, which are counted from its begin. */
static const float *numbers_of(const void *context, uint32_t member, uint64_t at, uint64_t count, float *room)
{
    const struct piece *const piece = context;
    (void)count, (void)room;
    return (const float *)value_of(piece->work, piece->index, member) + at;
}

static void add_up(const struct work *w, uint64_t piece, uint64_t count, void *into)
{
    if (!w->sum->halves) {
        kernels_sum_tree(numbers_of, &(struct piece){w, piece}, w->sum->members, 0, count, into);
        return;
    }
    for (uint32_t m = 0; m < w->sum->members; m++) w->halves[m] = value_of(w, piece, m);
    kernels_sum_halves(w->halves, w->sum->members, 0, count, into);
}

/* Collects, adds up, and sends back. */
static bool own_piece(const struct work *w, uint64_t piece, uint64_t count)
{
    const struct rank_sum *const sum = w->sum;
    const uint64_t bytes = count * number_bytes(w);
    void *const into = value_of(w, piece, w->own_first);
    for (uint32_t m = 0; m < sum->members; m++)
        if (!sum->values[m])
            ranks_receive(sum->ranks, sum->ranks_of[m], sum->number, (uint32_t)(piece * sum->members + m),
                          value_of(w, piece, m), bytes, &w->requests[m]);
    for (uint32_t m = 0; m < sum->members; m++)
        if (!sum->values[m] && !ranks_await(sum->ranks, &w->requests[m])) return false;
    add_up(w, piece, count, into);
    for (uint32_t r = 0; r < w->rank_count; r++)
        if (w->ranks[r] != ranks_own(sum->ranks))
            ranks_send(sum->ranks, w->ranks[r], sum->number, (uint32_t)piece | BACK, into, bytes, &w->requests[r]);
    for (uint32_t r = 0; r < w->rank_count; r++)
        if (w->ranks[r] != ranks_own(sum->ranks) && !ranks_await(sum->ranks, &w->requests[r])) return false;
    return true;
}

/* Sends the values of this rank's members, and waits for the sum. */
static bool others_piece(const struct work *w, uint64_t piece, uint64_t count, uint32_t rank)
{
    const struct rank_sum *const sum = w->sum;
    const uint64_t bytes = count * number_bytes(w);
    struct ranks_request back;
    for (uint32_t m = 0; m < sum->members; m++)
        if (sum->values[m])
            ranks_send(sum->ranks, rank, sum->number, (uint32_t)(piece * sum->members + m), value_of(w, piece, m),
                       bytes, &w->requests[m]);
    for (uint32_t m = 0; m < sum->members; m++)
        if (sum->values[m] && !ranks_await(sum->ranks, &w->requests[m])) return false;
    ranks_receive(sum->ranks, rank, sum->number, (uint32_t)piece | BACK, value_of(w, piece, w->own_first), bytes,
                  &back);
    return ranks_await(sum->ranks, &back);
}

static bool work_through(const struct work *w, uint32_t worker)
{
    const struct rank_sum *const sum = w->sum;
    const uint64_t pieces = (sum->count + PIECE - 1) / PIECE;
    for (uint64_t p = worker; p < pieces; p += sum->workers) {
        const uint64_t left = sum->count - p * PIECE, count = left < PIECE ? left : PIECE;
        const uint32_t rank = w->ranks[p % w->rank_count];
        if (!(rank == ranks_own(sum->ranks) ? own_piece(w, p, count) : others_piece(w, p, count, rank))) return false;
        for (uint32_t m = w->own_first + 1; m < sum->members; m++)
            if (sum->values[m]) memcpy(value_of(w, p, m), value_of(w, p, w->own_first), count * number_bytes(w));
    }
    return true;
}

static void find_ranks(struct work *w)
{
    const struct rank_sum *const sum = w->sum;
    w->own_first = UINT32_MAX;
    for (uint32_t m = 0; m < sum->members; m++) {
        uint32_t r = 0;
        while (r < w->rank_count && w->ranks[r] != sum->ranks_of[m]) r++;
        w->ranks[r] = sum->ranks_of[m];
        if (r == w->rank_count) w->rank_count++;
        if (sum->values[m] && w->own_first == UINT32_MAX) w->own_first = m;
    }
}

bool rank_tree_work(const struct rank_sum *sum, uint32_t worker)
{
    struct work w = {.sum = sum};
    w.ranks = alloc_zeroed(sum->members, sizeof *w.ranks);
    w.others = alloc_zeroed((size_t)sum->members * PIECE, number_bytes(&w));
    w.halves = alloc_zeroed(sum->members, sizeof *w.halves);
    w.requests = alloc_zeroed(sum->members, sizeof *w.requests);
    bool done = false;
    if (w.ranks && w.others && w.halves && w.requests) {
        find_ranks(&w);
        done = work_through(&w, worker);
    } else {
        ranks_report(sum->ranks, "no memory left for a sum over ranks");
    }
    free(w.ranks);
    free(w.others);
    free(w.halves);
    free(w.requests);
    return done;
}
