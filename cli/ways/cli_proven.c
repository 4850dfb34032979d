#include "cli/ways/cli_proven.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "planner/spill/cut/bound.h"

/* Rounding of sums in different orders. */
static const double rounding = 1e-9;

enum status cli_proven(const struct plan *plan, double makespan_s, bool *proven, struct error *err)
{
    struct bound bound;
    struct job_set free_jobs = {.count = plan->jobs.count};
    free_jobs.jobs = alloc_zeroed(plan->jobs.count, sizeof *free_jobs.jobs);
    if (!free_jobs.jobs) return error_memory(err, "jobs", plan->jobs.count * sizeof *free_jobs.jobs);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        free_jobs.jobs[j] = plan->jobs.jobs[j];
        free_jobs.jobs[j].parallel = (struct parallel){0};
    }
    bound_makespan(&plan->hardware, &free_jobs, hardware_has_cpu(&plan->hardware), &bound);
    *proven = bound.any_s > 0 && fabs(makespan_s / bound.any_s - 1) <= rounding;
    free(free_jobs.jobs);
    return STATUS_OK;
}
