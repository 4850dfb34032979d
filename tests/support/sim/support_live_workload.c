/*
 * Only workload W, with the arithmetic of the program that made the published makespans.
 *
 * The makespans depend on that arithmetic. Times of W feed back through shared links, so a difference in the last bit
 * grows tenfold about every hundred seconds of virtual time and finally decides which model is chosen: the figure after
 * 872 s is one of many that correct programs find within 0.1 %. So the test of an engine has to round as the reference
 * does: remaining -= rate * elapsed for each flow of a group at each event of the group, and end = now + the least
 * remaining / rate.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/sim/support_live_reference.h"

enum { COPY_IN, COMPUTE, COPY_OUT };
enum { DIRECTIONS = 1 + 2 * WORKLOAD_GROUP, FLOWS_MAX = 2 * WORKLOAD_SLOTS * WORKLOAD_GROUP };

static const double link_rate = 12e9, group_rate = 20e9;

struct task {
    uint32_t m, g;
    int kind;
    double compute_s, bytes, left, rate;
    uint32_t link_dir;
};

struct group {
    struct task *flows[FLOWS_MAX];
    uint32_t count, version;
    double last_s;
};

struct event {
    double time_s;
    uint64_t sequence;
    uint32_t version, group;
    bool flow;
    struct task *task;
};

struct run {
    const struct workload *w;
    struct live_ref_rounding rounding;
    struct group *groups;
    struct task *tasks, **unused, **loaded; /* loaded: WORKLOAD_SLOTS of each device */
    uint32_t *free_slots, *load_count, unused_count;
    bool *computes;
    uint64_t *done;
    double *left; /* seconds, or microseconds */
    bool *idle;
    struct event *heap;
    size_t heap_count, heap_room;
    uint64_t sequence;
    double now_s;
};

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    assert_non_null(memory);
    return memory;
}

static double forward_s(uint32_t m, uint32_t s, bool twice)
{
    uint64_t k = (UINT64_C(15485863) * m + UINT64_C(32452843) * s) % 1000;
    return twice ? 0.080 + 0.00008 * (double)k : (double)(80000 + 80 * k) / 1e6;
}

static double pass_s(const struct workload *w, uint32_t m, uint32_t pass, bool twice)
{
    return (pass < w->shards ? 1 : 2) * forward_s(m, workload_shard(w, pass), twice);
}

static bool before(const struct event *a, const struct event *b)
{
    return a->time_s < b->time_s || (!(a->time_s > b->time_s) && a->sequence < b->sequence);
}

static void push(struct run *r, struct event event)
{
    if (r->heap_count == r->heap_room) {
        r->heap_room = r->heap_room * 2 + 64;
        r->heap = realloc(r->heap, r->heap_room * sizeof *r->heap);
        assert_non_null(r->heap);
    }
    size_t at = r->heap_count++;
    event.sequence = r->sequence++;
    for (; at > 0 && before(&event, &r->heap[(at - 1) / 2]); at = (at - 1) / 2) r->heap[at] = r->heap[(at - 1) / 2];
    r->heap[at] = event;
}

static struct event pop(struct run *r)
{
    struct event first = r->heap[0], last = r->heap[--r->heap_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < r->heap_count; at = child) {
        if (child + 1 < r->heap_count && before(&r->heap[child + 1], &r->heap[child])) child++;
        if (!before(&r->heap[child], &last)) break;
        r->heap[at] = r->heap[child];
    }
    r->heap[at] = last;
    return first;
}

static void advance(struct run *r, struct group *group)
{
    double elapsed_s = r->now_s - group->last_s;
    for (uint32_t i = 0; elapsed_s > 0 && i < group->count; i++)
        group->flows[i]->left -= group->flows[i]->rate * elapsed_s;
    group->last_s = r->now_s;
}

static void solve(struct run *r, struct group *group)
{
    double left[DIRECTIONS];
    uint32_t crossing[DIRECTIONS] = {0}, unrated = group->count;
    bool rated[FLOWS_MAX] = {0};
    group->version++;
    if (unrated == 0) return;
    for (uint32_t l = 0; l < DIRECTIONS; l++) left[l] = l == 0 ? group_rate : link_rate;
    crossing[0] = unrated;
    for (uint32_t i = 0; i < group->count; i++) crossing[group->flows[i]->link_dir]++;
    while (unrated > 0) {
        uint32_t full = 0;
        double level = INFINITY;
        for (uint32_t l = 0; l < DIRECTIONS; l++)
            if (crossing[l] > 0 && left[l] / crossing[l] < level) {
                level = left[l] / crossing[l];
                full = l;
            }
        for (uint32_t i = 0; i < group->count; i++) {
            struct task *flow = group->flows[i];
            if (rated[i] || (full != 0 && flow->link_dir != full)) continue;
            rated[i] = true;
            unrated--;
            flow->rate = level;
            left[0] -= level;
            left[flow->link_dir] -= level;
            crossing[0]--;
            crossing[flow->link_dir]--;
        }
    }
    struct task *first = NULL;
    double least = INFINITY;
    for (uint32_t i = 0; i < group->count; i++) {
        double needs = group->flows[i]->left / group->flows[i]->rate;
        if (needs >= least) continue;
        least = needs;
        first = group->flows[i];
    }
    push(r, (struct event){.time_s = r->now_s + fmax(least, 0), .version = group->version,
                           .group = (uint32_t)(group - r->groups), .flow = true, .task = first});
}

static void copy(struct run *r, struct task *task, int kind)
{
    struct group *group = &r->groups[task->g / WORKLOAD_GROUP];
    task->kind = kind;
    task->left = task->bytes;
    task->link_dir = 1 + task->g % WORKLOAD_GROUP + (kind == COPY_OUT ? WORKLOAD_GROUP : 0);
    advance(r, group);
    group->flows[group->count++] = task;
    solve(r, group);
}

static void compute(struct run *r, struct task *task)
{
    task->kind = COMPUTE;
    r->computes[task->g] = true;
    push(r, (struct event){.time_s = r->now_s + task->compute_s, .task = task});
}

static void dispatch(struct run *r)
{
    for (;;) {
        const struct workload *w = r->w;
        uint32_t m = UINT32_MAX, g = 0;
        for (uint32_t i = 0; i < w->models; i++)
            if (r->idle[i] && (m == UINT32_MAX || r->left[i] > r->left[m])) m = i;
        for (uint32_t i = 1; i < w->devices; i++)
            if (r->free_slots[i] > r->free_slots[g]) g = i;
        if (m == UINT32_MAX || r->free_slots[g] == 0) return;
        uint32_t pass = (uint32_t)(r->done[m] % (2 * w->shards)), s = workload_shard(w, pass);
        struct task *task = r->unused[--r->unused_count];
        *task = (struct task){.m = m, .g = g, .bytes = (double)workload_bytes(m, s),
                              .compute_s = pass_s(w, m, pass, r->rounding.twice)};
        r->idle[m] = false;
        r->free_slots[g]--;
        copy(r, task, COPY_IN);
    }
}

static void end(struct run *r, struct task *task)
{
    struct task **loaded = &r->loaded[task->g * WORKLOAD_SLOTS];
    if (task->kind == COPY_IN) {
        if (r->computes[task->g]) loaded[r->load_count[task->g]++] = task;
        else compute(r, task);
    } else if (task->kind == COMPUTE) {
        r->computes[task->g] = false;
        copy(r, task, COPY_OUT);
        if (r->load_count[task->g] > 0) {
            compute(r, loaded[0]);
            r->load_count[task->g]--;
            memmove(loaded, loaded + 1, r->load_count[task->g] * sizeof(struct task *));
        }
    } else {
        uint32_t m = task->m;
        r->left[m] -= r->rounding.sums ? task->compute_s : round(task->compute_s * 1e6);
        r->free_slots[task->g]++;
        r->unused[r->unused_count++] = task;
        r->idle[m] = ++r->done[m] < UINT64_C(2) * r->w->shards * r->w->minibatches;
        dispatch(r);
    }
}

static void prepare(struct run *r)
{
    const struct workload *w = r->w;
    uint32_t tasks = w->devices * WORKLOAD_SLOTS;
    r->groups = allocate((w->devices + WORKLOAD_GROUP - 1) / WORKLOAD_GROUP, sizeof *r->groups);
    r->tasks = allocate(tasks, sizeof *r->tasks);
    r->unused = allocate(tasks, sizeof(struct task *));
    r->loaded = allocate(tasks, sizeof(struct task *));
    r->free_slots = allocate(w->devices, sizeof *r->free_slots);
    r->load_count = allocate(w->devices, sizeof *r->load_count);
    r->computes = allocate(w->devices, sizeof *r->computes);
    r->done = allocate(w->models, sizeof *r->done);
    r->left = allocate(w->models, sizeof *r->left);
    r->idle = allocate(w->models, sizeof *r->idle);
    for (uint32_t t = 0; t < tasks; t++) r->unused[r->unused_count++] = &r->tasks[t];
    for (uint32_t g = 0; g < w->devices; g++) r->free_slots[g] = WORKLOAD_SLOTS;
    for (uint32_t m = 0; m < w->models; m++) {
        r->idle[m] = true;
        for (uint32_t s = 0; s < w->shards; s++)
            r->left[m] += r->rounding.sums ? 3 * forward_s(m, s, r->rounding.twice) * w->minibatches
                                           : (double)(3 * workload_forward_us(m, s) * w->minibatches);
    }
}

double live_reference_workload(const struct workload *w, struct live_ref_rounding rounding)
{
    struct run r = {.w = w, .rounding = rounding};
    prepare(&r);
    dispatch(&r);
    while (r.heap_count > 0) {
        struct event event = pop(&r);
        struct group *group = &r.groups[event.group];
        if (event.flow && event.version != group->version) continue;
        r.now_s = event.time_s;
        if (event.flow) {
            uint32_t at = 0;
            advance(&r, group);
            while (group->flows[at] != event.task) at++;
            memmove(&group->flows[at], &group->flows[at + 1], (--group->count - at) * sizeof(struct task *));
            solve(&r, group);
        }
        end(&r, event.task);
    }
    free(r.groups);
    free(r.tasks);
    free(r.unused);
    free(r.loaded);
    free(r.free_slots);
    free(r.load_count);
    free(r.computes);
    free(r.done);
    free(r.left);
    free(r.idle);
    free(r.heap);
    return r.now_s;
}

/* --- the same in sim/live/live.h -------------------------------------------------------------------- */

static const struct workload *ranked;

struct sums {
    double *left;
    uint64_t *asked;
};

double *live_reference_compute_s(const struct workload *w)
{
    uint32_t passes = 2 * w->shards;
    double *seconds = allocate((size_t)w->models * passes, sizeof *seconds);
    for (uint32_t u = 0; u < w->models * passes; u++) seconds[u] = pass_s(w, u / passes, u % passes, true);
    return seconds;
}

static void *create_sums(const struct policy_view *first)
{
    struct sums *sums = allocate(1, sizeof *sums);
    sums->left = allocate(first->job_count, sizeof *sums->left);
    sums->asked = allocate(first->job_count, sizeof *sums->asked);
    for (uint32_t m = 0; m < first->job_count; m++)
        for (uint32_t s = 0; s < ranked->shards; s++)
            sums->left[m] += 3 * forward_s(m, s, true) * ranked->minibatches;
    return sums;
}

static void destroy_sums(void *state)
{
    struct sums *sums = state;
    free(sums->left);
    free(sums->asked);
    free(sums);
}

/* Called once for each pass of a model, in turn. */
static double rank_sums(void *state, const struct policy_view *view, uint32_t m)
{
    struct sums *sums = state;
    uint64_t asked = sums->asked[m]++;
    (void)view;
    if (asked > 0) sums->left[m] -= pass_s(ranked, m, (uint32_t)((asked - 1) % (2 * ranked->shards)), true);
    return sums->left[m];
}

const struct policy *live_reference_policy(const struct workload *w)
{
    static const struct policy policy = {.version = SPILLWAY_POLICY_VERSION, .name = "sums", .create = create_sums,
                                         .destroy = destroy_sums, .rank = rank_sums, .emptiest = true};
    ranked = w;
    return &policy;
}
