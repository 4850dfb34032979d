/*
 * Permanent lives are at the bottom, in the order of layers; the rest is above them. Placed ranges are sorted by
 * offset, so that one pass over them finds the first gap:
 *
 *     bytes ^   [ kept 2 ]......            a new life from a to b looks at lives that overlap it in time,
 *           |   [ kept 1 ]..[ in 1 ]....    here kept 0, kept 1 and in 1, and goes into the lowest gap
 *           |   [ kept 0 ]..............    between or above them
 *           |   [ states, batches      ]
 *           +-------a-----------b-----> time
 *
 * The best of some orders is improved by moving the highest life to the front, a few hundred times.
 *
 * Cost: O(lives^2) for each order, at most PAIRS_MAX pairs of lives in all the moves.
 */
#include "planner/swap/swap_places.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/size.h"
#include "planner/spill/cut/partition.h"

enum { STEPS_MAX = 400, PAIRS_MAX = 40000000 }; /* limits of all moves; some tens of milliseconds */

/* --- lives ----------------------------------------------------------------------------------- */

static void live(struct swap_places *p, uint32_t layer, enum swap_thing thing, int64_t from, int64_t to,
                 uint64_t bytes)
{
    p->ranges[(size_t)layer * SWAP_THINGS + thing] = (struct swap_range){from, to, bytes, 0};
}

static int64_t backward_end(const struct chain *chain, const struct chain_schedule *s, uint32_t l)
{
    const struct chain_layer *layer = &chain->layers[l];
    return s->backward[l] + layer->backward + (s->choices[l] == CHAIN_RECOMPUTE ? layer->again : 0);
}

static void layer_lives(const struct swap_job *job, const struct chain *chain, const struct chain_schedule *s,
                        uint32_t l, struct swap_places *p)
{
    const struct footprint *f = &job->layers[l].bytes;
    uint32_t choice = s->choices[l];
    bool last = l + 1 == job->layer_count, embedding = l == 0 && footprint_has_embedding(job->job);
    bool swapped = choice == CHAIN_SWAP;
    const uint32_t lowest = swap_lowest(job);
    uint32_t how = embedding || (choice != CHAIN_RECOMPUTE && l >= lowest) ? UNIT_KEEP : 0;
    int64_t begin = s->forward[l], forward = begin + chain->layers[l].forward;
    int64_t end = l < lowest ? forward : backward_end(chain, s, l);
    int64_t left = swapped ? s->out[l] + chain->layers[l].out : end;
    uint64_t kept = choice == CHAIN_RECOMPUTE ? 0 : swap_kept_bytes(job, l);
    live(p, l, SWAP_STATE, 0, s->makespan, f->state_bytes);
    if (l > 0) live(p, l, SWAP_INPUT, s->forward[l - 1], left, f->input_bytes);
    if (l > 0 && l >= lowest)
        live(p, l, SWAP_GRADIENT, last ? begin : s->backward[l], l == lowest ? end : backward_end(chain, s, l - 1),
             f->input_bytes);
    live(p, l, SWAP_KEPT, begin, left, kept);
    if (swapped) live(p, l, SWAP_INPUT_AGAIN, s->in[l], end, f->input_bytes);
    if (swapped) live(p, l, SWAP_KEPT_AGAIN, s->in[l], end, kept);
    if (last) {
        live(p, l, SWAP_WORK_BACK, begin, end, f->workspace_bytes[UNIT_LOSS][0]);
        return;
    }
    live(p, l, SWAP_WORK, begin, forward, f->workspace_bytes[UNIT_FORWARD][how]);
    if (l < lowest) return;
    live(p, l, SWAP_WORK_BACK, s->backward[l], end, f->workspace_bytes[UNIT_BACKWARD][how]);
}

static void job_lives(const struct swap_job *job, const struct chain *chain, const struct chain_schedule *s,
                      struct swap_places *p)
{
    uint64_t batch = job_batch_bytes(job->job);
    live(p, 0, SWAP_BATCH, 0, s->makespan, batch);
    live(p, 0, SWAP_BATCH_AGAIN, 0, s->makespan, batch);
    live(p, 0, SWAP_LOSS, 0, s->makespan, batch > 0 ? sizeof(double) : 0);
    if (footprint_has_table(job->job))
        live(p, 0, SWAP_TABLE_GRADIENT, s->forward[job->layer_count - 1], backward_end(chain, s, 0),
             footprint_table_gradient_bytes(job->job));
    for (uint32_t l = 0; l < job->layer_count; l++) layer_lives(job, chain, s, l, p);
}

/* --- orders ---------------------------------------------------------------------------------- */

static double span(const struct swap_range *r) { return (double)(r->to - r->from); }

static int descending(double a, double b) { return (a < b) - (a > b); }

static int by_bytes(const void *left, const void *right)
{
    const struct swap_range *a = *(struct swap_range *const *)left, *b = *(struct swap_range *const *)right;
    int order = descending((double)a->bytes, (double)b->bytes);
    if (order == 0) order = descending(span(a), span(b));
    return order ? order : (a > b) - (a < b);
}

static int by_span(const void *left, const void *right)
{
    const struct swap_range *a = *(struct swap_range *const *)left, *b = *(struct swap_range *const *)right;
    int order = descending(span(a), span(b));
    return order ? order : by_bytes(left, right);
}

static int by_area(const void *left, const void *right)
{
    const struct swap_range *a = *(struct swap_range *const *)left, *b = *(struct swap_range *const *)right;
    int order = descending(span(a) * (double)a->bytes, span(b) * (double)b->bytes);
    return order ? order : (a > b) - (a < b);
}

static int by_start(const void *left, const void *right)
{
    const struct swap_range *a = *(struct swap_range *const *)left, *b = *(struct swap_range *const *)right;
    int order = (a->from > b->from) - (a->from < b->from);
    return order ? order : by_span(left, right);
}

/* --- laying ---------------------------------------------------------------------------------- */

static uint64_t range_end(const struct swap_range *r)
{
    return r->offset + size_align(r->bytes, PARTITION_ARENA_ALIGNMENT);
}

/* Places a life in the lowest gap; laid: the placed lives, by offset. */
static void lay(struct swap_range *range, struct swap_range **laid, uint32_t count, uint64_t base)
{
    uint64_t bytes = size_align(range->bytes, PARTITION_ARENA_ALIGNMENT);
    uint32_t at = 0;
    range->offset = base;
    for (uint32_t i = 0; i < count; i++) {
        const struct swap_range *other = laid[i];
        if (other->from >= range->to || range->from >= other->to) continue;
        if (other->offset >= range->offset + bytes) break;
        range->offset = max_u64(range->offset, range_end(other));
    }
    while (at < count && laid[at]->offset <= range->offset) at++;
    memmove(laid + at + 1, laid + at, (count - at) * sizeof(*laid));
    laid[at] = range;
}

static uint64_t lay_all(struct swap_range **order, struct swap_range **laid, uint32_t count, uint64_t base)
{
    uint64_t end = base;
    for (uint32_t i = 0; i < count; i++) {
        lay(order[i], laid, i, base);
        end = max_u64(end, range_end(order[i]));
    }
    return end;
}

/* Returns the most bytes alive at one time above permanent lives: the lives when another one begins. */
static uint64_t most_held(struct swap_range **of, uint32_t count)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t held = 0;
        for (uint32_t k = 0; k < count; k++)
            if (of[k]->from <= of[i]->from && of[i]->from < of[k]->to)
                held += size_align(of[k]->bytes, PARTITION_ARENA_ALIGNMENT);
        most = max_u64(most, held);
    }
    return most;
}

/* Places all lives repeatedly, each time with the highest moved to the front. order: out, the best found; trial:
 * scratch of that length. Returns its end. */
static uint64_t raise_first(struct swap_range **order, struct swap_range **trial, struct swap_range **laid,
                            uint32_t count, uint64_t base, uint64_t least)
{
    uint64_t best = lay_all(order, laid, count, base), steps = PAIRS_MAX / ((uint64_t)count * count + 1);
    memcpy(trial, order, count * sizeof(*trial));
    for (uint64_t step = 0; step < min_u64(steps, STEPS_MAX) && best > least; step++) {
        uint32_t highest = 0;
        for (uint32_t i = 1; i < count; i++)
            if (range_end(trial[i]) > range_end(trial[highest])) highest = i;
        struct swap_range *first = trial[highest];
        memmove(trial + 1, trial, highest * sizeof(*trial));
        trial[0] = first;
        uint64_t end = lay_all(trial, laid, count, base);
        if (end >= best) continue;
        best = end;
        memcpy(order, trial, count * sizeof(*order));
    }
    return best;
}

static void place(struct swap_places *p, uint32_t range_count, int64_t makespan, struct swap_range **order,
                  struct swap_range **trial, struct swap_range **laid)
{
    static int (*const orders[])(const void *, const void *) = {by_bytes, by_span, by_area, by_start};
    uint32_t count = 0;
    uint64_t base = 0, best_end = UINT64_MAX;
    size_t best = 0;
    for (uint32_t i = 0; i < range_count; i++) {
        struct swap_range *range = &p->ranges[i];
        if (range->bytes == 0) continue;
        if (range->from == 0 && range->to == makespan) {
            range->offset = base;
            base = range_end(range);
        } else {
            order[count++] = range;
        }
    }
    p->held = base + most_held(order, count);
    for (size_t o = 0; o < ARRAY_COUNT(orders) && best_end > p->held; o++) {
        qsort(order, count, sizeof(*order), orders[o]);
        uint64_t end = lay_all(order, laid, count, base);
        if (end >= best_end) continue;
        best_end = end;
        best = o;
    }
    qsort(order, count, sizeof(*order), orders[best]);
    raise_first(order, trial, laid, count, base, p->held);
    p->end = lay_all(order, laid, count, base);
}

enum status swap_places_make(const struct swap_job *job, const struct chain *chain,
                             const struct chain_schedule *schedule, struct swap_places *out, struct error *err)
{
    struct swap_places made = {0};
    uint32_t count = job->layer_count * SWAP_THINGS;
    struct swap_range **order = alloc_zeroed(3 * (size_t)count, sizeof(*order));
    if (!order) {
        error_memory(err, "the lives of buffers", 3 * (size_t)count * sizeof(*order));
    } else if (!ARENA_NEW(&made.arena, count, made.ranges, err)) {
        job_lives(job, chain, schedule, &made);
        place(&made, count, schedule->makespan, order, order + count, order + 2 * (size_t)count);
        *out = made;
    }
    free(order);
    return err->status;
}

void swap_places_release(struct swap_places *places)
{
    arena_release(&places->arena);
    *places = (struct swap_places){0};
}
