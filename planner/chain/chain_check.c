/*
 * Passes and copies become intervals, and memory a list of changes. A resource's intervals (computation, link out, link
 * in) are sorted and must not overlap. Changes are sorted by time, releases first, and their running sum must stay
 * within memory.
 */
#include "planner/chain/chain_check.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"

enum chain_resource { RESOURCE_COMPUTE, RESOURCE_OUT, RESOURCE_IN, RESOURCES };

struct interval {
    int64_t start, end;
    uint32_t layer;
    enum chain_resource resource;
};

struct chain_change {
    int64_t at, bytes;
    uint32_t layer;
};

struct books {
    struct interval *intervals;
    struct chain_change *changes;
    uint32_t interval_count, change_count;
};

static void run(struct books *b, enum chain_resource resource, uint32_t layer, int64_t start, int64_t length)
{
    b->intervals[b->interval_count++] = (struct interval){start, start + length, layer, resource};
}

static void hold(struct books *b, uint32_t layer, int64_t from, int64_t to, uint64_t bytes)
{
    b->changes[b->change_count++] = (struct chain_change){from, (int64_t)bytes, layer};
    b->changes[b->change_count++] = (struct chain_change){to, -(int64_t)bytes, layer};
}

static int by_lane(const void *left, const void *right)
{
    const struct interval *a = left, *b = right;
    if (a->resource != b->resource) return a->resource < b->resource ? -1 : 1;
    if (a->start != b->start) return a->start < b->start ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end); /* a copy of nothing takes no time */
}

static int by_time(const void *left, const void *right)
{
    const struct chain_change *a = left, *b = right;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Checks the rules of one layer. */
static enum status enter_layer(const struct chain *chain, const struct chain_schedule *s, uint32_t l,
                               struct books *b, struct error *err)
{
    const struct chain_layer *layer = &chain->layers[l];
    int64_t forward_end = s->forward[l] + layer->forward, back = s->backward[l];
    int64_t end = back + layer->backward;
    if (s->forward[l] < 0 || (l > 0 && s->forward[l] < s->forward[l - 1] + chain->layers[l - 1].forward))
        return error_set(err, STATUS_CHECK, "layer %u runs forward before the previous layer has ended", l);
    if (forward_end > s->turnaround || back < s->turnaround)
        return error_set(err, STATUS_CHECK, "layer %u runs on the wrong side of the turnaround", l);
    switch (s->choices[l]) {
    case CHAIN_KEEP: hold(b, l, s->forward[l], end, layer->saved); break;
    case CHAIN_SWAP:
        if (!chain_swaps(chain))
            return error_set(err, STATUS_CHECK, "layer %u is swapped without a link", l);
        if (s->out[l] < forward_end || s->out[l] + layer->out > s->turnaround)
            return error_set(err, STATUS_CHECK, "layer %u is copied out too early or too late", l);
        if (s->in[l] < s->turnaround || s->in[l] + layer->in > back)
            return error_set(err, STATUS_CHECK, "layer %u is copied in too early or too late", l);
        run(b, RESOURCE_OUT, l, s->out[l], layer->out);
        run(b, RESOURCE_IN, l, s->in[l], layer->in);
        hold(b, l, s->forward[l], s->out[l] + layer->out, layer->saved);
        hold(b, l, s->in[l], end, layer->saved);
        break;
    case CHAIN_RECOMPUTE:
        end += layer->again;
        hold(b, l, s->forward[l], forward_end, layer->saved - layer->boundary);
        hold(b, l, back, end, layer->saved - layer->boundary);
        hold(b, l, s->forward[l], end, layer->boundary);
        break;
    default: return error_set(err, STATUS_CHECK, "layer %u has no choice", l);
    }
    if (end > (l > 0 ? s->backward[l - 1] : s->makespan))
        return error_set(err, STATUS_CHECK, "layer %u ends after what follows it has begun", l);
    run(b, RESOURCE_COMPUTE, l, s->forward[l], layer->forward);
    run(b, RESOURCE_COMPUTE, l, back, end - back);
    return STATUS_OK;
}

enum status chain_check(const struct chain *chain, const struct chain_schedule *s, struct error *err)
{
    struct books b = {alloc_zeroed(chain->layer_count, 4 * sizeof *b.intervals),
                      alloc_zeroed(chain->layer_count, 6 * sizeof *b.changes), 0, 0};
    int64_t held = 0, last = 0;
    if (!b.intervals || !b.changes) {
        error_memory(err, "checking a chain", chain->layer_count * 6 * sizeof *b.changes);
        goto out;
    }
    if (s->layer_count != chain->layer_count) {
        error_set(err, STATUS_CHECK, "a schedule of %u layers for a chain of %u", s->layer_count,
                  chain->layer_count);
        goto out;
    }
    for (uint32_t l = 0; l < chain->layer_count; l++)
        if (enter_layer(chain, s, l, &b, err)) goto out;
    qsort(b.intervals, b.interval_count, sizeof *b.intervals, by_lane);
    for (uint32_t i = 0; i < b.interval_count; i++) {
        const struct interval *now = &b.intervals[i];
        if (now->end > last) last = now->end;
        if (i > 0 && now[-1].resource == now->resource && now[-1].end > now->start) {
            error_set(err, STATUS_CHECK, "layers %u and %u are %s at the same time", now[-1].layer,
                      now->layer, now->resource == RESOURCE_COMPUTE ? "computed" : "copied");
            goto out;
        }
    }
    if (last != s->makespan) {
        error_set(err, STATUS_CHECK, "a makespan of %" PRId64 " ticks, claimed are %" PRId64, last,
                  s->makespan);
        goto out;
    }
    qsort(b.changes, b.change_count, sizeof *b.changes, by_time);
    for (uint32_t c = 0; c < b.change_count; c++) {
        held += b.changes[c].bytes;
        if (held > (int64_t)chain->memory) {
            error_set(err, STATUS_CHECK,
                      "layer %u: %" PRId64 " bytes at tick %" PRId64 ", and the device has %" PRIu64,
                      b.changes[c].layer, held, b.changes[c].at, chain->memory);
            goto out;
        }
    }
out:
    free(b.intervals);
    free(b.changes);
    return err->status;
}
