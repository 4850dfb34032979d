/* Earliest deadline first on one device as fast as all, once per level of work. */
#include "sim/placement/serving_bound.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/order.h"

/* A waiting request, in a heap ordered by deadline. */
struct waiting {
    double deadline_s, work_s;
};

struct heap {
    struct waiting *items;
    uint32_t count;
};

static void swap(struct waiting *a, struct waiting *b)
{
    struct waiting other = *a;
    *a = *b;
    *b = other;
}

static void heap_add(struct heap *heap, struct waiting item)
{
    uint32_t i = heap->count++;
    heap->items[i] = item;
    for (; i > 0 && heap->items[i].deadline_s < heap->items[(i - 1) / 2].deadline_s; i = (i - 1) / 2)
        swap(&heap->items[i], &heap->items[(i - 1) / 2]);
}

static void heap_pop(struct heap *heap)
{
    heap->items[0] = heap->items[--heap->count];
    for (uint32_t i = 0, least; ; i = least) {
        least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap->count; child++)
            if (heap->items[child].deadline_s < heap->items[least].deadline_s) least = child;
        if (least == i) return;
        swap(&heap->items[i], &heap->items[least]);
    }
}

struct kind_need {
    double least_s, work_s;
};

struct serving_bound_bounder {
    const struct serving *in;
    const struct traffic *traffic;
    const struct kind_need *needs;
    struct heap heap;
};

/* Returns the work done between two times: by earliest deadline, and none after its deadline. */
static double work_between(struct serving_bound_bounder *b, double now_s, double until_s)
{
    double rate = b->in->device_count, done_s = 0;
    while (b->heap.count > 0 && now_s < until_s) {
        struct waiting *first = &b->heap.items[0];
        double end_s = fmin(fmin(until_s, first->deadline_s), now_s + first->work_s / rate);
        if (end_s > now_s) {
            double part_s = fmin((end_s - now_s) * rate, first->work_s);
            done_s += part_s;
            first->work_s -= part_s;
            now_s = end_s;
        }
        /* at its end, the remaining work is rounding error */
        if (first->deadline_s <= now_s || first->work_s <= 0 || now_s < until_s) heap_pop(&b->heap);
    }
    return done_s;
}

/* Returns the most work possible for requests of kinds that need at most `limit_s` each. */
static double most_work(struct serving_bound_bounder *b, double limit_s)
{
    double now_s = 0, done_s = 0;
    b->heap.count = 0;
    for (uint32_t r = 0; r < b->traffic->count; r++) {
        const struct traffic_request *request = &b->traffic->requests[r];
        const struct serving_model *model = &b->in->models[request->model];
        const struct kind_need *need = &b->needs[model->kind];
        double allowed_s = model->objective_s * (1 + SERVING_OBJECTIVE_SLACK) - b->in->overhead_s;
        if (need->work_s > limit_s || need->least_s > allowed_s) continue;
        done_s += work_between(b, now_s, request->at_s);
        now_s = request->at_s;
        heap_add(&b->heap, (struct waiting){now_s + allowed_s, need->work_s});
    }
    return done_s + work_between(b, now_s, HUGE_VAL);
}

enum status serving_bound(const struct serving *in, const struct traffic *traffic, uint32_t *out, struct error *err)
{
    struct kind_need *needs = alloc_zeroed(in->kind_count, sizeof *needs);
    double *levels = alloc_zeroed(in->kind_count, sizeof *levels);
    struct serving_bound_bounder b = {in,
                                      traffic,
                                      needs,
                                      {alloc_zeroed(traffic->count + 1, sizeof(struct waiting)), 0}};
    if (!needs || !levels || !b.heap.items) {
        error_memory(err, "a bound", traffic->count * sizeof *b.heap.items);
        goto out;
    }
    for (uint32_t k = 0; k < in->kind_count; k++) {
        needs[k] = (struct kind_need){serving_least_s(&in->kinds[k], in->device_count),
                                      serving_least_work_s(&in->kinds[k], in->device_count)};
        levels[k] = needs[k].work_s;
    }
    qsort(levels, in->kind_count, sizeof *levels, order_double);
    double count = 0, before_s = 0;
    for (uint32_t k = 0; k < in->kind_count; k++) {
        if (k > 0 && levels[k] == levels[k - 1]) continue;
        double work_s = most_work(&b, levels[k]);
        if (levels[k] > 0) count += (work_s - before_s) / levels[k];
        before_s = work_s;
    }
    *out = (uint32_t)fmin(floor(count * (1 + 1e-9) + 1e-6), traffic->count);
out:
    free(needs);
    free(levels);
    free(b.heap.items);
    return err->status;
}
