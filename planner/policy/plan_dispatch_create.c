/* Tables of live dispatch: costs, choices and chains of a plan, and what the policy sees first. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "models/cost/cost.h"
#include "planner/policy/plan_dispatch_state.h"

/* A policy takes a job without computation left for one that is done. */
static const double COMPUTE_LEAST_S = 1e-9;

static enum status check(const struct plan *plan, const struct policy *policy, struct error *err)
{
    if (!plan_is_open(plan))
        return error_set(err, STATUS_BAD_INPUT,
                         "the plan has only one order (expected a plan made with --dispatch live)");
    if (!policy->choose && !policy->rank)
        return error_set(err, STATUS_INFEASIBLE, "policy '%s' is a search and cannot decide live", policy->name);
    if (policy->resident)
        return error_set(err, STATUS_INFEASIBLE,
                         "policy '%s' keeps states on devices, but live dispatch may choose any device",
                         policy->name);
    return STATUS_OK;
}

static bool allocate(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    size_t devices = plan->hardware.device_count, acquires = 0, places = 0;
    for (uint32_t u = 0; u < plan->unit_count; u++) acquires += plan->units[u].acquire_count;
    d->chains = alloc_zeroed(plan->jobs.count, sizeof *d->chains);
    d->entries = alloc_zeroed(plan_first_choice(plan), sizeof *d->entries);
    d->devices = alloc_zeroed(devices, sizeof *d->devices);
    d->first_choice = alloc_zeroed(plan->choice_count > 0 ? plan->unit_count * devices + 1 : 1,
                                   sizeof *d->first_choice);
    d->choices = alloc_zeroed(plan->choice_count, sizeof *d->choices);
    d->first_acquire = alloc_zeroed((size_t)plan->unit_count + 1, sizeof *d->first_acquire);
    d->staged = alloc_zeroed(acquires, sizeof *d->staged);
    d->compute_least_s = alloc_zeroed(plan->unit_count, sizeof *d->compute_least_s);
    d->costs = alloc_zeroed((size_t)plan->unit_count * plan->hardware.type_count, sizeof *d->costs);
    d->jobs = alloc_zeroed(plan->jobs.count, sizeof *d->jobs);
    d->shown = alloc_zeroed(devices, sizeof *d->shown);
    d->homes = alloc_zeroed(plan->jobs.count, sizeof *d->homes);
    d->groups = alloc_zeroed(d->by_minibatch ? plan->jobs.count : hardware_host_count(&plan->hardware),
                             sizeof *d->groups);
    d->first_device = alloc_zeroed((size_t)plan->jobs.count + 1, sizeof *d->first_device);
    for (uint32_t j = 0; d->by_minibatch && j < plan->jobs.count; j++)
        places += parallel_devices(&plan->jobs.jobs[j].parallel);
    d->job_devices = alloc_zeroed(places, sizeof *d->job_devices);
    d->minibatch_costs = alloc_zeroed(d->by_minibatch ? (size_t)plan->jobs.count * plan->hardware.type_count : 0,
                                      sizeof *d->minibatch_costs);
    if (!d->groups || !d->first_device || !d->job_devices || !d->minibatch_costs) return false;
    return d->chains && d->entries && d->devices && d->first_choice && d->choices && d->first_acquire &&
           d->staged && d->compute_least_s && d->costs && d->jobs && d->shown && d->homes;
}

/* Returns a unit's cost on a device: its copies, and its computation there or else on the host's processor. */
static struct policy_cost cost_of(const struct plan *plan, const struct plan_unit *unit, uint32_t device)
{
    const struct hardware *hw = &plan->hardware;
    struct policy_cost cost = {0};
    double host_s = 0;
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
        const struct plan_op *op = &plan->ops[o];
        if (op->kind == OP_COPY && op->stream == STREAM_H2D) {
            cost.in += cost_copy_s(hw, device, COPY_H2D, op->bytes);
        } else if (op->kind == OP_COPY && op->stream == STREAM_D2H) {
            cost.out += cost_copy_s(hw, device, COPY_D2H, op->bytes);
        } else if (op->kind == OP_COMPUTE && op->work != PLAN_NONE) {
            const struct plan_work *work = &plan->works[op->work];
            bool host = plan_stream_is_host(op->stream);
            double seconds = cost_work_s(hw, host ? hardware_cpu(hw) : device, &plan->items[work->first_item],
                                         work->item_count, NULL);
            if (host) host_s += seconds;
            else cost.compute += seconds;
        }
    }
    if (cost.compute <= 0) cost.compute = host_s;
    cost.compute = fmax(cost.compute, COMPUTE_LEAST_S);
    return cost;
}

static void find_costs(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    uint32_t types = plan->hardware.type_count;
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        d->compute_least_s[u] = HUGE_VAL;
        for (uint32_t i = 0; i < plan->hardware.device_count; i++) {
            struct policy_cost *cost = &d->costs[(size_t)u * types + plan->hardware.devices[i].type];
            if (cost->compute <= 0) *cost = cost_of(plan, &plan->units[u], i);
            d->compute_least_s[u] = fmin(d->compute_least_s[u], cost->compute);
        }
    }
}

static void find_acquires(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    for (uint32_t u = 0; u < plan->unit_count; u++) {
        const struct plan_unit *unit = &plan->units[u];
        uint32_t next = d->first_acquire[u];
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
            const struct plan_access *accesses = plan->accesses + plan->ops[o].first_access;
            for (uint32_t a = 0; a < plan->ops[o].access_count; a++)
                if (accesses[a].flags & ACCESS_ACQUIRE)
                    d->staged[next++] = !plan->buffers[accesses[a].buffer].on_device;
        }
        d->first_acquire[u + 1] = next;
    }
}

/* Lists the devices of parallel jobs, of which each is the seat of its job, and the seats. */
static void find_seats(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const uint32_t devices = (uint32_t)parallel_devices(&plan->jobs.jobs[j].parallel);
        d->first_device[j + 1] = d->first_device[j] + devices;
        for (uint32_t rank = 0; rank < devices; rank++) {
            const uint32_t device = plan_rank_device(plan, j, rank);
            d->job_devices[d->first_device[j] + rank] = device;
            d->devices[device].slots = PLAN_DISPATCH_MINIBATCH_SLOTS;
        }
        uint32_t group = 0;
        d->homes[j] = plan_rank_device(plan, j, 0);
        while (group < d->group_count && d->groups[group] != d->homes[j]) group++;
        if (group == d->group_count) d->groups[d->group_count++] = d->homes[j];
    }
}

static void find_nodes(struct plan_dispatch *d)
{
    d->group_count = hardware_host_count(&d->plan->hardware);
    for (uint32_t node = 0; node < d->group_count; node++) d->groups[node] = node;
}

/* Sorts choices by unit and device (counting sort). */
static void find_choices(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    if (plan->choice_count == 0) return;
    size_t devices = plan->hardware.device_count, rows = plan->unit_count * devices;
    for (uint32_t i = plan_first_choice(plan); i < plan->task_count; i++)
        d->first_choice[plan->tasks[i].unit * devices + plan->tasks[i].device]++;
    uint32_t sum = 0;
    for (size_t row = 0; row <= rows; row++) {
        uint32_t count = d->first_choice[row];
        if (row < rows && count > d->devices[row % devices].slots) d->devices[row % devices].slots = count;
        sum += count;
        d->first_choice[row] = sum; /* the row's end; filling backwards turns it into the row's beginning */
    }
    for (uint32_t i = plan->task_count; i-- > plan_first_choice(plan);)
        d->choices[--d->first_choice[plan->tasks[i].unit * devices + plan->tasks[i].device]] = i;
}

static void find_chains(struct plan_dispatch *d)
{
    const struct plan *plan = d->plan;
    uint32_t first_choice = plan_first_choice(plan), sum = 0;
    for (uint32_t i = 0; i < first_choice; i++) d->chains[plan->units[plan->tasks[i].unit].job].count++;
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        d->chains[j].first = sum;
        sum += d->chains[j].count;
        d->chains[j].count = 0;
    }
    for (uint32_t i = 0; i < first_choice; i++) {
        struct plan_dispatch_chain *chain = &d->chains[plan->units[plan->tasks[i].unit].job];
        d->entries[chain->first + chain->count++] = i;
    }
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        const struct plan_dispatch_chain *chain = &d->chains[j];
        if (chain->count > 0 && !d->by_minibatch)
            d->homes[j] = plan->hardware.devices[plan->tasks[d->entries[chain->first]].device].host;
        plan_dispatch_enter_segment(d, &d->chains[j]);
    }
}

/* Shows the jobs and devices at the start. */
static void show_first(struct plan_dispatch *d, const struct plan_dispatch_options *options)
{
    const struct plan *plan = d->plan;
    d->device_count = options->policy->one_device && !d->by_minibatch ? 1 : plan->hardware.device_count;
    d->view = (struct policy_view){.jobs = d->jobs,
                                   .devices = d->shown,
                                   .job_count = plan->jobs.count,
                                   .device_count = d->device_count,
                                   .kind_count = plan->hardware.type_count,
                                   .seed = options->seed};
    for (uint32_t i = 0; i < plan->hardware.device_count; i++) {
        if (d->devices[i].slots > 0) d->devices[i].slot_bytes = plan_device_bytes(plan, i) / d->devices[i].slots;
        d->shown[i] = (struct policy_device){
            .kind = plan->hardware.devices[i].type, .job = POLICY_NONE, .shard = POLICY_NONE};
        plan_dispatch_show_device(d, i);
    }
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        d->jobs[j] = (struct policy_job){.deadline = HUGE_VAL,
                                         .weight = 1,
                                         .last_device = POLICY_NONE,
                                         .next_device = POLICY_NONE,
                                         .admitted = true};
    for (uint32_t s = 0; s < plan->segment_count; s++) {
        const struct plan_segment *segment = &plan->segments[s];
        for (uint32_t i = segment->first_task; i < segment->first_task + segment->task_count; i++) {
            uint32_t unit = plan->tasks[i].unit;
            double seconds = d->by_minibatch ? plan_dispatch_share_of_task_s(d, &plan->tasks[i])
                                             : d->compute_least_s[unit];
            d->jobs[plan->units[unit].job].remaining += segment->repeat_count * seconds;
        }
    }
    for (uint32_t j = 0; j < plan->jobs.count; j++) plan_dispatch_show_unit(d, j);
}

enum status plan_dispatch_create(const struct plan *plan, const struct plan_dispatch_options *options,
                                 struct plan_dispatch **out, struct error *err)
{
    enum status status = check(plan, options->policy, err);
    if (status != STATUS_OK) return status;
    struct plan_dispatch *d = alloc_zeroed(1, sizeof *d);
    if (!d) return error_memory(err, "live dispatch", sizeof *d);
    d->plan = plan;
    d->asks = true;
    d->by_minibatch = plan->any_order;
    d->following = d->minibatch_of = PLAN_NONE;
    d->opening.job = PLAN_NONE;
    if (!allocate(d)) {
        plan_dispatch_destroy(d);
        return error_memory(err, "live dispatch", plan->task_count * sizeof *d->choices);
    }
    find_costs(d);
    find_acquires(d);
    find_choices(d);
    if (d->by_minibatch) find_seats(d);
    else find_nodes(d);
    find_chains(d);
    show_first(d, options);
    d->view.device = 0;
    if (options->state) d->session = (struct policy_session){.policy = options->policy, .state = options->state};
    else status = policy_session_begin(&d->session, options->policy, &d->view, err);
    if (status != STATUS_OK) {
        plan_dispatch_destroy(d);
        return status;
    }
    *out = d;
    return STATUS_OK;
}

void plan_dispatch_destroy(struct plan_dispatch *dispatch)
{
    if (!dispatch) return;
    policy_session_end(&dispatch->session);
    free(dispatch->chains);
    free(dispatch->entries);
    free(dispatch->devices);
    free(dispatch->first_choice);
    free(dispatch->choices);
    free(dispatch->first_acquire);
    free(dispatch->staged);
    free(dispatch->compute_least_s);
    free(dispatch->costs);
    free(dispatch->jobs);
    free(dispatch->shown);
    free(dispatch->homes);
    free(dispatch->groups);
    free(dispatch->first_device);
    free(dispatch->job_devices);
    free(dispatch->minibatch_costs);
    free(dispatch);
}
