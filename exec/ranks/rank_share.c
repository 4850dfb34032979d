/*
 * A worker of a scatter waits for a sum of its members' pieces later: a few may be on their way. The first piece that
 * is not a sum never waits for another one, because all ranks add their members' values to pieces in ascending order,
 * and receive a sum right after that.
 */
#include "exec/ranks/rank_share.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/kernels/kernels_code.h"
#include "exec/kernels/kernels_sum.h"

enum { WINDOW = 4, PIECE = RANK_PIECE_BYTES / sizeof(float) };

/* --- scatter ---------------------------------------------------------------------------------- */

/* A sum that comes. */
struct coming {
    bool comes;
    uint32_t piece;
    struct ranks_request request;
    float sum[PIECE];
};

struct work {
    const struct rank_share *share;
    uint32_t *begins; /* by station: its first member; stations are members of one rank that follow each other */
    uint32_t stations;
    float partial[PIECE];
    struct coming coming[WINDOW]; /* used in turn */
    uint32_t next;
};

static uint32_t rank_of(const struct work *w, uint32_t station)
{
    return w->share->ranks_of[w->begins[station]];
}

static void find_stations(struct work *w)
{
    const struct rank_share *const share = w->share;
    for (uint32_t m = 0; m < share->members; m++)
        if (m == 0 || share->ranks_of[m] != share->ranks_of[m - 1]) w->begins[w->stations++] = m;
}

/* Names the message to a station, or after the last station to the owner. */
static uint32_t part_of(const struct work *w, uint32_t piece, uint32_t station)
{
    return piece * (w->stations + 1) + station;
}

static void store(const struct work *w, uint32_t piece, float *sum)
{
    const struct rank_piece *const p = &w->share->pieces[piece];
    float *const to = (float *)(void *)(w->share->to[p->owner] + p->share);
    if (w->share->code != COMPRESSION_PLAIN) kernels_code_round(w->share->code, sum, p->bytes / sizeof(float));
    if (w->share->adds) kernels_sum_add(to, sum, p->bytes / sizeof(float));
    else memcpy(to, sum, p->bytes);
}

static void add_members(struct work *w, uint32_t piece, uint32_t station)
{
    const struct rank_share *const share = w->share;
    const struct rank_piece *const p = &share->pieces[piece];
    const uint32_t end = station + 1 < w->stations ? w->begins[station + 1] : share->members;
    for (uint32_t m = w->begins[station]; m < end; m++) {
        const float *const values = (const float *)(const void *)(share->from[m] + p->whole);
        if (m == 0) memcpy(w->partial, values, p->bytes);
        else kernels_sum_add(w->partial, values, p->bytes / sizeof(float));
    }
}

static bool pass_on(struct work *w, uint32_t piece, uint32_t station)
{
    const struct rank_share *const share = w->share;
    const bool last = station + 1 == w->stations;
    const uint32_t rank = last ? share->ranks_of[share->pieces[piece].owner] : rank_of(w, station + 1);
    struct ranks_request request;
    if (last && rank == ranks_own(share->ranks)) {
        store(w, piece, w->partial);
        return true;
    }
    ranks_send(share->ranks, rank, share->number, part_of(w, piece, station + 1), w->partial,
               share->pieces[piece].bytes, &request);
    return ranks_await(share->ranks, &request);
}

/* Takes a piece through all stations of this rank. */
static bool go_through(struct work *w, uint32_t piece)
{
    const struct rank_share *const share = w->share;
    for (uint32_t s = 0; s < w->stations; s++) {
        struct ranks_request request;
        if (rank_of(w, s) != ranks_own(share->ranks)) continue;
        if (s > 0) {
            ranks_receive(share->ranks, rank_of(w, s - 1), share->number, part_of(w, piece, s), w->partial,
                          share->pieces[piece].bytes, &request);
            if (!ranks_await(share->ranks, &request)) return false;
        }
        add_members(w, piece, s);
        if (!pass_on(w, piece, s)) return false;
    }
    return true;
}

static bool take_sum(struct work *w, struct coming *coming)
{
    if (!coming->comes) return true;
    coming->comes = false;
    if (!ranks_await(w->share->ranks, &coming->request)) return false;
    store(w, coming->piece, coming->sum);
    return true;
}

/* Begins to receive the sum of a member of this rank. */
static bool expect_sum(struct work *w, uint32_t piece)
{
    const struct rank_share *const share = w->share;
    const uint32_t own = ranks_own(share->ranks), last = rank_of(w, w->stations - 1);
    if (last == own || share->ranks_of[share->pieces[piece].owner] != own) return true;
    struct coming *const coming = &w->coming[w->next++ % WINDOW];
    if (!take_sum(w, coming)) return false;
    coming->comes = true;
    coming->piece = piece;
    ranks_receive(share->ranks, last, share->number, part_of(w, piece, w->stations), coming->sum,
                  share->pieces[piece].bytes, &coming->request);
    return true;
}

static bool scatter(struct work *w, uint32_t worker)
{
    bool done = true;
    for (uint32_t p = worker; done && p < w->share->piece_count; p += w->share->workers)
        done = go_through(w, p) && expect_sum(w, p);
    for (uint32_t i = 0; i < WINDOW; i++)
        if (!take_sum(w, &w->coming[i])) done = false;
    return done;
}

bool rank_scatter_work(const struct rank_share *share, uint32_t worker)
{
    struct work *const w = alloc_zeroed(1, sizeof *w);
    uint32_t *const begins = alloc_zeroed(share->members, sizeof *begins);
    bool done = false;
    if (w && begins) {
        w->share = share;
        w->begins = begins;
        find_stations(w);
        done = scatter(w, worker);
    } else {
        ranks_report(share->ranks, "no memory left for a sum over ranks");
    }
    free(begins);
    free(w);
    return done;
}

/* --- gather ----------------------------------------------------------------------------------- */

uint32_t rank_share_member(const struct rank_share *share, uint32_t worker)
{
    uint32_t m = 0;
    for (uint32_t before = 0;; m++)
        if (share->ranks_of[m] == ranks_own(share->ranks) && before++ == worker) return m;
}

/* Returns true for the first member of a rank. */
static bool is_first_of_rank(const struct rank_share *share, uint32_t member)
{
    for (uint32_t m = 0; m < member; m++)
        if (share->ranks_of[m] == share->ranks_of[member]) return false;
    return true;
}

/* Begins the worker's messages. Returns their number. */
static uint32_t exchange(const struct rank_share *share, uint32_t worker, struct ranks_request *requests)
{
    const uint32_t own = ranks_own(share->ranks), member = rank_share_member(share, worker);
    uint32_t count = 0;
    for (uint32_t p = 0; p < share->piece_count; p++) {
        const struct rank_piece *const piece = &share->pieces[p];
        const uint32_t from = share->ranks_of[piece->owner];
        if (from != own && p % share->workers == worker)
            ranks_receive(share->ranks, from, share->number, p, share->to[member] + piece->whole, piece->bytes,
                          &requests[count++]);
        for (uint32_t m = 0; piece->owner == member && m < share->members; m++)
            if (share->ranks_of[m] != own && is_first_of_rank(share, m))
                ranks_send(share->ranks, share->ranks_of[m], share->number, p, share->from[member] + piece->share,
                           piece->bytes, &requests[count++]);
    }
    return count;
}

bool rank_gather_work(const struct rank_share *share, uint32_t worker)
{
    struct ranks_request *const requests = alloc_zeroed((size_t)share->piece_count * (share->members + 1),
                                                        sizeof *requests);
    bool done = requests != NULL;
    if (!requests) ranks_report(share->ranks, "no memory left for a gathering over ranks");
    const uint32_t count = requests ? exchange(share, worker, requests) : 0;
    for (uint32_t i = 0; i < count; i++)
        if (!ranks_await(share->ranks, &requests[i])) done = false;
    free(requests);
    return done;
}
