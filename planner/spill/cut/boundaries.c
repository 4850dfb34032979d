/*
 * Labels are in one array, with the labels of a layer next to each other, because they are all made at once: from the
 * labels of each layer where the last part could begin. Each label remembers the label that it extends, and the cut is
 * read off backwards:
 *
 *     layers     0   1   2   3   4
 *     labels   |   |   |   |   |   |
 *              ^-----------^-------^     parts of 3 and of 2 layers
 */
#include "planner/spill/cut/boundaries.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"

struct label {
    double cost;
    uint64_t workspace_bytes, keep_bytes;
    uint64_t begin;      /* of its last part */
    uint32_t predecessor; /* index among the labels of layer `begin` */
};

struct boundaries_front {
    struct label *labels;
    uint32_t count;
};

static bool dominates(const struct label *a, const struct label *b)
{
    return a->cost <= b->cost && a->workspace_bytes <= b->workspace_bytes &&
           a->keep_bytes <= b->keep_bytes;
}

/* Inserts a label unless another is no worse, and removes labels that are no better. Returns false without room. */
static bool insert(struct boundaries_front *front, const struct label *label)
{
    for (uint32_t i = 0; i < front->count; i++)
        if (dominates(&front->labels[i], label)) return true;
    uint32_t left = 0;
    for (uint32_t i = 0; i < front->count; i++)
        if (!dominates(label, &front->labels[i])) front->labels[left++] = front->labels[i];
    front->count = left;
    if (left == BOUNDARIES_LABELS_MAX) return false;
    front->labels[front->count++] = *label;
    return true;
}

static bool extend(const struct boundaries_problem *problem, const struct boundaries_front *before, uint64_t begin,
                   const struct boundaries_part *part, struct boundaries_front *out)
{
    for (uint32_t i = 0; i < before->count; i++) {
        const struct label *from = &before->labels[i];
        struct label label = {.cost = from->cost + part->cost,
                              .workspace_bytes = from->workspace_bytes > part->workspace_bytes
                                                     ? from->workspace_bytes
                                                     : part->workspace_bytes,
                              .keep_bytes = from->keep_bytes + part->keep_bytes,
                              .begin = begin,
                              .predecessor = i};
        if (label.workspace_bytes > problem->memory_bytes ||
            label.keep_bytes > problem->memory_bytes - label.workspace_bytes)
            continue;
        if (!insert(out, &label)) return false;
    }
    return true;
}

/* Makes the labels of layer `end`. *room is false if there are too many. */
static enum status make_front(const struct boundaries_problem *problem, const struct boundaries_front *fronts,
                              uint64_t end, struct boundaries_front *scratch, struct boundaries_front *out, bool *room,
                              struct error *err)
{
    scratch->count = 0;
    for (uint64_t count = 1; count <= end && count <= problem->most && *room; count++) {
        struct boundaries_part part = {0};
        if (problem->part(problem->context, end - count, count, &part, err)) return err->status;
        if (!part.fits) break;
        *room = extend(problem, &fronts[end - count], end - count, &part, scratch);
    }
    size_t bytes = scratch->count * sizeof *out->labels;
    out->labels = alloc_zeroed(scratch->count ? scratch->count : 1, sizeof *out->labels);
    if (!out->labels) return error_memory(err, "boundaries of shards", bytes);
    for (uint32_t i = 0; i < scratch->count; i++) out->labels[i] = scratch->labels[i];
    out->count = scratch->count;
    return STATUS_OK;
}

static void read_off(const struct boundaries_front *fronts, uint64_t layers, uint64_t *counts, uint32_t *count)
{
    const struct boundaries_front *last = &fronts[layers];
    uint32_t at = 0;
    for (uint32_t i = 1; i < last->count; i++)
        if (last->labels[i].cost < last->labels[at].cost) at = i;
    *count = 0;
    for (uint64_t end = layers; end > 0;) {
        const struct label *label = &fronts[end].labels[at];
        counts[(*count)++] = end - label->begin;
        at = label->predecessor;
        end = label->begin;
    }
    for (uint32_t i = 0; i < *count / 2; i++) {
        uint64_t swap = counts[i];
        counts[i] = counts[*count - 1 - i];
        counts[*count - 1 - i] = swap;
    }
}

enum status boundaries_best(const struct boundaries_problem *problem, uint64_t *counts, uint32_t *count,
                            bool *found, struct error *err)
{
    assert(problem->layers > 0);
    assert(problem->most > 0);
    uint64_t layers = problem->layers;
    bool room = true;
    struct boundaries_front scratch = {.labels = alloc_zeroed(BOUNDARIES_LABELS_MAX, sizeof *scratch.labels)};
    struct boundaries_front *fronts = alloc_zeroed(layers + 1, sizeof *fronts);
    *found = false;
    if (!scratch.labels || !fronts || !(fronts[0].labels = alloc_zeroed(1, sizeof *fronts->labels))) {
        error_memory(err, "boundaries of shards", BOUNDARIES_LABELS_MAX * sizeof *scratch.labels);
        goto out;
    }
    fronts[0].count = 1;
    fronts[0].labels[0].workspace_bytes = problem->workspace_bytes;
    for (uint64_t end = 1; end <= layers && room; end++)
        if (make_front(problem, fronts, end, &scratch, &fronts[end], &room, err)) goto out;
    *found = room && fronts[layers].count > 0;
    if (*found) read_off(fronts, layers, counts, count);
out:
    for (uint64_t l = 0; fronts && l <= layers; l++) free(fronts[l].labels);
    free(fronts);
    free(scratch.labels);
    return err->status;
}
