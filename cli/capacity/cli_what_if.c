#include "cli/capacity/cli_what_if.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/try.h"
#include "cli/ways/cli_optimal.h"
#include "cli/ways/cli_saturn.h"
#include "planner/plan_hosts.h"
#include "planner/policy/policies.h"

enum { SATURN_DEVICES_MOST = 16 };

/* --- one job after the other ------------------------------------------------------------------- */

/* Returns the job, or an earlier one of equal cost. */
static uint32_t like(const struct job_set *jobs, uint32_t j)
{
    for (uint32_t k = 0; k < j; k++)
        if (saturn_costs_the_same(&jobs->jobs[k], &jobs->jobs[j]) &&
            jobs->jobs[k].minibatches == jobs->jobs[j].minibatches)
            return k;
    return j;
}

static const struct what_if_way *best_way(const struct what_if_answer *a, const struct job_set *jobs, uint32_t j)
{
    const struct what_if *search = &a->searches[like(jobs, j)];
    return &search->tries[search->best].way;
}

/* Reports the shortage of the way with the least memory, the last on one device. */
static void say_why(struct what_if_answer *a, const struct job *job, const struct what_if *search)
{
    const char *reason = "no way was found";
    for (uint32_t i = 0; i < search->count; i++)
        if (i == 0 || strncmp(search->tries[i].way.fit.name, "spilled", 7) == 0) reason = search->tries[i].reason;
    snprintf(a->reason, sizeof a->reason, "job '%.60s': %.180s", job->name, reason);
}

static enum status search_jobs(const struct job_set *jobs, struct what_if_answer *a, struct error *err)
{
    const struct saturn_clock clock = {.time = sim_seconds};
    a->searches = alloc_zeroed(jobs->count, sizeof *a->searches);
    if (!a->searches) return error_memory(err, "searches", jobs->count * sizeof *a->searches);
    a->job_count = jobs->count;
    a->fits = true;
    for (uint32_t j = 0; j < jobs->count; j++) {
        uint32_t k = like(jobs, j);
        struct what_if *search = &a->searches[k];
        if (k == j) TRY(what_if_search(&a->hardware, &jobs->jobs[j], &clock, false, search, err));
        if (search->best == search->count) {
            a->fits = false;
            say_why(a, &jobs->jobs[j], search);
            return STATUS_OK;
        }
        a->run_s += search->tries[search->best].run_s;
    }
    return STATUS_OK;
}

/* --- values from plans -------------------------------------------------------------------------- */

static void note_memory(const struct plan *plan, struct what_if_answer *a)
{
    uint32_t count = plan->gang_count > 0 ? plan->gang_count : plan->hardware.device_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t d = plan->gang_count > 0 ? plan->gang_devices[plan->gangs[i].first] : i;
        uint64_t bytes = plan_device_bytes(plan, d), usable = plan->hardware.devices[d].memory_bytes;
        if (a->usable_bytes > 0 && usable - bytes >= a->usable_bytes - a->device_bytes) continue;
        a->device_bytes = bytes;
        a->usable_bytes = usable;
    }
}

/* Counts how many jobs like the largest fit in host memory. */
static void note_host_of_one(const struct plan *plan, struct what_if_answer *a)
{
    const uint64_t bytes = plan_host_fullest(plan).memory_bytes;
    if (bytes <= a->host_bytes) return;
    a->host_bytes = bytes;
    a->host_jobs = (uint32_t)min_u64(hardware_host_bytes(&plan->hardware) / bytes, UINT32_MAX);
}

static void note_peak(const struct plan *plan, struct what_if_answer *a)
{
    double peak = cli_peak_flops_per_s(plan, &a->hardware);
    if (peak > a->peak_flops_per_s) a->peak_flops_per_s = peak;
}

/* Takes memory, FLOPs and bottleneck from short plans. */
static enum status plan_each_job(const struct job_set *jobs, struct what_if_answer *a, struct error *err)
{
    double longest_s = -1;
    for (uint32_t j = 0; j < jobs->count; j++) {
        const struct job *job = &jobs->jobs[j];
        const struct what_if *search = &a->searches[like(jobs, j)];
        uint64_t minibatches = min_u64(job->minibatches, 4);
        struct plan plan = {0};
        struct cli_prediction prediction = {0};
        enum status status = what_if_plan(&a->hardware, job, best_way(a, jobs, j), minibatches, &plan, err);
        if (!status) status = cli_predict(&plan, NULL, NULL, &prediction, err);
        if (!status) {
            note_memory(&plan, a);
            note_host_of_one(&plan, a);
            note_peak(&plan, a);
            a->model_flops += prediction.model_flops / (double)minibatches * (double)job->minibatches;
            if (search->tries[search->best].run_s > longest_s)
                snprintf(a->binds, sizeof a->binds, "%s", prediction.result.binds);
            longest_s = fmax(longest_s, search->tries[search->best].run_s);
        }
        cli_prediction_release(&prediction);
        plan_release(&plan);
        TRY(status);
    }
    return STATUS_OK;
}

static void name_plan(const struct job_set *jobs, struct what_if_answer *a)
{
    if (jobs->count == 1) {
        snprintf(a->plan, sizeof a->plan, "%s", best_way(a, jobs, 0)->fit.name);
        return;
    }
    bool same = true;
    for (uint32_t j = 1; j < jobs->count; j++)
        same &= strcmp(best_way(a, jobs, j)->fit.name, best_way(a, jobs, 0)->fit.name) == 0;
    snprintf(a->plan, sizeof a->plan, "in turn: %s", same ? best_way(a, jobs, 0)->fit.name : "each its own");
}

/* --- jobs together -------------------------------------------------------------------------------- */

static enum status keep_together(struct what_if_answer *a, const struct cli_candidate *candidate, const char *name,
                                 struct error *err)
{
    struct plan const *plan = &candidate->plan;
    double makespan_s = candidate->prediction.result.makespan_s;
    if (a->fits && makespan_s >= a->run_s) return STATUS_OK;
    a->fits = true;
    a->run_s = makespan_s;
    a->model_flops = candidate->prediction.model_flops;
    a->usable_bytes = a->device_bytes = 0;
    note_memory(plan, a);
    note_peak(plan, a);
    a->together = true;
    a->host_bytes = plan_host_fullest(plan).memory_bytes;
    TRY(plan_host_jobs(plan, &a->host_jobs, err));
    if (a->host_bytes == 0) a->host_jobs = 0;
    snprintf(a->plan, sizeof a->plan, "together: %s", name);
    snprintf(a->binds, sizeof a->binds, "%s", candidate->prediction.result.binds);
    what_if_effects_begin(a);
    return what_if_effects_add(plan, makespan_s, a, err);
}

enum together { TOGETHER_BY_POLICY, TOGETHER_RESIDENT, TOGETHER_SATURN };

/* Tries jobs together; one way that does not fit is no error. */
static enum status try_together(const struct cli_source *from, const char *policy, enum together how,
                                struct what_if_answer *a, struct error *err)
{
    struct cli_source source = *from;
    struct planner_options options = {
        .policy = policy, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO, .resident = how == TOGETHER_RESIDENT};
    struct cli_candidate candidate = {0};
    struct saturn_report report = {0};
    struct error why = {0};
    source.machine.name = a->name;
    const struct saturn_options saturn = {.spilled = &options, .interval_s = -1, .threshold_s = -1, .restart_s = -1};
    enum status status = how == TOGETHER_SATURN ? cli_saturn(&source, &saturn, &candidate, &report, &why)
                                                : cli_candidate_make(&source, &options, &candidate, &why);
    bool refused = status == STATUS_INFEASIBLE || status == STATUS_BAD_INPUT || status == STATUS_LIMIT;
    const char *name = how == TOGETHER_SATURN ? "saturn" : candidate.plan.reservation_count > 0 ? cli_resident_name
                                                                                          : candidate.plan.policy;
    if (!status) status = keep_together(a, &candidate, policy ? policy : name, err);
    else if (refused) status = STATUS_OK;
    else status = error_set(err, status, "%s", why.text);
    cli_candidate_release(&candidate);
    return status;
}

uint64_t what_if_minibatches(const struct job_set *jobs)
{
    uint64_t minibatches = 0;
    for (uint32_t j = 0; j < jobs->count; j++) minibatches += jobs->jobs[j].minibatches;
    return minibatches;
}

static enum status try_all_together(const struct cli_source *from, const struct job_set *jobs, struct what_if_answer *a,
                                    struct error *err)
{
    if (jobs->count == 1 || what_if_minibatches(jobs) > WHAT_IF_TOGETHER_MAX) return STATUS_OK;
    for (uint32_t i = 0; policy_name_at(i); i++)
        TRY(try_together(from, policy_name_at(i), TOGETHER_BY_POLICY, a, err));
    TRY(try_together(from, NULL, TOGETHER_RESIDENT, a, err));
    if (a->hardware.device_count < 2 || a->hardware.device_count > SATURN_DEVICES_MOST) return STATUS_OK;
    return try_together(from, NULL, TOGETHER_SATURN, a, err);
}

/* --- the answer ------------------------------------------------------------------------------- */

/* Simulates jobs of equal cost once. */
static enum status find_effects(const struct job_set *jobs, struct what_if_answer *a, struct error *err)
{
    what_if_effects_begin(a);
    for (uint32_t j = 0; j < jobs->count; j++) {
        double alike = 0;
        if (like(jobs, j) != j) continue;
        for (uint32_t k = j; k < jobs->count; k++) alike += like(jobs, k) == j;
        const struct what_if *search = &a->searches[j];
        TRY(what_if_effects_of_job(&jobs->jobs[j], best_way(a, jobs, j), alike * search->tries[search->best].run_s, a,
                                   err));
    }
    return STATUS_OK;
}

double what_if_watts(const struct hardware *hardware)
{
    double sum = 0;
    for (uint32_t d = 0; d < hardware->device_count; d++) {
        double watts = hardware->types[hardware->devices[d].type].board_power.value;
        if (!(watts > 0)) return 0;
        sum += watts;
    }
    return sum;
}

enum status what_if_answer(const struct cli_source *from, const struct job_set *jobs, struct what_if_answer *out,
                           struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        double samples = (double)job_samples(&jobs->jobs[j]) * (double)jobs->jobs[j].minibatches;
        out->samples += samples;
        out->tokens += samples * (double)jobs->jobs[j].sequence;
    }
    TRY(search_jobs(jobs, out, err));
    if (out->fits) {
        TRY(plan_each_job(jobs, out, err));
        TRY(find_effects(jobs, out, err));
        name_plan(jobs, out);
    }
    TRY(try_all_together(from, jobs, out, err));
    if (out->fits) what_if_effects_end(out);
    out->watts = what_if_watts(&out->hardware);
    return STATUS_OK;
}

void what_if_answer_release(struct what_if_answer *answer)
{
    for (uint32_t j = 0; j < answer->job_count; j++) what_if_release(&answer->searches[j]);
    free(answer->searches);
    hardware_release(&answer->hardware);
    *answer = (struct what_if_answer){0};
}
