/*
 * The planner takes jobs and machine over, so each plan reads the file again. The present plan may have unknown
 * options: both compared plans have defaults.
 */
#include "cli/explain/purchase.h"

#include <math.h>
#include <string.h>

#include "base/size.h"
#include "planner/files/plan_io.h"
#include "planner/policy/policies.h"
#include "planner/strategy/reservation.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"

/* Returns true if resident jobs have the plan's devices. */
static bool has_devices(const struct plan *plan)
{
    static const char *const before[] = {"leases", "settled"}; /* the names in plans of earlier versions */
    if (plan->reservation_count == 0) return false;
    for (size_t i = 0; i < ARRAY_COUNT(before); i++)
        if (strcmp(plan->policy, before[i]) == 0) return true;
    return strcmp(plan->policy, reservation_policy) == 0;
}

static bool can_plan(const struct plan *plan)
{
    if (plan->reservation_count > 0) return has_devices(plan);
    return plan->gang_count > 0 || policy_find(plan->policy);
}

/* Returns the makespan with `factor` times the memory. */
static enum status plan_again(const char *path, double factor, double *makespan_s, struct error *err)
{
    struct plan read = {0}, plan = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    enum status status = plan_read(path, &read, err);
    if (status == STATUS_OK) {
        const struct planner_options options = {.policy = read.gang_count > 0 || has_devices(&read) ? NULL
                                                                                                    : read.policy,
                                                .resident = has_devices(&read),
                                                .seed = read.seed,
                                                .activations = PLANNER_AUTO,
                                                .optimizer = PLANNER_AUTO};
        for (uint32_t d = 0; d < read.hardware.device_count; d++)
            read.hardware.devices[d].memory_bytes = (uint64_t)((double)read.hardware.devices[d].memory_bytes * factor);
        status = planner_plan(&read.hardware, &read.jobs, &options, &plan, err);
    }
    if (status == STATUS_OK) status = sim_run(&plan, &(struct sim_options){0}, &result, &trace, err);
    if (status == STATUS_OK) *makespan_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    plan_release(&read);
    return status;
}

enum status explain_memory_purchase(const char *path, double more, struct explain_purchase *out, bool *known,
                                    struct error *err)
{
    struct plan plan = {0};
    struct error why = {0};
    *known = false;
    enum status status = plan_read(path, &plan, err);
    if (status == STATUS_OK && can_plan(&plan)) {
        *out = (struct explain_purchase){.resource = EXPLAIN_MEMORY, .name = "device memory",
                                         .dimension = DIMENSION_BYTES,
                                         .value = (double)plan.hardware.devices[0].memory_bytes};
        status = plan_again(path, 1, &out->before_s, &why);
        if (status == STATUS_OK) status = plan_again(path, 1 + more, &out->after_s, &why);
        *known = status == STATUS_OK;
        if (status == STATUS_INFEASIBLE || status == STATUS_BAD_INPUT) status = STATUS_OK; /* made with other
                                                                                              options: unknown */
        if (status != STATUS_OK) error_set(err, status, "%s", why.text);
    }
    if (*known && out->after_s > 0) {
        out->gain = out->before_s / out->after_s - 1;
        out->derivative = log1p(out->gain) / log1p(more);
    }
    plan_release(&plan);
    return status;
}
