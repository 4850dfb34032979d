/*
 * Times become ticks of a billionth of the longest run, rounded up: so small that the rounding is nobody's concern,
 * and so large that the horizon of the instance fits (planner/spase.h).
 *
 * A job's configurations in the instance are its run times in turn: the one on class c of a configuration has that
 * class alone, and modes (spase.h) drop what another is better than.
 */
#include "planner/saturn.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "models/try.h"
#include "planner/compose.h"
#include "planner/part.h"

const char saturn_policy[] = "saturn";

enum { ITERATIONS_DEFAULT = 200000, NODES_PER_ITERATION = 5 };
static const double ticks_of_longest = 1e9;

struct saturn {
    const struct hardware *hardware;
    const struct job_set *jobs;
    const struct planner_options *options;
    struct saturn_machine machine;
    struct saturn_times times;
    struct spase instance;
    struct spase_schedule schedule;
    struct saturn_report *report;
    struct arena arena;
    struct plan *plans;         /* per job */
    struct compose_part *parts; /* in the order of their starts */
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
        int64_t ticks = (int64_t)ceil(t->run_s / tick_s);
        in->ticks[(size_t)i * in->class_count + t->class] = ticks > 1 ? ticks : 1;
    }
}

static enum status make_instance(struct saturn *s)
{
    double longest_s = 0;
    for (size_t i = 0; i < s->times.count; i++)
        if (s->times.times[i].run_s > longest_s) longest_s = s->times.times[i].run_s;
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
    const struct planner_options *o = s->options;
    uint64_t iterations = o->iterations ? o->iterations : ITERATIONS_DEFAULT;
    struct spase_certify_options certify = {.seed = o->seed, .early = true, .search_limit_s = HUGE_VAL,
                                            .exact_limit_s = HUGE_VAL, .iterations = iterations,
                                            .nodes_max = NODES_PER_ITERATION * iterations};
    if (o->time_limit_s > 0) {
        certify = (struct spase_certify_options){.seed = o->seed};
        certify.iterations = o->iterations ? o->iterations : UINT64_MAX;
        spase_certify_divide(&s->instance, o->time_limit_s, &certify);
    }
    return spase_certify(&s->instance, &certify, &s->schedule, &s->report->certificate, s->err);
}

static enum status find_baselines(struct saturn *s)
{
    struct spase_step *steps = alloc_zeroed(s->jobs->count, sizeof *steps);
    enum status status = STATUS_OK;
    if (!steps) return error_memory(s->err, "a schedule", s->jobs->count * sizeof *steps);
    for (enum spase_baseline b = 0; b < SPASE_BASELINE_COUNT && !status; b++) {
        int64_t value = 0;
        status = spase_baseline_run(&s->instance, b, s->options->seed, NULL, steps, &value, s->err);
        s->report->baselines_s[b] = (double)value * s->report->tick_s;
    }
    free(steps);
    return status;
}

/* --- parts ---------------------------------------------------------------------------------- */

static int compare_begins(const void *a, const void *b)
{
    const struct compose_part *x = a, *y = b;
    if (x->begin_s < y->begin_s || x->begin_s > y->begin_s) return x->begin_s < y->begin_s ? -1 : 1;
    return (*x->jobs > *y->jobs) - (*x->jobs < *y->jobs);
}

/* Ascending: tensor groups lie closest together. */
static int compare_devices(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static enum status plan_job(struct saturn *s, uint32_t j, double *host_bytes)
{
    const struct spase_task *task = &s->schedule.tasks[j];
    const struct saturn_time *t = &s->times.times[task->config];
    const struct planner_options plain = {.seed = s->options->seed, .activations = PLANNER_AUTO,
                                          .optimizer = PLANNER_AUTO};
    uint32_t count = t->config.devices, *numbers;
    void *memory;
    TRY(arena_array(&s->arena, (size_t)count + 1, sizeof *numbers, &memory, s->err));
    numbers = memory; /* of the job, and its devices */
    numbers[0] = j;
    for (uint32_t i = 0; i < count; i++)
        numbers[1 + i] = s->machine.devices[s->schedule.devices[s->schedule.device_first[j] + i]];
    qsort(numbers + 1, count, sizeof *numbers, compare_devices);
    const struct part part = {.jobs = numbers, .job_count = 1, .devices = numbers + 1, .device_count = count};
    TRY(part_plan(s->hardware, s->jobs->jobs, &part, &t->config.parallel, *host_bytes,
                  t->config.way == SATURN_STREAMED ? s->options : &plain, &s->plans[j], s->err));
    *host_bytes -= (double)plan_host_bytes(&s->plans[j]);
    s->parts[j] = (struct compose_part){.plan = &s->plans[j], .jobs = part.jobs, .devices = part.devices,
                                        .follows = PLAN_NONE, .begin_s = (double)task->start * s->report->tick_s,
                                        .end_s = (double)(task->start + task->ticks) * s->report->tick_s};
    return STATUS_OK;
}

static enum status plan_jobs(struct saturn *s)
{
    double host_bytes = s->hardware->host_bytes.value;
    void *plans, *parts;
    TRY(arena_array(&s->arena, s->jobs->count, sizeof *s->plans, &plans, s->err));
    TRY(arena_array(&s->arena, s->jobs->count, sizeof *s->parts, &parts, s->err));
    s->plans = plans;
    s->parts = parts;
    for (uint32_t j = 0; j < s->jobs->count; j++) TRY(plan_job(s, j, &host_bytes));
    qsort(s->parts, s->jobs->count, sizeof *s->parts, compare_begins);
    return STATUS_OK;
}

/* --- the whole ------------------------------------------------------------------------------ */

static enum status check_jobs(const struct job_set *jobs, struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (jobs->jobs[j].devices)
            return error_set(err, STATUS_BAD_INPUT, "job '%s' names devices, which policy '%s' chooses",
                             jobs->jobs[j].name, saturn_policy);
    return STATUS_OK;
}

static enum status prepare(struct saturn *s, const struct saturn_clock *clock)
{
    TRY(check_jobs(s->jobs, s->err));
    TRY(saturn_machine_find(s->hardware, &s->machine, s->err));
    TRY(saturn_times_find(&s->machine, s->jobs, s->options, clock, &s->times, s->err));
    TRY(make_instance(s));
    TRY(find_schedule(s));
    TRY(find_baselines(s));
    return plan_jobs(s);
}

static struct plan_order order_of(const struct saturn *s)
{
    const struct spase_certificate *c = &s->report->certificate;
    return (struct plan_order){.bound_s = (double)c->bound * s->report->tick_s, .kind = PLAN_ORDER_GANGS,
                               .tried = c->iterations > INT64_MAX ? INT64_MAX : c->iterations};
}

enum status saturn_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                        const struct saturn_clock *clock, struct saturn_report *report, struct plan *out,
                        struct error *err)
{
    struct planner_options streamed = *options;
    struct saturn s = {.hardware = hardware, .jobs = jobs, .options = &streamed, .report = report, .err = err};
    uint32_t count = jobs->count;
    streamed.policy = NULL;
    enum status status = prepare(&s, clock);
    if (status) {
        hardware_release(hardware);
        job_set_release(jobs);
    } else {
        const struct compose_options how = {.policy = saturn_policy, .seed = options->seed, .order = order_of(&s)};
        status = plan_compose(hardware, jobs, s.parts, count, &how, out, err);
    }
    for (uint32_t j = 0; s.plans && j < count; j++) plan_release(&s.plans[j]);
    spase_schedule_release(&s.schedule);
    spase_release(&s.instance);
    saturn_times_release(&s.times);
    saturn_machine_release(&s.machine);
    arena_release(&s.arena);
    return status;
}
