/*
 * Prices. For numbers price[k] and nonnegative order[k][t] (k + 1 follows k in its chain, at least p_k later), let
 *
 *     L_k(s) = sum of order[k][t] over t >= s       f_k(s) = price[k] + L_k(s) - L_{k-1}(s - p_{k-1})
 *
 * L falls with s, so along a chain L_k(s_k) - L_k(s_{k+1} - p_k) >= 0, and a schedule earns at least the sum of
 * price[k]. A finished task keeps its start, whose L_k(s_k) counts as earned.
 *
 * Paths. V(k, s, j) is the most earned by a path that runs k at s directly after j and goes on; the table holds W(k, t,
 * j), the most over starts s >= t. After k the path ends, or m follows at s + d_km or later, unless m is of j's job and
 * not after j. For a (k, s) the values of all m are found once; the best after every position of each job, and the best
 * two jobs, then answer for all j: tasks^2 by time.
 *
 * Each kind of device has its own table, distances, windows and tasks. If k takes longer than p_k, its earnings count
 * as if it had started later by the difference, because k + 1 does, too.
 *
 * Time is cut into at most SPAN_MAX parts, and distances are rounded down to them, which relaxes the problem.
 *
 * Fit. Subgradients with a memory, steps by Polyak's rule towards "all hopeless". The due prices' sum is fixed, because
 * halving all prices would halve the slack without gain.
 */
#include "planner/solve/bounds/lagrangian_bound.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/clock.h"

enum { TASKS_MAX = TASK_NET_TASKS_MAX, SPAN_MAX = 1024, SCALE = 1024 };
enum { KINDS_MAX = 3 }; /* with more classes one kind stands for all with the least of each value, because tables are
                           large */

/* Earnings of one task, in parts: 128 tasks earn less than 2^30. */
enum { EARNING_MAX = 1 << 21 };
static const int32_t nothing = INT32_MIN / 2;

struct lagrangian_bound_kind { /* of devices: a class of them */
    int32_t last[TASKS_MAX];                   /* of the window of a task, parts; -1: it does not fit */
    int32_t last_end[TASKS_MAX];               /* it can be the last of a device until then */
    int32_t longer[TASKS_MAX];                 /* than the step of the net, ticks */
    int32_t later[TASKS_MAX];                  /* the same in parts */
    int32_t distance[TASKS_MAX + 1][TASKS_MAX]; /* ticks; TASK_NET_FORBIDDEN */
    int32_t apart[TASKS_MAX + 1][TASKS_MAX];   /* parts */
    int32_t *earning;                          /* (n, span) f */
    int32_t *table;                            /* (n, span + 1, n + 1) W */
};

struct lagrangian_bound {
    const struct task_net *net;
    uint32_t n, span, kind_count;
    int32_t tick;
    int32_t head[TASKS_MAX];                   /* of the window of a task, parts */
    int32_t step[TASKS_MAX];                   /* of the net, parts */
    struct lagrangian_bound_kind *kinds;
    double *price, *order;                     /* (n), (n, span) */
    double *price_best, *order_best, *price_kept, *order_kept, *price_step, *order_step, *event;
    int32_t *due, *led;                        /* (n), (n, span): price and L, rounded */
};

/* --- creation -------------------------------------------------------------------------------- */

void lagrangian_state_begin(const struct task_net *net, struct lagrangian_state *state)
{
    *state = (struct lagrangian_state){0};
    for (uint32_t g = 0; g < net->device_count; g++) state->task[g] = (uint16_t)net->task_count;
    for (uint32_t i = 0; i < net->job_count; i++) {
        state->next[i] = (uint16_t)net->first[i];
        state->soon[i] = net->head[net->first[i]];
    }
}

void lagrangian_bound_limit(struct lagrangian_bound *p, int64_t limit)
{
    const struct task_net *net = p->net;
    assert(limit / p->tick < p->span);
    for (uint32_t c = 0; c < p->kind_count; c++)
        for (uint32_t k = 0; k < p->n; k++) {
            struct lagrangian_bound_kind *kind = &p->kinds[c];
            int64_t last = limit - net->tail[k] - kind->longer[k], end = limit - net->finish[k];
            bool fits = p->kind_count == 1 || net->classes[c].fits[k];
            kind->last[k] = last < 0 || !fits ? -1 : (int32_t)(last / p->tick);
            kind->last_end[k] = end < 0 ? -1 : (int32_t)(end / p->tick);
        }
}

/* Returns the distance of neighbours on a device of class c, in ticks. */
static int32_t distance_on(const struct task_net *net, uint32_t c, uint32_t j, uint32_t k)
{
    const struct task_net_class *class = &net->classes[c];
    int32_t least = net->distance[j][k], chain = 0;
    if (least == TASK_NET_FORBIDDEN || !class->fits[k]) return TASK_NET_FORBIDDEN;
    if (j == net->task_count) return max_i32(least, class->setup[j][k]);
    if (!class->fits[j]) return TASK_NET_FORBIDDEN;
    if (net->job[j] == net->job[k] && k > j + 1) { /* j takes its own time, tasks between the least of all devices */
        chain = net->through[j] + net->through[k - 1] + class->step[j] - net->step[j];
        for (uint32_t t = j; t < k; t++) chain += net->step[t];
    }
    return max_i32(max_i32(least, class->setup[j][k]), chain);
}

static enum status make_kinds(struct lagrangian_bound *p, struct error *err)
{
    const struct task_net *net = p->net;
    size_t n = p->n, grid = n * p->span;
    p->kind_count = net->class_count <= KINDS_MAX ? net->class_count : 1;
    p->kinds = alloc_zeroed(p->kind_count, sizeof *p->kinds);
    if (!p->kinds) return error_memory(err, "prices", p->kind_count * sizeof *p->kinds);
    for (uint32_t c = 0; c < p->kind_count; c++) {
        struct lagrangian_bound_kind *kind = &p->kinds[c];
        kind->earning = alloc_zeroed(grid, sizeof *kind->earning);
        kind->table = alloc_zeroed((grid + n) * (n + 1), sizeof *kind->table);
        if (!kind->earning || !kind->table)
            return error_memory(err, "prices", (grid + n) * (n + 1) * sizeof *kind->table);
        for (uint32_t k = 0; k < n; k++) {
            if (p->kind_count > 1) kind->longer[k] = net->classes[c].step[k] - net->step[k];
            if (!net->classes[c].fits[k] || kind->longer[k] < 0) kind->longer[k] = 0;
            kind->later[k] = kind->longer[k] / p->tick;
            for (uint32_t j = 0; j <= n; j++) {
                int32_t ticks = p->kind_count > 1 ? distance_on(net, c, j, k) : net->distance[j][k];
                kind->distance[j][k] = ticks;
                kind->apart[j][k] = ticks == TASK_NET_FORBIDDEN ? TASK_NET_FORBIDDEN : ticks / p->tick;
            }
        }
    }
    return STATUS_OK;
}

enum status lagrangian_bound_create(const struct task_net *net, const struct instance_bounds *bounds,
                                    int64_t limit, struct lagrangian_bound **out, struct error *err)
{
    size_t n = net->task_count;
    struct lagrangian_bound *p = alloc_zeroed(1, sizeof *p);
    if (!p) return error_memory(err, "prices", sizeof *p);
    p->net = net;
    p->n = net->task_count;
    p->tick = (int32_t)(limit / SPAN_MAX) + 1;
    p->span = (uint32_t)(limit / p->tick) + 1;
    size_t grid = n * p->span;
    p->price = alloc_zeroed(4 * (n + grid), sizeof *p->price);
    p->event = alloc_zeroed(grid, sizeof *p->event);
    p->due = alloc_zeroed(n, sizeof *p->due);
    p->led = alloc_zeroed(grid, sizeof *p->led);
    if (!p->price || !p->event || !p->due || !p->led) error_memory(err, "prices", 4 * (n + grid) * sizeof *p->price);
    if (err->status || make_kinds(p, err)) {
        lagrangian_bound_destroy(p);
        return err->status;
    }
    p->price_best = p->price + n;
    p->price_kept = p->price + 2 * n;
    p->price_step = p->price + 3 * n;
    p->order = p->price + 4 * n;
    p->order_best = p->order + grid;
    p->order_kept = p->order + 2 * grid;
    p->order_step = p->order + 3 * grid;
    for (uint32_t k = 0; k < n; k++) {
        p->head[k] = net->head[k] / p->tick;
        p->step[k] = net->step[k] / p->tick;
        p->price[k] = (double)(bounds->row[net->unit[k]] + bounds->column[net->unit[k]]) / p->tick;
    }
    memcpy(p->price_kept, p->price, n * sizeof *p->price);
    lagrangian_bound_limit(p, limit);
    *out = p;
    return STATUS_OK;
}

void lagrangian_bound_destroy(struct lagrangian_bound *p)
{
    if (!p) return;
    free(p->price);
    free(p->event);
    free(p->due);
    free(p->led);
    for (uint32_t c = 0; p->kinds && c < p->kind_count; c++) {
        free(p->kinds[c].earning);
        free(p->kinds[c].table);
    }
    free(p->kinds);
    free(p);
}

/* --- the table ------------------------------------------------------------------------------- */

static int32_t rounded(double value)
{
    double most = EARNING_MAX;
    return (int32_t)(value * SCALE > most ? most : value * SCALE < -most ? -most : value * SCALE);
}

static void earn_on(const struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind)
{
    uint32_t w = p->span;
    for (uint32_t k = 0; k < p->n; k++)
        for (uint32_t t = 0; t < w; t++) kind->earning[k * w + t] = p->due[k];
    for (uint32_t k = 0; k + 1 < p->n; k++) {
        if (p->net->job[k] != p->net->job[k + 1]) continue;
        uint32_t later = (uint32_t)kind->later[k], step = (uint32_t)p->step[k];
        int32_t *own = kind->earning + k * w, *next = own + w;
        const int32_t *led = p->led + k * w;
        for (uint32_t t = 0; t + later < w; t++) own[t] += led[t + later];
        for (uint32_t t = 0; t + step < w; t++) next[t + step] -= led[t];
    }
}

static void make_earnings(struct lagrangian_bound *p)
{
    uint32_t w = p->span;
    for (uint32_t k = 0; k < p->n; k++) {
        double sum = 0;
        p->due[k] = rounded(p->price[k]);
        for (uint32_t t = w; t-- > 0;) {
            sum += p->order[k * w + t];
            p->led[k * w + t] = rounded(sum);
        }
    }
    for (uint32_t c = 0; c < p->kind_count; c++) earn_on(p, &p->kinds[c]);
}

static inline int32_t *row_of(const struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind, uint32_t task,
                              int32_t part)
{
    return kind->table + ((size_t)task * (p->span + 1) + (uint32_t)part) * (p->n + 1);
}

/* Returns the most that a path earns from `task` on, not before `part`, directly after j. */
static inline int32_t most_from(const struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind,
                                uint32_t task, int32_t part, uint32_t j)
{
    if (part < p->head[task]) part = p->head[task];
    return part > kind->last[task] ? nothing : row_of(p, kind, task, part)[j];
}

static inline int32_t follow(const struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind, uint32_t j,
                             int32_t part, uint32_t task)
{
    int32_t apart = kind->apart[j][task];
    return apart == TASK_NET_FORBIDDEN ? nothing : most_from(p, kind, task, part + apart, j);
}

/* Fills rest[j]: the most that a path earns after task k at `part`, when j preceded k. */
static void find_rest(const struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind, uint32_t k,
                      int32_t part, int32_t *rest)
{
    int32_t best = part <= kind->last_end[k] ? 0 : nothing, second = best; /* of jobs; 0: the path ends */
    uint32_t best_job = UINT32_MAX, jobs = p->net->job_count;
    for (uint32_t i = 0; i < jobs; i++) {
        int32_t top = nothing;
        for (uint32_t m = p->net->first[i + 1]; m-- > p->net->first[i];) {
            rest[m] = top;
            top = max_i32(top, follow(p, kind, k, part, m));
        }
        if (top > best) {
            second = best;
            best = top;
            best_job = i;
        } else if (top > second) {
            second = top;
        }
    }
    rest[p->n] = best;
    for (uint32_t i = 0; i < jobs; i++) {
        int32_t other = i == best_job ? second : best;
        for (uint32_t j = p->net->first[i]; j < p->net->first[i + 1]; j++) rest[j] = max_i32(rest[j], other);
    }
}

static void fill_table(struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind)
{
    uint32_t n = p->n;
    int32_t rest[TASKS_MAX + 1];
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t j = 0; j <= n && kind->last[k] >= 0; j++) row_of(p, kind, k, kind->last[k] + 1)[j] = nothing;
    for (int32_t t = (int32_t)p->span - 1; t >= 0; t--)
        for (uint32_t k = 0; k < n; k++) {
            if (t < p->head[k] || t > kind->last[k]) continue;
            int32_t *row = row_of(p, kind, k, t), *later = row + n + 1, own = kind->earning[k * p->span + (uint32_t)t];
            find_rest(p, kind, k, t, rest);
            for (uint32_t j = 0; j <= n; j++) row[j] = max_i32(own + rest[j], later[j]);
        }
}

static void fill_tables(struct lagrangian_bound *p)
{
    make_earnings(p);
    for (uint32_t c = 0; c < p->kind_count; c++) fill_table(p, &p->kinds[c]);
}

static const struct lagrangian_bound_kind *kind_of(const struct lagrangian_bound *p, uint32_t device)
{
    return &p->kinds[p->kind_count > 1 ? p->net->in->device_class[device] : 0];
}

void lagrangian_bound_keep(struct lagrangian_bound *p)
{
    memcpy(p->price_kept, p->price, p->n * sizeof *p->price);
    memcpy(p->order_kept, p->order, (size_t)p->n * p->span * sizeof *p->order);
}

void lagrangian_bound_return(struct lagrangian_bound *p)
{
    memcpy(p->price, p->price_kept, p->n * sizeof *p->price);
    memcpy(p->order, p->order_kept, (size_t)p->n * p->span * sizeof *p->order);
    fill_tables(p);
}

/* --- states ---------------------------------------------------------------------------------- */

struct next_task {
    uint16_t task;
    int32_t soon;
};

/* Returns the start of the task before a job's next one, or a later part, but at least a step before that next task. */
static int32_t started_part(const struct lagrangian_bound *p, const struct lagrangian_state *state, uint32_t job)
{
    return (state->soon[job] - p->net->step[state->next[job] - 1]) / p->tick;
}

static uint32_t list_left(const struct lagrangian_bound *p, const struct lagrangian_state *state,
                          struct next_task *left)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < p->net->job_count; i++) {
        int32_t at = max_i32(state->soon[i], state->now);
        for (uint32_t k = state->next[i]; k < p->net->first[i + 1]; at += p->net->step[k++]) {
            at = max_i32(at, p->net->head[k]);
            left[count++] = (struct next_task){(uint16_t)k, at};
        }
    }
    return count;
}

/* Returns the price due for the remaining tasks, minus the earnings of the tasks before them. */
static int64_t due_of(const struct lagrangian_bound *p, const struct lagrangian_state *state)
{
    int64_t due = 0;
    for (uint32_t i = 0; i < p->net->job_count; i++) {
        uint32_t next = state->next[i];
        if (next > p->net->first[i] && next < p->net->first[i + 1])
            due -= p->led[(next - 1) * p->span + (uint32_t)started_part(p, state, i)];
        for (uint32_t k = next; k < p->net->first[i + 1]; k++) due += p->due[k];
    }
    return due;
}

/* Returns the value of a device's best path; *which: index of its first task in `left`, `count` for none. */
static int32_t best_next(const struct lagrangian_bound *p, const struct lagrangian_state *state, uint32_t device,
                         const struct next_task *left, uint32_t count, uint32_t *which)
{
    const struct lagrangian_bound_kind *kind = kind_of(p, device);
    uint32_t j = state->task[device];
    int32_t most = j == p->n || state->start[device] / p->tick <= kind->last_end[j] ? 0 : nothing;
    const int32_t *distance = kind->distance[j];
    *which = count;
    for (uint32_t l = 0; l < count; l++) {
        uint32_t k = left[l].task;
        if (distance[k] == TASK_NET_FORBIDDEN) continue;
        int32_t at = max_i32(state->start[device] + distance[k], left[l].soon);
        int32_t value = most_from(p, kind, k, (int32_t)(at / p->tick), j);
        if (value > most) {
            most = value;
            *which = l;
        }
    }
    return most;
}

int64_t lagrangian_bound_slack(const struct lagrangian_bound *p, const struct lagrangian_state *state)
{
    struct next_task left[TASKS_MAX];
    uint32_t count = list_left(p, state, left), which;
    int64_t slack = -due_of(p, state);
    for (uint32_t g = 0; g < p->net->device_count; g++) slack += best_next(p, state, g, left, count, &which);
    return slack;
}

/* --- fitting --------------------------------------------------------------------------------- */

/* weight of a new subgradient against the earlier ones; step of an order price relative to a price */
static const double fresh = 0.4, order_share = 0.01;
enum { PATIENCE = 10 };

/* Counts a visit of task k at this time: k itself, and the orders with its neighbours. */
static void visit(struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind, uint32_t k, int32_t part)
{
    uint32_t w = p->span, later = (uint32_t)(part + kind->later[k]);
    p->price_step[k] -= fresh;
    if (k + 1 < p->n && p->net->job[k + 1] == p->net->job[k] && later < w) p->event[k * w + later] -= fresh;
    if (k > 0 && p->net->job[k - 1] == p->net->job[k])
        p->event[(k - 1) * w + (uint32_t)max_i32(part - p->step[k - 1], 0)] += fresh;
}

/* Visits the tasks of a path that begins with k, not before `part`, directly after `before`. */
static void walk(struct lagrangian_bound *p, const struct lagrangian_bound_kind *kind, uint32_t k, int32_t part,
                 uint32_t before)
{
    for (;;) {
        part = max_i32(part, p->head[k]);
        while (part < kind->last[k] && row_of(p, kind, k, part + 1)[before] == row_of(p, kind, k, part)[before])
            part++;
        visit(p, kind, k, part);
        int32_t most = part <= kind->last_end[k] ? 0 : nothing;
        uint32_t next = p->n;
        for (uint32_t m = 0; m < p->n; m++) {
            if (before < p->n && p->net->job[m] == p->net->job[before] && m <= before) continue;
            int32_t value = follow(p, kind, k, part, m);
            if (value > most) {
                most = value;
                next = m;
            }
        }
        if (next == p->n) return;
        part += kind->apart[k][next];
        before = k;
        k = next;
    }
}

/* Adds a state's subgradient. Returns the state's slack. */
static int64_t count_state(struct lagrangian_bound *p, const struct lagrangian_state *state, double *weights)
{
    struct next_task left[TASKS_MAX];
    uint32_t count = list_left(p, state, left), which[TASK_NET_DEVICES_MAX];
    int64_t slack = -due_of(p, state);
    for (uint32_t g = 0; g < p->net->device_count; g++) slack += best_next(p, state, g, left, count, &which[g]);
    if (slack < 0) return slack;
    for (uint32_t l = 0; l < count; l++) {
        p->price_step[left[l].task] += fresh;
        weights[left[l].task]++;
    }
    for (uint32_t i = 0; i < p->net->job_count; i++) {
        uint32_t next = state->next[i];
        if (next > p->net->first[i] && next < p->net->first[i + 1])
            p->event[(next - 1) * p->span + (uint32_t)started_part(p, state, i)] -= fresh;
    }
    for (uint32_t g = 0; g < p->net->device_count; g++) {
        if (which[g] == count) continue;
        const struct lagrangian_bound_kind *kind = kind_of(p, g);
        uint32_t k = left[which[g]].task, j = state->task[g];
        int32_t at = max_i32(state->start[g] + kind->distance[j][k], left[which[g]].soon);
        walk(p, kind, k, (int32_t)(at / p->tick), j);
    }
    return slack;
}

/* Moves the prices; `miss`: the excess, in parts. */
static void step(struct lagrangian_bound *p, const double *weights, double miss)
{
    uint32_t n = p->n, w = p->span;
    double along = 0, square = 0, norm = 0;
    for (uint32_t k = 0; k < n; k++) {
        along += p->price_step[k] * weights[k];
        square += weights[k] * weights[k];
    }
    for (uint32_t k = 0; k < n && square > 0; k++) p->price_step[k] -= along / square * weights[k];
    for (uint32_t k = 0; k < n; k++) norm += p->price_step[k] * p->price_step[k];
    for (uint32_t k = 0; k < n; k++) {
        double sum = 0;
        for (uint32_t e = k * w; e < (k + 1) * w; e++) {
            sum += p->event[e];
            p->order_step[e] = (1 - fresh) * p->order_step[e] + sum;
            if (p->order[e] > 0 || p->order_step[e] > 0) norm += order_share * p->order_step[e] * p->order_step[e];
        }
    }
    double length = miss / (norm + 1e-9);
    for (uint32_t k = 0; k < n; k++) p->price[k] += length * p->price_step[k];
    for (uint32_t e = 0; e < n * w; e++) {
        double moved = p->order[e] + length * order_share * p->order_step[e];
        p->order[e] = moved > 0 ? moved : 0;
    }
}

void lagrangian_bound_fit(struct lagrangian_bound *p, const struct lagrangian_state *states, uint32_t count,
                          uint32_t rounds, double until_s)
{
    size_t n = p->n, grid = n * p->span;
    double least = INFINITY, share = 0.5;
    uint32_t patience = 0;
    memset(p->price_step, 0, n * sizeof *p->price_step);
    memset(p->order_step, 0, grid * sizeof *p->order_step);
    for (uint32_t r = 0;; r++) {
        double weights[TASKS_MAX] = {0}, miss = 0, due = 0;
        fill_tables(p);
        for (uint32_t k = 0; k < n; k++) p->price_step[k] *= 1 - fresh;
        memset(p->event, 0, grid * sizeof *p->event);
        for (uint32_t s = 0; s < count; s++) {
            int64_t slack = count_state(p, &states[s], weights);
            if (slack >= 0) miss += (double)(slack + 1) / SCALE;
        }
        for (uint32_t k = 0; k < n; k++) due += weights[k] * p->price[k];
        if (miss < least) {
            if (miss < least * (1 - 1e-4)) patience = 0;
            least = miss;
            memcpy(p->price_best, p->price, n * sizeof *p->price);
            memcpy(p->order_best, p->order, grid * sizeof *p->order);
        } else if (++patience >= PATIENCE) {
            patience = 0;
            share *= 0.7;
            memcpy(p->price, p->price_best, n * sizeof *p->price);
            memcpy(p->order, p->order_best, grid * sizeof *p->order);
            memset(p->price_step, 0, n * sizeof *p->price_step);
            memset(p->order_step, 0, grid * sizeof *p->order_step);
            continue;
        }
        if (miss == 0) return;
        if (r >= rounds || share < 0.002 || clock_s() >= until_s) break;
        step(p, weights, share * (miss + 0.002 * due));
    }
    memcpy(p->price, p->price_best, n * sizeof *p->price);
    memcpy(p->order, p->order_best, grid * sizeof *p->order);
    fill_tables(p);
}
