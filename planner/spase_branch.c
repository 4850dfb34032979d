/*
 * See spase_branch.h.
 *
 * A state is, for each node, the sorted times at which its devices become free (never before the time
 * that was reached, `limit` for a node that is closed), and the set of jobs left. From a *clean* state
 * (nothing of this moment decided) the node with the earliest free device is opened:
 *
 *     open(node, t)  ->  start a job here at t, of a number above the last one started here at t
 *                    ->  or leave what is free: raise it to the node's next end; a clean state
 *
 * so that the jobs that start at one moment are a set and not an order. Clean states are remembered,
 * nodes that are alike in the order of their times. The schedules that are left out can be shifted to
 * the left: some optimal schedule starts each gang at 0 or where another ends on its node.
 *
 * Two budgets: ticks of devices (the area left under `limit`, against the least area of each job left
 * that its modes can still have) and the cost of the surrogate row, where idle time has its price.
 */
#include "planner/spase_branch.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/progress.h"
#include "base/random.h"
#include "planner/spase_bound.h"

enum { DEFAULT_MEMORY = 256 << 20, HEADS = 1 << 18, NO_RECORD = UINT32_MAX, CHAIN_MAX = 32, CLOCK_EVERY = 1024 };

struct choice {
    int64_t ticks;
    uint32_t job, mode;
};

struct search {
    const struct spase *in;
    const struct spase_branch_options *options;
    int32_t limit;
    struct spase_surrogate surrogate;
    int32_t *free_at;         /* (depth, device_count): sorted on each node */
    struct choice *order;     /* (mode_count): all modes, long ones first */
    struct choice *choices;   /* (depth, mode_count) */
    int32_t *latest;          /* (class_count, widest + 1): latest end left for k devices; scratch */
    uint32_t widest;
    struct spase_step *path;
    uint64_t *nodes, last_node;
    bool stopped, found;
    /* remembered: a jobs' set and device_count times each, chained by hash of the set */
    uint32_t *heads;
    uint64_t *record_jobs;
    uint32_t *record_next;
    int32_t *record_times;
    uint32_t record_count, record_max;
    int32_t *canonical;       /* (device_count) scratch */
};

/* --- budgets --------------------------------------------------------------------------------- */

/* The latest times by which gangs of k can be free to start, by class. */
static void find_latest(struct search *s, const int32_t *free_at)
{
    const struct spase *in = s->in;
    memset(s->latest, 0, (size_t)in->class_count * (s->widest + 1) * sizeof *s->latest);
    for (uint32_t n = 0; n < in->node_count; n++) {
        const struct spase_node *node = &in->nodes[n];
        int32_t *latest = s->latest + (size_t)node->class * (s->widest + 1);
        for (uint32_t k = 1; k <= node->device_count; k++) {
            int32_t left = s->limit - free_at[node->first_device + k - 1];
            if (left > latest[k]) latest[k] = left;
        }
    }
}

static bool can_end(const struct search *s, const struct spase_mode *mode)
{
    return mode->ticks <= s->latest[(size_t)mode->class * (s->widest + 1) + mode->devices];
}

/* Can the jobs left still end in time, as far as the budgets tell? `spent` of the surrogate's room. */
static bool within_budgets(struct search *s, const int32_t *free_at, uint64_t left, int64_t spent)
{
    const struct spase *in = s->in;
    int64_t area = 0, room = s->surrogate.room - spent;
    for (uint32_t d = 0; d < in->device_count; d++) area += s->limit - free_at[d];
    find_latest(s, free_at);
    for (uint64_t set = left; set; set &= set - 1) {
        const struct spase_job *job = &in->jobs[__builtin_ctzll(set)];
        int64_t least = INT64_MAX, cost = INT64_MAX;
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
            const struct spase_mode *mode = &in->modes[m];
            if (!can_end(s, mode)) continue;
            if (spase_area(mode) < least) least = spase_area(mode);
            if (s->surrogate.cost[m] < cost) cost = s->surrogate.cost[m];
        }
        if (least == INT64_MAX) return false;
        area -= least;
        room -= cost;
        if (area < 0 || room < 0) return false;
    }
    return true;
}

/* --- states looked at before ----------------------------------------------------------------- */

static int compare_times(const int32_t *a, const int32_t *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
    return 0;
}

/* Nodes that are alike, and stand beside each other, in the order of their times. */
static void make_canonical(struct search *s, const int32_t *free_at)
{
    const struct spase *in = s->in;
    memcpy(s->canonical, free_at, in->device_count * sizeof *free_at);
    for (uint32_t n = 1; n < in->node_count; n++) {
        uint32_t count = in->nodes[n].device_count;
        for (uint32_t o = n; o > 0; o--) {
            int32_t *a = s->canonical + in->nodes[o - 1].first_device, *b = a + count;
            if (in->nodes[o - 1].class != in->nodes[n].class || in->nodes[o - 1].device_count != count ||
                compare_times(a, b, count) <= 0)
                break;
            for (uint32_t i = 0; i < count; i++) {
                int32_t kept = a[i];
                a[i] = b[i];
                b[i] = kept;
            }
        }
    }
}

/* Was one at least as good looked at, to its end? */
static bool seen(struct search *s, const int32_t *free_at, uint64_t left)
{
    uint32_t devices = s->in->device_count, looked = 0;
    make_canonical(s, free_at);
    for (uint32_t r = s->heads[random_mix(left) % HEADS]; r != NO_RECORD && looked < CHAIN_MAX; r = s->record_next[r]) {
        const int32_t *times = s->record_times + (size_t)r * devices;
        uint32_t d = 0;
        if (s->record_jobs[r] != left) continue;
        looked++;
        while (d < devices && times[d] <= s->canonical[d]) d++;
        if (d == devices) return true;
    }
    return false;
}

/* Nothing comes of this one. Not said before its end: a state in which nothing was started is behind the
 * one that it comes from in every respect. */
static void remember(struct search *s, const int32_t *free_at, uint64_t left)
{
    uint32_t devices = s->in->device_count, r = s->record_count;
    uint32_t *head = &s->heads[random_mix(left) % HEADS];
    if (s->record_count == s->record_max) return;
    s->record_count++;
    make_canonical(s, free_at);
    s->record_jobs[r] = left;
    memcpy(s->record_times + (size_t)r * devices, s->canonical, devices * sizeof *s->canonical);
    s->record_next[r] = *head;
    *head = r;
}

/* --- branching ------------------------------------------------------------------------------- */

static void branch_clean(struct search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent);

static bool count_node(struct search *s)
{
    (*s->nodes)++;
    uint64_t made = *s->nodes - s->last_node;
    if (s->options->nodes_max > 0 && made > s->options->nodes_max) s->stopped = true;
    if (made % CLOCK_EVERY == 0 && clock_s() >= s->options->until_s) s->stopped = true;
    return !s->stopped && !s->found;
}

static int compare_choices(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->ticks != y->ticks) return x->ticks > y->ticks ? -1 : 1;
    return (x->mode > y->mode) - (x->mode < y->mode);
}

/* Leave the free devices of the node idle until its next end. */
static void leave_idle(struct search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent,
                       uint32_t node, uint32_t free_count)
{
    const struct spase_node *where = &s->in->nodes[node];
    const int32_t *from = s->free_at + (size_t)depth * s->in->device_count;
    int32_t *to = s->free_at + (size_t)(depth + 1) * s->in->device_count;
    memcpy(to, from, s->in->device_count * sizeof *to);
    to += where->first_device;
    int32_t next = free_count < where->device_count ? to[free_count] : s->limit;
    int64_t idle = (int64_t)(next - to[0]) * free_count;
    for (uint32_t i = 0; i < free_count; i++) to[i] = next;
    branch_clean(s, depth + 1, started, left, spent + ((idle * s->surrogate.idle_cost[where->class]) >> 20));
}

/* At the node's first free time: start jobs of numbers from `first_job` on, or leave it. */
static void branch_open(struct search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent,
                        uint32_t node, int32_t time, uint32_t first_job)
{
    const struct spase *in = s->in;
    const struct spase_node *where = &in->nodes[node];
    const int32_t *from = s->free_at + (size_t)depth * in->device_count;
    const int32_t *slots = from + where->first_device;
    uint32_t free_count = 0, count = 0;
    if (left == 0) {
        s->found = true;
        return;
    }
    while (free_count < where->device_count && slots[free_count] == time) free_count++;
    if (free_count == 0) {
        branch_clean(s, depth, started, left, spent);
        return;
    }
    if (!count_node(s) || !within_budgets(s, from, left, spent)) return;
    struct choice *choices = s->choices + (size_t)depth * in->mode_count;
    for (uint32_t i = 0; i < in->mode_count; i++) {
        const struct choice *choice = &s->order[i];
        const struct spase_mode *mode = &in->modes[choice->mode];
        if (choice->job < first_job || !(left >> choice->job & 1) || mode->class != where->class ||
            mode->devices > free_count || mode->ticks > s->limit - time)
            continue;
        choices[count++] = *choice;
    }
    for (uint32_t c = 0; c < count && !s->stopped && !s->found; c++) {
        const struct spase_mode *mode = &in->modes[choices[c].mode];
        int32_t *to = s->free_at + (size_t)(depth + 1) * in->device_count;
        memcpy(to, from, in->device_count * sizeof *to);
        to += where->first_device;
        int32_t end = time + (int32_t)mode->ticks;
        uint32_t k = mode->devices, at = free_count - k;
        for (uint32_t i = free_count; i < where->device_count && to[i] < end; i++) to[at++] = to[i];
        for (uint32_t i = 0; i < k; i++) to[at + i] = end;
        s->path[started] = (struct spase_step){choices[c].job, choices[c].mode, node};
        branch_open(s, depth + 1, started + 1, left & ~(UINT64_C(1) << choices[c].job),
                    spent + s->surrogate.cost[choices[c].mode], node, time, choices[c].job + 1);
    }
    if (!s->stopped && !s->found) leave_idle(s, depth, started, left, spent, node, free_count);
}

static void branch_clean(struct search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent)
{
    const struct spase *in = s->in;
    const int32_t *free_at = s->free_at + (size_t)depth * in->device_count;
    uint32_t first = 0;
    if (!count_node(s) || !within_budgets(s, free_at, left, spent) || seen(s, free_at, left)) return;
    for (uint32_t n = 1; n < in->node_count; n++)
        if (free_at[in->nodes[n].first_device] < free_at[in->nodes[first].first_device]) first = n;
    int32_t time = free_at[in->nodes[first].first_device];
    if (time < s->limit) branch_open(s, depth, started, left, spent, first, time, 0);
    if (!s->stopped && !s->found) remember(s, free_at, left);
}

/* --- the whole ------------------------------------------------------------------------------- */

bool spase_branch_takes(const struct spase *in, int64_t limit)
{
    for (uint32_t m = 0; m < in->mode_count; m++)
        if (in->modes[m].spans) return false;
    return in->job_count <= SPASE_BRANCH_JOBS_MAX && in->device_count <= SPASE_BRANCH_DEVICES_MAX &&
           limit <= SPASE_BRANCH_TICKS_MAX;
}

static enum status make_room(struct search *s, struct error *err)
{
    const struct spase *in = s->in;
    size_t memory = s->options->memory_bytes ? s->options->memory_bytes : DEFAULT_MEMORY;
    size_t each = in->device_count * sizeof *s->record_times + sizeof *s->record_jobs + sizeof *s->record_next;
    /* every job starts once, and between two starts each node is left idle at most once a start's end */
    size_t depths = 2 * in->job_count + in->node_count + 4u;
    for (uint32_t c = 0; c < in->class_count; c++)
        if (in->class_widest[c] > s->widest) s->widest = in->class_widest[c];
    s->record_max = memory / each < NO_RECORD ? (uint32_t)(memory / each) : NO_RECORD - 1;
    s->free_at = alloc_zeroed(depths * in->device_count, sizeof *s->free_at);
    s->choices = alloc_zeroed(depths * in->mode_count, sizeof *s->choices);
    s->order = alloc_zeroed(in->mode_count, sizeof *s->order);
    s->latest = alloc_zeroed((size_t)in->class_count * (s->widest + 1), sizeof *s->latest);
    s->path = alloc_zeroed(in->job_count, sizeof *s->path);
    s->heads = alloc_zeroed(HEADS, sizeof *s->heads);
    s->record_jobs = alloc_zeroed(s->record_max, sizeof *s->record_jobs);
    s->record_next = alloc_zeroed(s->record_max, sizeof *s->record_next);
    s->record_times = alloc_zeroed((size_t)s->record_max * in->device_count, sizeof *s->record_times);
    s->canonical = alloc_zeroed(in->device_count, sizeof *s->canonical);
    if (!s->free_at || !s->choices || !s->order || !s->latest || !s->path || !s->heads || !s->record_jobs ||
        !s->record_next || !s->record_times || !s->canonical)
        return error_memory(err, "branch and bound", memory);
    for (uint32_t h = 0; h < HEADS; h++) s->heads[h] = NO_RECORD;
    for (uint32_t j = 0; j < in->job_count; j++)
        for (uint32_t m = in->jobs[j].first_mode; m < in->jobs[j].first_mode + in->jobs[j].mode_count; m++)
            s->order[m] = (struct choice){in->modes[m].ticks, j, m};
    qsort(s->order, in->mode_count, sizeof *s->order, compare_choices);
    return STATUS_OK;
}

enum status spase_branch(const struct spase *in, int64_t limit, const struct spase_branch_options *options,
                         enum spase_answer *answer, struct spase_step *steps, uint64_t *nodes,
                         struct error *err)
{
    struct search s = {.in = in, .options = options, .limit = (int32_t)limit, .nodes = nodes, .last_node = *nodes};
    if (!spase_branch_takes(in, limit))
        return error_set(err, STATUS_LIMIT,
                         "branch and bound takes at most %d jobs, %d devices and %lld ticks, and no gang that spans nodes",
                         SPASE_BRANCH_JOBS_MAX, SPASE_BRANCH_DEVICES_MAX, (long long)SPASE_BRANCH_TICKS_MAX);
    *answer = limit < 1 ? SPASE_NO : SPASE_UNKNOWN;
    if (limit < 1) return STATUS_OK;
    if (make_room(&s, err) || spase_surrogate_make(in, limit, options->until_s, &s.surrogate, err)) goto out;
    if (!s.surrogate.refuted) {
        uint64_t all = in->job_count == 64 ? UINT64_MAX : (UINT64_C(1) << in->job_count) - 1;
        branch_clean(&s, 0, 0, all, 0);
    }
    if (s.found) {
        memcpy(steps, s.path, in->job_count * sizeof *steps);
        *answer = SPASE_YES;
    } else if (!s.stopped) {
        *answer = SPASE_NO;
    }
out:
    spase_surrogate_release(&s.surrogate);
    free(s.free_at);
    free(s.choices);
    free(s.order);
    free(s.latest);
    free(s.path);
    free(s.heads);
    free(s.record_jobs);
    free(s.record_next);
    free(s.record_times);
    free(s.canonical);
    return err->status;
}
