/*
 * A choice changes only later layers, in both passes (the backward pass is mirrored, chain.h). So the state before
 * every layer is kept, and a move is judged from its first layer on, until waiting has cost more than the threshold
 * allows. The trial's states are separate until accepted.
 */
#include "planner/chain/chain_anneal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/anytime.h"
#include "base/random.h"

enum { CLOCK_EVERY = 1024 };

/* The state before a layer, in both passes. Copies are numbered in the same order in both. */
struct chain_anneal_point {
    int64_t clock[2], link[2]; /* ticks since the pass began */
    uint64_t left, pending[2]; /* bytes */
    uint32_t first[2], count;  /* copies that no layer waited for yet; number of queued copies */
};

/* One set of choices played through. */
struct play {
    struct chain_anneal_point *points; /* (layer_count + 1) */
    uint32_t *queue;                   /* (layer_count) layers that are copied */
    int64_t *ends[2];                  /* (layer_count) when their copies end */
};

struct annealing {
    const struct chain *chain;
    const uint8_t *allowed;
    struct play now, trial;
    uint8_t *choices;
    int64_t *rest; /* (layer_count + 1) ticks that computing a layer and all later layers takes */
    uint64_t key, drawn;
};

static enum status create(uint32_t layers, struct play *play, struct error *err)
{
    play->points = alloc_zeroed(layers + 1u, sizeof *play->points);
    play->queue = alloc_zeroed(layers, sizeof *play->queue);
    for (uint32_t p = 0; p < 2; p++) play->ends[p] = alloc_zeroed(layers, sizeof *play->ends[p]);
    if (play->points && play->queue && play->ends[0] && play->ends[1]) return STATUS_OK;
    return error_memory(err, "annealing a chain", (layers + 1u) * sizeof *play->points);
}

static void destroy(struct play *play)
{
    free(play->points);
    free(play->queue);
    for (uint32_t p = 0; p < 2; p++) free(play->ends[p]);
}

/* Copies number begin .. end-1. */
static void copy_queue(struct play *to, const struct play *from, uint32_t begin, uint32_t end)
{
    if (begin >= end) return;
    memcpy(to->queue + begin, from->queue + begin, (end - begin) * sizeof *to->queue);
    for (uint32_t p = 0; p < 2; p++)
        memcpy(to->ends[p] + begin, from->ends[p] + begin, (end - begin) * sizeof *to->ends[p]);
}

/* Runs one layer in pass p, after a wait for memory. Returns false if memory never holds it. */
static bool run(const struct chain *chain, const struct play *play, uint32_t l, bool again, uint32_t p,
                struct chain_anneal_point *at)
{
    const struct chain_layer *layer = &chain->layers[l];
    while (at->left + at->pending[p] + layer->saved > chain->memory) {
        if (at->first[p] == at->count) return false;
        uint32_t oldest = at->first[p]++;
        if (play->ends[p][oldest] > at->clock[p]) at->clock[p] = play->ends[p][oldest];
        at->pending[p] -= chain->layers[play->queue[oldest]].saved;
    }
    at->clock[p] += p ? layer->backward + (again ? layer->again : 0) : layer->forward;
    return true;
}

static void queue_copy(const struct chain *chain, struct play *play, uint32_t l, struct chain_anneal_point *at)
{
    for (uint32_t p = 0; p < 2; p++) {
        if (at->clock[p] > at->link[p]) at->link[p] = at->clock[p];
        at->link[p] += p ? chain->layers[l].in : chain->layers[l].out;
        play->ends[p][at->count] = at->link[p];
        at->pending[p] += chain->layers[l].saved;
    }
    play->queue[at->count++] = l;
}

/* Plays layers from `from` on. Returns false if memory cannot hold them, or if it takes more than `most` ticks. */
static bool play_from(const struct annealing *a, struct play *play, uint32_t from, int64_t most,
                      int64_t *makespan)
{
    struct chain_anneal_point at = play->points[from];
    for (uint32_t l = from; l < a->chain->layer_count; l++) {
        uint8_t choice = a->choices[l];
        for (uint32_t p = 0; p < 2; p++)
            if (!run(a->chain, play, l, choice == CHAIN_RECOMPUTE, p, &at)) return false;
        if (at.clock[0] + at.clock[1] + a->rest[l + 1] > most) return false;
        at.left += chain_left(&a->chain->layers[l], choice);
        if (choice == CHAIN_SWAP) queue_copy(a->chain, play, l, &at);
        play->points[l + 1] = at;
    }
    *makespan = 0;
    for (uint32_t p = 0; p < 2; p++) *makespan += at.clock[p] > at.link[p] ? at.clock[p] : at.link[p];
    return *makespan <= most;
}

/* Tries a move, starting from the states of the current choices. */
static bool try_from(struct annealing *a, uint32_t from, int64_t most, int64_t *makespan)
{
    const struct chain_anneal_point *at = &a->now.points[from];
    a->trial.points[from] = *at;
    copy_queue(&a->trial, &a->now, at->first[0] < at->first[1] ? at->first[0] : at->first[1], at->count);
    return play_from(a, &a->trial, from, most, makespan);
}

static void accept_trial(struct annealing *a, uint32_t from)
{
    uint32_t layers = a->chain->layer_count;
    copy_queue(&a->now, &a->trial, a->now.points[from].count, a->trial.points[layers].count);
    memcpy(a->now.points + from + 1, a->trial.points + from + 1, (layers - from) * sizeof *a->now.points);
}

static bool may(const struct annealing *a, uint32_t layer, uint8_t choice)
{
    return chain_allowed(a->chain, a->allowed, layer) >> choice & 1;
}

/* Makes a move at a temperature. Returns true if it was accepted. */
static bool move(struct annealing *a, double temperature, int64_t *makespan)
{
    uint32_t movable = a->chain->layer_count - 1; /* the last layer is kept */
    uint32_t x = (uint32_t)random_below(a->key, a->drawn++, movable), y = x;
    uint8_t of_x = a->choices[x], of_y = of_x;
    if (random_below(a->key, a->drawn++, 2)) {
        uint8_t step = (uint8_t)(1 + random_below(a->key, a->drawn++, CHAIN_CHOICES - 1));
        uint8_t other = (uint8_t)((of_x + step) % CHAIN_CHOICES);
        if (!may(a, x, other)) return false;
        a->choices[x] = other;
    } else {
        y = (uint32_t)random_below(a->key, a->drawn++, movable);
        of_y = a->choices[y];
        if (of_x == of_y || !may(a, x, of_y) || !may(a, y, of_x)) return false;
        a->choices[x] = of_y;
        a->choices[y] = of_x;
    }
    double dearer = -temperature * log1p(-random_unit(a->key, a->drawn++)); /* units are below 1 */
    int64_t next, most = *makespan + (int64_t)fmin(dearer, (double)CHAIN_TICKS_MAX);
    uint32_t from = x < y ? x : y;
    if (try_from(a, from, most, &next)) {
        accept_trial(a, from);
        *makespan = next;
        return true;
    }
    a->choices[y] = of_y;
    a->choices[x] = of_x;
    return false;
}

static void anneal(struct annealing *a, const struct chain_anneal_options *options, uint8_t *best,
                   int64_t *best_makespan)
{
    int64_t makespan;
    double cooling = pow(options->cold / options->hot, 1.0 / options->moves), temperature = options->hot;
    struct anytime limits = {.until_s = options->until_s, .steps_max = options->moves, .clock_every = CLOCK_EVERY};
    if (options->moves == 0 || !play_from(a, &a->now, 0, INT64_MAX, &makespan)) return;
    for (; *best_makespan > options->enough && anytime_step(&limits); temperature *= cooling) {
        if (!move(a, temperature, &makespan) || makespan >= *best_makespan) continue;
        *best_makespan = makespan;
        memcpy(best, a->choices, a->chain->layer_count);
    }
}

enum status chain_anneal(const struct chain *chain, const struct chain_anneal_options *options,
                         uint8_t *choices, int64_t *makespan, struct error *err)
{
    uint32_t layers = chain->layer_count;
    struct annealing a = {.chain = chain, .allowed = options->allowed, .key = options->seed};
    if (layers < 2) return STATUS_OK;
    a.choices = alloc_zeroed(layers, sizeof *a.choices);
    a.rest = alloc_zeroed(layers + 1u, sizeof *a.rest);
    if (!a.choices || !a.rest) {
        error_memory(err, "annealing a chain", (layers + 1u) * sizeof *a.rest);
        goto out;
    }
    if (create(layers, &a.now, err) || create(layers, &a.trial, err)) goto out;
    memcpy(a.choices, choices, layers);
    for (uint32_t l = layers; l-- > 0;)
        a.rest[l] = a.rest[l + 1] + chain->layers[l].forward + chain->layers[l].backward;
    anneal(&a, options, choices, makespan);
out:
    destroy(&a.now);
    destroy(&a.trial);
    free(a.choices);
    free(a.rest);
    return err->status;
}
