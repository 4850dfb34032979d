/* The strategies that plan all jobs together, and the choice among them. */
#include "planner/strategy/direct.h"

#include "base/try.h"
#include "planner/check/plan_check.h"
#include "planner/parallel/parallel_job.h"
#include "planner/plan_hosts.h"
#include "planner/policy/policies.h"
#include "planner/strategy/spilled.h"
#include "planner/swap/swap.h"
#include "planner/walk/plan_build.h"

static bool any_parallel(const struct job_set *jobs)
{
    for (uint32_t j = 0; j < jobs->count; j++)
        if (parallel_is_set(&jobs->jobs[j].parallel)) return true;
    return false;
}

/* Returns true if each job has the machine's only device for itself. reservation_plan() divides machines with
 * several devices into such parts. */
static bool all_alone(const struct hardware *hardware, const struct job_set *jobs)
{
    bool all = hardware->device_count == 1;
    for (uint32_t j = 0; j < jobs->count && all; j++) all = parallel_is_alone(hardware, &jobs->jobs[j]);
    return all;
}

/* Refuses options of jobs that are only for parallel jobs. */
static enum status refuse_wishes(const struct job_set *jobs, struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        if (jobs->jobs[j].gradients != PRECISION_FP32)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' has gradients of %s and is not a parallel job (see --parallel)",
                             jobs->jobs[j].name, precision_names[jobs->jobs[j].gradients]);
        for (uint32_t i = 0; i < COMPRESSION_COUNT; i++)
            if (compression_is_set(&jobs->jobs[j].compression[i]))
                return error_set(err, STATUS_BAD_INPUT,
                                 "job '%s' has a compression of %s and is not a parallel job (see --parallel)",
                                 jobs->jobs[j].name, compression_names[i]);
    }
    return STATUS_OK;
}

/* Keeps jobs that each have a device for themselves on it, one after the other. */
static enum status keep_alone(struct job_set *jobs, struct planner_options *options, struct error *err)
{
    if (options->policy)
        return error_set(err, STATUS_BAD_INPUT, "policy '%s' for parallel jobs (they have none)",
                         options->policy);
    for (uint32_t j = 0; j < jobs->count; j++) jobs->jobs[j].parallel = (struct parallel){0};
    options->policy = policy_model_parallel.name;
    options->resident = false;
    return STATUS_OK;
}

/* Takes the machine and the jobs back from a plan that does not fit. */
static void take_back(struct plan *plan, struct hardware *hardware, struct job_set *jobs)
{
    *hardware = plan->hardware;
    *jobs = plan->jobs;
    plan->hardware = (struct hardware){0};
    plan->jobs = (struct job_set){0};
}

/* Plans parallel jobs, which name their devices and schedules, without a policy. `held` not NULL: after
 * STATUS_INFEASIBLE machine and jobs are the caller's again, and *held says whether the devices hold all jobs. */
static enum status plan_together(struct hardware *hardware, struct job_set *jobs,
                                 const struct planner_options *options, bool *held, struct plan *out,
                                 struct error *err)
{
    struct plan_builder *builder = NULL;
    enum status status = STATUS_OK;
    for (uint32_t j = 0; j < jobs->count && !status; j++) {
        status = parallel_check(&jobs->jobs[j], err);
        if (status) error_add(err, "job '%s'", jobs->jobs[j].name);
    }
    if (!status && options->policy)
        status = error_set(err, STATUS_BAD_INPUT,
                           "policy '%s' for parallel jobs (they have none)", options->policy);
    if (status) {
        job_set_release(jobs);
        hardware_release(hardware);
        return status;
    }
    status = plan_builder_create(hardware, jobs, &builder, err);
    if (!status) plan_builder_plan(builder)->seed = options->seed;
    if (!status) plan_builder_plan(builder)->any_order = options->live;
    if (!status) status = parallel_job_plan(builder, options->host == PLANNER_HOST_TURNS, err);
    if (held) *held = status == STATUS_OK;
    if (held && status == STATUS_INFEASIBLE) take_back(plan_builder_plan(builder), hardware, jobs);
    if (!status) {
        status = plan_builder_finish(builder, out, err);
        if (!status) status = plan_host_fits(out, err);
        if (held && status == STATUS_INFEASIBLE) take_back(out, hardware, jobs);
        if (!status && plan_check(out, err)) status = error_add(err, "the planner made a plan that is wrong");
        if (status) plan_release(out);
    }
    plan_builder_destroy(builder);
    return status;
}

static enum status plan_parallel(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                                 struct plan *out, struct error *err)
{
    return plan_together(hardware, jobs, options, NULL, out, err);
}

enum status direct_plan_turns(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                              bool *held, struct plan *out, struct error *err)
{
    return plan_together(hardware, jobs, options, held, out, err);
}

/* Jobs that swap have no policy either: their layers determine how each runs. */
static enum status plan_swapped(struct hardware *hardware, struct job_set *jobs,
                                const struct planner_options *options, struct plan *out, struct error *err)
{
    struct plan_builder *builder = NULL;
    if (options->policy) {
        job_set_release(jobs);
        hardware_release(hardware);
        return error_set(err, STATUS_BAD_INPUT, "policy '%s' for jobs whose activations are swapped (they have none)",
                         options->policy);
    }
    enum status status = plan_builder_create(hardware, jobs, &builder, err);
    if (!status) plan_builder_plan(builder)->seed = options->seed;
    if (!status) status = swap_plan(builder, options->swap, options->swap_report, err);
    if (!status) status = plan_builder_finish(builder, out, err);
    if (!status) status = plan_host_fits(out, err);
    if (!status && plan_check(out, err)) status = error_add(err, "the planner made a plan that is wrong");
    if (status) plan_release(out);
    plan_builder_destroy(builder);
    return status;
}

static bool swap_applies(const struct hardware *hardware, const struct job_set *jobs,
                         const struct planner_options *options)
{
    (void)hardware, (void)jobs;
    return options->swap != NULL;
}

static bool parallel_applies(const struct hardware *hardware, const struct job_set *jobs,
                             const struct planner_options *options)
{
    (void)hardware, (void)options;
    return any_parallel(jobs);
}

/* The first strategy that applies makes the plan. */
static const struct planner_strategy strategies[] = {
    {"swapped activations", swap_applies, plan_swapped},
    {"parallel jobs", parallel_applies, plan_parallel},
    {"spilled", NULL, spilled_plan},
};

enum status direct_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                        struct plan *out, struct error *err)
{
    struct planner_options own = *options;
    const bool alone = !options->live && all_alone(hardware, jobs);
    enum status status = alone ? keep_alone(jobs, &own, err) : STATUS_OK;
    if (!status && !any_parallel(jobs)) status = refuse_wishes(jobs, err);
    if (status) {
        job_set_release(jobs);
        hardware_release(hardware);
        return status;
    }
    return planner_strategy_plan(strategies, hardware, jobs, &own, out, err);
}
