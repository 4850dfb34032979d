/*
 * Times become ticks of a billionth of the longest run, rounded up: small enough that the rounding does not matter, and
 * large enough that the horizon of the instance fits (planner/saturn/spase/spase.h).
 *
 * A job's configurations in the instance are its run times in turn: the run time on class c of a configuration has only
 * that class, and modes (spase.h) drop dominated ones.
 */
#include "planner/saturn/saturn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/try.h"
#include "models/cost/cost.h"
#include "models/job/host_files.h"
#include "planner/saturn/saturn_runs.h"

const char *const saturn_rule_names[SATURN_RULES] = {
    [SATURN_RULE_SPASE] = "saturn",
    [SATURN_RULE_MAX] = "max-heuristic",
    [SATURN_RULE_MIN] = "min-heuristic",
    [SATURN_RULE_OPTIMUS] = "optimus",
    [SATURN_RULE_OPTIMUS_DYNAMIC] = "optimus-dynamic",
    [SATURN_RULE_RANDOM] = "randomized",
};

/* The baseline with the same rule for one schedule; SPASE's own rule has none. */
static const enum spase_baseline baseline_of[SATURN_RULES] = {
    [SATURN_RULE_SPASE] = SPASE_BASELINE_COUNT,
    [SATURN_RULE_MAX] = SPASE_BASELINE_MAX,
    [SATURN_RULE_MIN] = SPASE_BASELINE_MIN,
    [SATURN_RULE_OPTIMUS] = SPASE_BASELINE_OPTIMUS,
    [SATURN_RULE_OPTIMUS_DYNAMIC] = SPASE_BASELINE_OPTIMUS,
    [SATURN_RULE_RANDOM] = SPASE_BASELINE_RANDOM,
};

bool saturn_rule_find(const char *policy, enum saturn_rule *out)
{
    for (enum saturn_rule r = 0; policy && r < SATURN_RULES; r++)
        if (strcmp(policy, saturn_rule_names[r]) == 0) return *out = r, true;
    return false;
}

enum { ITERATIONS_DEFAULT = 200000, NODES_PER_ITERATION = 5, REPLAN_ITERATIONS = 20000 };
static const double ticks_of_longest = 1e9, intervals_most = 999; /* of the longest run: SPASE_TICKS_MAX is 1000 */

struct saturn {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct saturn_options *options;
    struct saturn_machine machine;
    struct saturn_times times;
    struct spase instance;
    struct spase_schedule schedule;
    struct spase_course course;  /* replanned at intervals, if the options say so */
    struct saturn_runs runs;
    bool turns;                  /* jobs are read from their files before they run, and written after */
    bool carries_some;           /* some job on several devices can be carried out: its states need host memory, too */
    struct job_set *plan_jobs;   /* the same, until they become the plan's */
    struct saturn_report *report;
    struct error *err;
};

/* --- the instance --------------------------------------------------------------------------- */

static enum status name_after(struct spase *in, const char *what, uint32_t number, const char **out, struct error *err)
{
    char text[32];
    snprintf(text, sizeof text, "%s %u", what, number);
    return arena_string(&in->arena, text, out, err);
}

static enum status fill_machine(struct saturn *s)
{
    struct spase *in = &s->instance;
    in->name = s->hardware->name;
    for (uint32_t c = 0; c < s->machine.class_count; c++)
        TRY(name_after(in, "class", c, &in->class_names[c], s->err));
    for (uint32_t n = 0; n < s->machine.node_count; n++) {
        in->nodes[n].class = s->machine.nodes[n].class;
        in->nodes[n].device_count = s->machine.nodes[n].count;
        TRY(name_after(in, "node", n, &in->nodes[n].name, s->err));
    }
    return STATUS_OK;
}

/* Returns the seconds of a run, with those of the job's files if it is in host memory only while it runs. */
static double seconds_of(const struct saturn *s, const struct saturn_time *t)
{
    const struct job *job = &s->jobs->jobs[t->job];
    uint64_t layers = job->network.layer_count;
    const bool files = t->config.devices == 1 || saturn_time_is_carried_out(s->hardware, job, t);
    if (!s->turns || !files) return t->run_s;
    return t->run_s + host_file_open_s(s->hardware, job, 0, layers) + host_file_close_s(s->hardware, job, 0, layers);
}

/* Run times stand job by job. */
static void fill_jobs(struct saturn *s)
{
    struct spase *in = &s->instance;
    double tick_s = s->report->tick_s;
    for (uint32_t i = 0; i < s->times.count; i++) {
        const struct saturn_time *t = &s->times.times[i];
        struct spase_job *job = &in->jobs[t->job];
        if (job->config_count == 0) job->first_config = i;
        job->config_count++;
        job->name = s->jobs->jobs[t->job].name;
        in->configs[i] = (struct spase_config){.parallelism = saturn_way_names[t->config.way],
                                               .devices = t->config.devices};
        int64_t ticks = (int64_t)ceil(seconds_of(s, t) / tick_s);
        in->ticks[(size_t)i * in->class_count + t->class] = ticks > 1 ? ticks : 1;
    }
}

static enum status make_instance(struct saturn *s)
{
    double longest_s = 0;
    for (size_t i = 0; i < s->times.count; i++)
        longest_s = max_s(longest_s, seconds_of(s, &s->times.times[i]));
    s->report->tick_s = longest_s > 0 ? longest_s / ticks_of_longest : 1;
    s->report->tried = s->times.tried;
    s->report->timed = s->times.timed;
    if (s->times.count > SPASE_CONFIGS_MAX)
        return error_set(s->err, STATUS_LIMIT, "too many configurations (limit is %d)", SPASE_CONFIGS_MAX);
    TRY(spase_init(&s->instance, s->machine.class_count, s->machine.node_count, s->jobs->count,
                   (uint32_t)s->times.count, s->err));
    TRY(fill_machine(s));
    fill_jobs(s);
    return spase_finish(&s->instance, s->err);
}

/* --- the schedule --------------------------------------------------------------------------- */

static enum status find_schedule(struct saturn *s)
{
    const struct planner_options *o = s->options->spilled;
    uint64_t iterations = o->iterations ? o->iterations : ITERATIONS_DEFAULT;
    struct spase_certify_options certify = {.seed = o->seed, .early = true, .search_limit_s = HUGE_VAL,
                                            .exact_limit_s = HUGE_VAL, .iterations = iterations,
                                            .nodes_max = NODES_PER_ITERATION * iterations};
    if (o->time_limit_s > 0) {
        certify = (struct spase_certify_options){.seed = o->seed};
        certify.iterations = o->iterations ? o->iterations : UINT64_MAX;
        spase_certify_divide(&s->instance, o->time_limit_s, &certify);
    }
    TRY(spase_certify(&s->instance, &certify, &s->schedule, &s->report->certificate, s->err));
    const struct spase_certificate *c = &s->report->certificate;
    bool cut_short = o->time_limit_s > 0 && c->status == CERTIFICATE_GAP && c->iterations < certify.iterations;
    if (o->search) planner_search_add(o->search, &(struct planner_search){c->iterations, cut_short});
    return STATUS_OK;
}

/* Replaces the best schedule; proofs about any schedule hold for this one. */
static enum status adopt_schedule(struct saturn *s, const struct spase_step *steps)
{
    spase_schedule_release(&s->schedule);
    TRY(spase_schedule_make(&s->instance, steps, NULL, &s->schedule, s->err));
    struct spase_certificate *c = &s->report->certificate;
    c->value = s->schedule.makespan;
    if (c->value > c->bound) c->status = CERTIFICATE_GAP;
    return STATUS_OK;
}

/* A rival's schedule is the plan's for its own rule, and for Saturn's where a short search has found none as good. */
static enum status find_baselines(struct saturn *s, struct spase_step *steps)
{
    for (enum spase_baseline b = 0; b < SPASE_BASELINE_COUNT; b++) {
        int64_t value = 0;
        TRY(spase_baseline_run(&s->instance, b, s->options->spilled->seed, NULL, steps, &value, s->err));
        s->report->baselines_s[b] = (double)value * s->report->tick_s;
        const bool better = s->options->rule == SATURN_RULE_SPASE && value < s->schedule.makespan;
        if (better || b == baseline_of[s->options->rule]) TRY(adopt_schedule(s, steps));
    }
    return STATUS_OK;
}

/* --- introspection -------------------------------------------------------------------------- */

/* Returns the most that a stop costs: all states out over the link of one device, and in again over the link of
 * another. */
static double restart_default_s(const struct saturn *s)
{
    double most_s = 0;
    for (uint32_t j = 0; j < s->jobs->count; j++) {
        const struct job *job = &s->jobs->jobs[j];
        uint64_t bytes = job_state(job, 0, job->network.layer_count).bytes;
        for (uint32_t c = 0; c < s->machine.class_count; c++) {
            uint32_t device = s->machine.devices[s->machine.nodes[s->machine.class_node[c]].first];
            double seconds = cost_copy_s(s->hardware, device, COPY_D2H, bytes) +
                             cost_copy_s(s->hardware, device, COPY_H2D, bytes);
            if (seconds > most_s) most_s = seconds;
        }
    }
    return most_s;
}

static double longest_s(const struct saturn *s)
{
    return ticks_of_longest * s->report->tick_s;
}

/* Returns the interval; 0: nothing is planned again. The default is the paper's for Optimus-dynamic, or for very short
 * runs the longest that ticks can express. */
static double interval_of(const struct saturn *s)
{
    if (s->options->interval_s > 0) return s->options->interval_s;
    return s->options->rule == SATURN_RULE_OPTIMUS_DYNAMIC ? fmin(SATURN_INTERVAL_S, intervals_most * longest_s(s)) : 0;
}

/* Computes the intervals in ticks. Errors: STATUS_BAD_INPUT for times out of all proportion to the runs. */
static enum status intervals_of(struct saturn *s, struct spase_introspect_options *out)
{
    const struct saturn_options *options = s->options;
    struct saturn_report *report = s->report;
    double tick_s = report->tick_s, most_s = (double)SPASE_TICKS_MAX * tick_s, interval_s = interval_of(s);
    report->restart_s = options->restart_s >= 0 ? options->restart_s : restart_default_s(s);
    report->threshold_s = options->threshold_s >= 0 ? options->threshold_s : interval_s / 2;
    if (!(report->restart_s < most_s) || !(interval_s < most_s) || !(report->threshold_s < most_s))
        return error_set(s->err, STATUS_BAD_INPUT,
                         "restarts of %g s, intervals of %g s or a threshold of %g s are too long for runs of at most "
                         "%g s",
                         report->restart_s, interval_s, report->threshold_s, longest_s(s));
    *out = (struct spase_introspect_options){.interval_ticks = (int64_t)ceil(interval_s / tick_s),
                                             .threshold_ticks = (int64_t)ceil(report->threshold_s / tick_s),
                                             .restart_ticks = (int64_t)ceil(report->restart_s / tick_s),
                                             .seed = options->spilled->seed,
                                             .iterations = REPLAN_ITERATIONS,
                                             .optimus = options->rule == SATURN_RULE_OPTIMUS_DYNAMIC};
    return STATUS_OK;
}

static enum status run_course(struct saturn *s, const struct spase_step *steps,
                              const struct spase_introspect_options *options, struct spase_course *out)
{
    TRY(spase_introspect(&s->instance, steps, options, out, s->err));
    return spase_course_check(&s->instance, out, options->restart_ticks, s->err);
}

static enum status plan_anew(struct saturn *s, struct spase_step *steps)
{
    struct saturn_report *report = s->report;
    struct spase_introspect_options options;
    TRY(intervals_of(s, &options));
    TRY(spase_schedule_steps(&s->instance, &s->schedule, steps, s->err));
    TRY(run_course(s, steps, &options, &s->course));
    report->intervals = s->course.intervals;
    report->replans = s->course.replans;
    return STATUS_OK;
}

/* Finds the time of Optimus's rule with the same intervals; it is the plan's course if that is the rule. */
static enum status find_optimus_dynamic(struct saturn *s, struct spase_step *steps)
{
    struct spase_introspect_options options;
    struct spase_course course = {0};
    int64_t value;
    if (s->options->rule == SATURN_RULE_OPTIMUS_DYNAMIC) {
        s->report->optimus_dynamic_s = (double)s->course.makespan * s->report->tick_s;
        return STATUS_OK;
    }
    TRY(intervals_of(s, &options));
    TRY(spase_baseline_run(&s->instance, SPASE_BASELINE_OPTIMUS, 0, NULL, steps, &value, s->err));
    options.optimus = true;
    if (run_course(s, steps, &options, &course) == STATUS_OK)
        s->report->optimus_dynamic_s = (double)course.makespan * s->report->tick_s;
    spase_course_release(&course);
    return s->err->status;
}

/* --- the whole ------------------------------------------------------------------------------ */

static enum status check_jobs(const struct job_set *jobs, const char *policy, struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (jobs->jobs[j].devices)
            return error_set(err, STATUS_BAD_INPUT, "job '%s' names devices, which policy '%s' chooses",
                             jobs->jobs[j].name, policy);
    return STATUS_OK;
}

static enum status schedule_runs(struct saturn *s, struct spase_step *steps)
{
    TRY(find_schedule(s));
    TRY(find_baselines(s, steps));
    s->report->scheduled_s = (double)s->schedule.makespan * s->report->tick_s;
    if (!(interval_of(s) > 0)) return saturn_runs_of_schedule(&s->runs, &s->schedule, s->err);
    TRY(plan_anew(s, steps));
    TRY(find_optimus_dynamic(s, steps));
    TRY(saturn_runs_of_course(&s->runs, &s->course, s->err));
    for (uint32_t i = 0; i < s->runs.count; i++) s->report->restarts += s->runs.runs[i].number > 0;
    return STATUS_OK;
}

static enum status find_runs(struct saturn *s)
{
    TRY(make_instance(s));
    struct spase_step *steps = alloc_zeroed(s->jobs->count, sizeof *steps);
    if (!steps) return error_memory(s->err, "an order", s->jobs->count * sizeof *steps);
    enum status status = schedule_runs(s, steps);
    free(steps);
    return status;
}

static enum status plan_runs(struct saturn *s, bool turns)
{
    s->runs = (struct saturn_runs){.machine = &s->machine, .times = &s->times, .instance = &s->instance,
                                   .jobs = s->jobs};
    s->turns = turns;
    TRY(find_runs(s));
    TRY(saturn_runs_jobs(&s->runs, s->plan_jobs, s->err));
    return saturn_runs_plan(&s->runs, s->plan_jobs, s->options->spilled, turns, s->report->tick_s, s->err);
}

static void forget_runs(struct saturn *s)
{
    saturn_runs_release(&s->runs);
    spase_course_release(&s->course);
    spase_schedule_release(&s->schedule);
    spase_release(&s->instance);
    s->plan_jobs->jobs = s->jobs->jobs; /* its arena keeps its later allocations */
    s->plan_jobs->count = s->jobs->count;
}

/* Plans all jobs in host memory at once, or if it does not hold them, each only while it runs. */
static enum status plan_runs_or_turns(struct saturn *s)
{
    enum status status = plan_runs(s, false);
    s->carries_some |= s->runs.carries_some;
    if (status != STATUS_INFEASIBLE) return status;
    forget_runs(s);
    *s->err = (struct error){0};
    status = plan_runs(s, true);
    s->carries_some |= s->runs.carries_some;
    return status;
}

/* Drops spilled configurations of jobs that fit in another way. Returns false when there are none. */
static bool leave_out_spilled(struct saturn_times *times)
{
    size_t kept = 0;
    for (size_t i = 0, end; i < times->count; i = end) {
        bool others = false;
        for (end = i; end < times->count && times->times[end].job == times->times[i].job; end++)
            others |= times->times[end].config.way != SATURN_SPILLED;
        for (size_t t = i; t < end; t++)
            if (!others || times->times[t].config.way != SATURN_SPILLED) times->times[kept++] = times->times[t];
    }
    bool some = kept < times->count;
    times->count = kept;
    return some;
}

static void leave_out_gangs(struct saturn_times *times)
{
    size_t kept = 0;
    for (size_t i = 0; i < times->count; i++)
        if (times->times[i].config.devices == 1) times->times[kept++] = times->times[i];
    times->count = kept;
}

/* --- too little host memory ------------------------------------------------------------------- */

/* Jobs that may run on one device or on several, those with the most states first. */
struct saturn_alternatives {
    struct saturn_time *all; /* run times before any is left out */
    size_t count;
    uint32_t *jobs;
    uint32_t job_count;
};

static uint64_t state_bytes(const struct job *job)
{
    return job_state(job, 0, job->network.layer_count).bytes;
}

static bool has_both(const struct saturn_times *times, uint32_t job)
{
    bool one = false, several = false;
    for (size_t i = 0; i < times->count; i++) {
        if (times->times[i].job != job) continue;
        one |= times->times[i].config.devices == 1;
        several |= times->times[i].config.devices > 1;
    }
    return one && several;
}

static enum status find_alternatives(struct saturn *s, struct saturn_alternatives *out)
{
    const struct job *jobs = s->jobs->jobs;
    out->count = s->times.count;
    out->all = alloc_zeroed(s->times.count, sizeof *out->all);
    out->jobs = alloc_zeroed(s->jobs->count, sizeof *out->jobs);
    if (!out->all || !out->jobs) return error_memory(s->err, "run times", s->times.count * sizeof *out->all);
    memcpy(out->all, s->times.times, s->times.count * sizeof *out->all);
    for (uint32_t j = 0; j < s->jobs->count; j++) {
        if (!has_both(&s->times, j)) continue;
        uint32_t at = out->job_count++;
        for (; at > 0 && state_bytes(&jobs[out->jobs[at - 1]]) < state_bytes(&jobs[j]); at--)
            out->jobs[at] = out->jobs[at - 1];
        out->jobs[at] = j;
    }
    return STATUS_OK;
}

/* Plans with the first `several` of these jobs on several devices. States of jobs that are only simulated there need no
 * host memory; others have it in turns. */
static enum status plan_several(struct saturn *s, const struct saturn_alternatives *from, uint32_t several)
{
    size_t kept = 0;
    forget_runs(s);
    *s->err = (struct error){0};
    for (size_t i = 0; i < from->count; i++) {
        bool left_out = false;
        for (uint32_t k = 0; k < several; k++) left_out |= from->all[i].job == from->jobs[k];
        if (!left_out || from->all[i].config.devices > 1) s->times.times[kept++] = from->all[i];
    }
    s->times.count = kept;
    return plan_runs(s, s->carries_some);
}

/* Plans with the fewest such jobs by bisection. Keeps the first error if no number helps. */
static enum status plan_fewest_several(struct saturn *s, const struct saturn_alternatives *from)
{
    const struct error first = *s->err; /* none if there is a plan with turns */
    uint32_t low = 0, high = from->job_count, planned = high;
    enum status status = high > 0 ? plan_several(s, from, high) : STATUS_INFEASIBLE;
    if (status == STATUS_INFEASIBLE) {
        *s->err = first;
        return status;
    }
    while (!status && high - low > 1) {
        planned = low + (high - low) / 2;
        status = plan_several(s, from, planned);
        if (!status) high = planned;
        else if (status == STATUS_INFEASIBLE) low = planned, status = STATUS_OK;
    }
    return !status && planned != high ? plan_several(s, from, high) : status;
}

static enum status plan_turns_again(struct saturn *s, const struct saturn_alternatives *from)
{
    forget_runs(s);
    *s->err = (struct error){0};
    memcpy(s->times.times, from->all, from->count * sizeof *from->all);
    s->times.count = from->count;
    return plan_runs(s, true);
}

/* Moves jobs with many states to several devices until the host holds the states of the jobs that run at the same time,
 * unless the plan that there is, with jobs in turns, is faster. `turns_s`: its time; HUGE_VAL: there is none. */
static enum status plan_with_less_on_hosts(struct saturn *s, double turns_s)
{
    struct saturn_alternatives from = {0};
    enum status status = find_alternatives(s, &from);
    if (!status) status = plan_fewest_several(s, &from);
    bool slower = status == STATUS_INFEASIBLE || (!status && s->report->scheduled_s >= turns_s);
    if (slower && turns_s < HUGE_VAL) (void)!plan_turns_again(s, &from);
    free(from.all);
    free(from.jobs);
    return s->err->status;
}

/* Reports a job that has no way left. */
static enum status check_times(const struct saturn *s)
{
    size_t i = 0;
    for (uint32_t j = 0; j < s->jobs->count; j++) {
        if (i == s->times.count || s->times.times[i].job != j)
            return error_set(s->err, STATUS_INFEASIBLE, "job '%s' fits on no single device", s->jobs->jobs[j].name);
        while (i < s->times.count && s->times.times[i].job == j) i++;
    }
    return STATUS_OK;
}

static enum status find_times(struct saturn *s)
{
    const struct saturn_options *o = s->options;
    struct saturn_times *timed = o->kept_times ? o->kept_times : &s->times;
    if (timed->count == 0)
        TRY(saturn_times_find(&s->machine, s->jobs, o->spilled, o->single, o->clock, timed, s->err));
    if (timed != &s->times) TRY(saturn_times_slowed(timed, o->slowed > 0 ? o->slowed : 1, &s->times, s->err));
    if (!o->single) return STATUS_OK;
    leave_out_gangs(&s->times);
    return check_times(s);
}

static enum status prepare(struct saturn *s)
{
    TRY(check_jobs(s->jobs, saturn_rule_names[s->options->rule], s->err));
    TRY(saturn_machine_find(s->hardware, &s->machine, s->err));
    TRY(find_times(s));
    enum status status = plan_runs_or_turns(s);
    /* States on the host are there at the same time, which the instance does not model. */
    if (status == STATUS_INFEASIBLE && leave_out_spilled(&s->times)) {
        forget_runs(s);
        *s->err = (struct error){0};
        status = plan_runs_or_turns(s);
    }
    if (s->options->single || (status && status != STATUS_INFEASIBLE)) return status;
    if (!status && (!s->turns || s->carries_some || s->options->rule != SATURN_RULE_SPASE)) return status;
    return plan_with_less_on_hosts(s, status ? HUGE_VAL : s->report->scheduled_s);
}

/* A course may end sooner than any schedule, because the bound is for jobs that are not stopped. */
static struct plan_order order_of(const struct saturn *s)
{
    const struct spase_certificate *c = &s->report->certificate;
    uint64_t tried = s->options->rule == SATURN_RULE_SPASE ? c->iterations : 1; /* a rule makes one */
    if (s->report->restarts > 0) return (struct plan_order){.kind = PLAN_ORDER_NONE};
    double bound_s = (double)c->bound * s->report->tick_s;
    return (struct plan_order){.bound_s = s->options->bound_s > 0 ? min_s(bound_s, s->options->bound_s) : bound_s,
                               .kind = PLAN_ORDER_GANGS,
                               .tried = tried > INT64_MAX ? INT64_MAX : tried};
}

enum status saturn_plan(struct hardware *hardware, struct job_set *jobs, const struct saturn_options *options,
                        struct saturn_report *report, struct plan *out, struct error *err)
{
    struct planner_options spilled = *options->spilled;
    struct saturn_options own = *options;
    const struct job_set before = *jobs; /* its array stays where it is */
    struct saturn s = {.hardware = hardware, .jobs = &before, .plan_jobs = jobs, .options = &own, .report = report,
                       .err = err};
    spilled.policy = NULL;
    own.spilled = &spilled;
    report->slowed = options->slowed;
    enum status status = prepare(&s);
    if (!status) {
        const struct merge_options how = {.policy = saturn_rule_names[own.rule], .seed = spilled.seed,
                                          .order = order_of(&s)};
        status = plan_merge(hardware, jobs, s.runs.subplans, s.runs.count, &how, out, err);
    }
    hardware_release(hardware);
    job_set_release(jobs);
    saturn_runs_release(&s.runs);
    spase_course_release(&s.course);
    spase_schedule_release(&s.schedule);
    spase_release(&s.instance);
    saturn_times_release(&s.times);
    saturn_machine_release(&s.machine);
    return status;
}
