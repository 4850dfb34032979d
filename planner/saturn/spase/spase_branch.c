/*
 * A state is the set of remaining jobs and each node's sorted times at which devices become free (never before the
 * current time; `limit` for a closed node). From a *clean* state (no decision of this moment made) the node with the
 * earliest free device is opened:
 *
 *     open(node, t)  ->  start a job here at t, of a rank above the last one started here at t
 *                    ->  or leave the free devices: raise them to the node's next end; a clean state
 *
 * so that jobs that start at one moment are a set and not an order. If two schedules first differ where one starts an
 * additional job, that one comes first in this tree. The first schedule is enough, so the search may assume that
 *
 *     each gang starts at 0 or where another ends on its node;
 *     no gang could have started earlier on devices that were left idle;
 *     no idle devices could have run a remaining job in one of its modes;
 *     of two states with the same remaining jobs, the one examined later is earlier in some respect,
 *
 * since otherwise an earlier schedule exists. For the last condition clean states are remembered, with equal nodes in
 * the order of their times.
 *
 * Three budgets: the values that the devices can still hold, separately for two kinds of values (spase_stack.h), and
 * the cost of the surrogate row, where idle time has its price. On 12 jobs and 8 devices the stacks leave a quarter of
 * the states that only device ticks leave.
 */
#include "planner/saturn/spase/spase_branch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/anytime.h"
#include "base/random.h"
#include "base/try.h"
#include "planner/saturn/spase/spase_bound.h"
#include "planner/saturn/spase/spase_stack.h"

enum {
    DEFAULT_MEMORY = 256 << 20,
    HEADS = 1 << 18,
    NO_RECORD = UINT32_MAX,
    CHAIN_MAX = 32,
    CLOCK_EVERY = 1024,
    BUDGETS = SPASE_STACK_VALUES + 1 /* stacks, the surrogate */
};

/* A mode of a job, with its use of each budget. */
struct option {
    int32_t ticks;
    uint32_t devices, class, mode;
    double cost[BUDGETS]; /* whole numbers, whose sums stay below 2^53 */
};

/* Devices left idle just before a node's first free time, and since when. */
struct gap {
    uint32_t devices;
    int32_t since;
};

struct spase_branch_search {
    const struct spase *in;
    const struct spase_branch_options *options;
    int32_t limit;
    struct spase_surrogate surrogate;
    struct spase_stacks stacks[SPASE_STACK_VALUES];
    int32_t *free_at;         /* (depth, device_count): sorted on each node */
    struct gap *gaps;         /* (depth, node_count) */
    struct option *order;     /* (mode_count): job by job in the order of ranks, short ones first */
    uint32_t *first, *job;    /* (job_count + 1): of a rank, in order; the job itself */
    int32_t *latest;          /* (class_count, widest + 1): latest remaining end for k devices; scratch */
    int32_t *shortest;        /* (class_count): of all modes */
    uint32_t widest;
    struct spase_step *path;
    uint64_t *nodes;
    struct anytime limits; /* a step is a node */
    bool found;
    /* remembered: a set of ranks and device_count times each, chained by hash of the set */
    uint32_t *heads;
    uint64_t *record_jobs;
    uint32_t *record_next;
    int32_t *record_times;
    uint32_t record_count, record_max;
    int32_t *canonical;       /* (device_count) scratch */
};

/* --- budgets --------------------------------------------------------------------------------- */

/* Finds the latest starts of gangs of k, by class, and the rest of the budgets. */
static void find_latest(struct spase_branch_search *s, const int32_t *free_at, double left[BUDGETS])
{
    const struct spase *in = s->in;
    memset(s->latest, 0, (size_t)in->class_count * (s->widest + 1) * sizeof *s->latest);
    for (uint32_t n = 0; n < in->node_count; n++) {
        const struct spase_node *node = &in->nodes[n];
        int32_t *latest = s->latest + (size_t)node->class * (s->widest + 1);
        for (uint32_t k = 1; k <= node->device_count; k++) {
            int32_t until = s->limit - free_at[node->first_device + k - 1];
            if (until > latest[k]) latest[k] = until;
            for (uint32_t v = 0; v < SPASE_STACK_VALUES; v++)
                left[v] += (double)spase_stacks_capacity(&s->stacks[v], node->class, until);
        }
    }
}

/* Returns true if the remaining jobs can end in time. `spent`: of the surrogate's room. */
static bool within_budgets(struct spase_branch_search *s, const int32_t *free_at, uint64_t jobs, int64_t spent)
{
    double left[BUDGETS] = {0};
    find_latest(s, free_at, left);
    left[BUDGETS - 1] = (double)(s->surrogate.room - spent);
    for (uint64_t set = jobs; set; set &= set - 1) {
        uint32_t rank = (uint32_t)__builtin_ctzll(set);
        double least[BUDGETS] = {HUGE_VAL, HUGE_VAL, HUGE_VAL};
        for (uint32_t o = s->first[rank]; o < s->first[rank + 1]; o++) {
            const struct option *option = &s->order[o];
            if (option->ticks > s->latest[(size_t)option->class * (s->widest + 1) + option->devices]) continue;
            for (uint32_t b = 0; b < BUDGETS; b++) least[b] = option->cost[b] < least[b] ? option->cost[b] : least[b];
        }
        for (uint32_t b = 0; b < BUDGETS; b++) left[b] -= least[b];
        if (left[0] < 0 || left[1] < 0 || left[2] < 0) return false;
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

/* Sorts equal neighbouring nodes by their times. */
static void make_canonical(struct spase_branch_search *s, const int32_t *free_at)
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

/* Returns true if a state at least as good was searched to its end. */
static bool seen(struct spase_branch_search *s, const int32_t *free_at, uint64_t left)
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

/* Remembers a state without a solution, at its end: a state without a new start would be dominated by its origin. */
static void remember(struct spase_branch_search *s, const int32_t *free_at, uint64_t left)
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

static void branch_clean(struct spase_branch_search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent);

static bool count_node(struct spase_branch_search *s)
{
    (*s->nodes)++;
    return anytime_step(&s->limits) && !s->found;
}

/* Returns true when some remaining job fits into `devices` for `ticks`. */
static bool fits_idle(const struct spase_branch_search *s, uint64_t left, uint32_t class, uint32_t devices,
                      int32_t ticks)
{
    if (ticks < s->shortest[class]) return false;
    for (uint64_t set = left; set; set &= set - 1) {
        uint32_t rank = (uint32_t)__builtin_ctzll(set);
        for (uint32_t o = s->first[rank]; o < s->first[rank + 1] && s->order[o].ticks <= ticks; o++)
            if (s->order[o].class == class && s->order[o].devices <= devices) return true;
    }
    return false;
}

/* Leaves the free devices of the node idle until its next end. */
static void leave_idle(struct spase_branch_search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent,
                       uint32_t node, uint32_t free_count)
{
    const struct spase *in = s->in;
    const struct spase_node *where = &in->nodes[node];
    const int32_t *from = s->free_at + (size_t)depth * in->device_count;
    const struct gap *gap = s->gaps + (size_t)depth * in->node_count + node;
    int32_t time = from[where->first_device];
    int32_t next = free_count < where->device_count ? from[where->first_device + free_count] : s->limit;
    uint32_t longer = gap->devices < free_count ? gap->devices : free_count;
    if (fits_idle(s, left, where->class, free_count, next - time) ||
        (longer > 0 && fits_idle(s, left, where->class, longer, next - gap->since)))
        return;
    int32_t *to = s->free_at + (size_t)(depth + 1) * in->device_count;
    struct gap *gaps = s->gaps + (size_t)(depth + 1) * in->node_count;
    memcpy(to, from, in->device_count * sizeof *to);
    memcpy(gaps, s->gaps + (size_t)depth * in->node_count, in->node_count * sizeof *gaps);
    gaps[node] = (struct gap){free_count, time};
    to += where->first_device;
    int64_t idle = (int64_t)(next - time) * free_count;
    for (uint32_t i = 0; i < free_count; i++) to[i] = next;
    branch_clean(s, depth + 1, started, left, spent + ((idle * s->surrogate.idle_cost[where->class]) >> 20));
}

/* Starts some of `choices` at the node's first free time, or leaves it. The state is within the budgets. */
static void branch_open(struct spase_branch_search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent,
                        uint32_t node, int32_t time, uint64_t choices)
{
    const struct spase *in = s->in;
    const struct spase_node *where = &in->nodes[node];
    const int32_t *from = s->free_at + (size_t)depth * in->device_count, *slots = from + where->first_device;
    const struct gap *gaps = s->gaps + (size_t)depth * in->node_count;
    uint32_t free_count = 0;
    if (left == 0) {
        s->found = true;
        return;
    }
    while (free_count < where->device_count && slots[free_count] == time) free_count++;
    if (free_count == 0) {
        branch_clean(s, depth, started, left, spent);
        return;
    }
    for (uint64_t set = choices; set; set &= set - 1) {
        uint32_t rank = (uint32_t)__builtin_ctzll(set);
        uint64_t others = left & ~(UINT64_C(1) << rank);
        for (uint32_t o = s->first[rank]; o < s->first[rank + 1]; o++) {
            const struct option *option = &s->order[o];
            uint32_t k = option->devices, at = free_count - k;
            if (option->class != where->class || k > free_count || k <= gaps[node].devices ||
                option->ticks > s->limit - time)
                continue;
            if (!count_node(s)) return;
            int32_t *to = s->free_at + (size_t)(depth + 1) * in->device_count, end = time + option->ticks;
            int64_t cost = spent + s->surrogate.cost[option->mode];
            memcpy(to, from, in->device_count * sizeof *to);
            to += where->first_device;
            for (uint32_t i = free_count; i < where->device_count && to[i] < end; i++) to[at++] = to[i];
            for (uint32_t i = 0; i < k; i++) to[at + i] = end;
            if (!within_budgets(s, to - where->first_device, others, cost)) continue;
            memcpy(s->gaps + (size_t)(depth + 1) * in->node_count, gaps, in->node_count * sizeof *gaps);
            s->path[started] = (struct spase_step){s->job[rank], option->mode, node};
            branch_open(s, depth + 1, started + 1, others, cost, node, time, set & (set - 1));
            if (s->limits.over || s->found) return;
        }
    }
    leave_idle(s, depth, started, left, spent, node, free_count);
}

static void branch_clean(struct spase_branch_search *s, uint32_t depth, uint32_t started, uint64_t left, int64_t spent)
{
    const struct spase *in = s->in;
    const int32_t *free_at = s->free_at + (size_t)depth * in->device_count;
    uint32_t first = 0;
    if (!count_node(s) || seen(s, free_at, left) || !within_budgets(s, free_at, left, spent)) return;
    for (uint32_t n = 1; n < in->node_count; n++)
        if (free_at[in->nodes[n].first_device] < free_at[in->nodes[first].first_device]) first = n;
    int32_t time = free_at[in->nodes[first].first_device];
    if (time < s->limit) branch_open(s, depth, started, left, spent, first, time, left);
    if (!s->limits.over && !s->found) remember(s, free_at, left);
}

/* --- the whole ------------------------------------------------------------------------------- */

bool spase_branch_takes(const struct spase *in, int64_t limit)
{
    for (uint32_t m = 0; m < in->mode_count; m++)
        if (in->modes[m].spans) return false;
    return in->job_count <= SPASE_BRANCH_JOBS_MAX && in->device_count <= SPASE_BRANCH_DEVICES_MAX &&
           limit <= SPASE_BRANCH_TICKS_MAX;
}

static enum status make_room(struct spase_branch_search *s, struct error *err)
{
    const struct spase *in = s->in;
    size_t memory = s->options->memory_bytes ? s->options->memory_bytes : DEFAULT_MEMORY;
    size_t each = in->device_count * sizeof *s->record_times + sizeof *s->record_jobs + sizeof *s->record_next;
    /* every job starts once, and between two starts each node is left idle at most once per end */
    size_t depths = 2 * in->job_count + in->node_count + 4u;
    for (uint32_t c = 0; c < in->class_count; c++)
        if (in->class_widest[c] > s->widest) s->widest = in->class_widest[c];
    s->record_max = memory / each < NO_RECORD ? (uint32_t)(memory / each) : NO_RECORD - 1;
    s->free_at = alloc_zeroed(depths * in->device_count, sizeof *s->free_at);
    s->gaps = alloc_zeroed(depths * in->node_count, sizeof *s->gaps);
    s->order = alloc_zeroed(in->mode_count, sizeof *s->order);
    s->first = alloc_zeroed(in->job_count + 1u, sizeof *s->first);
    s->job = alloc_zeroed(in->job_count, sizeof *s->job);
    s->shortest = alloc_zeroed(in->class_count, sizeof *s->shortest);
    s->latest = alloc_zeroed((size_t)in->class_count * (s->widest + 1), sizeof *s->latest);
    s->path = alloc_zeroed(in->job_count, sizeof *s->path);
    s->heads = alloc_zeroed(HEADS, sizeof *s->heads);
    s->record_jobs = alloc_zeroed(s->record_max, sizeof *s->record_jobs);
    s->record_next = alloc_zeroed(s->record_max, sizeof *s->record_next);
    s->record_times = alloc_zeroed((size_t)s->record_max * in->device_count, sizeof *s->record_times);
    s->canonical = alloc_zeroed(in->device_count, sizeof *s->canonical);
    if (!s->free_at || !s->gaps || !s->order || !s->first || !s->job || !s->shortest || !s->latest || !s->path ||
        !s->heads || !s->record_jobs || !s->record_next || !s->record_times || !s->canonical)
        return error_memory(err, "branch and bound", memory);
    for (uint32_t h = 0; h < HEADS; h++) s->heads[h] = NO_RECORD;
    return STATUS_OK;
}

struct spase_branch_ranked {
    int64_t area;
    uint32_t job;
};

/* Sorts large ones first, because they leave few places to the others. */
static int compare_ranked(const void *a, const void *b)
{
    const struct spase_branch_ranked *x = a, *y = b;
    if (x->area != y->area) return x->area > y->area ? -1 : 1;
    return (x->job > y->job) - (x->job < y->job);
}

static int compare_options(const void *a, const void *b)
{
    const struct option *x = a, *y = b;
    if (x->ticks != y->ticks) return x->ticks < y->ticks ? -1 : 1;
    return (x->mode > y->mode) - (x->mode < y->mode);
}

static int64_t least_area(const struct spase *in, uint32_t j)
{
    int64_t least = INT64_MAX;
    for (uint32_t m = in->jobs[j].first_mode; m < in->jobs[j].first_mode + in->jobs[j].mode_count; m++)
        if (spase_area(&in->modes[m]) < least) least = spase_area(&in->modes[m]);
    return least;
}

static enum status rank_jobs(struct spase_branch_search *s, struct error *err)
{
    struct spase_branch_ranked *ranked = alloc_zeroed(s->in->job_count, sizeof *ranked);
    if (!ranked) return error_memory(err, "branch and bound", s->in->job_count * sizeof *ranked);
    for (uint32_t j = 0; j < s->in->job_count; j++) ranked[j] = (struct spase_branch_ranked){least_area(s->in, j), j};
    qsort(ranked, s->in->job_count, sizeof *ranked, compare_ranked);
    for (uint32_t r = 0; r < s->in->job_count; r++) s->job[r] = ranked[r].job;
    free(ranked);
    return STATUS_OK;
}

static void make_options(struct spase_branch_search *s)
{
    const struct spase *in = s->in;
    uint32_t count = 0;
    for (uint32_t c = 0; c < in->class_count; c++) s->shortest[c] = s->limit;
    for (uint32_t r = 0; r < in->job_count; r++) {
        const struct spase_job *job = &in->jobs[s->job[r]];
        s->first[r] = count;
        for (uint32_t m = job->first_mode; m < job->first_mode + job->mode_count; m++) {
            const struct spase_mode *mode = &in->modes[m];
            if (mode->ticks > s->limit) continue;
            struct option *option = &s->order[count++];
            *option = (struct option){(int32_t)mode->ticks, mode->devices, mode->class, m, {0}};
            for (uint32_t v = 0; v < SPASE_STACK_VALUES; v++)
                option->cost[v] = (double)(mode->devices * s->stacks[v].value[m]);
            option->cost[BUDGETS - 1] = (double)s->surrogate.cost[m];
            if (option->ticks < s->shortest[mode->class]) s->shortest[mode->class] = option->ticks;
        }
        qsort(s->order + s->first[r], count - s->first[r], sizeof *s->order, compare_options);
    }
    s->first[in->job_count] = count;
}

static enum status prepare(struct spase_branch_search *s, struct error *err)
{
    const struct spase *in = s->in;
    TRY(rank_jobs(s, err));
    TRY(spase_surrogate_make(in, s->limit, s->options->until_s, &s->surrogate, err));
    for (uint32_t v = 0; v < SPASE_STACK_VALUES; v++)
        TRY(spase_stacks_make(in, s->limit, v, &s->stacks[v], err));
    make_options(s);
    return STATUS_OK;
}

enum status spase_branch(const struct spase *in, int64_t limit, const struct spase_branch_options *options,
                         enum spase_answer *answer, struct spase_step *steps, uint64_t *nodes,
                         struct error *err)
{
    struct spase_branch_search s = {.in = in, .options = options, .limit = (int32_t)limit, .nodes = nodes,
                                    .limits = {.until_s = options->until_s, .clock_every = CLOCK_EVERY, .steps = 1}};
    /* steps begin with 1, so that time never cuts a search of fewer than CLOCK_EVERY nodes short */
    if (options->nodes_max > 0) s.limits.steps_max = options->nodes_max + 1;
    if (!spase_branch_takes(in, limit))
        return error_set(err, STATUS_LIMIT,
                         "branch and bound takes at most %d jobs, %d devices and %lld ticks, "
                         "and no gang that spans nodes",
                         SPASE_BRANCH_JOBS_MAX, SPASE_BRANCH_DEVICES_MAX, (long long)SPASE_BRANCH_TICKS_MAX);
    *answer = limit < 1 ? SPASE_NO : SPASE_UNKNOWN;
    if (limit < 1) return STATUS_OK;
    if (make_room(&s, err) || prepare(&s, err)) goto out;
    if (!s.surrogate.refuted) {
        uint64_t all = in->job_count == 64 ? UINT64_MAX : (UINT64_C(1) << in->job_count) - 1;
        branch_clean(&s, 0, 0, all, 0);
    }
    if (s.found) {
        memcpy(steps, s.path, in->job_count * sizeof *steps);
        *answer = SPASE_YES;
    } else if (!s.limits.over) {
        *answer = SPASE_NO;
    }
out:
    spase_surrogate_release(&s.surrogate);
    for (uint32_t v = 0; v < SPASE_STACK_VALUES; v++) spase_stacks_release(&s.stacks[v]);
    free(s.free_at);
    free(s.gaps);
    free(s.order);
    free(s.first);
    free(s.job);
    free(s.shortest);
    free(s.latest);
    free(s.path);
    free(s.heads);
    free(s.record_jobs);
    free(s.record_next);
    free(s.record_times);
    free(s.canonical);
    return err->status;
}
