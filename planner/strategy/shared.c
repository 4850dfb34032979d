/* The steps in order: mark who shares, try cuts by a few rounds each, order all rounds, emit, bound, check. */
#include "planner/strategy/shared.h"

#include <inttypes.h>
#include <string.h>

#include "base/extreme.h"
#include "base/size.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "planner/check/plan_check.h"
#include "planner/plan_hosts.h"
#include "planner/policy/policies.h"
#include "planner/spill/cut/bound.h"
#include "planner/spill/emit/emit.h"
#include "planner/spill/shared/shared_base.h"
#include "planner/spill/shared/shared_cut.h"
#include "planner/spill/shared/shared_order.h"

enum { SHARD_SIZES = 18 };

bool shared_applies(const struct hardware *hardware, const struct job_set *jobs, const struct planner_options *options)
{
    (void)hardware, (void)jobs;
    return options->policy && strcmp(options->policy, policy_shared_base.name) == 0;
}

static enum status check_options(const struct hardware *hardware, const struct job_set *jobs,
                                 const struct planner_options *options, struct error *err)
{
    bool clips = false;
    for (uint32_t j = 0; j < jobs->count; j++) clips |= job_clips(&jobs->jobs[j]);
    const char *const what = options->live ? "live dispatch"
                             : options->instance ? "an instance"
                             : options->timetable ? "a timetable"
                             : options->host == PLANNER_HOST_TURNS ? "jobs that take turns in host memory"
                             : options->activations < ACTIVATIONS_COUNT && plan_activations_stay(options->activations)
                                 ? "activations that stay on a device"
                             : options->optimizer == PLANNER_PLACE_SPLIT ? "optimizers in two places (split)" : NULL;
    if (what) return error_set(err, STATUS_BAD_INPUT, "policy '%s' does not go with %s", policy_shared_base.name, what);
    if (hardware_host_count(hardware) > 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "policy '%s' keeps a base in the memory of one host, and machine '%s' has %" PRIu32
                         " (--devices can choose the first node's)", policy_shared_base.name, hardware->name,
                         hardware_host_count(hardware));
    if ((clips || options->optimizer == PLANNER_PLACE_CPU) && !hardware_has_cpu(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' does not say how fast its host's processor is (its host has "
                         "no 'memory_bandwidth')", hardware->name);
    if (clips && options->optimizer == PLANNER_PLACE_DEVICE)
        return error_set(err, STATUS_BAD_INPUT, "an optimizer that clips ('clip') is on the host "
                         "(expected --optimizer auto or cpu)");
    return STATUS_OK;
}

/* --- cuts -------------------------------------------------------------------------------------- */

struct search {
    const struct hardware *hardware;
    const struct job_set *jobs;
    struct footprints *footprints;
    const struct planner_options *options;
    struct shared_candidate best;
    double best_s;
    uint64_t missing_bytes; /* at least; UINT64_MAX: nothing was tried */
    bool found;
    struct error *err;
};

static enum status time_of(const struct search *s, const struct partition *partition, double *seconds)
{
    struct cost_table times;
    TRY(cost_table_make(s->hardware, s->jobs, s->footprints, partition, &times, s->err));
    const enum status status = shared_order_estimate(&times, seconds, s->err);
    cost_table_release(&times);
    return status;
}

/* *shards: of the last candidate that differed only in the size of its shards; equally many are the same cut. */
static enum status try_candidate(struct search *s, const struct shared_candidate *candidate, uint32_t *shards)
{
    struct partition partition;
    uint64_t missing;
    double seconds = 0;
    TRY(shared_cut_make(s->hardware, s->jobs, s->footprints, s->options, candidate, &partition, &missing, s->err));
    if (missing > 0) {
        if (missing < s->missing_bytes) s->missing_bytes = missing;
        return STATUS_OK;
    }
    uint32_t fewest = UINT32_MAX;
    for (uint32_t j = 0; j < s->jobs->count; j++) fewest = min_u32(fewest, partition_job_shards(&partition, j));
    const bool is_new = partition.shard_count != *shards && fewest >= s->options->shards;
    enum status status = is_new ? time_of(s, &partition, &seconds) : STATUS_OK;
    *shards = partition.shard_count;
    if (!status && is_new && (!s->found || seconds < s->best_s)) {
        s->best = *candidate;
        s->best_s = seconds;
        s->found = true;
    }
    partition_release(&partition);
    return status;
}

static bool is_asked(uint32_t asked, uint32_t offered) { return asked == PLANNER_AUTO || asked == offered; }

/* Tries sizes of shards from that of the smallest layer on, in equal ratios up to some hundred times it. */
static enum status try_sizes(struct search *s, struct shared_candidate candidate)
{
    const uint64_t least = shared_cut_least(s->jobs);
    double size = (double)least;
    uint32_t shards = 0;
    for (uint32_t i = 0; i < SHARD_SIZES; i++, size *= 1.4142135623730951) {
        candidate.shard_bytes = (uint64_t)size;
        TRY(try_candidate(s, &candidate, &shards));
    }
    return STATUS_OK;
}

/* Tries all treatments of activations, optimizers and boundaries with these numbers of places. */
static enum status try_ways(struct search *s, uint32_t weight_buffers, uint32_t turns)
{
    const struct planner_options *o = s->options;
    static const uint32_t ways[] = {ACTIVATIONS_RECOMPUTE, ACTIVATIONS_SPILL_INPUTS, ACTIVATIONS_SPILL};
    for (uint32_t w = 0; w < ARRAY_COUNT(ways) * 8; w++) {
        const struct shared_candidate candidate = {.weight_buffers = weight_buffers, .turns = turns,
                                                   .activations = ways[w / 8],
                                                   .place = w / 4 % 2 ? PLANNER_PLACE_CPU : PLANNER_PLACE_DEVICE,
                                                   .loss_inputs = w / 2 % 2, .carries = w % 2};
        if (!is_asked(o->activations, candidate.activations) || !is_asked(o->optimizer, candidate.place)) continue;
        if (candidate.place == PLANNER_PLACE_CPU && !hardware_has_cpu(s->hardware)) continue;
        if (o->last != PLANNER_LAST_AUTO && candidate.loss_inputs != (o->last == PLANNER_LAST_HOLDS_INPUTS)) continue;
        TRY(try_sizes(s, candidate));
    }
    return STATUS_OK;
}

static enum status infeasible(const struct search *s)
{
    char text[QUANTITY_TEXT_BYTES];
    if (s->missing_bytes == UINT64_MAX)
        return error_set(s->err, STATUS_INFEASIBLE, "policy '%s' has no cut with these options",
                         policy_shared_base.name);
    return error_set(s->err, STATUS_INFEASIBLE,
                     "jobs that share a base need %s more memory on their devices or their host",
                     quantity_bytes_at_least(s->missing_bytes, text));
}

/* Finds the best cut; with one place each only if no other fits. */
static enum status find_cut(struct search *s, struct partition *out)
{
    const struct planner_options *o = s->options;
    const uint32_t asked = o->weight_buffers ? o->weight_buffers : o->no_double_buffer ? 1 : 0;
    uint64_t missing;
    s->missing_bytes = UINT64_MAX;
    for (uint32_t buffers = asked ? asked : 2; buffers <= (asked ? asked : 3); buffers++)
        TRY(try_ways(s, buffers, asked == 1 ? 1 : 2));
    if (!s->found && asked != 1) TRY(try_ways(s, asked ? asked : 1, 1));
    if (!s->found) return infeasible(s);
    return shared_cut_make(s->hardware, s->jobs, s->footprints, o, &s->best, out, &missing, s->err);
}

/* --- the plan ---------------------------------------------------------------------------------- */

static enum status describe(struct plan *plan, const struct planner_options *options, const struct partition *partition,
                            double estimate_s, struct error *err)
{
    struct bound bound;
    bound_makespan(&plan->hardware, &plan->jobs, options->optimizer != PLANNER_PLACE_DEVICE &&
                   hardware_has_cpu(&plan->hardware), &bound);
    plan->seed = options->seed;
    plan->double_buffer = partition->weight_buffer_count > 1;
    plan->estimated_makespan_s = estimate_s;
    plan->lower_bound_s = bound.seconds;
    plan->bound_kind = bound.kind;
    for (uint32_t j = 0; j < plan->jobs.count; j++) plan->job_activations[j] = partition->activations;
    TRY(arena_string(&plan->arena, bound.text, &plan->bound_text, err));
    return arena_string(&plan->arena, policy_shared_base.name, &plan->policy, err);
}

static enum status order_all(const struct search *s, const struct partition *partition, struct schedule *out)
{
    struct cost_table times;
    TRY(cost_table_make(s->hardware, s->jobs, s->footprints, partition, &times, s->err));
    const enum status status = shared_order_make(&times, out, s->err);
    cost_table_release(&times);
    return status;
}

static enum status write_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                              struct footprints *footprints, const struct partition *partition,
                              const struct schedule *schedule, struct plan *out, struct error *err)
{
    struct plan_builder *builder = NULL;
    enum status status = plan_builder_create(hardware, jobs, &builder, err);
    if (status) return status;
    struct plan *plan = plan_builder_plan(builder);
    footprints_rebind(footprints, &plan->hardware, &plan->jobs);
    status = emit_plan(builder, footprints, partition, schedule, err);
    if (!status) status = describe(plan, options, partition, schedule->makespan_s, err);
    if (!status) status = plan_builder_finish(builder, out, err);
    plan_builder_destroy(builder);
    if (status) return status;
    status = plan_host_fits(out, err);
    if (!status && plan_check(out, err)) status = error_add(err, "the planner made a plan that is wrong");
    if (status) plan_release(out);
    return status;
}

enum status shared_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                        struct plan *out, struct error *err)
{
    struct search search = {.hardware = hardware, .jobs = jobs, .options = options, .err = err};
    struct partition partition = {0};
    struct schedule schedule = {0};
    enum status status = check_options(hardware, jobs, options, err);
    if (!status) status = shared_base_mark(jobs, err);
    if (!status) status = footprints_create(hardware, jobs, &search.footprints, err);
    if (!status) status = find_cut(&search, &partition);
    if (!status) status = order_all(&search, &partition, &schedule);
    if (!status) status = write_plan(hardware, jobs, options, search.footprints, &partition, &schedule, out, err);
    job_set_release(jobs); /* empty where the plan has them */
    hardware_release(hardware);
    footprints_destroy(search.footprints);
    schedule_release(&schedule);
    partition_release(&partition);
    return status;
}
