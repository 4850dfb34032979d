/* An order is judged by dispatching it. A few snapshots of the best order's dispatch save its first part. */
#include "planner/solve/search/stream_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/anytime.h"
#include "base/random.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/solve/bounds/stream_bound.h"
#include "planner/solve/instance/dispatch_streams.h"
#include "planner/solve/search/list_baseline.h"

enum { SNAPSHOTS = 32 };
static const double weights[] = {1, 0.25, 4, 0.0625, 16, 64};
static const double aheads[] = {0, 0.5, 2};

struct stream_rule {
    double weight; /* of a job's rest against a mean task of waiting */
    double ahead;  /* in mean tasks: jobs that could start at most this much later are candidates too */
    double noise;  /* spread of a factor on each job's rest */
    uint64_t seed;
};

struct stream_search {
    const struct instance *in;
    const struct schedule_search_options *options;
    struct anytime limits;
    struct dispatch *now, *snapshots[SNAPSHOTS];
    uint32_t stride;
    struct dispatch_step *best, *trial, *moved;
    int64_t value, bound;
    int64_t **tails;    /* (job_count): of each position in a minibatch, to its end */
    int64_t *around;    /* (job_count): ticks of a minibatch */
    double *factor;     /* (job_count) */
    uint32_t *quota;    /* (job_count): tasks left in the window */
    double mean;        /* ticks of a task */
    struct stream_rule rule; /* the best so far */
    uint32_t iteration;
};

static bool finished(struct stream_search *s) { return s->value <= s->bound || !anytime_step(&s->limits); }

/* --- orders ---------------------------------------------------------------------------------- */

static double left_of(const struct stream_search *s, uint32_t job)
{
    const struct instance_job *j = &s->in->jobs[job];
    uint32_t next = s->now->jobs[job].next;
    double left = (double)s->tails[job][next % j->unit_count];
    left += (double)s->around[job] * (j->repeat - 1 - next / j->unit_count);
    return left / s->mean * s->factor[job];
}

static uint32_t free_device(const struct stream_search *s)
{
    const struct stream_device *devices = s->now->streams->devices;
    uint32_t best = 0;
    for (uint32_t g = 1; g < s->in->device_count; g++)
        if (devices[g].compute < devices[best].compute) best = g;
    return best;
}

/* Chooses a job for the device that is free first, or for its own last device if that is free by then too. */
static bool choose(const struct stream_search *s, const struct stream_rule *rule, struct dispatch_step *out)
{
    const struct stream_device *devices = s->now->streams->devices;
    uint32_t free = free_device(s);
    int64_t from = INT64_MAX;
    double best = -HUGE_VAL;
    for (uint32_t i = 0; i < s->in->job_count; i++)
        if (s->quota[i] > 0) from = min_i64(from, s->now->jobs[i].ended);
    from = max_i64(from, devices[free].compute);
    for (uint32_t i = 0; i < s->in->job_count; i++) {
        const struct dispatch_job *job = &s->now->jobs[i];
        if (s->quota[i] == 0 || (double)job->ended > (double)from + rule->ahead * s->mean) continue;
        uint32_t at = job->device != TIMETABLE_NONE && devices[job->device].compute <= from ? job->device : free;
        if (!instance_fits(s->in, job->unit, s->in->device_class[at])) continue;
        double waits = (double)(dispatch_start(s->now, i, at) - devices[at].compute) / s->mean;
        double score = rule->weight * left_of(s, i) - waits;
        if (score <= best) continue;
        best = score;
        *out = (struct dispatch_step){i, at};
    }
    return best > -HUGE_VAL;
}

static void put(struct stream_search *s, uint32_t at, struct dispatch_step step)
{
    s->trial[at] = step;
    dispatch_put(s->now, step.job, step.device);
}

static bool place_by_rule(struct stream_search *s, const struct stream_rule *rule, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < s->in->job_count; i++)
        s->factor[i] = rule->noise > 0 ? exp(rule->noise * (2 * random_unit(rule->seed, i) - 1)) : 1;
    for (uint32_t t = from; t < to; t++) {
        struct dispatch_step step = {0};
        if (!choose(s, rule, &step)) return false;
        s->quota[step.job]--;
        put(s, t, step);
    }
    return true;
}

/* Returns false if a task does not fit where it was moved to. */
static bool place_order(struct stream_search *s, const struct dispatch_step *order, uint32_t from)
{
    for (uint32_t t = from; t < s->in->task_count; t++) {
        if (!instance_fits(s->in, s->now->jobs[order[t].job].unit, s->in->device_class[order[t].device])) return false;
        put(s, t, order[t]);
        if (s->now->jobs[order[t].job].end > s->value) return false;
    }
    return true;
}

static void make_snapshots(struct stream_search *s)
{
    dispatch_clear(s->now);
    for (uint32_t t = 0; t < s->in->task_count; t++) {
        if (t % s->stride == 0) dispatch_copy(s->snapshots[t / s->stride], s->now);
        dispatch_put(s->now, s->best[t].job, s->best[t].device);
    }
}

/* Keeps a complete trial that is no worse than the best. */
static bool keep_trial(struct stream_search *s)
{
    int64_t value = dispatch_value(s->now);
    if (value > s->value) return false;
    struct dispatch_step *best = s->best;
    s->best = s->trial;
    s->trial = best;
    s->value = value;
    make_snapshots(s);
    return true;
}

/* Begins from the best order's dispatch before task `from`. */
static void resume(struct stream_search *s, uint32_t from)
{
    uint32_t start = from - from % s->stride;
    dispatch_copy(s->now, s->snapshots[start / s->stride]);
    memcpy(s->trial, s->best, from * sizeof *s->trial);
    for (uint32_t t = start; t < from; t++) dispatch_put(s->now, s->best[t].job, s->best[t].device);
}

static void try_rule(struct stream_search *s, const struct stream_rule *rule)
{
    int64_t before = s->value;
    dispatch_clear(s->now);
    for (uint32_t i = 0; i < s->in->job_count; i++) s->quota[i] = instance_length(&s->in->jobs[i]);
    if (place_by_rule(s, rule, 0, s->in->task_count) && keep_trial(s) && s->value < before) s->rule = *rule;
}

static void try_window(struct stream_search *s, const struct stream_rule *rule, uint32_t from, uint32_t to)
{
    resume(s, from);
    memset(s->quota, 0, s->in->job_count * sizeof *s->quota);
    for (uint32_t t = from; t < to; t++) s->quota[s->best[t].job]++;
    if (place_by_rule(s, rule, from, to) && place_order(s, s->best, to)) (void)!keep_trial(s);
}

/* Returns a length from 1 to n, of any order of magnitude. */
static uint32_t random_length(uint64_t draw, uint64_t counter, uint32_t n)
{
    uint32_t length = (uint32_t)exp(random_unit(draw, counter) * log((double)n + 1));
    return length < 1 ? 1 : length > n ? n : length;
}

/* Swaps two neighbouring sequences of tasks, or moves the tasks of one job in a window to another device. */
static void try_move(struct stream_search *s, uint64_t draw)
{
    uint32_t n = s->in->task_count, from = (uint32_t)random_below(draw, 1, n - 1);
    memcpy(s->moved, s->best, n * sizeof *s->moved);
    if (s->in->device_count > 1 && draw % 3 == 0) {
        uint32_t end = from + random_length(draw, 2, n - from), job = s->best[from].job;
        uint32_t device = (uint32_t)random_below(draw, 3, s->in->device_count);
        for (uint32_t t = from; t < end; t++)
            if (s->moved[t].job == job) s->moved[t].device = device;
    } else {
        uint32_t left = random_length(draw, 4, n - from - 1), right = random_length(draw, 5, n - from - left);
        memcpy(s->moved + from, s->best + from + left, right * sizeof *s->moved);
        memcpy(s->moved + from + right, s->best + from, left * sizeof *s->moved);
    }
    resume(s, from);
    if (place_order(s, s->moved, from)) (void)!keep_trial(s);
}

/* --- the search ------------------------------------------------------------------------------ */

static void iterate(struct stream_search *s)
{
    enum { GRID = ARRAY_COUNT(weights) * ARRAY_COUNT(aheads) };
    uint32_t n = s->in->task_count;
    uint64_t draw = random_u64(s->options->seed, s->iteration);
    struct stream_rule rule = s->rule;
    if (s->iteration < GRID) {
        rule = (struct stream_rule){.weight = weights[s->iteration % ARRAY_COUNT(weights)],
                                    .ahead = aheads[s->iteration / ARRAY_COUNT(weights)]};
        try_rule(s, &rule);
        return;
    }
    rule.seed = draw;
    rule.weight *= exp(2 * random_unit(draw, 6) - 1);
    rule.noise = ldexp(1, -(int)(draw % 8));
    if (draw / 8 % 4 == 0) rule.ahead = aheads[draw / 32 % ARRAY_COUNT(aheads)];
    uint32_t kind = n < 4 ? 0 : draw / 256 % 8;
    if (kind < 2) {
        try_rule(s, &rule);
    } else if (kind < 5) {
        uint32_t length = 1 + random_length(draw, 7, n - 1);
        uint32_t from = (uint32_t)random_below(draw, 8, n - length + 1);
        try_window(s, &rule, from, from + length);
    } else {
        try_move(s, random_u64(draw, 9));
    }
}

/* Starts with the better of the baselines, as their orders become by their starts. */
static enum status start(struct stream_search *s, struct error *err)
{
    int64_t value;
    s->value = INT64_MAX;
    for (int i = 0; i < 2; i++) {
        TRY((i == 0 ? list_baseline_lrtf : list_baseline_hydra)(s->in, HUGE_VAL, s->trial, &value, err));
        if (value >= s->value) continue;
        s->value = value;
        memcpy(s->best, s->trial, s->in->task_count * sizeof *s->best);
    }
    return STATUS_OK;
}

static enum status measure_jobs(struct stream_search *s, struct error *err)
{
    const struct instance *in = s->in;
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct instance_job *job = &in->jobs[i];
        s->tails[i] = alloc_zeroed(job->unit_count, sizeof **s->tails);
        if (!s->tails[i]) return error_memory(err, "a search", job->unit_count * sizeof **s->tails);
        uint32_t last = (job->repeat - 1) * job->unit_count;
        for (uint32_t u = 0; u < job->unit_count; u++) s->tails[i][u] = stream_bound_tail(in, i, last + u);
        s->around[i] = s->tails[i][0];
        for (uint32_t u = 0; u < job->unit_count; u++)
            s->mean += (double)instance_compute_min(in, job->first_unit + u) * job->repeat;
    }
    s->mean /= in->task_count;
    return STATUS_OK;
}

static enum status create(struct stream_search *s, struct error *err)
{
    const struct instance *in = s->in;
    size_t order = in->task_count * sizeof *s->best;
    s->best = alloc_zeroed(1, order);
    s->trial = alloc_zeroed(1, order);
    s->moved = alloc_zeroed(1, order);
    s->tails = alloc_zeroed(in->job_count, sizeof *s->tails);
    s->around = alloc_zeroed(in->job_count, sizeof *s->around);
    s->factor = alloc_zeroed(in->job_count, sizeof *s->factor);
    s->quota = alloc_zeroed(in->job_count, sizeof *s->quota);
    if (!s->best || !s->trial || !s->moved || !s->tails || !s->around || !s->factor || !s->quota)
        return error_memory(err, "a search", order);
    TRY(dispatch_create(in, &s->now, err));
    for (uint32_t i = 0; i < SNAPSHOTS; i++) TRY(dispatch_create(in, &s->snapshots[i], err));
    s->stride = in->task_count / SNAPSHOTS + 1;
    s->rule.weight = 1;
    return measure_jobs(s, err);
}

static void release(struct stream_search *s)
{
    dispatch_destroy(s->now);
    for (uint32_t i = 0; i < SNAPSHOTS; i++) dispatch_destroy(s->snapshots[i]);
    for (uint32_t i = 0; s->tails && i < s->in->job_count; i++) free(s->tails[i]);
    free(s->tails);
    free(s->around);
    free(s->factor);
    free(s->quota);
    free(s->best);
    free(s->trial);
    free(s->moved);
}

enum status stream_search(const struct instance *in, int64_t bound, const struct schedule_search_options *options,
                          struct dispatch_step *steps, int64_t *value, uint32_t *iterations, struct error *err)
{
    struct stream_search s = {.in = in, .options = options, .bound = bound, .iteration = options->made,
                              .limits = {.until_s = options->until_s, .clock_every = 1, .stop = options->stop}};
    if (create(&s, err)) goto out;
    if (options->made > 0) {
        memcpy(s.best, steps, in->task_count * sizeof *steps);
        s.value = *value;
    } else if (start(&s, err)) {
        goto out;
    }
    make_snapshots(&s);
    for (; s.iteration < options->iterations && !finished(&s); s.iteration++) iterate(&s);
    memcpy(steps, s.best, in->task_count * sizeof *steps);
    *value = s.value;
    *iterations = s.iteration;
out:
    release(&s);
    return err->status;
}
