/*
 * A choice is a copy of the job with other degrees, timed as the plan would be: passes in the order of 1F1B with sends
 * between stages, then each stage's exchange of gradients and its step; for a tied table, the sum between both ends,
 * too. Offloaded states step on the host, one stage after the other.
 *
 * The cut knows states and the activations that microbatches keep. Workspace and boundaries are added here per stage:
 * for each microbatch in flight, and one more, a boundary on either side and its gradient.
 * planner/parallel/parallel_job_layout.h never needs more; a cut that would only just fit is passed over.
 */
#include "planner/parallel/parallel_job_rannc.h"

#include <inttypes.h>
#include <math.h>

#include "base/extreme.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/job/parallel_memory.h"
#include "planner/parallel/parallel_job_cut.h"
#include "planner/parallel/parallel_job_layout.h"
#include "planner/parallel/parallel_job_replicas.h"

/* Up to this number of tensor groups, replicas are moved after the dynamic program. */
enum { MOVED_GROUPS_MAX = 8 };

struct parallel_job_rannc_choice {
    struct job job;
    double minibatch_s;
};

/* --- memory --------------------------------------------------------------------------------- */

/* Returns the memory for `count` boundaries, or their gradients, after the layer. */
static uint64_t passing_bytes(const struct job *job, uint64_t layer, uint64_t count)
{
    return count * parallel_job_range_bytes(parallel_boundary_bytes(job, layer));
}

static uint64_t stage_bytes(const struct job *job, uint32_t stage)
{
    const struct parallel *p = &job->parallel;
    struct parallel_layers layers = parallel_layers(job, stage);
    struct rank_state state = parallel_state(job, layers), whole = parallel_whole_state(job, layers);
    uint64_t depth = min_u64(parallel_depth(p, stage), parallel_microbatches(job, stage));
    uint64_t bytes = parallel_job_range_bytes(state.weight_bytes + state.state_bytes) +
                     parallel_job_range_bytes(state.gradient_bytes) +
                     parallel_job_range_bytes(parallel_workspace_bytes(job, layers)) +
                     depth * parallel_job_range_bytes(parallel_kept_bytes(job, layers, false));
    if (parallel_fetches_weights(p)) bytes += (p->prefetch + 1) * parallel_job_range_bytes(whole.weight_bytes);
    if (parallel_splits(p, ZERO_GRADIENTS) || p->offload != OFFLOAD_NOTHING)
        bytes += 2 * parallel_job_range_bytes(whole.gradient_bytes);
    if (stage > 0) bytes += passing_bytes(job, layers.first - 1, 2 * depth + 2);
    if (stage + 1 < p->pipeline) bytes += passing_bytes(job, layers.first + layers.count - 1, 2 * depth + 2);
    return bytes;
}

static uint64_t missing_bytes(const struct hardware *hardware, const struct job *job)
{
    const struct parallel *p = &job->parallel;
    uint64_t missing = 0;
    for (uint32_t stage = 0; stage < p->pipeline; stage++) {
        uint64_t need = stage_bytes(job, stage), have = UINT64_MAX;
        uint32_t size = p->tensor * parallel_replicas(p, stage);
        uint32_t first = p->first_device + p->tensor * (uint32_t)parallel_replicas_before(p, stage);
        for (uint32_t d = first; d < first + size; d++) have = min_u64(have, hardware->devices[d].memory_bytes);
        if (need > have) missing = max_u64(missing, need - have);
    }
    return missing;
}

/* --- time ----------------------------------------------------------------------------------- */

/* Returns the end of the last update, after the sum of a tied table's gradients. */
static double end_of_updates(const struct pipeline_order *order, const struct parallel_job_times *times,
                             uint32_t chunks)
{
    double end_s = 0, ends_s = 0;
    for (uint64_t i = 0; i < order->count; i++) {
        const struct pipeline_step *step = &order->steps[i];
        end_s = max_s(end_s, step->end_s + times->updates_s[step->chunk]);
        if (step->chunk == 0 || step->chunk + 1 == chunks) ends_s = max_s(ends_s, step->end_s);
    }
    if (times->joined_s == 0) return end_s;
    return max_s(end_s, ends_s + times->joined_s + max_s(times->updates_s[0], times->updates_s[chunks - 1]));
}

static enum status clock_minibatch(const struct hardware *hardware, struct parallel_job_rannc_choice *c,
                                   struct error *err)
{
    struct arena scratch = {0};
    struct parallel_job_times times;
    struct pipeline_order order;
    const struct parallel *p = &c->job.parallel;
    uint32_t microbatches = (uint32_t)(c->job.microbatches / p->data);
    enum status status = parallel_job_times_make(&scratch, hardware, &c->job, &times, err);
    if (!status) status = pipeline_order(&scratch, p, microbatches, times.chunks, &order, err);
    if (!status && p->offload != OFFLOAD_NOTHING)
        c->minibatch_s = max_s(order.end_s, times.exchange_s) + times.update_s;
    else if (!status) c->minibatch_s = max_s(end_of_updates(&order, &times, parallel_chunks(p)), times.exchange_s);
    arena_release(&scratch);
    return status;
}

/* --- choices -------------------------------------------------------------------------------- */

/* The best choice so far; if none fits, the fewest missing bytes. */
struct parallel_job_rannc_search {
    const struct hardware *hardware;
    const struct job *job;
    struct parallel_job_rannc_choice best;
    bool any;
    uint64_t missing;
};

/* Cuts and times a job with other degrees, and keeps the best that fits. *minibatch_s is INFINITY without memory or
 * with invalid degrees. */
static enum status try_choice(struct parallel_job_rannc_search *s, const struct job *job, double *minibatch_s,
                              struct error *err)
{
    struct parallel_job_rannc_choice trial = {.job = *job};
    struct parallel *p = &trial.job.parallel;
    struct error own = {0};
    *minibatch_s = INFINITY;
    p->partition = PARALLEL_BALANCED;
    if (parallel_check(&trial.job, &own) != STATUS_OK) return STATUS_OK;
    if (parallel_job_cut_choose(s->hardware, &trial.job, &own)) {
        if (own.status == STATUS_INFEASIBLE) return STATUS_OK;
        *err = own;
        return err->status;
    }
    p->partition = PARALLEL_RANNC;
    uint64_t lacking = missing_bytes(s->hardware, &trial.job);
    if (lacking > 0) {
        s->missing = min_u64(s->missing, lacking);
        return STATUS_OK;
    }
    own = (struct error){0};
    enum status status = clock_minibatch(s->hardware, &trial, &own);
    if (status == STATUS_BAD_INPUT && p->replicated > 0) return STATUS_OK; /* no path between all replicas */
    if (status) {
        *err = own;
        return status;
    }
    *minibatch_s = trial.minibatch_s;
    if (!s->any || trial.minibatch_s < s->best.minibatch_s) s->best = trial;
    s->any = true;
    return STATUS_OK;
}

static enum status check_devices(const struct hardware *hardware, const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    uint64_t end = p->first_device + parallel_devices(p);
    if (end <= hardware->device_count) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "job '%s' runs on devices %" PRIu32 " to %" PRIu64 ", and machine '%s' has %" PRIu32, job->name,
                     p->first_device, end - 1, hardware->name, hardware->device_count);
}

static enum status nothing_fits(const struct job *job, uint64_t missing, struct error *err)
{
    char text[QUANTITY_TEXT_BYTES];
    uint32_t workers = job->parallel.pipeline * job->parallel.data;
    if (missing == UINT64_MAX)
        return error_set(err, STATUS_INFEASIBLE, "job '%s' fits on %" PRIu32 " devices with no number of stages",
                         job->name, workers * job->parallel.tensor);
    return error_set(err, STATUS_INFEASIBLE,
                     "job '%s' fits on %" PRIu32 " devices with no number of stages: %s (%" PRIu64
                     " bytes) missing at least", job->name, workers * job->parallel.tensor,
                     quantity_text((double)missing, DIMENSION_BYTES, text), missing);
}

static bool keeps_microbatches(const struct job *job)
{
    return job->network.family == NETWORK_PROFILE && job->network.profile_samples == 0;
}

/* Counts a profile's microbatches as samples. */
static uint64_t unit_count(const struct job *job)
{
    return keeps_microbatches(job) ? job->microbatches : job->microbatch * job->microbatches;
}

static struct job in_microbatches(const struct job *job, uint64_t microbatches)
{
    struct job out = *job;
    out.microbatch = job->microbatch * job->microbatches / microbatches;
    out.microbatches = microbatches;
    return out;
}

static enum status try_equal(struct parallel_job_rannc_search *s, uint32_t stages, uint32_t replicas, struct error *err)
{
    double minibatch_s;
    if (unit_count(s->job) % replicas != 0) return STATUS_OK;
    uint64_t each = unit_count(s->job) / replicas;
    for (uint64_t m = keeps_microbatches(s->job) ? each : 1; each % m == 0; m *= 2) {
        struct job job = in_microbatches(s->job, m * replicas);
        job.parallel.pipeline = stages;
        job.parallel.data = replicas;
        TRY(try_choice(s, &job, &minibatch_s, err));
    }
    return STATUS_OK;
}

/* Returns true for a partition also tried as plain data parallelism. */
static bool is_equal(const struct stage_partition *found, uint64_t microbatches)
{
    for (uint32_t i = 1; i < found->count; i++)
        if (found->stages[i].replicas != found->stages[0].replicas) return false;
    return microbatches % found->stages[0].replicas == 0;
}

/* Moves a replica between stages if the minibatch gets shorter. Updates *found_s. */
static enum status try_move(struct parallel_job_rannc_search *s, struct job *job, uint32_t from, uint32_t to,
                            double *found_s, struct error *err)
{
    uint32_t *replicas = job->parallel.replicas;
    double moved_s;
    if (replicas[from] == 1 || from == to) return STATUS_OK;
    replicas[from]--;
    replicas[to]++;
    TRY(try_choice(s, job, &moved_s, err));
    if (moved_s < *found_s) {
        *found_s = moved_s;
        return STATUS_OK;
    }
    replicas[from]++;
    replicas[to]--;
    return STATUS_OK;
}

/* Moves replicas while the minibatch gets shorter. The dynamic program compares only slowest stages: its equals differ
 * in sends, exchanges and filling time. */
static enum status move_replicas(struct parallel_job_rannc_search *s, struct job *job, double found_s,
                                 struct error *err)
{
    double before_s;
    if (parallel_devices(&job->parallel) > (uint64_t)job->parallel.tensor * MOVED_GROUPS_MAX) return STATUS_OK;
    do {
        before_s = found_s;
        for (uint32_t from = 0; from < job->parallel.pipeline; from++)
            for (uint32_t to = 0; to < job->parallel.pipeline; to++) TRY(try_move(s, job, from, to, &found_s, err));
    } while (found_s < before_s);
    return STATUS_OK;
}

/* Tries all numbers of stages. */
static enum status try_unequal(struct parallel_job_rannc_search *s, uint64_t microbatches, struct arena *scratch,
                               struct error *err)
{
    struct job job = in_microbatches(s->job, microbatches);
    uint32_t groups = job.parallel.pipeline * job.parallel.data;
    struct stage_partition of_count[PARALLEL_JOB_GROUPS_MAX];
    TRY(parallel_job_replicas_find(scratch, s->hardware, &job, of_count, err));
    for (uint32_t stages = 1; stages <= groups; stages++) {
        const struct stage_partition *found = &of_count[stages - 1];
        struct parallel *p = &job.parallel;
        double found_s = INFINITY;
        if (found->count == 0) continue;
        p->data = 1;
        p->pipeline = p->replicated = stages;
        for (uint32_t i = 0; i < stages; i++) p->replicas[i] = found->stages[i].replicas;
        if (!is_equal(found, microbatches)) TRY(try_choice(s, &job, &found_s, err));
        TRY(move_replicas(s, &job, found_s, err));
    }
    return STATUS_OK;
}

static enum status try_all(struct parallel_job_rannc_search *s, struct arena *scratch, struct error *err)
{
    const struct parallel *p = &s->job->parallel;
    uint32_t groups = p->pipeline * p->data;
    uint64_t units = unit_count(s->job);
    for (uint32_t stages = 1; stages <= groups; stages++)
        if (groups % stages == 0) TRY(try_equal(s, stages, groups / stages, err));
    if (groups > PARALLEL_JOB_GROUPS_MAX || p->zero > ZERO_NOTHING || p->offload != OFFLOAD_NOTHING) return STATUS_OK;
    for (uint64_t m = keeps_microbatches(s->job) ? units : 1; units % m == 0; m *= 2)
        TRY(try_unequal(s, m, scratch, err));
    return STATUS_OK;
}

enum status parallel_job_rannc_choose(const struct hardware *hardware, struct job *job, struct error *err)
{
    struct parallel_job_rannc_search s = {.hardware = hardware, .job = job, .missing = UINT64_MAX};
    struct arena scratch = {0};
    TRY(check_devices(hardware, job, err));
    enum status status = try_all(&s, &scratch, err);
    if (!status && !s.any) status = nothing_fits(job, s.missing, err);
    if (!status) *job = s.best.job;
    arena_release(&scratch);
    return status;
}
