#include "exec/ranks/rank_sum.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/kernels/kernels_sum.h"

enum { PIECE = 1 << 16, BACK = 1u << 31 }; /* floats; a bit of the part of messages with sums */

/* Members [first, end) of one rank. */
struct station {
    uint32_t rank, first, end;
    bool passes;        /* sums that come back go on to it: the last station of its rank */
    uint32_t before;    /* the station that gets sums after it */
};

enum { NONE = UINT32_MAX };

struct work {
    const struct rank_sum *sum;
    struct station *stations;
    uint32_t station_count, own_last; /* the last station of this rank */
    float *partial;                   /* a piece */
    uint64_t pieces;
    struct ranks_request *back, *forth; /* per piece of this worker: the sum that comes back; the partial sum sent */
};

static uint64_t piece_count(const struct rank_sum *sum, uint64_t piece)
{
    const uint64_t left = sum->count - piece * PIECE;
    return left < PIECE ? left : PIECE;
}

static uint32_t part_of(const struct work *w, uint64_t piece, uint32_t station, bool back)
{
    return (uint32_t)(piece * w->station_count + station) | (back ? BACK : 0);
}

static void find_stations(struct work *w)
{
    const struct rank_sum *const sum = w->sum;
    for (uint32_t m = 0; m < sum->members; m++) {
        const bool begins = m == 0 || sum->ranks_of[m] != sum->ranks_of[m - 1];
        if (begins) w->stations[w->station_count++] = (struct station){.rank = sum->ranks_of[m], .first = m};
        w->stations[w->station_count - 1].end = m + 1;
    }
    for (uint32_t s = 0; s < w->station_count; s++) {
        w->stations[s].passes = true;
        for (uint32_t t = s + 1; t < w->station_count; t++)
            if (w->stations[t].rank == w->stations[s].rank) w->stations[s].passes = false;
        if (w->stations[s].rank == ranks_own(sum->ranks)) w->own_last = s;
    }
}

/* Returns the station that gets the sums next, or NONE. */
static uint32_t next_back(const struct work *w, uint32_t s)
{
    while (s > 0)
        if (w->stations[--s].passes) return s;
    return NONE;
}

static uint32_t previous_back(const struct work *w, uint32_t s)
{
    while (++s < w->station_count)
        if (w->stations[s].passes) return s;
    return NONE;
}

/* Adds the station's members to the partial sum, into its first member. */
static void add_members(const struct work *w, const struct station *station, uint64_t piece, bool first)
{
    const struct rank_sum *const sum = w->sum;
    const uint64_t at = piece * PIECE, n = piece_count(sum, piece);
    float *const into = sum->values[station->first] + at;
    uint32_t m = station->first;
    if (first) memcpy(w->partial, sum->values[m++] + at, n * sizeof(float));
    for (; m < station->end; m++)
        if (!sum->repeats || !sum->repeats[m])
            (sum->add ? sum->add : kernels_sum_add)(w->partial, sum->values[m] + at, n);
    memcpy(into, w->partial, n * sizeof(float));
}

/* Copies a sum to the other members of this rank. */
static void spread(const struct work *w, uint64_t piece)
{
    const struct rank_sum *const sum = w->sum;
    const uint64_t at = piece * PIECE, bytes = piece_count(sum, piece) * sizeof(float);
    const uint32_t from = w->stations[w->own_last].first;
    for (uint32_t m = 0; m < sum->members; m++)
        if (sum->values[m] && m != from) memcpy(sum->values[m] + at, sum->values[from] + at, bytes);
}

static bool send_back(const struct work *w, uint64_t piece)
{
    const struct rank_sum *const sum = w->sum;
    const uint32_t next = next_back(w, w->own_last);
    if (next == NONE) return true;
    struct ranks_request request;
    ranks_send(sum->ranks, w->stations[next].rank, sum->number, part_of(w, piece, next, true),
               sum->values[w->stations[w->own_last].first] + piece * PIECE, piece_count(sum, piece) * sizeof(float),
               &request);
    return ranks_await(sum->ranks, &request);
}

/* Takes a piece through all stations of this rank. */
static bool go_forth(const struct work *w, uint64_t piece, struct ranks_request *back, struct ranks_request *forth)
{
    const struct rank_sum *const sum = w->sum;
    const uint64_t bytes = piece_count(sum, piece) * sizeof(float);
    for (uint32_t s = 0; s < w->station_count; s++) {
        const struct station *const station = &w->stations[s];
        if (station->rank != ranks_own(sum->ranks)) continue;
        struct ranks_request request;
        if (s > 0) {
            ranks_receive(sum->ranks, w->stations[s - 1].rank, sum->number, part_of(w, piece, s, false), w->partial,
                          bytes, &request);
            if (!ranks_await(sum->ranks, &request)) return false;
        }
        add_members(w, station, piece, s == 0);
        if (s + 1 == w->station_count) break;
        struct ranks_request *const sent = s == w->own_last ? forth : &request;
        float *const from = sum->values[station->first] + piece * PIECE;
        ranks_send(sum->ranks, w->stations[s + 1].rank, sum->number, part_of(w, piece, s + 1, false), from, bytes,
                   sent);
        /* the sum comes to where the partial sum is, which the others have read by then */
        if (s == w->own_last)
            ranks_receive(sum->ranks, w->stations[previous_back(w, s)].rank, sum->number, part_of(w, piece, s, true),
                          from, bytes, back);
        else if (!ranks_await(sum->ranks, &request)) return false;
    }
    return true;
}

static bool come_back(const struct work *w, uint64_t piece, struct ranks_request *back, struct ranks_request *forth)
{
    if (w->own_last + 1 < w->station_count && !(ranks_await(w->sum->ranks, forth) && ranks_await(w->sum->ranks, back)))
        return false;
    spread(w, piece);
    return send_back(w, piece);
}

static bool work_through(const struct work *w, uint32_t worker)
{
    const struct rank_sum *const sum = w->sum;
    const bool last = w->own_last + 1 == w->station_count;
    const uint64_t mine = w->pieces > worker ? (w->pieces - worker - 1) / sum->workers + 1 : 0;
    uint64_t returned = 0;
    for (uint64_t i = 0; i < mine; i++) {
        if (!go_forth(w, worker + i * sum->workers, &w->back[i], &w->forth[i])) return false;
        while (returned <= i && (last || ranks_arrived(sum->ranks, &w->back[returned]))) {
            if (!come_back(w, worker + returned * sum->workers, &w->back[returned], &w->forth[returned])) return false;
            returned++;
        }
    }
    for (; returned < mine; returned++)
        if (!come_back(w, worker + returned * sum->workers, &w->back[returned], &w->forth[returned])) return false;
    return true;
}

bool rank_sum_work(const struct rank_sum *sum, uint32_t worker)
{
    struct work w = {.sum = sum, .pieces = (sum->count + PIECE - 1) / PIECE};
    const uint64_t mine = w.pieces / sum->workers + 1;
    w.stations = alloc_zeroed(sum->members, sizeof *w.stations);
    w.partial = alloc_zeroed(PIECE, sizeof *w.partial);
    w.back = alloc_zeroed(mine, sizeof *w.back);
    w.forth = alloc_zeroed(mine, sizeof *w.forth);
    bool done = false;
    if (w.stations && w.partial && w.back && w.forth) {
        find_stations(&w);
        done = work_through(&w, worker);
    } else {
        ranks_report(sum->ranks, "no memory left for a sum over ranks");
    }
    free(w.stations);
    free(w.partial);
    free(w.back);
    free(w.forth);
    return done;
}

/* --- doubles ---------------------------------------------------------------------------------- */

/* Begins to exchange members' values; values of other ranks come to `others`, by member. Returns the number of
 * messages. */
static uint32_t exchange_doubles(const struct rank_sum *sum, double *others, struct ranks_request *requests)
{
    const uint32_t own = ranks_own(sum->ranks);
    uint32_t count = 0;
    for (uint32_t m = 0; m < sum->members; m++) {
        const uint64_t bytes = sum->count * sizeof *others;
        if (!sum->values[m])
            ranks_receive(sum->ranks, sum->ranks_of[m], sum->number, m, others + m * sum->count, bytes,
                          &requests[count++]);
        for (uint32_t r = 0; sum->values[m] && r < sum->members; r++) {
            uint32_t first = 0; /* of the rank: each gets them once */
            while (sum->ranks_of[first] != sum->ranks_of[r]) first++;
            if (first == r && sum->ranks_of[r] != own)
                ranks_send(sum->ranks, sum->ranks_of[r], sum->number, m, sum->values[m], bytes, &requests[count++]);
        }
    }
    return count;
}

static void add_doubles(const struct rank_sum *sum, const double **values, const double *others)
{
    for (uint32_t m = 0; m < sum->members; m++)
        values[m] = sum->values[m] ? (const double *)(const void *)sum->values[m] : others + m * sum->count;
    for (uint64_t i = 0; i < sum->count; i++) {
        const double whole = kernels_sum_doubles(values, sum->members, i, sum->tree);
        for (uint32_t m = 0; m < sum->members; m++)
            if (sum->values[m]) ((double *)(void *)sum->values[m])[i] = whole;
    }
}

bool rank_sum_doubles(const struct rank_sum *sum)
{
    double *const others = alloc_zeroed(sum->members * sum->count, sizeof *others);
    struct ranks_request *const requests = alloc_zeroed((size_t)sum->members * (sum->members + 1), sizeof *requests);
    const double **const values = alloc_zeroed(sum->members, sizeof *values);
    bool done = others && requests && values;
    if (!done) ranks_report(sum->ranks, "no memory left for a sum over ranks");
    const uint32_t count = done ? exchange_doubles(sum, others, requests) : 0;
    for (uint32_t i = 0; i < count; i++)
        if (!ranks_await(sum->ranks, &requests[i])) done = false;
    if (done) add_doubles(sum, values, others);
    free(others);
    free(requests);
    free(values);
    return done;
}
