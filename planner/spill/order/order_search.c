#include "planner/spill/order/order_search.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/anytime.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/policy/policies.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/spill/order/schedule_builder.h"

enum remaining { REMAINING_SHARE, REMAINING_COMPUTE, REMAINING_ALONE, REMAINING_COUNT };

struct rule {
    enum remaining remaining;
    double weight; /* weight of the remaining work against a mean unit of waiting */
    double link;   /* share of the waiting for the link; the rest is waiting for computation */
    double ahead;  /* in mean units: jobs that are ready at most this much later are candidates too */
    double noise;  /* spread of a factor on each job's measure */
    uint64_t seed; /* of the noise */
};

enum { SNAPSHOTS = 64 };

/* Limits of the search on the jobs as an instance (order_of_instance.h): number of units, least iterations. */
enum { START_UNITS_MAX = 20000, START_ITERATIONS = 40 };
#define START_SHARE 0.1 /* of the remaining time */
static const double weights[] = {1, 0.25, 4, 0.0625, 16, 0.015625, 64, 256};
static const double aheads[] = {0, 0.5, 2};
static const double links[] = {0, 0.5, 1};
enum { GRID = REMAINING_COUNT * ARRAY_COUNT(weights) * ARRAY_COUNT(aheads) * ARRAY_COUNT(links) };

struct job_measure {
    double compute_s, alone_s; /* of the whole job */
    double factor;             /* the rule's noise */
};

struct order_search {
    const struct cost_table *times;
    const struct order_search_options *options;
    struct anytime limits;
    struct schedule_builder *now;
    struct schedule_builder *snapshots[SNAPSHOTS]; /* of the best order, every `stride` units */
    uint32_t stride;
    struct job_measure *jobs;
    uint32_t *quota;    /* per job: units left in the window */
    double mean_s;      /* of a unit's computation */
    double units_per_job;
    double longest_compute_s, longest_alone_s;
    struct schedule_unit *trial, *moved;
    struct schedule *best;
    struct rule rule;   /* the best rule so far */
    uint32_t iterations;
    bool cut_short;     /* the time limit stopped the start from an instance */
};

static bool finished(struct order_search *s)
{
    if (s->options->on_progress) s->options->on_progress(s->options->context);
    return s->best->makespan_s <= s->options->bound_s || !anytime_step(&s->limits);
}

/* --- judging --------------------------------------------------------------------------------- */

/* Returns the time of a unit without others: its longest part, since parts of different units overlap. */
static double alone_s(const struct cost_unit *time)
{
    double in = time->in_s + time->edge_in_s, out = time->out_s + time->edge_out_s;
    return max_s(max_s(time->compute_s, in), max_s(max_s(out, time->cpu_s), time->read_s));
}

static void measure_jobs(struct order_search *s)
{
    const struct cost_table *t = s->times;
    double compute = 0;
    for (uint32_t j = 0; j < t->jobs->count; j++) {
        double alone = 0;
        uint32_t positions = schedule_unit_count(partition_job_units(t->partition, j));
        for (uint32_t i = 0; i < positions; i++) alone += alone_s(cost_table_at(t, 0, j, i));
        struct job_measure *m = &s->jobs[j];
        m->compute_s = s->now->view_jobs[j].remaining_s;
        m->alone_s = alone * (double)t->jobs->jobs[j].minibatches;
        compute += m->compute_s;
        s->longest_compute_s = max_s(s->longest_compute_s, m->compute_s);
        s->longest_alone_s = max_s(s->longest_alone_s, m->alone_s);
    }
    s->mean_s = max_s(compute / s->best->count, 1e-12);
    s->units_per_job = (double)s->best->count / t->jobs->count;
}

/* Returns the rest of a job, in units of a job of mean length. */
static double left(const struct order_search *s, const struct rule *rule, uint32_t job)
{
    const struct job_measure *m = &s->jobs[job];
    double share = s->now->view_jobs[job].remaining_s / max_s(m->compute_s, 1e-12);
    if (rule->remaining == REMAINING_COMPUTE) share *= m->compute_s / s->longest_compute_s;
    if (rule->remaining == REMAINING_ALONE) share *= m->alone_s / s->longest_alone_s;
    return share * m->factor * s->units_per_job;
}

static bool may_run(const struct order_search *s, uint32_t job)
{
    const struct schedule_builder_view *view = &s->now->view_jobs[job];
    return view->admitted && view->remaining_s > 0 && s->quota[job] > 0;
}

/* Returns the device that is free first, the lowest of several. *ready_s: when it can start something. */
static uint32_t next_device(const struct order_search *s, double *ready_s)
{
    uint32_t best = 0;
    double ready = HUGE_VAL;
    for (uint32_t d = 1; d < s->now->device_count; d++)
        if (s->now->devices[d].compute_free_s < s->now->devices[best].compute_free_s) best = d;
    for (uint32_t j = 0; j < s->times->jobs->count; j++)
        if (may_run(s, j) && s->now->view_jobs[j].ready_s < ready)
            ready = s->now->view_jobs[j].ready_s;
    *ready_s = max_s(s->now->devices[best].compute_free_s, ready);
    return best;
}

static uint32_t choose(const struct order_search *s, const struct rule *rule, uint32_t *device)
{
    double from, best_score = -HUGE_VAL;
    uint32_t best = PLAN_NONE, free = next_device(s, &from);
    double until = from + rule->ahead * s->mean_s;
    for (uint32_t j = 0; j < s->times->jobs->count; j++) {
        const struct schedule_builder_view *job = &s->now->view_jobs[j];
        if (!may_run(s, j) || job->ready_s > until) continue;
        uint32_t at = free, last = job->last_device;
        if (last != PLAN_NONE && s->now->devices[last].compute_free_s <= from) at = last;
        struct schedule_builder_wait wait = schedule_builder_wait(s->now, j, at);
        double waits = (1 - rule->link) * wait.compute_s + rule->link * wait.h2d_s;
        double score = rule->weight * left(s, rule, j) - waits / s->mean_s;
        if (score <= best_score) continue;
        best_score = score;
        best = j;
        *device = at;
    }
    return best;
}

/* --- schedules ------------------------------------------------------------------------------- */

static void set_noise(struct order_search *s, const struct rule *rule)
{
    for (uint32_t j = 0; j < s->times->jobs->count; j++)
        s->jobs[j].factor =
            rule->noise > 0 ? exp(rule->noise * (2 * random_unit(rule->seed, j) - 1)) : 1;
}

/* Places trial[from .. to) by the rule. Returns false if host memory has no room for a job with units left there. */
static bool place_by_rule(struct order_search *s, const struct rule *rule, uint32_t from, uint32_t to)
{
    set_noise(s, rule);
    for (uint32_t i = from; i < to; i++) {
        uint32_t device = 0, job = choose(s, rule, &device);
        if (job == PLAN_NONE) return false;
        s->quota[job]--;
        schedule_builder_put(s->now, job, device, &s->trial[i]);
    }
    return true;
}

/* Places order[from ..] unchanged. Returns false if the result is worse than the best, or exceeds host memory. */
static bool place_order(struct order_search *s, const struct schedule_unit *order, uint32_t from)
{
    for (uint32_t i = from; i < s->best->count; i++) {
        if (!s->now->view_jobs[order[i].job].admitted) return false;
        schedule_builder_put(s->now, order[i].job, order[i].device, &s->trial[i]);
        if (s->now->makespan_s > s->best->makespan_s) return false;
    }
    return s->now->makespan_s <= s->best->makespan_s;
}

static void make_snapshots(struct order_search *s)
{
    schedule_builder_copy(s->now, s->snapshots[0]);
    for (uint32_t i = 0; i < s->best->count; i++) {
        struct schedule_unit unit;
        if (i % s->stride == 0) schedule_builder_copy(s->snapshots[i / s->stride], s->now);
        schedule_builder_put(s->now, s->best->units[i].job, s->best->units[i].device, &unit);
    }
}

/* Keeps a complete trial that is no worse than the best: the last of equals, whose neighbours may be better. */
static void keep_trial(struct order_search *s)
{
    struct schedule_unit *units = s->best->units;
    s->best->units = s->trial;
    s->trial = units;
    s->best->makespan_s = s->now->makespan_s;
    make_snapshots(s);
}

static void try_rule(struct order_search *s, const struct rule *rule)
{
    schedule_builder_copy(s->now, s->snapshots[0]);
    for (uint32_t j = 0; j < s->times->jobs->count; j++)
        s->quota[j] = (uint32_t)cost_table_unit_count(s->times, j);
    if (!place_by_rule(s, rule, 0, s->best->count)) return;
    if (s->now->makespan_s >= s->best->makespan_s) return;
    s->rule = *rule;
    keep_trial(s);
}

/* Places units [from, to) again, with the same number of each job. */
static void try_window(struct order_search *s, const struct rule *rule, uint32_t from, uint32_t to)
{
    uint32_t start = from - from % s->stride;
    schedule_builder_copy(s->now, s->snapshots[start / s->stride]);
    memcpy(s->trial, s->best->units, from * sizeof *s->trial);
    for (uint32_t i = start; i < from; i++)
        schedule_builder_put(s->now, s->best->units[i].job, s->best->units[i].device, &s->trial[i]);
    memset(s->quota, 0, s->times->jobs->count * sizeof *s->quota);
    for (uint32_t i = from; i < to; i++) s->quota[s->best->units[i].job]++;
    if (!place_by_rule(s, rule, from, to)) return;
    if (place_order(s, s->best->units, to)) keep_trial(s);
}

/* Returns a length from 1 to n, of any order of magnitude. */
static uint32_t random_length(uint64_t key, uint64_t counter, uint32_t n)
{
    uint32_t length = (uint32_t)exp(random_unit(key, counter) * log((double)n + 1));
    return length < 1 ? 1 : length > n ? n : length;
}

/* Swaps two neighbouring sequences of units, or moves the units of one job in a window to other devices. */
static void try_move(struct order_search *s, uint64_t draw)
{
    uint32_t n = s->best->count, devices = s->now->device_count;
    memcpy(s->moved, s->best->units, n * sizeof *s->moved);
    uint32_t from = (uint32_t)random_below(draw, 1, n - 1);
    uint32_t first = from - from % s->stride;
    if (devices > 1 && draw % 3 == 0) {
        uint32_t end = from + random_length(draw, 2, n - from), job = s->best->units[from].job;
        uint32_t device = (uint32_t)random_below(draw, 3, devices);
        for (uint32_t i = from; i < end; i++)
            if (s->moved[i].job == job) s->moved[i].device = device;
    } else {
        uint32_t left = random_length(draw, 4, n - from - 1);
        uint32_t right = random_length(draw, 5, n - from - left);
        memcpy(s->moved + from, s->best->units + from + left, right * sizeof *s->moved);
        memcpy(s->moved + from + right, s->best->units + from, left * sizeof *s->moved);
    }
    schedule_builder_copy(s->now, s->snapshots[first / s->stride]);
    memcpy(s->trial, s->best->units, first * sizeof *s->trial);
    if (place_order(s, s->moved, first)) keep_trial(s);
}

/* --- the search ------------------------------------------------------------------------------ */

static bool more(struct order_search *s)
{
    return s->iterations < s->options->iterations && !finished(s);
}

static void try_grid(struct order_search *s)
{
    for (uint32_t i = 0; i < GRID && more(s); i++) {
        uint32_t link = i / REMAINING_COUNT, weight = link / ARRAY_COUNT(links);
        struct rule rule = {.remaining = i % REMAINING_COUNT,
                            .link = links[link % ARRAY_COUNT(links)],
                            .weight = weights[weight % ARRAY_COUNT(weights)],
                            .ahead = aheads[weight / ARRAY_COUNT(weights)]};
        try_rule(s, &rule);
        s->iterations++;
    }
}

/* Tries a rule near the best one, for all units or a window; or a move. */
static void try_near(struct order_search *s)
{
    uint64_t draw = random_u64(s->options->seed, s->iterations);
    struct rule rule = s->rule;
    rule.seed = draw;
    rule.weight *= exp(2 * random_unit(draw, UINT64_MAX) - 1);
    rule.noise = ldexp(1, -(int)(draw % 8));
    if (draw / 8 % 4 == 0) rule.remaining = draw / 32 % REMAINING_COUNT;
    if (draw / 256 % 4 == 0) rule.link = random_unit(draw, UINT64_MAX - 3);
    if (draw / 1024 % 4 == 0) rule.ahead = aheads[draw / 4096 % ARRAY_COUNT(aheads)];
    uint32_t n = s->best->count;
    uint32_t kind = n < 4 ? 0 : draw / 65536 % 8;
    if (kind < 3) {
        try_rule(s, &rule);
    } else if (kind < 6) {
        uint32_t length = 1 + random_length(draw, UINT64_MAX - 1, n - 1);
        uint32_t from = (uint32_t)random_below(draw, UINT64_MAX - 2, n - length + 1);
        try_window(s, &rule, from, from + length);
    } else {
        try_move(s, random_u64(draw, UINT64_MAX - 4));
    }
    s->iterations++;
}

/* Starts with the best of the policies. */
static enum status start(const struct cost_table *times, uint64_t seed, struct schedule *best,
                         uint64_t *tried, struct error *err)
{
    for (uint32_t i = 0; policy_at(i); i++) {
        const struct policy *policy = policy_at(i);
        if (policy->resident || policy->one_device || policy_is_searched(policy)) continue;
        struct schedule made;
        TRY(schedule_make(times, policy, seed, true, &made, err));
        if ((*tried)++ > 0 && made.makespan_s >= best->makespan_s) {
            schedule_release(&made);
            continue;
        }
        schedule_release(best);
        *best = made;
    }
    return STATUS_OK;
}

/* Also starts from the schedule of the jobs as an instance, if that is quick. */
static enum status start_from_instance(struct order_search *s, uint64_t *tried, struct error *err)
{
    struct schedule made;
    struct error why = {0};
    double now = clock_s(), until = s->options->until_s;
    if (s->best->count > START_UNITS_MAX || s->options->iterations < START_ITERATIONS || finished(s)) return STATUS_OK;
    if (until < HUGE_VAL) until = now + START_SHARE * (until - now);
    enum status status = order_of_instance(s->times, s->options->seed, START_ITERATIONS, until, &made, &why);
    s->cut_short = until < HUGE_VAL && clock_s() >= until;
    if (status) {
        schedule_release(&made);
        bool too_large = why.status == STATUS_LIMIT || why.status == STATUS_BAD_INPUT;
        return too_large ? STATUS_OK : error_set(err, why.status, "%s", why.text);
    }
    ++*tried;
    if (made.makespan_s < s->best->makespan_s) {
        schedule_release(s->best);
        *s->best = made;
    } else {
        schedule_release(&made);
    }
    return STATUS_OK;
}

static void search_release(struct order_search *s)
{
    for (uint32_t i = 0; i < SNAPSHOTS; i++) schedule_builder_destroy(s->snapshots[i]);
    schedule_builder_destroy(s->now);
    free(s->jobs);
    free(s->quota);
    free(s->trial);
    free(s->moved);
}

static enum status search_create(struct order_search *s, struct error *err)
{
    uint32_t jobs = s->times->jobs->count;
    s->jobs = alloc_zeroed(jobs + 1u, sizeof *s->jobs);
    s->quota = alloc_zeroed(jobs + 1u, sizeof *s->quota);
    s->trial = alloc_zeroed(s->best->count + 1u, sizeof *s->trial);
    s->moved = alloc_zeroed(s->best->count + 1u, sizeof *s->moved);
    if (!s->jobs || !s->quota || !s->trial || !s->moved)
        return error_memory(err, "a search", s->best->count * sizeof *s->trial);
    TRY(schedule_builder_create(s->times, false, &s->now, err));
    for (uint32_t i = 0; i < SNAPSHOTS; i++)
        TRY(schedule_builder_create(s->times, false, &s->snapshots[i], err));
    s->stride = s->best->count / SNAPSHOTS + 1;
    s->rule = (struct rule){.weight = 1};
    measure_jobs(s);
    make_snapshots(s);
    return STATUS_OK;
}

/* Assigns ranges of host memory as in the best order. */
static enum status assign_ranges(struct order_search *s, struct error *err)
{
    schedule_builder_copy(s->now, s->snapshots[0]);
    for (uint32_t i = 0; i < s->best->count; i++)
        schedule_builder_put(s->now, s->best->units[i].job, s->best->units[i].device, &s->trial[i]);
    return schedule_copy_ranges(s->best, s->now, err);
}

/* Returns true if the time limit ended the search before its last iteration and the bound. */
static bool was_cut_short(const struct order_search *s)
{
    if (s->best->makespan_s <= s->options->bound_s) return false;
    return s->cut_short || s->iterations < s->options->iterations;
}

enum status order_search(const struct cost_table *times, const struct order_search_options *options,
                         struct schedule *out, struct planner_search *effort, struct error *err)
{
    struct order_search s = {.times = times, .options = options, .best = out,
                             .limits = {.until_s = options->until_s, .clock_every = 1}};
    assert(!times->partition->resident);
    *effort = (struct planner_search){0};
    *out = (struct schedule){0};
    enum status status = start(times, options->seed, out, &effort->iterations, err);
    if (!status) status = start_from_instance(&s, &effort->iterations, err);
    if (!status) status = search_create(&s, err);
    if (!status) {
        try_grid(&s);
        while (more(&s)) try_near(&s);
        effort->iterations += s.iterations;
        effort->cut_short = was_cut_short(&s);
        status = assign_ranges(&s, err);
        if (!status) status = schedule_link(out, times->jobs->count, s.now->device_count, err);
    }
    search_release(&s);
    if (status) schedule_release(out);
    return status;
}
