#include "planner/plan_runnable.h"

#include <inttypes.h>
#include <string.h>

#include "base/try.h"

enum status plan_runnable(const struct plan *plan, struct error *err)
{
    return plan_runnable_by(plan, 1, err);
}

/* Refuses a job that goes on from another one where its state cannot move. */
static enum status goes_on_runnably(const struct plan *plan, uint32_t job, uint32_t processes, struct error *err)
{
    const struct job *const to = &plan->jobs.jobs[job], *const from = &plan->jobs.jobs[plan_goes_on_from(plan, job)];
    const char *why = processes > 1 ? "in several processes"
                      : to->parallel.storage || from->parallel.storage ? "with states of a parallel job in storage"
                                                                       : NULL;
    if (!why) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "job '%s' goes on from job '%s' %s, which can be simulated, not run",
                     to->name, from->name, why);
}

/* Returns what of a parallel job only the host's devices do; or NULL. */
static const char *only_on_host(const struct job *job)
{
    if (!parallel_is_set(&job->parallel)) return NULL;
    if (compression_is_set(&job->compression[COMPRESSION_ACTIVATIONS])) return "compressed activations";
    return job->parallel.tensor_pieces > 0 ? "products in pieces ('tensor_pieces')" : NULL;
}

static enum status check_backend(const struct plan *plan, struct error *err)
{
    if (strcmp(plan->hardware.backend, "host") == 0) return STATUS_OK;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const char *const what = only_on_host(&plan->jobs.jobs[j]);
        if (what)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' is parallel with %s on devices of backend '%s', which can be simulated, not run "
                             "(expected 'host')", plan->jobs.jobs[j].name, what, plan->hardware.backend);
    }
    return STATUS_OK;
}

/* Refuses a job of 16 bits throughout on devices that do not train it. */
static enum status half_is_runnable(const struct plan *plan, const struct job *job, struct error *err)
{
    if (job->precision != PRECISION_BF16 || strcmp(plan->hardware.backend, "host") == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "job '%s' has precision 'bf16', 16 bits throughout, on devices of backend '%s', which can be "
                     "simulated, not run (expected 'fp32', or 'bf16-weights' for weights of 16 bits)", job->name,
                     plan->hardware.backend);
}

enum status plan_runnable_by(const struct plan *plan, uint32_t processes, struct error *err)
{
    for (uint32_t j = 0; j < plan->jobs.count; j++) TRY(half_is_runnable(plan, &plan->jobs.jobs[j], err));
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct job *job = &plan->jobs.jobs[j];
        if (!parallel_is_set(&job->parallel) || parallel_is_carried_out(&job->parallel)) continue;
        const char *why = parallel_only_simulated(&plan->hardware, job);
        if (!why)
            return error_set(err, STATUS_BAD_INPUT,
                             "job '%s' is parallel, and its plan has no data, losses and copies of states, "
                             "so it can be "
                             "simulated, not run", job->name);
        return error_set(err, STATUS_BAD_INPUT, "job '%s' is parallel with %s, which can be simulated, not run",
                         job->name, why);
    }
    TRY(check_backend(plan, err));
    for (uint32_t j = 0; processes > 1 && j < plan->jobs.count; j++)
        if (plan->jobs.jobs[j].outputs.layers > 0)
            return error_set(err, STATUS_BAD_INPUT, "job '%s' makes or takes kept outputs, which one process does, not "
                             "several", plan->jobs.jobs[j].name);
    if (hardware_host_count(&plan->hardware) > 1 && processes == 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan is for %" PRIu32 " nodes, each with a host of its own: it can be simulated, not run",
                         hardware_host_count(&plan->hardware));
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (plan_goes_on_from(plan, j) != PLAN_NONE) TRY(goes_on_runnably(plan, j, processes, err));
    return STATUS_OK;
}
