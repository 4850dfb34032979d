/*
 * Emits one minibatch of each job (parallel_job_order.c), and repeats it.
 *
 * Several jobs: a minibatch of each job in turn, while each has some left. Jobs whose minibatches overlap
 * (planner/parallel/parallel_job_async.h) follow one after the other; on different devices they run at the same time.
 */
#include "planner/parallel/parallel_job.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "models/hardware/hardware_dilate.h"
#include "models/job/evaluation.h"
#include "models/job/parallel_offload.h"
#include "planner/parallel/parallel_job_async.h"
#include "planner/parallel/parallel_job_recompute.h"
#include "planner/parallel/parallel_job_cut.h"
#include "planner/parallel/parallel_job_layout.h"
#include "planner/parallel/parallel_job_rannc.h"
#include "planner/parallel/parallel_job_slices.h"
#include "planner/parallel/parallel_job_units.h"
#include "planner/plan_charges.h"

/* Errors: STATUS_BAD_INPUT for an unknown speed of the host's processor or missing storage, and for what only the
 * executor's jobs do. */
static enum status check_offload(const struct hardware *hardware, const struct job *job, struct error *err)
{
    if (!parallel_offloads(&job->parallel)) return STATUS_OK;
    if (!hardware_has_cpu(hardware) && hardware_dilation(hardware) <= 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' offloads, and machine '%s' does not say how fast its host is (expected "
                         "\"memory_bandwidth\" of the host)",
                         job->name, hardware->name);
    if (job->parallel.storage && !hardware_has_storage(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' offloads to storage, and machine '%s' has none (--storage-memory and --storage-rate "
                         "give it some)",
                         job->name, hardware->name);
    if (job->parallel.sequence && !parallel_is_carried_out(&job->parallel))
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' is parallel and only simulated here, because of %s, and offloads with sequence "
                         "parallelism (expected none)", job->name, parallel_only_simulated(hardware, job));
    if (job->parallel.offload == OFFLOAD_STATES && job->network.trained && !parallel_is_carried_out(&job->parallel))
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' is parallel and only simulated here, because of %s, and offloads states of a "
                         "network that it trains in part (expected to offload weights, or nothing)",
                         job->name, parallel_only_simulated(hardware, job));
    return STATUS_OK;
}

/* --- jobs ----------------------------------------------------------------------------------- */

static uint32_t add_gang(const struct parallel_job *s, uint32_t tensor, uint32_t data, const uint32_t *devices)
{
    uint32_t extents[AXIS_COUNT] = {[AXIS_TENSOR] = tensor, [AXIS_DATA] = data, [AXIS_ENDS] = 1};
    return plan_builder_gang(s->builder, extents, devices);
}

/* Makes the gang of both end stages. Changes `devices`, which lists all stages' devices. */
static void add_ends(struct parallel_job *s, uint32_t *devices)
{
    const struct parallel *p = s->parallel;
    uint32_t first = parallel_replicas(p, 0), last = parallel_replicas(p, p->pipeline - 1);
    uint32_t groups = parallel_joined_groups(p);
    uint32_t extents[AXIS_COUNT] = {[AXIS_TENSOR] = p->tensor, [AXIS_DATA] = groups,
                                    [AXIS_ENDS] = (first + last) / groups};
    if (s->joined_bytes == 0) return;
    memmove(devices + p->tensor * first, devices + p->tensor * parallel_replicas_before(p, p->pipeline - 1),
            p->tensor * last * sizeof *devices);
    s->ends_gang = plan_builder_gang(s->builder, extents, devices);
}

static enum status make_gangs(struct parallel_job *s, struct error *err)
{
    const struct parallel *p = s->parallel;
    uint64_t end = p->first_device + parallel_devices(p);
    if (end > s->plan->hardware.device_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' runs on devices %" PRIu32 " to %" PRIu64 ", and machine '%s' has %" PRIu32,
                         s->job->name, p->first_device, end - 1, s->plan->hardware.name,
                         s->plan->hardware.device_count);
    uint32_t *devices = alloc_zeroed(parallel_devices(p), sizeof *devices);
    if (!devices) return error_memory(err, "the devices of a job", parallel_devices(p) * sizeof *devices);
    for (uint32_t i = 0; i < parallel_devices(p); i++) devices[i] = p->first_device + i;
    for (uint32_t i = 0; i < p->pipeline; i++) {
        struct parallel_job_stage *stage = &s->stages[i];
        const uint32_t *first = devices + p->tensor * parallel_replicas_before(p, i);
        stage->gang = stage->first_turn = add_gang(s, p->tensor, parallel_replicas(p, i), first);
        stage->turns = parallel_turns(p, i);
        for (uint32_t d = 0; stage->turns > 1 && d < stage->turns; d++) {
            uint32_t gang = add_gang(s, p->tensor, 1, first + d * p->tensor);
            if (d == 0) stage->first_turn = gang;
        }
    }
    add_ends(s, devices);
    free(devices);
    if (s->plan->gang_count == 0)
        return error_memory(err, "the gangs of a job", p->pipeline * sizeof(struct plan_gang));
    return STATUS_OK;
}

/* Prepares everything but tasks. Writes the planner's decisions into `job`, the plan's copy. */
static enum status prepare(struct parallel_job *s, struct job *job, struct arena *arena, struct error *err)
{
    s->job = job;
    s->parallel = &s->job->parallel;
    if (job->parallel.carrying != PARALLEL_SIMULATED)
        job->parallel.carrying = parallel_may_be_carried_out(&s->plan->hardware, job) ? PARALLEL_CARRIED_OUT
                                                                                      : PARALLEL_UNDECIDED;
    s->carried_out = parallel_is_carried_out(&job->parallel);
    const bool flushes = job->parallel.delayed && job->parallel.flush > 0;
    const bool ordered = job_sums_as_tree(job) || job->parallel.tensor_pieces > 0;
    if ((job->evaluation.every > 0 || job_clips(job) || ordered || flushes) && !s->carried_out)
        return error_set(err, STATUS_BAD_INPUT, "job '%s' is parallel and only simulated here, because of %s, and %s",
                         job->name, parallel_only_simulated(&s->plan->hardware, job),
                         job_sums_as_tree(job)         ? "has no 'sum' 'tree'"
                         : job->parallel.tensor_pieces ? "has no 'tensor_pieces'"
                         : job_clips(job)              ? "does not clip"
                         : job->evaluation.every > 0 ? "has no evaluations"
                                                     : "does not flush delayed updates");
    if (job->parallel.offload == OFFLOAD_STATES && job->parallel.data > 1 && job->parallel.zero < ZERO_GRADIENTS &&
        !s->carried_out)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' is parallel and only simulated here, because of %s, "
                         "and offloads states with 'zero' %" PRIu32 " (expected 2 or 3)",
                         job->name, parallel_only_simulated(&s->plan->hardware, job), job->parallel.zero);
    s->chunks = parallel_chunks(s->parallel);
    s->microbatches = (uint32_t)(s->job->microbatches / s->parallel->data) * parallel_slices(s->parallel);
    TRY(ARENA_NEW(arena, s->chunks, s->of, err));
    TRY(ARENA_NEW(arena, s->parallel->pipeline, s->stages, err));
    TRY(ARENA_NEW(arena, s->chunks, s->completed, err));
    s->joined_bytes = parallel_joined_bytes(s->job);
    bool asynchronous = pipeline_is_asynchronous(s->parallel->schedule);
    bool sliced = s->parallel->schedule == PIPELINE_TERAPIPE;
    enum status status = check_offload(&s->plan->hardware, s->job, err);
    if (!status) status = make_gangs(s, err);
    bool undecided = s->parallel->choose && s->parallel->chosen == 0;
    if (!status && undecided) status = parallel_job_choose_recompute(s, job, err);
    if (asynchronous) s->microbatches = parallel_job_async_tick(s);
    if (!status) status = parallel_job_times_make(arena, &s->plan->hardware, s->job, &s->times, err);
    if (!status) status = plan_charges_first_stage(arena, &s->plan->hardware, s->job, &s->in_s, &s->out_s, err);
    if (!status && sliced) status = parallel_job_slices_order(s, arena, err);
    if (!status && !asynchronous && !sliced)
        status = pipeline_order(arena, s->parallel, s->microbatches, s->times.chunks, &s->order, err);
    if (!status) status = parallel_job_size(s, arena, err);
    if (status) return status;
    for (uint32_t r = 0; r < s->chunks; r++)
        plan_builder_shard(s->builder, s->index, s->of[r].layers.first, s->of[r].layers.count, false);
    return parallel_job_lay_out(s, err);
}

static bool is_asynchronous(const struct parallel_job *s)
{
    return pipeline_is_asynchronous(s->parallel->schedule);
}

static bool has_more(const struct parallel_job *s, uint64_t done)
{
    return !is_asynchronous(s) && s->job->minibatches > done;
}

/* Returns the last minibatch, or the next one after `done` with something after every `every` of the training. */
static uint64_t next_multiple(const struct parallel_job *s, uint64_t every, uint64_t done)
{
    const uint64_t last = s->job->minibatches - 1;
    return every > 0 ? min_u64(done + every - 1 - (s->job->first_minibatch + done) % every, last) : last;
}

/* Returns the end of the equal minibatches after `done` of delayed updates: none is flushed, or comes after a flush. */
static uint64_t delayed_end(const struct parallel_job *s, uint64_t done)
{
    if (!s->carried_out) return done == 0 ? 1 : s->job->minibatches;
    if (done == 0 || parallel_flushes_after(s->job, done) || parallel_flushes_after(s->job, done - 1)) return done + 1;
    return min_u64(next_multiple(s, s->parallel->flush, done), next_multiple(s, s->job->evaluation.every, done));
}

/* Returns the end of the equal minibatches after `done`: all are evaluated, or none is. */
static uint64_t segment_end(const struct parallel_job *s, uint64_t done)
{
    const uint64_t every = s->job->evaluation.every;
    if (s->parallel->delayed) return delayed_end(s, done);
    if (every <= 1) return s->job->minibatches;
    return evaluation_follows(s->job, done) ? done + 1 : next_multiple(s, every, done);
}

static void emit_minibatches_of_all(struct parallel_job *all, uint32_t count, uint64_t done)
{
    for (uint32_t j = 0; j < count; j++)
        if (has_more(&all[j], done)) parallel_job_emit_minibatch(&all[j], done);
}

/* Returns the least common multiple of a cycle and a number of minibatches; both may be 0, which is too many or
 * none. */
static uint64_t lengthen(uint64_t cycle, uint64_t every)
{
    enum { CYCLE_MAX = 64 };
    uint64_t longer = cycle;
    if (every == 0) return cycle;
    while (longer > 0 && longer <= CYCLE_MAX && longer % every != 0) longer += cycle;
    return longer <= CYCLE_MAX ? longer : 0;
}

/* Returns the number of minibatches after which all unfinished jobs are evaluated and flushed in the same way again, or
 * 0: too many, or the first one of delayed updates differs. */
static uint64_t evaluation_cycle(const struct parallel_job *all, uint32_t count, uint64_t done)
{
    uint64_t cycle = 1;
    for (uint32_t j = 0; j < count; j++) {
        if (!has_more(&all[j], done)) continue;
        if (all[j].parallel->delayed && done == 0) return 0;
        cycle = lengthen(lengthen(cycle, all[j].job->evaluation.every), all[j].parallel->flush);
    }
    return cycle;
}

/* Emits a minibatch of each unfinished job, and repeats it until a job ends or its minibatches change; or as many
 * minibatches as evaluations repeat after, without a job's last one, which is always evaluated. */
static void emit_minibatches(struct parallel_job *all, uint32_t count, struct plan_builder *builder)
{
    uint64_t done = 0, next, end;
    do {
        next = end = UINT64_MAX;
        for (uint32_t j = 0; j < count; j++) {
            if (!has_more(&all[j], done)) continue;
            next = min_u64(next, segment_end(&all[j], done));
            end = min_u64(end, all[j].job->minibatches);
        }
        if (next == UINT64_MAX) return;
        const uint64_t cycle = evaluation_cycle(all, count, done), repeats = cycle > 1 ? (end - 1 - done) / cycle : 0;
        if (repeats > 1) {
            for (uint64_t i = 0; i < cycle; i++) emit_minibatches_of_all(all, count, done + i);
            plan_builder_segment(builder, (uint32_t)repeats);
            done += repeats * cycle;
            continue;
        }
        emit_minibatches_of_all(all, count, done);
        plan_builder_segment(builder, (uint32_t)(next - done));
        done = next;
    } while (true);
}

static bool share_devices(const struct parallel *a, const struct parallel *b)
{
    return a->first_device < b->first_device + parallel_devices(b) &&
           b->first_device < a->first_device + parallel_devices(a);
}

static void stack_stage(struct parallel_job *s, const struct parallel_job_stage *below)
{
    s->base_bytes = max_u64(s->base_bytes, below->end);
    s->staged_base_bytes = max_u64(s->staged_base_bytes, below->staged_end);
}

static void stack_jobs(struct parallel_job *all, uint32_t index)
{
    struct parallel_job *s = &all[index];
    for (uint32_t j = 0; j < index; j++) {
        if (!share_devices(&all[j].job->parallel, &s->job->parallel)) continue;
        for (uint32_t stage = 0; stage < all[j].parallel->pipeline; stage++)
            stack_stage(s, &all[j].stages[stage]);
    }
}

/*
 * Returns a lower bound of a minibatch: with states or weights on hosts, the longest of passes, copies and steps, which
 * overlap.
 */
static double minibatch_s(const struct parallel_job *s)
{
    if (parallel_offloads(s->parallel)) return max_s(s->order.end_s, s->times.lane_s);
    return max_s(s->order.end_s, s->times.exchange_s) + s->times.update_s;
}

/* Returns the seconds of all evaluations, whose held-out microbatches follow each other through the stages. */
static double evaluations_s(const struct parallel_job *s)
{
    const struct job *job = s->job;
    double fill_s = 0, slowest_s = 0;
    for (uint32_t r = 0; r < s->chunks && job->evaluation.every > 0; r++) {
        fill_s += s->times.chunks[r].pass_s[PIPELINE_FORWARD];
        slowest_s = max_s(slowest_s, s->times.chunks[r].pass_s[PIPELINE_FORWARD]);
    }
    const double microbatches = (double)job->evaluation.minibatches * (double)(job->microbatches / s->parallel->data);
    return (double)evaluation_count(job) *
           (fill_s + (microbatches - 1) * slowest_s * (s->chunks / s->parallel->pipeline));
}

static void estimate_end(struct parallel_job *all, uint32_t index)
{
    struct parallel_job *s = &all[index];
    double begin_s = 0;
    for (uint32_t j = 0; j < index; j++)
        if (share_devices(&all[j].job->parallel, &s->job->parallel) && all[j].estimated_end_s > begin_s)
            begin_s = all[j].estimated_end_s;
    s->estimated_end_s = begin_s + s->in_s + s->out_s +
                         (is_asynchronous(s) ? parallel_job_async_estimate_s(s)
                                             : (double)s->job->minibatches * minibatch_s(s)) +
                         evaluations_s(s);
}

/* Copies up the weights of a delayed last update, unless the last minibatch did, and ends all lives. */
static void end_job(struct parallel_job *s)
{
    const bool refreshes = s->parallel->delayed && !s->carried_out;
    for (uint32_t r = s->chunks; refreshes && r-- > 0;) parallel_job_emit_refresh(s, r, false);
    for (uint32_t r = 0; r < s->chunks; r++) parallel_job_emit_resident(s, r, false);
}

static enum status describe(struct plan *plan, const struct parallel_job *all, uint32_t count, struct error *err)
{
    double bound_s = 0, estimate_s = 0;
    const struct parallel_job *longest = all;
    char text[256], seconds[QUANTITY_TEXT_BYTES];
    for (uint32_t j = 0; j < count; j++) {
        double minibatches = (double)all[j].job->minibatches;
        double end_s = all[j].estimated_end_s;
        if (end_s > estimate_s) estimate_s = end_s;
        if (minibatches * all[j].times.compute_s <= bound_s) continue;
        bound_s = minibatches * all[j].times.compute_s;
        longest = &all[j];
    }
    plan->estimated_makespan_s = estimate_s > bound_s ? estimate_s : bound_s;
    plan->lower_bound_s = bound_s;
    plan->bound_kind = BOUND_AREA;
    snprintf(text, sizeof text, "with this parallelism, the devices of stage %" PRIu32 " of %.100s compute for %s",
             longest->times.busiest, longest->job->name,
             quantity_text(bound_s, DIMENSION_SECONDS, seconds));
    enum status status = arena_string(&plan->arena, text, &plan->bound_text, err);
    return status ? status : arena_string(&plan->arena, "parallel", &plan->policy, err);
}

enum status parallel_job_plan(struct plan_builder *builder, bool turns, struct error *err)
{
    struct plan *plan = plan_builder_plan(builder);
    struct arena scratch = {0};
    uint32_t count = plan->jobs.count;
    struct parallel_job *all;
    enum status status = ARENA_NEW(&scratch, count, all, err);
    for (uint32_t j = 0; j < count && !status; j++) {
        all[j] = (struct parallel_job){.builder = builder, .plan = plan, .index = j,
                                       .job = &plan->jobs.jobs[j]};
        stack_jobs(all, j);
        plan->job_activations[j] = ACTIVATIONS_KEEP;
        struct parallel *parallel = &plan->jobs.jobs[j].parallel;
        bool rannc = parallel->partition == PARALLEL_RANNC;
        if (parallel->partition != PARALLEL_EQUAL && parallel->cuts == 0)
            status = (rannc ? parallel_job_rannc_choose : parallel_job_cut_choose)(&plan->hardware, &plan->jobs.jobs[j],
                                                                                   err);
        if (!status && parallel->schedule == PIPELINE_TERAPIPE && parallel->slices == 0)
            status = parallel_job_slices_choose(&plan->hardware, &plan->jobs.jobs[j], err);
        if (!status) status = prepare(&all[j], &plan->jobs.jobs[j], &scratch, err);
        if (!status) estimate_end(all, j);
    }
    if (!status && turns) status = parallel_job_files_begin(all, count, plan, err);
    if (!status) {
        parallel_job_files_emit(all, count, true);
        for (uint32_t j = 0; j < count; j++)
            for (uint32_t r = 0; r < all[j].chunks; r++) parallel_job_emit_resident(&all[j], r, true);
        plan_builder_segment(builder, 1);
        emit_minibatches(all, count, builder);
        for (uint32_t j = 0; j < count; j++)
            if (is_asynchronous(&all[j])) parallel_job_async_emit(&all[j]);
        for (uint32_t j = 0; j < count; j++) end_job(&all[j]);
        parallel_job_files_emit(all, count, false);
        parallel_job_files_end(plan);
        plan_builder_segment(builder, 1);
        status = describe(plan, all, count, err);
    }
    arena_release(&scratch);
    return status;
}
