/*
 * Labels are packed for the instance's numbers of jobs and devices, and ordered by finished tasks and the sum of their
 * jobs' ready times, so that a dominating label comes before a dominated one. Each is compared with the kept ones
 * before it: first jobs' times, which are stored next to each other, then devices.
 */
#include "planner/solve/exact/label_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/anytime.h"
#include "base/random.h"

enum { TASKS_MAX = TASK_NET_TASKS_MAX, LANES = 4 };

typedef int32_t quad __attribute__((vector_size(LANES * sizeof(int32_t)))); /* LANES times side by side */

struct packed { /* then soon[jobs], start[devices], and as uint16_t task[devices], next[jobs] */
    struct label_entry label;
    int32_t now;
};

struct label_set_ranked {
    uint64_t key;
    int64_t order, then;
    uint32_t at;
};

/* For a class of devices: by how many ticks at most a device is free later after the first task than after the second,
 * and how long it is busy after a task, for any remaining task. Row task_count: an empty device. */
struct freedom {
    int32_t more[TASKS_MAX + 1][TASKS_MAX + 1];
    int32_t longest[TASKS_MAX + 1];
};

struct label_set {
    const struct task_net *net;
    struct freedom *freedom; /* (class_count) */
    unsigned char *labels;
    struct label_set_ranked *ranked; /* (label_max) */
    quad *times;                     /* (label_max, quads): of the kept labels of a group */
    size_t label_bytes;
    uint32_t quads, count, label_max;
};

/* --- creation -------------------------------------------------------------------------------- */

/* Returns true if k can still be left when a is done. */
static bool left_behind(const struct task_net *net, uint32_t a, uint32_t k)
{
    return a == net->task_count || net->job[a] != net->job[k] || k > a;
}

static void fill_freedom(const struct task_net *net, uint32_t class, struct freedom *f)
{
    uint32_t n = net->task_count;
    const struct task_net_class *c = &net->classes[class];
    for (uint32_t a = 0; a <= n; a++) {
        for (uint32_t b = 0; b <= n; b++) {
            f->more[a][b] = INT32_MIN / 2;
            for (uint32_t k = 0; k < n; k++)
                if (left_behind(net, a, k) && left_behind(net, b, k))
                    f->more[a][b] = max_i32(f->more[a][b], c->setup[a][k] - c->setup[b][k]);
        }
        f->longest[a] = 0;
        for (uint32_t k = 0; k < n; k++)
            if (left_behind(net, a, k)) f->longest[a] = max_i32(f->longest[a], c->setup[a][k]);
    }
}

static uint32_t quads_of(const struct task_net *net)
{
    return (1 + net->job_count + LANES - 1) / LANES;
}

static size_t packed_bytes(const struct task_net *net)
{
    size_t times = net->job_count + net->device_count;
    return (sizeof(struct packed) + times * (sizeof(int32_t) + sizeof(uint16_t)) + 7) / 8 * 8;
}

size_t label_set_label_bytes(const struct task_net *net)
{
    return packed_bytes(net) + sizeof(struct label_set_ranked) + quads_of(net) * sizeof(quad);
}

enum status label_set_create(const struct task_net *net, uint32_t label_max, struct label_set **out, struct error *err)
{
    struct label_set *l = alloc_zeroed(1, sizeof *l);
    if (!l) return error_memory(err, "a label set", sizeof *l);
    l->quads = quads_of(net);
    l->label_bytes = packed_bytes(net);
    l->label_max = label_max;
    l->freedom = alloc_zeroed(net->class_count, sizeof *l->freedom);
    l->labels = alloc_zeroed(label_max, l->label_bytes);
    l->ranked = alloc_zeroed(label_max, sizeof *l->ranked);
    l->times = alloc_zeroed((size_t)label_max * l->quads, sizeof *l->times);
    if (!l->freedom || !l->labels || !l->ranked || !l->times) {
        label_set_destroy(l);
        return error_memory(err, "a label set", label_max * label_set_label_bytes(net));
    }
    label_set_begin(l, net);
    *out = l;
    return STATUS_OK;
}

void label_set_begin(struct label_set *l, const struct task_net *net)
{
    l->net = net;
    l->count = 0;
    for (uint32_t c = 0; c < net->class_count; c++) fill_freedom(net, c, &l->freedom[c]);
}

void label_set_destroy(struct label_set *l)
{
    if (!l) return;
    free(l->freedom);
    free(l->labels);
    free(l->ranked);
    free(l->times);
    free(l);
}

/* --- labels ---------------------------------------------------------------------------------- */

static struct packed *packed_at(const struct label_set *l, uint32_t at)
{
    return (struct packed *)(l->labels + at * l->label_bytes);
}

static int32_t *times_of(struct packed *p) { return (int32_t *)(p + 1); }

static uint16_t *tasks_of(const struct label_set *l, struct packed *p)
{
    return (uint16_t *)(times_of(p) + l->net->job_count + l->net->device_count);
}

uint32_t label_set_count(const struct label_set *set) { return set->count; }
void label_set_clear(struct label_set *set) { set->count = 0; }
struct label_entry *label_set_at(const struct label_set *set, uint32_t at) { return &packed_at(set, at)->label; }

void label_set_add(struct label_set *l, const struct lagrangian_state *state, const struct label_entry *label)
{
    uint32_t jobs = l->net->job_count, devices = l->net->device_count;
    assert(l->count < l->label_max);
    struct packed *p = packed_at(l, l->count++);
    int32_t *times = times_of(p);
    uint16_t *tasks = tasks_of(l, p);
    p->label = *label;
    p->now = state->now;
    memcpy(times, state->soon, jobs * sizeof *times);
    memcpy(times + jobs, state->start, devices * sizeof *times);
    memcpy(tasks, state->task, devices * sizeof *tasks);
    memcpy(tasks + devices, state->next, jobs * sizeof *tasks);
}

void label_set_state(const struct label_set *l, uint32_t at, struct lagrangian_state *state)
{
    uint32_t jobs = l->net->job_count, devices = l->net->device_count;
    struct packed *p = packed_at(l, at);
    const int32_t *times = times_of(p);
    const uint16_t *tasks = tasks_of(l, p);
    state->now = p->now;
    memcpy(state->soon, times, jobs * sizeof *times);
    memcpy(state->start, times + jobs, devices * sizeof *times);
    memcpy(state->task, tasks, devices * sizeof *tasks);
    memcpy(state->next, tasks + devices, jobs * sizeof *tasks);
}

/* --- order ----------------------------------------------------------------------------------- */

static int compare_ranked(const void *a, const void *b)
{
    const struct label_set_ranked *x = a, *y = b;
    if (x->key != y->key) return x->key < y->key ? -1 : 1;
    if (x->order != y->order) return x->order < y->order ? -1 : 1;
    if (x->then != y->then) return x->then < y->then ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static void keep_ranked(struct label_set *l, uint32_t count)
{
    for (uint32_t r = 0; r < count; r++) l->ranked[r].key = l->ranked[r].at;
    qsort(l->ranked, count, sizeof *l->ranked, compare_ranked);
    for (uint32_t r = 0; r < count; r++)
        memmove(packed_at(l, r), packed_at(l, l->ranked[r].at), l->label_bytes);
    l->count = count;
}

void label_set_narrow(struct label_set *l, uint32_t width)
{
    if (l->count <= width) return;
    for (uint32_t r = 0; r < l->count; r++)
        l->ranked[r] = (struct label_set_ranked){0, -packed_at(l, r)->label.slack, 0, r};
    qsort(l->ranked, l->count, sizeof *l->ranked, compare_ranked);
    keep_ranked(l, width);
}

void label_set_bound(struct label_set *l, const struct lagrangian_bound *prices, double until_s)
{
    struct lagrangian_state state;
    uint32_t kept = 0;
    struct anytime time = {.until_s = until_s, .clock_every = 1024};
    for (uint32_t r = 0; r < l->count; r++) {
        const bool stopped = !anytime_step(&time);
        label_set_state(l, r, &state);
        int64_t slack = stopped ? packed_at(l, r)->label.slack : lagrangian_bound_slack(prices, &state);
        if (slack < 0) continue;
        memmove(packed_at(l, kept), packed_at(l, r), l->label_bytes);
        packed_at(l, kept++)->label.slack = slack;
    }
    l->count = kept;
}

/* --- dominance ------------------------------------------------------------------------------- */

/* Returns true if each device of y has one of x that is free no later for all remaining tasks, and can end as well. */
static bool devices_match(const struct label_set *l, struct packed *x, struct packed *y, int64_t limit)
{
    const struct task_net *net = l->net;
    uint32_t jobs = net->job_count, devices = net->device_count, used = 0;
    const int32_t *soon_x = times_of(x), *soon_y = times_of(y), *start_x = soon_x + jobs, *start_y = soon_y + jobs;
    const uint16_t *task_x = tasks_of(l, x), *task_y = tasks_of(l, y), *next = task_y + devices;
    for (uint32_t g = 0; g < devices; g++) {
        uint32_t class = net->in->device_class[g], b = task_y[g], h = 0;
        for (; h < devices; h++)
            if (!(used >> h & 1) && task_x[h] == b && start_x[h] <= start_y[g] && net->in->device_class[h] == class)
                break;
        if (h == devices) {
            uint32_t i = b < net->task_count ? net->job[b] : 0;
            if (b < net->task_count && net->through[b] > 0 && next[i] == b + 1 && next[i] < net->first[i + 1] &&
                soon_x[i] + net->through[b] > max_i32(soon_y[i], y->now))
                return false; /* y can go on with the shard that is there */
            const struct freedom *f = &l->freedom[class];
            int64_t finish = max_i32(start_y[g] + net->finish[b], (int32_t)limit);
            for (h = 0; h < devices; h++) {
                uint32_t a = task_x[h];
                if (!(used >> h & 1) && net->in->device_class[h] == class && start_x[h] + net->finish[a] <= finish &&
                    (start_x[h] + f->more[a][b] <= start_y[g] || start_x[h] + f->longest[a] <= y->now))
                    break;
            }
        }
        if (h == devices) return false;
        used |= 1u << h;
    }
    return true;
}

/* Returns when its jobs are ready, and the present; finished jobs always are. */
static void ready_times(const struct label_set *l, struct packed *p, int32_t *times)
{
    const struct task_net *net = l->net;
    const int32_t *soon = times_of(p);
    const uint16_t *next = tasks_of(l, p) + net->device_count;
    memset(times, 0, l->quads * sizeof(quad));
    times[net->job_count] = p->now;
    for (uint32_t i = 0; i < net->job_count; i++) times[i] = next[i] < net->first[i + 1] ? soon[i] : 0;
}

/* Finds how late jobs may be ready in a label that can do the same: no later than here, or now. */
static void ready_limits(const struct label_set *l, struct packed *p, int32_t *limits)
{
    const struct task_net *net = l->net;
    const uint16_t *next = tasks_of(l, p) + net->device_count;
    ready_times(l, p, limits);
    for (uint32_t i = 0; i < net->job_count; i++)
        limits[i] = max_i32(limits[i], p->now - (next[i] > net->first[i] ? net->through[next[i] - 1] : 0));
}

static bool is_late(const quad *times, const quad *limits, uint32_t quads)
{
    quad late = {0};
    for (uint32_t b = 0; b < quads; b++) late |= times[b] > limits[b];
    return (late[0] | late[1] | late[2] | late[3]) != 0;
}

static void rank_labels(struct label_set *l)
{
    const struct task_net *net = l->net;
    for (uint32_t r = 0; r < l->count; r++) {
        struct packed *p = packed_at(l, r);
        const int32_t *soon = times_of(p), *start = soon + net->job_count;
        const uint16_t *next = tasks_of(l, p) + net->device_count;
        uint64_t key = 0;
        int64_t ready = 0, starts = 0;
        for (uint32_t i = 0; i < net->job_count; i++) {
            key = random_mix(key + next[i]);
            if (next[i] < net->first[i + 1]) ready += max_i32(soon[i], p->now);
        }
        for (uint32_t g = 0; g < net->device_count; g++) starts += start[g];
        l->ranked[r] = (struct label_set_ranked){key, ready, starts, r};
    }
    qsort(l->ranked, l->count, sizeof *l->ranked, compare_ranked);
}

void label_set_reduce(struct label_set *l, int64_t limit, double until_s)
{
    const struct task_net *net = l->net;
    size_t tasks_bytes = net->job_count * sizeof(uint16_t);
    uint32_t kept = 0, group = 0; /* ranked[group .. kept): the same finished tasks */
    quad limits[TASK_NET_JOBS_MAX / LANES + 1];
    uint16_t done[TASK_NET_JOBS_MAX]; /* finished tasks of the group: each job's next task */
    struct anytime time = {.until_s = until_s, .clock_every = 256};
    rank_labels(l);
    for (uint32_t r = 0; r < l->count; r++) {
        struct label_set_ranked own = l->ranked[r];
        struct packed *p = packed_at(l, own.at);
        const uint16_t *next = tasks_of(l, p) + net->device_count;
        if (kept > group && memcmp(next, done, tasks_bytes) != 0) group = kept;
        if (kept == group) memcpy(done, next, tasks_bytes);
        const bool stopped = !anytime_step(&time);
        bool superfluous = false;
        ready_limits(l, p, (int32_t *)limits);
        const quad *times = l->times;
        for (uint32_t o = group; o < kept && !superfluous && !stopped; o++, times += l->quads) {
            if (is_late(times, limits, l->quads)) continue;
            struct packed *other = packed_at(l, l->ranked[o].at);
            superfluous = devices_match(l, other, p, limit);
        }
        if (superfluous) continue;
        ready_times(l, p, (int32_t *)(l->times + (size_t)(kept - group) * l->quads));
        l->ranked[kept++] = own;
    }
    keep_ranked(l, kept);
}
