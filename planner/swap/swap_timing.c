/*
 * A walk in plan order (swap_units.c). An acquired range waits for all earlier releases of its bytes; lives of the
 * whole minibatch never wait. A layer has two copies each way: activations leave first, and the input returns first,
 * each with a share of the time by its bytes.
 */
#include "planner/swap/swap_timing.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/extreme.h"

struct swap_timing_clock {
    const struct swap_job *job;
    const struct chain *chain;
    const uint8_t *choices;
    const struct swap_places *places;
    int64_t *released; /* per range: end of its life; 0: not yet */
    uint32_t *ended;   /* ranges whose life has ended, in order */
    uint32_t ended_count;
    int64_t *out_end;  /* per layer: end of its copy out */
    int64_t compute, out, in; /* when the streams are free */
};

static int64_t free_at(const struct swap_timing_clock *c, uint32_t layer, enum swap_thing thing)
{
    const struct swap_range *range = swap_range(c->places, layer, thing);
    int64_t latest = 0;
    for (uint32_t i = 0; range->bytes > 0 && i < c->ended_count; i++) {
        const struct swap_range *other = &c->places->ranges[c->ended[i]];
        if (other->offset < range->offset + range->bytes && range->offset < other->offset + other->bytes)
            latest = max_i64(latest, c->released[c->ended[i]]);
    }
    return latest;
}

static void release(struct swap_timing_clock *c, uint32_t layer, enum swap_thing thing, int64_t at)
{
    uint32_t index = layer * SWAP_THINGS + (uint32_t)thing;
    if (c->places->ranges[index].bytes == 0) return;
    c->released[index] = at;
    c->ended[c->ended_count++] = index;
}

/* Returns the input's share of the ticks of a copy of layer l's kept data. */
static int64_t input_ticks(const struct swap_timing_clock *c, uint32_t l, int64_t ticks)
{
    double input = (double)c->job->layers[l].bytes.input_bytes, kept = (double)swap_kept_bytes(c->job, l);
    return input > 0 ? (int64_t)((double)ticks * input / (input + kept)) : 0;
}

static void forward(struct swap_timing_clock *c, uint32_t l)
{
    int64_t start = max_i64(c->compute, free_at(c, l + 1, SWAP_INPUT));
    start = max_i64(start, max_i64(free_at(c, l, SWAP_KEPT), free_at(c, l, SWAP_WORK)));
    c->compute = start + c->chain->layers[l].forward;
    release(c, l, SWAP_WORK, c->compute);
    if (l < swap_lowest(c->job)) release(c, l, SWAP_INPUT, c->compute);
    if (c->choices[l] != CHAIN_SWAP) return;
    int64_t out = c->chain->layers[l].out;
    c->out = max_i64(c->out, c->compute) + out;
    c->out_end[l] = c->out;
    release(c, l, SWAP_KEPT, c->out - input_ticks(c, l, out));
    release(c, l, SWAP_INPUT, c->out);
}

static void loss(struct swap_timing_clock *c, uint32_t l)
{
    int64_t start = max_i64(c->compute, free_at(c, l, SWAP_GRADIENT));
    start = max_i64(start, max_i64(free_at(c, 0, SWAP_TABLE_GRADIENT), free_at(c, l, SWAP_WORK_BACK)));
    c->compute = start + c->chain->layers[l].forward + c->chain->layers[l].backward;
    release(c, l, SWAP_WORK_BACK, c->compute);
    release(c, l, SWAP_INPUT, c->compute);
    if (l == swap_lowest(c->job)) release(c, l, SWAP_GRADIENT, c->compute);
}

static void backward(struct swap_timing_clock *c, uint32_t l)
{
    const struct chain_layer *layer = &c->chain->layers[l];
    bool swapped = c->choices[l] == CHAIN_SWAP;
    int64_t start = max_i64(c->compute, max_i64(free_at(c, l, SWAP_GRADIENT), free_at(c, l, SWAP_WORK_BACK)));
    if (swapped) {
        int64_t input = input_ticks(c, l, layer->in);
        c->in = max_i64(max_i64(c->in, c->out_end[l]), free_at(c, l, SWAP_INPUT_AGAIN)) + input;
        c->in = max_i64(c->in, free_at(c, l, SWAP_KEPT_AGAIN)) + layer->in - input;
        start = max_i64(start, c->in);
    }
    c->compute = start + layer->backward + (c->choices[l] == CHAIN_RECOMPUTE ? layer->again : 0);
    release(c, l, SWAP_WORK_BACK, c->compute);
    release(c, l, swapped ? SWAP_KEPT_AGAIN : SWAP_KEPT, c->compute);
    release(c, l, swapped ? SWAP_INPUT_AGAIN : SWAP_INPUT, c->compute);
    release(c, l + 1, SWAP_GRADIENT, c->compute);
    if (l == swap_lowest(c->job)) release(c, l, SWAP_GRADIENT, c->compute);
}

enum status swap_timing(const struct swap_job *job, const struct chain *chain, const uint8_t *choices,
                        const struct swap_places *places, int64_t *length, struct error *err)
{
    uint32_t last = job->layer_count - 1;
    size_t count = (size_t)job->layer_count * SWAP_THINGS;
    struct swap_timing_clock c = {.job = job, .chain = chain, .choices = choices, .places = places};
    c.released = alloc_zeroed(count, sizeof *c.released);
    c.ended = alloc_zeroed(count, sizeof *c.ended);
    c.out_end = alloc_zeroed(job->layer_count, sizeof *c.out_end);
    if (c.released && c.ended && c.out_end) {
        for (uint32_t l = 0; l < last; l++) forward(&c, l);
        loss(&c, last);
        for (uint32_t l = last; l-- > swap_lowest(job);) backward(&c, l);
        *length = c.compute;
    } else {
        error_memory(err, "the times of a minibatch", count * sizeof *c.released);
    }
    free(c.released);
    free(c.ended);
    free(c.out_end);
    return err->status;
}
