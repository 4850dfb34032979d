/* The strategies for a whole machine; the first one that applies makes the plan. */
#include "planner/strategy/planner.h"

#include "planner/strategy/direct.h"
#include "planner/strategy/reservation.h"
#include "planner/strategy/resident.h"
#include "planner/strategy/shared.h"

/* Several jobs, all parallel on several devices of their own choice. */
static bool turns_apply(const struct hardware *hardware, const struct job_set *jobs,
                        const struct planner_options *options)
{
    (void)hardware;
    bool all = jobs->count > 1 && !options->policy && !options->swap;
    for (uint32_t j = 0; j < jobs->count && all; j++) all = parallel_is_set(&jobs->jobs[j].parallel);
    return all;
}

/* Lets parallel jobs take turns by minibatches, or follow each other on devices that do not hold all. */
static enum status plan_turns(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                              struct plan *out, struct error *err)
{
    struct error alone = {0};
    bool held;
    enum status status = direct_plan_turns(hardware, jobs, options, &held, out, err);
    if (status != STATUS_INFEASIBLE) return status;
    status = reservation_plan(hardware, jobs, options, out, &alone);
    if (status == STATUS_INFEASIBLE && held) return status; /* turns need less host memory: theirs is the message */
    *err = alone;
    return status;
}

static bool live_applies(const struct hardware *hardware, const struct job_set *jobs,
                         const struct planner_options *options)
{
    bool any = false;
    (void)hardware;
    for (uint32_t j = 0; j < jobs->count; j++) any |= parallel_is_set(&jobs->jobs[j].parallel) || jobs->jobs[j].devices;
    return options->live && any;
}

/* Refuses jobs whose order is not one of many. */
static enum status check_live(const struct job_set *jobs, const struct planner_options *options, struct error *err)
{
    if (options->host == PLANNER_HOST_TURNS)
        return error_set(err, STATUS_BAD_INPUT,
                         "--dispatch live for parallel jobs that take turns in host memory");
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        if (job->devices)
            return error_set(err, STATUS_BAD_INPUT,
                             "--dispatch live, and job '%s' has devices of its own while it runs (expected no "
                             "'devices', or 'first_device' in 'parallel')", job->name);
        if (!parallel_is_set(&job->parallel))
            return error_set(err, STATUS_BAD_INPUT,
                             "--dispatch live asks about jobs that are all spilled or all parallel, and job '%s' is "
                             "not parallel", job->name);
    }
    return STATUS_OK;
}

/* Parallel jobs whose minibatches may follow each other in any order. */
static enum status plan_live(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                             struct plan *out, struct error *err)
{
    enum status status = check_live(jobs, options, err);
    if (status == STATUS_OK) return direct_plan(hardware, jobs, options, out, err);
    job_set_release(jobs);
    hardware_release(hardware);
    return status;
}

static bool keeping_applies(const struct hardware *hardware, const struct job_set *jobs,
                            const struct planner_options *options)
{
    bool any = false;
    (void)hardware, (void)options;
    for (uint32_t j = 0; j < jobs->count; j++) any |= jobs->jobs[j].outputs.layers > 0;
    return any;
}

/* Jobs that keep outputs of frozen layers are spilled together. */
static enum status plan_keeping(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                                struct plan *out, struct error *err)
{
    const bool swaps = options->swap != NULL, shares = shared_applies(hardware, jobs, options);
    if (!swaps && !shares) return direct_plan(hardware, jobs, options, out, err);
    job_set_release(jobs);
    hardware_release(hardware);
    return error_set(err, STATUS_BAD_INPUT, "kept outputs (--keep-outputs) do not go with %s",
                     swaps ? "activations that are swapped" : "jobs that share a base");
}

static const struct planner_strategy strategies[] = {
    {"kept outputs", keeping_applies, plan_keeping},
    {"a shared base", shared_applies, shared_plan},
    {"parallel jobs dispatched live", live_applies, plan_live},
    {"reservations", reservation_applies, reservation_plan},
    {"parallel jobs in turns", turns_apply, plan_turns},
    {"resident placement", resident_applies, resident_plan},
    {"all jobs together", NULL, direct_plan},
};

enum status planner_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                         struct plan *out, struct error *err)
{
    return planner_strategy_plan(strategies, hardware, jobs, options, out, err);
}
