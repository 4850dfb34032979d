#include "cli/ways/cli_proven.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"

/* Rounding of sums in different orders. */
static const double rounding = 1e-9;

enum status cli_bound_of_all(const struct plan *plan, struct bound *out, struct error *err)
{
    struct job_set free_jobs = {.count = plan->jobs.count};
    free_jobs.jobs = alloc_zeroed(plan->jobs.count, sizeof *free_jobs.jobs);
    if (!free_jobs.jobs) return error_memory(err, "jobs", plan->jobs.count * sizeof *free_jobs.jobs);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        free_jobs.jobs[j] = plan->jobs.jobs[j];
        free_jobs.jobs[j].parallel = (struct parallel){0};
    }
    bound_makespan(&plan->hardware, &free_jobs, hardware_has_cpu(&plan->hardware), out);
    free(free_jobs.jobs);
    return STATUS_OK;
}

const char *cli_own_bound(const struct plan *plan, const struct bound *all)
{
    if (plan->bound_kind == BOUND_NONE || plan->lower_bound_s <= all->any_s * (1 + rounding)) return NULL;
    if (plan->gang_count > 0 || plan->reservation_count > 0) return "of this parallelism";
    return plan->bound_kind == BOUND_CHAIN ? "of jobs on one device at a time" : "of these options";
}

enum status cli_proven(const struct plan *plan, double makespan_s, bool *proven, struct error *err)
{
    struct bound bound;
    TRY(cli_bound_of_all(plan, &bound, err));
    *proven = bound.any_s > 0 && fabs(makespan_s / bound.any_s - 1) <= rounding;
    return STATUS_OK;
}
