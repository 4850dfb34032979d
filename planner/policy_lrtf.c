/*
 * Sharded-LRTF: the ready job with the longest remaining time.
 *
 * The paper's rule (Hydra, arXiv 2110.08633, Algorithm 2) decides when a device becomes free: of
 * all idle models take the one with the most training time left, R = ((e - 1) b + c_e - 1) t + c_m.
 * Summed over the units not yet started that is `remaining_s`. Without copies its makespan is at
 * most the longest job or the average load plus (1 - 1/devices) of the longest unit.
 *
 * The released code (knagrecha/hydra, ModelOrchestrator) decides one unit ahead: when a device
 * starts a unit it caches its next task, the longest remaining among the idle ones and the one that
 * is running here, which wins ties; the cached task is reserved. Its parameters can then be fetched
 * while the current unit computes, at the price of a choice made early.
 */
#include "planner/policy.h"

const struct policy policy_sharded_lrtf = {
    .name = "sharded-lrtf",
    .summary = "longest remaining job first, decided when a device is free (Hydra's paper)",
    .choose = policy_longest,
};

/* At a tie the job that ran here last; it is among the candidates because schedule.c asks with the
 * clock at the end of the current unit. */
static uint32_t choose_cached(const struct policy_view *view, uint32_t device)
{
    uint32_t best = PLAN_NONE;
    for (uint32_t j = 0; j < view->job_count; j++) {
        if (!policy_may_run(view, j, device)) continue;
        if (best == PLAN_NONE || view->jobs[j].remaining_s > view->jobs[best].remaining_s ||
            (view->jobs[j].remaining_s >= view->jobs[best].remaining_s &&
             view->jobs[j].last_device == device && view->jobs[best].last_device != device))
            best = j;
    }
    return best;
}

const struct policy policy_sharded_lrtf_cached = {
    .name = "sharded-lrtf-cached",
    .summary = "the same one unit ahead, own job preferred on ties (Hydra's released code)",
    .choose = choose_cached,
    .commit_ahead = true,
};
