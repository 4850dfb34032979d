/*
 * Sharded-LRTF: the ready job with the longest remaining time.
 *
 * The paper's rule (Hydra, arXiv 2110.08633, Algorithm 2) decides when a device becomes free: it takes the idle model
 * with the most training time left, R = ((e - 1) b + c_e - 1) t + c_m, which is `remaining_s`, summed over unstarted
 * units. Without copies its makespan is at most the longest job, or the average load plus (1 - 1/devices) of the
 * longest unit.
 *
 * The released code (knagrecha/hydra, ModelOrchestrator) decides one unit ahead: a device that starts a unit reserves
 * the task with the most time left among idle models and the one running here, which wins ties. So parameters can be
 * fetched during the current unit, but the choice is early.
 */
#include "planner/policy/policies.h"

const struct policy policy_sharded_lrtf = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "sharded-lrtf",
    .summary = "longest remaining job first, decided when a device is free (Hydra's paper)",
    .rank = policy_remaining,
};

/* Ties go to the job that ran here last, a candidate because the scheduler asks as if its unit had ended. */
static bool choose_cached(void *state, const struct policy_view *view, struct policy_choice *out)
{
    (void)state;
    const struct policy_job *best = NULL;
    for (uint32_t j = 0; j < view->job_count; j++) {
        uint32_t device = policy_place(view, j);
        const struct policy_job *job = &view->jobs[j];
        if (device == POLICY_NONE) continue;
        if (best && !(job->remaining > best->remaining) &&
            !(job->remaining >= best->remaining && job->last_device == view->device &&
              best->last_device != view->device))
            continue;
        *out = (struct policy_choice){j, device};
        best = job;
    }
    return best != NULL;
}

const struct policy policy_sharded_lrtf_cached = {
    .version = SPILLWAY_POLICY_VERSION,
    .name = "sharded-lrtf-cached",
    .summary = "the same one unit ahead, own job preferred on ties (Hydra's released code)",
    .choose = choose_cached,
    .commit_ahead = true,
};

double policy_remaining(void *state, const struct policy_view *view, uint32_t job)
{
    (void)state;
    return view->jobs[job].remaining;
}
