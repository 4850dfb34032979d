/*
 * A configuration that does not fit is tried with fewer kept activations. It is left out if it still does not fit, or
 * if it needs links between devices that the machine does not have. The times of an earlier job with the same costs are
 * reused.
 */
#include "planner/saturn/saturn_times.h"

#include <stdlib.h>
#include <string.h>

#include "base/try.h"
#include "planner/strategy/subproblem.h"

enum { FIRST = 2, SECOND = 4 };

struct saturn_times_timing {
    const struct saturn_machine *machine;
    const struct job_set *jobs;
    const struct planner_options *options;
    bool single;
    const struct saturn_clock *clock;
    struct saturn_times *out;
    struct error *err;
};

bool saturn_costs_the_same(const struct job *a, const struct job *b)
{
    return memcmp(&a->network, &b->network, sizeof a->network) == 0 && a->sequence == b->sequence &&
           a->microbatch == b->microbatch && a->microbatches == b->microbatches && a->precision == b->precision &&
           a->optimizer.kind == b->optimizer.kind && a->optimizer.moments == b->optimizer.moments &&
           job_clips(a) == job_clips(b) && a->tree == b->tree && a->evaluation.every == b->evaluation.every &&
           a->evaluation.minibatches == b->evaluation.minibatches && a->keep_best == b->keep_best &&
           memcmp(&a->parallel, &b->parallel, sizeof a->parallel) == 0;
}

static uint64_t minibatches_of(const struct job *job, uint64_t steps)
{
    uint64_t every = job->evaluation.every > 0 ? job->evaluation.every : 1;
    return steps * every < job->minibatches ? steps * every : job->minibatches;
}

static double run_s(const struct saturn_time *t, uint64_t minibatches)
{
    if (t->second == t->first) return t->second_s;
    return t->second_s + (double)(minibatches - t->second) * (t->second_s - t->first_s) /
           (double)(t->second - t->first);
}

/* --- timing --------------------------------------------------------------------------------- */

static enum status time_minibatches(const struct saturn_times_timing *g, const struct saturn_time *t,
                                    uint64_t minibatches, double *seconds, struct error *why)
{
    const struct saturn_node *node = &g->machine->nodes[g->machine->class_node[t->class]];
    const struct planner_options plain = {.seed = g->options->seed, .activations = PLANNER_AUTO,
                                          .optimizer = PLANNER_AUTO};
    struct job job = g->jobs->jobs[t->job];
    const uint32_t first = 0;
    const struct subproblem subproblem = {.jobs = &first, .job_count = 1, .devices = g->machine->devices + node->first,
                                          .device_count = t->config.devices};
    bool spilled = t->config.way == SATURN_SPILLED;
    struct plan plan = {0};
    job.minibatches = minibatches;
    enum status status = subproblem_plan(g->machine->hardware, &job, &subproblem, &t->config.parallel,
                                         g->machine->hardware->host_bytes.value, spilled ? g->options : &plain, &plan,
                                         why);
    if (!status) status = g->clock->time(g->clock->context, &plan, seconds, why);
    plan_release(&plan);
    return status;
}

/* *fits: the configuration fits, perhaps with fewer kept activations. */
static enum status time_config(struct saturn_times_timing *g, struct saturn_time *t, bool *fits, struct error *why)
{
    const struct job *job = &g->jobs->jobs[t->job];
    t->first = minibatches_of(job, FIRST);
    t->second = minibatches_of(job, SECOND);
    g->out->timed++;
    do {
        *why = (struct error){0};
        enum status status = time_minibatches(g, t, t->second, &t->second_s, why);
        if (!status && t->first < t->second) status = time_minibatches(g, t, t->first, &t->first_s, why);
        *fits = status == STATUS_OK;
        bool unlinked = status == STATUS_BAD_INPUT && t->config.devices > 1;
        if (status && status != STATUS_INFEASIBLE && !unlinked) return error_set(g->err, status, "%s", why->text);
    } while (!*fits && saturn_config_keep_less(&t->config));
    return STATUS_OK;
}

static enum status add(struct saturn_times_timing *g, struct saturn_time t)
{
    struct saturn_times *out = g->out;
    t.run_s = run_s(&t, g->jobs->jobs[t.job].minibatches);
    TRY(array_reserve(&out->times, &out->capacity, out->count, sizeof *out->times, SIZE_MAX, "run times", g->err));
    out->times[out->count++] = t;
    return STATUS_OK;
}

/* --- jobs ----------------------------------------------------------------------------------- */

/* Returns an earlier job with the same costs, timed by the same number of minibatches, or the job itself. */
static uint32_t earlier_like(const struct saturn_times_timing *g, uint32_t j)
{
    const struct job *jobs = g->jobs->jobs;
    for (uint32_t k = 0; k < j; k++)
        if (saturn_costs_the_same(&jobs[k], &jobs[j]) &&
            minibatches_of(&jobs[k], SECOND) == minibatches_of(&jobs[j], SECOND) &&
            minibatches_of(&jobs[k], FIRST) == minibatches_of(&jobs[j], FIRST))
            return k;
    return j;
}

static enum status copy_times(struct saturn_times_timing *g, uint32_t from, uint32_t j)
{
    for (size_t i = 0, count = g->out->count; i < count; i++) {
        struct saturn_time t = g->out->times[i];
        if (t.job != from) continue;
        t.job = j;
        TRY(add(g, t));
    }
    return STATUS_OK;
}

/* *why: if the job fits nowhere, the reason why it does not fit spilled. */
static enum status time_job(struct saturn_times_timing *g, uint32_t j, struct error *why)
{
    struct saturn_config configs[SATURN_CONFIGS_MAX];
    for (uint32_t class = 0; class < g->machine->class_count; class++) {
        const struct saturn_node *node = &g->machine->nodes[g->machine->class_node[class]];
        uint32_t count = saturn_configs(&g->jobs->jobs[j], g->single ? 1 : node->count, g->machine->hardware, configs);
        g->out->tried += count;
        for (uint32_t i = 0; i < count; i++) {
            struct saturn_time t = {.config = configs[i], .job = j, .class = class};
            struct error own = {0};
            bool fits;
            TRY(time_config(g, &t, &fits, &own));
            if (fits) TRY(add(g, t));
            else if (!why->text[0] || configs[i].way == SATURN_SPILLED) *why = own;
        }
    }
    return STATUS_OK;
}

enum status saturn_times_find(const struct saturn_machine *machine, const struct job_set *jobs,
                              const struct planner_options *options, bool single, const struct saturn_clock *clock,
                              struct saturn_times *out, struct error *err)
{
    struct saturn_times_timing g =
        {.machine = machine, .jobs = jobs, .options = options, .single = single, .clock = clock, .out = out,
         .err = err};
    for (uint32_t j = 0; j < jobs->count; j++) {
        struct error why = {0};
        size_t before = out->count;
        uint32_t like = earlier_like(&g, j);
        TRY(like < j ? copy_times(&g, like, j) : time_job(&g, j, &why));
        if (out->count > before) continue;
        return error_set(err, STATUS_INFEASIBLE, "job '%s' fits on no node of the machine in any way: %s",
                         jobs->jobs[j].name, why.text[0] ? why.text : "no node has as many devices as it needs");
    }
    return STATUS_OK;
}

enum status saturn_times_slowed(const struct saturn_times *times, double slowed, struct saturn_times *out,
                                struct error *err)
{
    for (size_t i = 0; i < times->count; i++) {
        struct saturn_time t = times->times[i];
        double by = t.config.way == SATURN_SPILLED ? slowed : 1;
        t.first_s *= by;
        t.second_s *= by;
        t.run_s *= by;
        TRY(array_reserve(&out->times, &out->capacity, out->count, sizeof *out->times, SIZE_MAX, "run times", err));
        out->times[out->count++] = t;
    }
    out->tried = times->tried;
    out->timed = times->timed;
    return STATUS_OK;
}

void saturn_times_release(struct saturn_times *times)
{
    free(times->times);
    *times = (struct saturn_times){0};
}

bool saturn_time_is_carried_out(const struct hardware *hardware, const struct job *job, const struct saturn_time *time)
{
    struct job shaped = *job;
    shaped.parallel = time->config.parallel;
    return parallel_may_be_carried_out(hardware, &shaped);
}
