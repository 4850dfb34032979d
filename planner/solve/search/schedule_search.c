/*
 * An iteration depends only on its number and the seed, except that local search under a time limit cools down within
 * it. First come list schedules over a range of priorities, with and without a look at every device. Then these
 * alternate:
 *
 *     beam     whole schedules, four times as wide in each round, within memory and time
 *     passes   list schedules under perturbed priorities, based on the best or on equal ones. Much noise lets some jobs
 *              run ahead: jobs in step all want copies at the same time, above all at the start, when forward passes
 *              hide few of them
 *     ends     the last tasks of the best schedule made again
 *
 * Three iterations of a small instance use narrow label sets (label_setting.h): a beam with bounds for the rest.
 *
 * Up to ANNEAL_TASKS_MAX tasks, three iterations of four anneal the best schedule: local search (local_search.h) that
 * accepts fewer worsenings from pass to pass. With more tasks, if copies leave a gap after the first list schedules,
 * local search follows from their best and cools down until the iterations or the time end.
 *
 * Priorities count in mean computations of a task. The best priority is not known in advance, so each round tries
 * another one, and every second time the best so far; likewise for guides (set_up_guide.h).
 */
#include "planner/solve/search/schedule_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/process/anytime.h"
#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "base/try.h"
#include "planner/solve/exact/branch_bound.h"
#include "planner/solve/exact/label_setting.h"
#include "planner/solve/search/beam_search.h"
#include "planner/solve/search/list_baseline.h"
#include "planner/solve/search/local_search.h"
#include "planner/solve/search/stream_search.h"

/* In mean computations. */
static const double priorities[] = {0.8, 51.2, 3.2, 12.8, 51.2, 0.2, 0.05};

/* Worth of a shared bridge's ticks (beam_rule.thrift). */
static const double thrifts[] = {1, 0, 4, 0.3};

enum { PASSES = 120, ENDS = 12, WIDTH_MAX = 512 };
/* Ends with at most EXACT_TASKS tasks go to branch and bound, with more nodes if the instance has few tasks. */
enum { EXACT_TASKS = 14, EXACT_NODES = 3000, SMALL_TASKS = 64, SMALL_NODES = 20000 };

/* The iterations that run label setting if there are few tasks: their widths and shares of fitting. */
enum { LABELS_COUNT = 3, LABELS_NODES = 800 /* by the width */ };
static const size_t labels_bytes = 64 << 20;
/* With all rounds of fitting and 500 labels the first took 3 s to 30 s of a processor for 45 tasks on two classes of
 * devices, too long for a short search. */
static const struct {
    uint32_t at, width;
    double fit_share;
} label_passes[LABELS_COUNT] = {{40, 60, 0.04}, {150, 500, 0.04}, {400, 4000, 1}};

/* Candidates of one run, which take a tenth of a second. */
static const double work_max = 2e7;
static const double end_work = 1e6; /* work of making an end again */
static const double first_noise = 0.35;
static const double quick_work = 2e7; /* tasks by jobs: LRTF runs regardless of the time */
static const double opening_share = 0.2; /* of the time, before local search */

/* Staggered list schedules: the longest lead, in chains; the priority as above. */
static const struct {
    double lead, priority;
} staggerings[] = {{0.7, 3.2}, {0.5, 3.2}, {1, 0.8}};

/* Local search: least gap; in mean computations; in the unit of local_rule. */
static const double local_gap = 0.01;
static const double sharpness_first = 0.2, sharpness_last = 0.06; /* smaller as it cools */
static const double sharpness_few = 0.16;
static const double heat_per_local_pass = 0.001, heat_min = 0.02, heat_max = 0.3;
/* Annealing: the highest first temperature; passes of an iteration; one iteration in ANNEAL_REST is another kind. */
static const double anneal_heat = 3;
enum { ANNEAL_TASKS_MIN = 16, ANNEAL_TASKS_MAX = 160, ANNEAL_PASSES = 100, ANNEAL_REST = 4 };
enum { MANY_LOCAL_PASSES = 60, REACH_MANY = 32, REACH_FEW = 12 };

struct schedule_search {
    const struct instance *in;
    const struct instance_bounds *bounds;
    const struct schedule_search_options *options;
    struct anytime limits;
    struct beam_search *beam;
    struct dispatch_step *steps, *trial; /* the best; the current one */
    int64_t value, bound;
    double mean;          /* computation of a task */
    double best_priority; /* of the run that made the best */
    double *weights, *best_weights; /* (job_count) priorities: of this run, of the run that made the best */
    uint32_t best_softness;
    double best_thrift;
    bool best_every;
    bool copies;          /* without copies, slack distinguishes partial schedules too late for beams */
    struct local_search *local; /* NULL: not begun */
    uint32_t local_first;       /* the iteration that was its first pass */
    double started_s, local_started_s, local_pass_s; /* start of all; start of the first pass of local search;
                                                        duration of that pass */
    double *leads;        /* (job_count) */
    bool few;             /* few tasks, for a makespan: annealed */
    bool many;            /* many tasks, with copies, for a makespan: staggered jobs and local search */
    uint32_t width_max;
    uint32_t iteration;
};

static bool finished(struct schedule_search *s)
{
    return s->value <= s->bound || !anytime_step(&s->limits);
}

/* --- orders ---------------------------------------------------------------------------------- */

struct schedule_search_timed {
    int64_t start;
    struct dispatch_step step;
    uint32_t at;
};

static int compare_timed(const void *a, const void *b)
{
    const struct schedule_search_timed *x = a, *y = b;
    if (x->start != y->start) return x->start < y->start ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static enum status sort_steps(const struct instance *in, struct dispatch_step *steps, struct error *err)
{
    struct dispatch *d = NULL;
    struct schedule_search_timed *timed = alloc_zeroed(in->task_count, sizeof *timed);
    if (!timed) return error_memory(err, "an order", in->task_count * sizeof *timed);
    if (!dispatch_create(in, &d, err)) {
        for (uint32_t t = 0; t < in->task_count; t++)
            timed[t] = (struct schedule_search_timed){dispatch_put(d, steps[t].job, steps[t].device), steps[t], t};
        qsort(timed, in->task_count, sizeof *timed, compare_timed);
        for (uint32_t t = 0; t < in->task_count; t++) steps[t] = timed[t].step;
    }
    dispatch_destroy(d);
    free(timed);
    return err->status;
}

static enum status keep(struct schedule_search *s, int64_t value, struct error *err)
{
    if (value >= s->value) return STATUS_OK;
    s->value = value;
    memcpy(s->steps, s->trial, s->in->task_count * sizeof *s->steps);
    return sort_steps(s->in, s->steps, err);
}

/* --- iterations ------------------------------------------------------------------------------ */

static double work_of(const struct schedule_search *s, const struct beam_rule *rule)
{
    double devices = rule->every_device ? 1.0 + s->in->device_count : 1;
    if (rule->thrift > 0) devices += (double)s->in->device_count * s->in->device_count;
    return (double)s->in->task_count * rule->width * s->in->job_count * devices;
}

static enum status try_rule(struct schedule_search *s, const struct beam_rule *rule, uint32_t fixed,
                            struct error *err)
{
    int64_t value;
    if (fixed > 0) memcpy(s->trial, s->steps, fixed * sizeof *s->trial);
    int64_t below = s->value;
    if (!beam_search_run(s->beam, rule, fixed, below, s->options->until_s, s->trial, &value))
        return STATUS_OK;
    s->best_priority = rule->priority;
    s->best_softness = rule->softness;
    s->best_thrift = rule->thrift;
    memcpy(s->best_weights, s->weights, s->in->job_count * sizeof *s->weights);
    s->best_every = rule->every_device;
    return keep(s, value, err);
}

static double random_priority(const struct schedule_search *s, uint64_t draw)
{
    if (draw % 2) return s->best_priority;
    return priorities[draw / 2 % ARRAY_COUNT(priorities)] * s->mean;
}

/* Returns a guide at random. Without copies the bound's duals suffice. */
static uint32_t random_softness(const struct schedule_search *s, uint64_t draw)
{
    return !s->copies ? 0 : draw % 2 ? s->best_softness : draw / 2 % 8 == 0 ? 0 : 1 + (uint32_t)(draw / 16 % 2);
}

/* Returns the weight of bytes over a shared bridge. */
static double random_thrift(const struct schedule_search *s, uint64_t draw)
{
    if (s->in->bridge_bytes_per_tick == 0) return 0;
    return draw % 2 ? s->best_thrift : thrifts[draw / 2 % ARRAY_COUNT(thrifts)];
}

/* Returns noise from 1 to 0.01: much reorders jobs of different lengths, little only equal ones. */
static double random_noise(uint64_t draw)
{
    return ldexp(1, -(int)(draw / 16 % 8));
}

/* Sets the weights of this iteration: the best schedule's, or all 1, changed by up to `noise`. */
static void perturb(struct schedule_search *s, bool best, double noise, uint64_t seed)
{
    for (uint32_t i = 0; i < s->in->job_count; i++)
        s->weights[i] = (best ? s->best_weights[i] : 1) * (1 + noise * (2 * random_unit(seed, i) - 1));
}

/* Makes the last tasks of the best schedule again. */
static enum status remake_end(struct schedule_search *s, uint64_t draw, struct error *err)
{
    uint32_t n = s->in->task_count;
    uint32_t open = 2 + (uint32_t)pow(n, random_unit(draw, 1)); /* of any order of magnitude */
    if (open > n) open = n;
    if (open <= EXACT_TASKS && branch_bound_takes(s->in)) {
        struct branch_bound_options limits = {.fixed = n - open,
                                              .nodes_max = n <= SMALL_TASKS ? SMALL_NODES : EXACT_NODES,
                                              .until_s = s->options->until_s, .memory_bytes = 1 << 20};
        struct branch_bound_result result;
        int64_t value = s->value;
        memcpy(s->trial, s->steps, n * sizeof *s->trial);
        TRY(branch_bound_run(s->in, s->bounds, &limits, s->trial, &value, &result, err));
        return keep(s, value, err);
    }
    struct beam_rule rule = {.width = s->copies || draw / 256 % 2 ? 4 : 1,
                             .softness = random_softness(s, draw / 4096),
                             .priority = random_priority(s, draw / 8), .weights = s->weights,
                             .thrift = random_thrift(s, draw >> 32),
                             .every_device = draw / 4 % 2};
    perturb(s, draw / 1024 % 2, random_noise(draw), draw);
    double share = (double)open / n;
    while (rule.width > 1 && rule.width < s->width_max && work_of(s, &rule) * share < end_work)
        rule.width *= 2;
    if (rule.width > s->width_max) rule.width = s->width_max;
    return try_rule(s, &rule, n - open, err);
}

/* --- local search ---------------------------------------------------------------------------- */

/* Returns true if local search pays: ends and beams find small gains sooner. */
static bool local_search_pays(const struct schedule_search *s)
{
    return s->many && (double)(s->value - s->bound) > local_gap * (double)s->bound;
}

/* Returns the number of passes of local search, known after the first pass: the remaining iterations, or fewer if
 * time is short. */
static double local_passes_most(const struct schedule_search *s, bool *timed)
{
    double most = (double)(s->options->iterations - s->local_first);
    double affordable = (s->options->until_s - s->local_started_s) / s->local_pass_s;
    *timed = affordable < most;
    return *timed ? affordable : most;
}

static enum status begin_local_search(struct schedule_search *s, struct error *err)
{
    s->local_first = s->iteration;
    s->local_started_s = clock_s();
    TRY(local_search_create(s->in, &s->local, err));
    local_search_begin(s->local, s->steps);
    return STATUS_OK;
}

/* The first pass accepts only improvements. Its time gives the number of passes that follow and cool down. */
static enum status run_local_pass(struct schedule_search *s, uint64_t draw, struct error *err)
{
    if (!s->local) TRY(begin_local_search(s, err));
    bool first = s->iteration == s->local_first, many = false, timed;
    double warm = 0, done = 0;
    if (!first) {
        double most = local_passes_most(s, &timed);
        done = (s->iteration - s->local_first) / most;
        if (timed)
            done = (clock_s() - s->local_started_s) / (s->options->until_s - s->local_started_s);
        done = fmin(done, 1);
        warm = fmin(fmax(most * heat_per_local_pass, heat_min), heat_max) * (1 - done);
        many = most >= MANY_LOCAL_PASSES;
    }
    double sharp = many ? sharpness_first + (sharpness_last - sharpness_first) * done : sharpness_few;
    struct local_rule rule = {.reach = many ? REACH_MANY : REACH_FEW, .sharpness = sharp * s->mean,
                              .temperature = warm, .seed = draw};
    int64_t value = local_search_run(s->local, &rule, s->options->until_s);
    if (first) s->local_pass_s = clock_s() - s->local_started_s;
    if (value >= s->value) return STATUS_OK;
    memcpy(s->trial, local_search_order(s->local), s->in->task_count * sizeof *s->trial);
    return keep(s, value, err);
}

/*
 * Anneals the best schedule. Each iteration draws its own first temperature: high ones leave the neighbourhood of the
 * best schedule, low ones finish it.
 */
static enum status anneal(struct schedule_search *s, uint64_t draw, struct error *err)
{
    const double heat = anneal_heat * random_unit(draw, 1);
    if (!s->local) TRY(local_search_create(s->in, &s->local, err));
    local_search_begin(s->local, s->steps);
    for (uint32_t pass = 0; pass < ANNEAL_PASSES && !finished(s); pass++) {
        const double done = (double)pass / ANNEAL_PASSES;
        const double sharp = sharpness_first + (sharpness_last - sharpness_first) * done;
        const struct local_rule rule = {.reach = REACH_MANY, .sharpness = sharp * s->mean,
                                        .temperature = heat * (1 - done), .seed = random_u64(draw, pass + 2)};
        const int64_t value = local_search_run(s->local, &rule, s->options->until_s);
        if (value >= s->value) continue;
        memcpy(s->trial, local_search_order(s->local), s->in->task_count * sizeof *s->trial);
        TRY(keep(s, value, err));
    }
    return STATUS_OK;
}

/* --- the first list schedules ---------------------------------------------------------------- */

/*
 * Lets some jobs run far ahead. If forward passes hide consecutive copies badly, some jobs' backward passes should run
 * during others' forward passes as early as possible; jobs that start together stay in step. Three in ten jobs have no
 * lead, to leave work for the end.
 */
static void stagger(struct schedule_search *s, double most, uint64_t draw)
{
    for (uint32_t i = 0; i < s->in->job_count; i++)
        s->leads[i] = most * fmax(0, (random_unit(draw, i) - 0.3) / 0.7);
}

/* Runs one of the list schedules that come first. */
static enum status open(struct schedule_search *s, uint64_t draw, struct error *err)
{
    struct beam_rule rule = {.width = 1, .weights = s->weights};
    uint32_t k = s->iteration;
    if (s->many && k < ARRAY_COUNT(staggerings)) {
        perturb(s, false, 0, draw);
        stagger(s, staggerings[k].lead, draw);
        rule.leads = s->leads;
        rule.idling = 4;
        rule.priority = staggerings[k].priority * s->mean;
        rule.softness = 1;
        return try_rule(s, &rule, 0, err);
    }
    if (s->many) k -= (uint32_t)ARRAY_COUNT(staggerings);
    perturb(s, false, s->copies && k % 2 ? first_noise : 0, draw);
    rule.priority = priorities[k % ARRAY_COUNT(priorities)] * s->mean;
    rule.every_device = s->in->class_count > 1 ? k % 4 > 0 : k >= ARRAY_COUNT(priorities);
    rule.patient = s->in->class_count > 1 && k % 4 == 3;
    if (s->in->bridge_bytes_per_tick > 0) rule.thrift = thrifts[k % ARRAY_COUNT(thrifts)];
    rule.softness = !s->copies ? 0 : k > 4 && k % 3 == 2 ? 2 : 1;
    return work_of(s, &rule) <= work_max ? try_rule(s, &rule, 0, err) : STATUS_OK;
}

/* Returns the row of label_passes that this iteration runs; LABELS_COUNT: none. */
static uint32_t label_pass_of(const struct schedule_search *s)
{
    uint32_t which = 0;
    if (!s->copies || s->in->task_count > SMALL_TASKS || !label_setting_takes(s->in)) return LABELS_COUNT;
    while (which < LABELS_COUNT && label_passes[which].at != s->iteration) which++;
    return which;
}

static enum status run_label_pass(struct schedule_search *s, uint32_t which, struct error *err)
{
    uint32_t width = label_passes[which].width;
    struct label_setting_options limits = {.until_s = s->options->until_s, .width = width, .width_max = width,
                                           .memory_bytes = labels_bytes, .fit_share = label_passes[which].fit_share,
                                           .nodes_max = (uint64_t)LABELS_NODES * width};
    struct label_setting_result result;
    int64_t value = s->value;
    memcpy(s->trial, s->steps, s->in->task_count * sizeof *s->trial);
    TRY(label_setting_run(s->in, s->bounds, &limits, s->trial, &value, &result, err));
    return keep(s, value, err);
}

static enum status iterate(struct schedule_search *s, struct error *err)
{
    uint32_t first = 2 * ARRAY_COUNT(priorities), k = s->iteration;
    if (s->many) first += (uint32_t)ARRAY_COUNT(staggerings);
    uint64_t draw = random_u64(s->options->seed, k);
    double noise = random_noise(draw);
    bool late = clock_s() - s->started_s > opening_share * (s->options->until_s - s->started_s);
    if (s->many && (s->local || ((k == first || (k < first && late)) && local_search_pays(s))))
        return run_local_pass(s, draw, err);
    if (k < first) return open(s, draw, err);
    struct beam_rule rule = {.width = 1, .weights = s->weights};
    uint32_t which = label_pass_of(s);
    if (which < LABELS_COUNT) return run_label_pass(s, which, err);
    if (s->few && k % ANNEAL_REST > 0) return anneal(s, draw, err);
    uint32_t round = (k - first) / (1 + PASSES + ENDS), turn = (k - first) % (1 + PASSES + ENDS);
    if (turn > PASSES) return remake_end(s, draw, err);
    rule.priority = random_priority(s, draw);
    rule.softness = random_softness(s, draw / 4096);
    rule.thrift = random_thrift(s, draw >> 32);
    rule.every_device = (s->copies && draw / 128 % 2) || (s->in->class_count > 1 && draw / 128 % 4);
    rule.patient = s->in->class_count > 1 && draw / 2048 % 4 == 0;
    if (turn == 0 && s->copies) {
        for (uint32_t r = 0; r <= round && rule.width < s->width_max; r++) rule.width *= 4;
        if (rule.width > s->width_max) rule.width = s->width_max;
        rule.every_device = s->best_every;
        if (round % 4 < 3) {
            rule.priority = s->best_priority;
            rule.softness = s->best_softness;
            rule.thrift = s->best_thrift;
        }
        if (round % 2 == 0) noise = 0;
    }
    perturb(s, draw / 1024 % 4 > 0, noise, draw);
    while (rule.width > 1 && work_of(s, &rule) > work_max) rule.width /= 2;
    if (work_of(s, &rule) > work_max) rule.every_device = false;
    return try_rule(s, &rule, 0, err);
}

static enum status baselines(struct schedule_search *s, struct error *err)
{
    int64_t value;
    bool quick = (double)s->in->task_count * s->in->job_count <= quick_work;
    double until_s = quick ? HUGE_VAL : s->options->until_s;
    s->value = INT64_MAX;
    if (!quick && (list_baseline_whole(s->in, s->trial, &value, err) || keep(s, value, err)))
        return err->status;
    TRY(list_baseline_lrtf(s->in, until_s, s->trial, &value, err));
    TRY(keep(s, value, err));
    if (s->value > s->bound &&
        (list_baseline_hydra(s->in, until_s, s->trial, &value, err) || keep(s, value, err)))
        return err->status;
    return STATUS_OK;
}

/* Returns the width that 64 MiB of nodes and one run of the cheapest kind allow. */
static uint32_t widest(const struct instance *in)
{
    double tasks = in->task_count, width = (64 << 20) / 12.0 / tasks;
    if (work_max / tasks / in->job_count < width) width = work_max / tasks / in->job_count;
    return width < 1 ? 1 : width > WIDTH_MAX ? WIDTH_MAX : (uint32_t)width;
}

static bool has_copies(const struct instance *in)
{
    for (uint32_t u = 0; u < in->unit_count; u++)
        if (in->units[u].in > 0 || in->units[u].out > 0) return true;
    return false;
}

static bool few_tasks(const struct instance *in)
{
    return in->task_count >= ANNEAL_TASKS_MIN && in->task_count <= ANNEAL_TASKS_MAX;
}

bool schedule_search_is_local(const struct instance *in)
{
    const bool many = in->task_count > ANNEAL_TASKS_MAX && has_copies(in);
    return in->objective == OBJECTIVE_MAKESPAN && !in->streams && (few_tasks(in) || many);
}

enum status schedule_search(const struct instance *in, const struct instance_bounds *bounds,
                            const struct schedule_search_options *options, struct dispatch_step *steps,
                            int64_t *value, uint32_t *iterations, struct error *err)
{
    if (in->streams)
        return stream_search(in, instance_bounds_best(bounds), options, steps, value, iterations, err);
    struct schedule_search s = {.in = in, .bounds = bounds, .options = options, .steps = steps, .started_s = clock_s(),
                                .bound = instance_bounds_best(bounds), .width_max = widest(in),
                                .limits = {.until_s = options->until_s, .clock_every = 1, .stop = options->stop}};
    s.trial = alloc_zeroed(in->task_count, sizeof *s.trial);
    s.weights = alloc_zeroed(in->job_count, sizeof *s.weights);
    s.best_weights = alloc_zeroed(in->job_count, sizeof *s.best_weights);
    s.leads = alloc_zeroed(in->job_count, sizeof *s.leads);
    if (!s.trial || !s.weights || !s.best_weights || !s.leads) {
        error_memory(err, "a search", in->task_count * sizeof *s.trial);
        goto out;
    }
    s.copies = has_copies(in);
    for (uint32_t u = 0; u < in->unit_count; u++)
        s.mean += (double)instance_compute_min(in, u) * in->jobs[in->units[u].job].repeat;
    s.mean /= in->task_count;
    s.few = schedule_search_is_local(in) && few_tasks(in);
    s.many = schedule_search_is_local(in) && !s.few;
    s.best_priority = s.mean;
    perturb(&s, false, 0, 0);
    memcpy(s.best_weights, s.weights, in->job_count * sizeof *s.weights);
    s.iteration = options->made;
    if (options->made > 0) s.value = *value;
    else if (baselines(&s, err)) goto out;
    if (options->iterations == 0 || finished(&s)) goto done;
    if (beam_search_create(in, bounds, s.width_max, &s.beam, err)) goto out;
    for (; s.iteration < options->iterations && !finished(&s); s.iteration++)
        if (iterate(&s, err)) goto out;
done:
    *value = s.value;
    *iterations = s.iteration;
out:
    beam_search_destroy(s.beam);
    local_search_destroy(s.local);
    free(s.leads);
    free(s.trial);
    free(s.weights);
    free(s.best_weights);
    return err->status;
}
