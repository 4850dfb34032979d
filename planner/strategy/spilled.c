/*
 * The steps in order: partition, schedule, emit, bound, check.
 *
 * `spill-sequential` uses one device: its partition may keep activations, and jobs do not interleave (unless other
 * orders are to fit as well). plan_build.h takes the machine over after its last reader.
 */
#include "planner/strategy/spilled.h"

#include <inttypes.h>
#include <math.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "models/network/network_traits.h"
#include "planner/check/plan_check.h"
#include "planner/plan_hosts.h"
#include "planner/policy/policies.h"
#include "planner/policy/policy_load.h"
#include "planner/spill/cut/bound.h"
#include "planner/spill/cut/host_need.h"
#include "planner/spill/cut/node_assignment.h"
#include "planner/spill/cut/partition.h"
#include "planner/spill/cut/partition_storage.h"
#include "planner/spill/emit/emit.h"
#include "planner/spill/order/cost_table.h"
#include "planner/spill/order/instance_of_cut.h"
#include "planner/spill/order/order_bound.h"
#include "planner/spill/order/order_milp.h"
#include "planner/spill/order/order_of_instance.h"
#include "planner/spill/order/order_search.h"
#include "planner/spill/order/outputs_order.h"
#include "planner/spill/order/schedule.h"

enum { ITERATIONS_DEFAULT = 400, PROGRAMS_DEFAULT = 40 };
static const double prove_again_s = 5;

/* The host's processor makes steps that wait for a norm, from states in host memory. */
static enum status check_clipping(const struct policy *policy, const struct hardware *hardware,
                                  const struct job_set *jobs, const struct planner_options *options,
                                  struct error *err)
{
    uint32_t j = 0;
    while (j < jobs->count && !job_clips(&jobs->jobs[j])) j++;
    if (j == jobs->count) return STATUS_OK;
    const char *name = jobs->jobs[j].name;
    for (uint32_t i = j; i < jobs->count; i++)
        if (job_clips(&jobs->jobs[i]) && !network_has_plain_tables(&jobs->jobs[i].network))
            return error_set(err, STATUS_BAD_INPUT,
                             "the optimizer of job '%s' clips ('clip'), "
                             "which networks of family '%s' do in parallel jobs only "
                             "(expected 'parallel')",
                             jobs->jobs[i].name, network_family_names[jobs->jobs[i].network.family]);
    if (policy->resident)
        return error_set(err, STATUS_INFEASIBLE,
                         "policy '%s' keeps states on the devices, and the optimizer of job '%s' "
                         "clips ('clip'), which is done on the host", policy->name, name);
    if (options->optimizer == PLANNER_PLACE_DEVICE)
        return error_set(err, STATUS_BAD_INPUT,
                         "the optimizer of job '%s' clips ('clip'), which is done on the host "
                         "(expected --optimizer auto, cpu or split)", name);
    if (!hardware_has_cpu(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "the optimizer of job '%s' clips ('clip'), which is done on the host, and "
                         "machine '%s' does not say how fast its host's processor is (its host has "
                         "no 'memory_bandwidth')", name, hardware->name);
    return STATUS_OK;
}

/* Jobs that keep outputs are spilled, in an order that is planned, with the outputs in the memory of one host. */
static enum status check_outputs(const struct policy *policy, const struct hardware *hardware,
                                 const struct job_set *jobs, const struct planner_options *options, struct error *err)
{
    if (outputs_takers(jobs).count == jobs->count) return STATUS_OK;
    const char *const what = policy->resident ? "states that stay on devices (a policy for resident states)"
                             : options->live ? "an order that is decided during the run (--dispatch live)"
                             : options->host == PLANNER_HOST_TURNS ? "jobs that take turns in host memory"
                             : options->storage == PLANNER_STORAGE_ALL ? "states on storage"
                             : hardware_host_count(hardware) > 1 ? "machines of several nodes" : NULL;
    if (what) return error_set(err, STATUS_BAD_INPUT, "kept outputs (--keep-outputs) do not go with %s", what);
    if (hardware_has_cpu(hardware)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "kept outputs (--keep-outputs) are copied by the host's processor, and "
                     "machine '%s' does not say how fast it is (its host has no 'memory_bandwidth')", hardware->name);
}

static enum status partition_for(const struct policy *policy, const struct hardware *hardware,
                                 const struct job_set *jobs, struct footprints *footprints,
                                 const struct planner_options *options, struct partition *out,
                                 struct error *err)
{
    bool cpu = options->optimizer == PLANNER_PLACE_CPU || options->optimizer == PLANNER_PLACE_SPLIT;
    if (cpu && policy->resident)
        return error_set(err, STATUS_BAD_INPUT,
                         "policy '%s' keeps states on the devices, and their optimizers with them "
                         "(--optimizer is for spilled states)", policy->name);
    if (cpu && !hardware_has_cpu(hardware))
        return error_set(err, STATUS_BAD_INPUT,
                         "machine '%s' does not say how fast its host's processor is (its host has "
                         "no 'memory_bandwidth')", hardware->name);
    TRY(check_clipping(policy, hardware, jobs, options, err));
    TRY(check_outputs(policy, hardware, jobs, options, err));
    if (policy->resident && options->live)
        return error_set(err, STATUS_BAD_INPUT,
                         "policy '%s' keeps states on the devices, but live dispatch may choose any device",
                         policy->name);
    if (policy->resident)
        return partition_resident(hardware, jobs, footprints, options, policy->seats_max, out, err);
    return partition_spilled(hardware, jobs, footprints, options, !policy->one_device || options->live, out, err);
}

/* Searched and given orders ignore nodes, but spilled jobs cannot leave theirs. */
static enum status check_nodes(const struct hardware *hardware, const struct partition *partition,
                               const struct policy *policy, const struct planner_options *options, struct error *err)
{
    const char *what = options->instance ? "an instance" : options->timetable ? "a timetable"
                       : policy_is_searched(policy) ? policy->name : NULL;
    if (!what || partition->resident || !node_assignment_applies(hardware, hardware->device_count)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "%s orders devices of one node, and machine '%s' has %" PRIu32
                     " (--devices can choose the first node's)", what, hardware->name, hardware_host_count(hardware));
}

/* Returns how many iterations are made: the user's number, or `by_default`, or as the time limit allows. */
static uint32_t iterations_of(const struct planner_options *options, uint32_t by_default)
{
    return options->iterations ? options->iterations : options->time_limit_s > 0 ? UINT32_MAX : by_default;
}

/* Searches an order. `order`: its bound may be raised. */
static enum status search_for(const struct cost_table *times, const struct policy *policy,
                              const struct planner_options *options, struct schedule *out, struct plan_order *order,
                              struct error *err)
{
    bool milp = policy == &policy_milp;
    struct planner_search effort = {0};
    struct planner_milp report = {0};
    struct order_milp_options how = {
        .search = {.seed = options->seed,
                   .iterations = iterations_of(options, ITERATIONS_DEFAULT),
                   .until_s = options->time_limit_s > 0 ? clock_s() + options->time_limit_s : HUGE_VAL,
                   .bound_s = order->bound_s,
                   .on_progress = options->on_progress,
                   .context = options->progress_context},
        .windows = iterations_of(options, PROGRAMS_DEFAULT)};
    if (milp && options->iterations > 0) how.search.iterations = ITERATIONS_DEFAULT;
    if (milp) TRY(order_milp(times, &how, out, &effort, &report, err));
    else TRY(order_search(times, &how.search, out, &effort, err));
    order->tried = effort.iterations + report.programs;
    if (report.bound_s > order->bound_s) {
        order->bound_s = fmin(report.bound_s, out->makespan_s);
        order->kind = PLAN_ORDER_GLPK;
    }
    if (options->search) planner_search_add(options->search, &effort);
    if (options->milp && milp) *options->milp = report;
    return STATUS_OK;
}

static enum status schedule_for(const struct hardware *hardware, const struct job_set *jobs,
                                struct footprints *footprints, const struct partition *partition,
                                const struct policy *policy, const struct planner_options *options,
                                struct schedule *out, struct plan_order *order, struct error *err)
{
    const struct job_set ordered = outputs_takers(jobs);
    struct cost_table times;
    TRY(cost_table_make(hardware, &ordered, footprints, partition, &times, err));
    enum status status = check_nodes(hardware, partition, policy, options, err);
    struct order_bound bound = {0};
    if (!status) status = order_bound_make(&times, policy->one_device, &bound, err);
    *order = (struct plan_order){.bound_s = bound.seconds, .kind = bound.kind, .tried = 1};
    if (!status && options->instance && !partition->resident)
        status = instance_of_cut(&times, CUT_PLAN, 0, options->instance, err);
    if (status) {
        cost_table_release(&times);
        return status;
    }
    if (options->timetable) {
        double limit_s = options->time_limit_s > 0 ? options->time_limit_s : prove_again_s;
        status = order_of_timetable(&times, options->timetable, options->seed, limit_s, out, options->claim, err);
    } else if (policy_is_searched(policy)) {
        status = search_for(&times, policy, options, out, order, err);
    } else {
        status = schedule_make(&times, policy, options->seed, false, out, err);
    }
    cost_table_release(&times);
    if (status || ordered.count == jobs->count) return status;
    TRY(cost_table_make(hardware, jobs, footprints, partition, &times, err));
    status = outputs_order_first(&times, policy->one_device ? 1 : hardware->device_count, out, err);
    cost_table_release(&times);
    return status;
}

static enum status describe(struct plan *plan, const struct policy *policy,
                            const struct planner_options *options,
                            const struct partition *partition, double estimate_s,
                            const struct plan_order *order, struct error *err)
{
    struct bound bound;
    bool cpu = options->optimizer != PLANNER_PLACE_DEVICE && hardware_has_cpu(&plan->hardware);
    bound_makespan(&plan->hardware, &plan->jobs, cpu, &bound);
    plan->seed = options->seed;
    plan->double_buffer = !partition->resident && partition->weight_buffer_count > 1;
    plan->estimated_makespan_s = estimate_s;
    plan->lower_bound_s = bound.seconds;
    plan->bound_kind = bound.kind;
    plan->order = *order;
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        plan->job_activations[j] = partition->activations;
    TRY(arena_string(&plan->arena, bound.text, &plan->bound_text, err));
    return arena_string(&plan->arena, options->timetable ? "timetable" : policy->name, &plan->policy, err);
}

/* Returns true if jobs may wait in their files: their devices have one host, or each job is spilled on one. */
static bool may_take_turns(const struct hardware *hardware, const struct job_set *jobs,
                           const struct partition *partition)
{
    return !partition->storage.stored && outputs_takers(jobs).count == jobs->count &&
           (!partition->resident || hardware_host_count(hardware) == 1);
}

static enum status share_host(const struct hardware *hardware, const struct job_set *jobs,
                              struct footprints *footprints, const struct planner_options *options,
                              struct partition *partition, struct error *err)
{
    uint32_t hosts = partition->resident ? 1 : partition->interleaved ? node_assignment_count(hardware, jobs) : 1;
    TRY(storage_choose(hardware, jobs, footprints, options, partition, err));
    if (!may_take_turns(hardware, jobs, partition)) return STATUS_OK;
    if (options->host != PLANNER_HOST_TURNS && !host_states_exceed(hardware, jobs, hosts)) return STATUS_OK;
    return host_take_turns(hardware, jobs, footprints, partition, err);
}

static enum status write_ranges(struct plan *plan, const struct partition *partition, const struct schedule *schedule,
                                struct error *err)
{
    if (!partition->host.need) return STATUS_OK;
    TRY(ARENA_NEW(&plan->arena, plan->jobs.count, plan->host_ranges, err));
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        plan->host_ranges[j] = (struct plan_host_range){schedule->ranges[j], partition->host.need[j]};
    return STATUS_OK;
}

/* *short_of_memory: the plan is complete, but host memory does not hold all of its jobs at the same time. */
static enum status plan_by_policy(struct hardware *hardware, struct job_set *jobs,
                                  const struct planner_options *options, bool *short_of_memory, struct plan *out,
                                  struct error *err)
{
    const char *name = options->policy ? options->policy : policy_sharded_lrtf.name;
    struct policy_handle handle = {0};
    struct footprints *footprints = NULL;
    struct partition partition = {0};
    struct schedule schedule = {0};
    struct plan_order order = {0};
    struct plan_builder *builder = NULL;
    enum status status = policy_open(name, &handle, err);
    const struct policy *policy = handle.policy;
    if (!status && options->weight_buffers > PARTITION_WEIGHT_BUFFERS_MAX)
        status = error_set(err, STATUS_BAD_INPUT, "%u weight buffers (expected 1 to %d)",
                           options->weight_buffers, PARTITION_WEIGHT_BUFFERS_MAX);
    if (!status) status = footprints_create(hardware, jobs, &footprints, err);
    if (!status)
        status = partition_for(policy, hardware, jobs, footprints, options, &partition, err);
    if (!status) status = share_host(hardware, jobs, footprints, options, &partition, err);
    if (!status)
        status = schedule_for(hardware, jobs, footprints, &partition, policy, options, &schedule,
                              &order, err);
    if (status) {
        job_set_release(jobs);
        hardware_release(hardware);
        goto out;
    }
    status = plan_builder_create(hardware, jobs, &builder, err);
    if (status) goto out;
    struct plan *plan = plan_builder_plan(builder);
    footprints_rebind(footprints, &plan->hardware, &plan->jobs);
    status = write_ranges(plan, &partition, &schedule, err);
    if (!status) status = emit_plan(builder, footprints, &partition, &schedule, err);
    if (!status)
        status = describe(plan, policy, options, &partition, schedule.makespan_s, &order, err);
    if (!status) status = plan_builder_finish(builder, out, err);
    bool turns = partition.host.need != NULL, could = may_take_turns(&out->hardware, &out->jobs, &partition);
    if (!status) status = plan_host_fits(out, err);
    *short_of_memory = status == STATUS_INFEASIBLE && !turns && could && out->jobs.count > 1;
    if (!status) {
        status = plan_check(out, err);
        if (status) error_add(err, "the planner made a plan that is wrong");
    }
    if (status && !*short_of_memory) plan_release(out);
out:
    footprints_destroy(footprints);
    plan_builder_destroy(builder);
    schedule_release(&schedule);
    partition_release(&partition);
    policy_close(&handle);
    return status;
}

enum status spilled_plan(struct hardware *hardware, struct job_set *jobs, const struct planner_options *options,
                         struct plan *out, struct error *err)
{
    bool short_of_memory = false;
    struct planner_options turns = *options;
    enum status status = plan_by_policy(hardware, jobs, options, &short_of_memory, out, err);
    if (!short_of_memory) return status;
    *err = (struct error){0};
    struct hardware machine = out->hardware;
    struct job_set all = out->jobs;
    out->hardware = (struct hardware){0};
    out->jobs = (struct job_set){0};
    plan_release(out);
    turns.host = PLANNER_HOST_TURNS;
    return plan_by_policy(&machine, &all, &turns, &short_of_memory, out, err);
}
