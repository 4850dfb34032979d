/*
 * Breadth-first over the layers. Surviving states stay in a pool, for the way back to the choices, and because a state
 * names its unfinished copies by the states that began them: the youngest `count` of its swapped ancestors, because
 * copies end in order.
 *
 *     expand    each state by each choice: wait for memory, run, queue the copy
 *     bound     cost and prices; states that cannot beat the best known schedule are dropped
 *     sort      by bound: a dominating state comes before the dominated one
 *     select    from the start the states that no selected one dominates, up to the width
 *
 * A width that was too small still gives a bound: the first dropped state's.
 */
#include "planner/chain/chain_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/anytime.h"

enum { NO_STATE = UINT32_MAX, WIDTH_FIRST = 64, WIDTH_FACTOR = 4, CLOCK_EVERY = 64, BLOCK = 16, BINS = 32,
       PLACE_LAYERS = 12, PLACES_OF_LAYER = 4 };

struct chain_state {
    double bound;        /* ticks beyond chain->compute, of all that comes of it */
    int64_t cost;        /* ticks so far beyond computing everything once */
    int64_t link[2];     /* ticks until the link out, in is idle */
    uint64_t left;       /* bytes that stay on the device */
    uint64_t pending[2]; /* bytes whose copies have not ended */
    uint64_t fluid[2];   /* the same as the fluid program counts them */
    uint32_t count[2];   /* their number */
    uint32_t parent;     /* in the pool */
    uint32_t older;      /* the next older swapped state in the pool */
    uint16_t layer;      /* of `choice` */
    uint8_t choice;
};

/* A copy that is still to end, and the ticks until it ends. */
struct copy {
    int64_t end;
    uint64_t bytes, fluid;
};

/* The numbers that decide most comparisons, for up to BLOCK adjacent states; HUGE_VALF after the last state. */
struct gist {
    float cost[BLOCK], left[BLOCK], out[BLOCK], in[BLOCK]; /* out, in: cost and link */
    uint32_t states[BLOCK];                                /* in the pool */
    uint32_t count, next;                                  /* of the same bin; NO_STATE: none */
};

/*
 * The states selected in a layer, by bytes left and idle time of the link out. A state with less of one mostly has more
 * of the other, so few bins have no more of both than a candidate.
 */
struct shelf {
    struct gist *gists;
    uint32_t gist_count;
    uint32_t bins[BINS][BINS];    /* their youngest gists */
    uint32_t filled[BINS];        /* bit by bit: bins that are not empty */
    float low[2], per_unit[2];    /* the first bin's lower end, bins a unit: of left, of out */
};

struct chain_search {
    const struct chain *chain;
    const struct chain_bound *prices;
    const struct chain_search_options *options;
    struct chain_state *pool, *candidates;
    struct shelf shelf;
    uint32_t *order;      /* of candidates */
    struct copy *copies[2], *others[2]; /* (layer_count) scratch, youngest first */
    uint32_t pool_count, pool_capacity, candidate_count, width;
    struct anytime limits;
    double dropped; /* least bound of a state left out */
    int64_t best;
    uint64_t states;
    uint32_t best_state;  /* of the last layer; NO_STATE: nothing better was found */
    uint32_t place_count;
};

/* --- copies on their way ---------------------------------------------------------------------- */

/* Lists copies[0 .. count), the youngest first. */
static void list_copies(const struct chain_search *s, const struct chain_state *state, uint32_t link,
                        struct copy *copies)
{
    int64_t end = state->link[link];
    const struct chain_state *from = state;
    if (state->choice != CHAIN_SWAP && state->older != NO_STATE) from = &s->pool[state->older];
    for (uint32_t i = 0; i < state->count[link]; i++) {
        const struct chain_layer *layer = &s->chain->layers[from->layer];
        copies[i] = (struct copy){end, layer->saved, layer->fluid[link]};
        end -= link ? layer->in : layer->out;
        if (from->older != NO_STATE) from = &s->pool[from->older];
    }
}

/* Returns the bytes that wait for the link or are on it, as the fluid program counts them. */
static double fluid_bytes(const struct chain_search *s, const struct chain_state *state, uint32_t link,
                          const struct copy *oldest)
{
    if (state->count[link] == 0) return 0;
    double running = s->chain->fluid_rate[link] * (double)oldest->end, whole = (double)oldest->fluid;
    return (double)(state->fluid[link] - oldest->fluid) + (running < whole ? running : whole);
}

/*
 * Returns the least wait after which pass `link` of `a` ends nothing later and holds no more than pass `link` of `b`;
 * a->left <= b->left. The bytes of `b` fall where its copies end, so `a` must hold no more then.
 */
static int64_t wait_to_match(struct chain_search *s, const struct chain_state *a, const struct chain_state *b,
                             uint32_t link)
{
    int64_t waited = a->link[link] - b->link[link];
    if (waited < 0) waited = 0;
    if (a->count[link] == 0) return 0;
    struct copy *of_a = s->copies[link], *of_b = s->others[link];
    uint64_t held_a = a->left + a->pending[link], held_b = b->left + b->pending[link];
    list_copies(s, a, link, of_a);
    list_copies(s, b, link, of_b);
    uint32_t next = a->count[link];
    int64_t now = 0;
    for (uint32_t i = b->count[link];; i--) {
        while (held_a > held_b) { /* a->left <= b->left: copies are left to end */
            held_a -= of_a[--next].bytes;
            if (of_a[next].end - now > waited) waited = of_a[next].end - now;
        }
        if (i == 0) return waited;
        held_b -= of_b[i - 1].bytes;
        now = of_b[i - 1].end;
    }
}

/* Returns true if `a` can do everything that `b` can, perhaps after a wait, at no greater cost. */
static bool dominates(struct chain_search *s, const struct chain_state *a, const struct chain_state *b)
{
    int64_t spare = b->cost - a->cost;
    if (spare < 0 || a->left > b->left) return false;
    for (uint32_t link = 0; link < 2; link++) {
        spare -= wait_to_match(s, a, b, link);
        if (spare < 0) return false;
    }
    return true;
}

static struct gist gist_of(const struct chain_state *state)
{
    return (struct gist){.cost = {(float)state->cost},
                         .left = {(float)state->left},
                         .out = {(float)(state->cost + state->link[0])},
                         .in = {(float)(state->cost + state->link[1])}};
}

/* Returns the bin of a value. Monotone, as conversions to float are. */
static uint32_t bin_of(const struct shelf *shelf, uint32_t axis, float value)
{
    float bin = (value - shelf->low[axis]) * shelf->per_unit[axis];
    return !(bin > 0) ? 0 : bin < BINS - 1 ? (uint32_t)bin : BINS - 1;
}

/* Makes the shelf empty and ready for these candidates. */
static void clear_shelf(struct shelf *shelf, const struct chain_state *candidates, uint32_t count)
{
    float high[2] = {-HUGE_VALF, -HUGE_VALF};
    shelf->gist_count = 0;
    shelf->low[0] = shelf->low[1] = HUGE_VALF;
    for (uint32_t i = 0; i < BINS; i++) {
        shelf->filled[i] = 0;
        for (uint32_t k = 0; k < BINS; k++) shelf->bins[i][k] = NO_STATE;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct gist one = gist_of(&candidates[i]);
        const float values[2] = {one.left[0], one.out[0]};
        for (uint32_t axis = 0; axis < 2; axis++) {
            if (values[axis] < shelf->low[axis]) shelf->low[axis] = values[axis];
            if (values[axis] > high[axis]) high[axis] = values[axis];
        }
    }
    for (uint32_t axis = 0; axis < 2; axis++) {
        float width = high[axis] - shelf->low[axis];
        shelf->per_unit[axis] = width > 0 ? (float)BINS / width : 0;
    }
}

static void shelve(struct shelf *shelf, uint32_t id, const struct chain_state *state)
{
    struct gist one = gist_of(state);
    uint32_t i = bin_of(shelf, 0, one.left[0]), k = bin_of(shelf, 1, one.out[0]);
    uint32_t head = shelf->bins[i][k];
    if (head == NO_STATE || shelf->gists[head].count == BLOCK) {
        struct gist *fresh = &shelf->gists[shelf->gist_count];
        fresh->count = 0;
        fresh->next = head;
        for (uint32_t at = 0; at < BLOCK; at++) fresh->cost[at] = HUGE_VALF;
        head = shelf->bins[i][k] = shelf->gist_count++;
        shelf->filled[i] |= UINT32_C(1) << k;
    }
    struct gist *block = &shelf->gists[head];
    uint32_t at = block->count++;
    block->cost[at] = one.cost[0];
    block->left[at] = one.left[0];
    block->out[at] = one.out[0];
    block->in[at] = one.in[0];
    block->states[at] = id;
}

/*
 * Four adjacent numbers show for most pairs that neither dominates, as floats: rounding an integer keeps "no greater".
 * A block is examined without branches; passing pairs are compared in full.
 */
static bool passes(const struct gist *block, const struct gist *one)
{
    int any = 0;
    for (uint32_t i = 0; i < BLOCK; i++)
        any |= (block->cost[i] <= one->cost[0]) & (block->left[i] <= one->left[0]) &
               (block->out[i] <= one->out[0]) & (block->in[i] <= one->in[0]);
    return any;
}

static bool one_of_bin_dominates(struct chain_search *s, uint32_t head, const struct gist *one,
                                 const struct chain_state *candidate)
{
    for (const struct gist *block; head != NO_STATE; head = block->next) {
        block = &s->shelf.gists[head];
        if (!passes(block, one)) continue;
        for (uint32_t k = 0; k < block->count; k++)
            if (dominates(s, &s->pool[block->states[k]], candidate)) return true;
    }
    return false;
}

/* Returns true if a selected state dominates the candidate. Similar states are compared first. */
static bool is_dominated(struct chain_search *s, const struct chain_state *candidate)
{
    const struct shelf *shelf = &s->shelf;
    const struct gist one = gist_of(candidate);
    uint32_t last = bin_of(shelf, 1, one.out[0]);
    for (uint32_t i = bin_of(shelf, 0, one.left[0]) + 1; i-- > 0;)
        for (uint32_t k = last + 1; k-- > 0;) {
            if (!(shelf->filled[i] >> k & 1)) continue;
            if (one_of_bin_dominates(s, shelf->bins[i][k], &one, candidate)) return true;
        }
    return false;
}

/* --- expanding -------------------------------------------------------------------------------- */

/* Waits, within a pass, until memory holds `layer` too. Returns false when it never will. */
static bool wait_for_memory(const struct chain_search *s, const struct chain_state *from, uint32_t link,
                            const struct chain_layer *layer, struct chain_state *to)
{
    const struct copy *copies = s->copies[link];
    int64_t waited = 0;
    while (to->left + to->pending[link] + layer->saved > s->chain->memory) {
        if (to->count[link] == 0) return false;
        const struct copy *oldest = &copies[--to->count[link]];
        to->pending[link] -= oldest->bytes;
        to->fluid[link] -= oldest->fluid;
        waited = oldest->end;
    }
    to->link[link] = from->link[link] > waited ? from->link[link] - waited : 0;
    to->cost += waited;
    return true;
}

/* Computes for `ticks` in a pass, then queues a swapped layer's copy. *oldest: the oldest unfinished copy. */
static void run(const struct chain_search *s, const struct chain_state *from, uint32_t link, int64_t ticks,
                const struct chain_layer *layer, struct chain_state *to, struct copy *oldest)
{
    const struct copy *copies = s->copies[link];
    int64_t before = from->link[link] - to->link[link]; /* waited, unless the link became idle */
    while (to->count[link] > 0 && copies[to->count[link] - 1].end - before <= ticks) {
        const struct copy *ended = &copies[--to->count[link]];
        to->pending[link] -= ended->bytes;
        to->fluid[link] -= ended->fluid;
    }
    to->link[link] = to->link[link] > ticks ? to->link[link] - ticks : 0;
    if (to->count[link] > 0) {
        *oldest = copies[to->count[link] - 1];
        oldest->end -= before + ticks;
    }
    if (to->choice != CHAIN_SWAP) return;
    int64_t copy = link ? layer->in : layer->out;
    to->link[link] += copy;
    to->pending[link] += layer->saved;
    to->fluid[link] += layer->fluid[link];
    if (to->count[link]++ == 0) *oldest = (struct copy){copy, layer->saved, layer->fluid[link]};
}

static void add_candidate(struct chain_search *s, const struct chain_state *from, const struct chain_state *ready,
                          uint32_t id, uint32_t layer, uint8_t choice)
{
    const struct chain_layer *at = &s->chain->layers[layer];
    struct chain_state *to = &s->candidates[s->candidate_count];
    struct copy oldest[2] = {{0}};
    *to = *ready;
    to->choice = choice;
    to->layer = (uint16_t)layer;
    to->parent = id;
    to->older = from->choice == CHAIN_SWAP ? id : from->older;
    int64_t again = choice == CHAIN_RECOMPUTE ? at->again : 0;
    to->cost += again;
    to->left += chain_left(at, choice);
    run(s, from, 0, at->forward, at, to, &oldest[0]);
    run(s, from, 1, at->backward + again, at, to, &oldest[1]);
    if (layer + 1 == s->chain->layer_count) { /* the end waits for all copies on the links */
        to->cost += to->link[0] + to->link[1];
        to->bound = (double)to->cost;
    } else {
        to->bound = (double)to->cost + chain_bound_at(s->prices, &(struct chain_place){
                                           .layer = layer + 1,
                                           .device = (double)to->left,
                                           .link = {fluid_bytes(s, to, 0, &oldest[0]),
                                                    fluid_bytes(s, to, 1, &oldest[1])}});
    }
    if (to->bound < from->bound) to->bound = from->bound;
    s->states++;
    if (chain_bound_round(s->chain, to->bound) < s->best) s->candidate_count++;
}

static void expand(struct chain_search *s, uint32_t id, uint32_t layer)
{
    const struct chain_state *from = &s->pool[id];
    struct chain_state ready = *from;
    uint8_t allowed = chain_allowed(s->chain, s->prices->allowed, layer);
    for (uint32_t link = 0; link < 2; link++) {
        list_copies(s, from, link, s->copies[link]);
        if (!wait_for_memory(s, from, link, &s->chain->layers[layer], &ready)) return;
    }
    for (uint8_t choice = 0; choice < CHAIN_CHOICES; choice++)
        if (allowed & 1 << choice) add_candidate(s, from, &ready, id, layer, choice);
}

/* --- selecting -------------------------------------------------------------------------------- */

static int by_bound(const void *left, const void *right, void *context)
{
    uint32_t i = *(const uint32_t *)left, k = *(const uint32_t *)right;
    const struct chain_state *states = context, *a = &states[i], *b = &states[k];
    if (a->bound < b->bound || a->bound > b->bound) return a->bound < b->bound ? -1 : 1;
    if (a->cost != b->cost) return a->cost < b->cost ? -1 : 1;
    if (a->left != b->left) return a->left < b->left ? -1 : 1;
    return (i > k) - (i < k);
}

static void select_states(struct chain_search *s)
{
    uint32_t first = s->pool_count;
    clear_shelf(&s->shelf, s->candidates, s->candidate_count);
    for (uint32_t i = 0; i < s->candidate_count; i++) s->order[i] = i;
    qsort_r(s->order, s->candidate_count, sizeof *s->order, by_bound, s->candidates);
    for (uint32_t i = 0; i < s->candidate_count; i++) {
        const struct chain_state *candidate = &s->candidates[s->order[i]];
        if (s->pool_count - first == s->width || s->pool_count == s->pool_capacity) {
            if (candidate->bound < s->dropped) s->dropped = candidate->bound;
            return;
        }
        if (!anytime_step(&s->limits)) return;
        if (is_dominated(s, candidate)) continue;
        shelve(&s->shelf, s->pool_count, candidate);
        s->pool[s->pool_count++] = *candidate;
    }
}

/* Reports states from the best to the worst selected one, in some of the layers. */
static void tell_places(struct chain_search *s, uint32_t first, uint32_t layer)
{
    const struct chain_search_options *options = s->options;
    uint32_t count = s->pool_count - first, layers = s->chain->layer_count;
    uint32_t stride = layers / PLACE_LAYERS + 1, told = count < PLACES_OF_LAYER ? count : PLACES_OF_LAYER;
    if (!options->places || layer % stride != 0 || layer == layers) return;
    for (uint32_t i = 0; i < told && s->place_count < options->places_max; i++) {
        uint32_t at = told > 1 ? (uint32_t)((uint64_t)i * (count - 1) / (told - 1)) : 0;
        const struct chain_state *state = &s->pool[first + at];
        struct chain_place *place = &options->places[s->place_count++];
        *place = (struct chain_place){.layer = layer, .device = (double)state->left};
        for (uint32_t link = 0; link < 2; link++) {
            if (state->count[link] == 0) continue;
            list_copies(s, state, link, s->copies[link]);
            place->link[link] = fluid_bytes(s, state, link, &s->copies[link][state->count[link] - 1]);
        }
    }
}

static void search_layers(struct chain_search *s)
{
    uint32_t first = 0;
    s->pool[0] = (struct chain_state){.parent = NO_STATE, .older = NO_STATE, .choice = CHAIN_KEEP,
                                      .bound = chain_bound_at(s->prices, &(struct chain_place){0})};
    s->pool_count = 1;
    s->dropped = HUGE_VAL;
    s->best_state = NO_STATE;
    s->place_count = 0;
    for (uint32_t layer = 0; layer < s->chain->layer_count && !s->limits.over; layer++) {
        uint32_t end = s->pool_count;
        s->candidate_count = 0;
        for (uint32_t id = first; id < end; id++) expand(s, id, layer);
        first = end;
        select_states(s);
        tell_places(s, first, layer + 1);
    }
    if (s->limits.over || first == s->pool_count) return;
    s->best_state = first; /* the least bound: its makespan */
}

static void trace_back(const struct chain_search *s, uint8_t *choices, int64_t *makespan)
{
    const struct chain_state *state = &s->pool[s->best_state];
    *makespan = s->chain->compute + state->cost;
    for (; state->parent != NO_STATE; state = &s->pool[state->parent]) choices[state->layer] = state->choice;
}

static enum status allocate(struct chain_search *s, uint32_t width_max, size_t bytes, struct error *err)
{
    size_t layers = s->chain->layer_count;
    size_t room = bytes / sizeof(struct chain_state), width = room / (layers + CHAIN_CHOICES + 1);
    if (width_max > 0 && width_max < width) width = width_max;
    if (width < 1) width = 1;
    s->width = (uint32_t)width;
    s->pool_capacity = (uint32_t)(width * layers + 1);
    s->pool = alloc_zeroed(s->pool_capacity, sizeof *s->pool);
    s->candidates = alloc_zeroed(width * CHAIN_CHOICES, sizeof *s->candidates);
    s->order = alloc_zeroed(width * CHAIN_CHOICES, sizeof *s->order);
    s->shelf.gists = alloc_zeroed(width / BLOCK + 1 + BINS * BINS, sizeof *s->shelf.gists);
    bool complete = s->pool && s->candidates && s->order && s->shelf.gists;
    for (uint32_t link = 0; link < 2; link++) {
        s->copies[link] = alloc_zeroed(layers, sizeof *s->copies[link]);
        s->others[link] = alloc_zeroed(layers, sizeof *s->others[link]);
        complete = complete && s->copies[link] && s->others[link];
    }
    return complete ? STATUS_OK : error_memory(err, "states of a chain", bytes);
}

enum status chain_search(const struct chain *chain, const struct chain_bound *bound,
                         const struct chain_search_options *options, uint8_t *choices,
                         int64_t *makespan, struct chain_search_result *result, struct error *err)
{
    struct chain_search s = {.chain = chain, .prices = bound, .options = options,
                             .limits = {.until_s = options->until_s, .clock_every = CLOCK_EVERY}};
    struct chain_search_result made = {.bound = chain_bound_ticks(chain, bound)};
    size_t bytes = options->memory_bytes ? options->memory_bytes : (size_t)256 << 20;
    if (allocate(&s, options->width_max, bytes, err)) goto out;
    uint32_t widest = s.width;
    uint64_t width = options->width_min ? options->width_min : WIDTH_FIRST;
    for (; !made.proven && !s.limits.over; width *= WIDTH_FACTOR) {
        s.best = *makespan;
        s.width = width < widest ? (uint32_t)width : widest;
        search_layers(&s);
        if (s.limits.over) break;
        bool better = s.best_state != NO_STATE;
        if (better) trace_back(&s, choices, makespan);
        made.width = s.width;
        made.proven = s.dropped == HUGE_VAL;
        int64_t floor = made.proven ? *makespan : chain_bound_round(chain, s.dropped);
        if (floor > *makespan) floor = *makespan;
        if (floor > made.bound) made.bound = floor;
        made.proven |= made.bound == *makespan;
        if (made.proven) break;
        if (better && chain_improve(chain, options->until_s, choices, makespan, err)) goto out;
        if (s.width == widest) break;
    }
    made.states = s.states;
    made.place_count = s.place_count;
    *result = made;
out:
    free(s.pool);
    free(s.candidates);
    free(s.order);
    free(s.shelf.gists);
    for (uint32_t link = 0; link < 2; link++) {
        free(s.copies[link]);
        free(s.others[link]);
    }
    return err->status;
}
