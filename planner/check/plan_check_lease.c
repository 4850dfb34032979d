/*
 * Leases: part of plan_check().
 *
 * A lease has its devices from its first instance in plan order to its last, and by rule 2 of plan.h, in every
 * timing, from the end of those in front of it to the beginning of those behind. So it is enough that in plan
 * order no lease runs any more when another has taken one of its devices, or follows it, and that this other one
 * finds nothing on its devices.
 *
 *     plan order    0 0 1 0 1 2 1     leases 0 and 1 side by side; 2 takes a device of 0, and one of 1 too early
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/check/plan_check_walk.h"

/* --- tables --------------------------------------------------------------------------------- */

/* seen: per device, 1 + the lease that has it. */
static enum status check_lease(struct checker *c, uint32_t index, uint32_t *seen)
{
    const struct plan *plan = c->plan;
    const struct plan_lease *lease = &plan->leases[index];
    if (lease->device_count == 0 ||
        !check_in_table(lease->first_device, lease->device_count, plan->lease_device_count))
        return check_fail(c, RULE_LEASES, "lease %u is of %u devices that do not exist", index, lease->device_count);
    for (uint32_t i = 0; i < lease->device_count; i++) {
        uint32_t device = plan->lease_devices[lease->first_device + i];
        if (device >= plan->hardware.device_count || seen[device] == index + 1)
            return check_fail(c, RULE_LEASES, "lease %u has device %u%s", index, device,
                              device < plan->hardware.device_count ? " twice" : ", which does not exist");
        seen[device] = index + 1;
    }
    if (lease->follows != PLAN_NONE && lease->follows >= index)
        return check_fail(c, RULE_LEASES, "lease %u follows lease %u (expected one in front of it)", index,
                          lease->follows);
    if (!(lease->begin_s >= 0) || !(lease->end_s >= lease->begin_s))
        return check_fail(c, RULE_LEASES, "lease %u is expected from %g s to %g s", index, lease->begin_s,
                          lease->end_s);
    if (!(lease->restart_s >= 0) || lease->restart_s > (lease->end_s - lease->begin_s) * (1 + 1e-9))
        return check_fail(c, RULE_LEASES, "lease %u of %g s restarts for %g s", index, lease->end_s - lease->begin_s,
                          lease->restart_s);
    return STATUS_OK;
}

static enum status check_lease_of_job(struct checker *c, uint32_t job)
{
    const struct plan *plan = c->plan;
    const struct job *about = &plan->jobs.jobs[job];
    if (plan->job_lease[job] >= plan->lease_count)
        return check_fail(c, RULE_LEASES, "%s is in none of the %u leases", about->name, plan->lease_count);
    const struct plan_lease *lease = &plan->leases[plan->job_lease[job]];
    uint64_t needed = about->parallel.first_device + parallel_devices(&about->parallel);
    if (parallel_is_set(&about->parallel) && needed > lease->device_count)
        return check_fail(c, RULE_LEASES, "%s runs on %" PRIu64 " devices, and its lease has %u", about->name,
                          needed, lease->device_count);
    return STATUS_OK;
}

enum status check_leases(struct checker *c)
{
    const struct plan *plan = c->plan;
    uint32_t *seen = alloc_zeroed(plan->hardware.device_count, sizeof *seen);
    enum status status = STATUS_OK;
    if (!seen) return error_memory(c->err, "checking a plan", plan->hardware.device_count * sizeof *seen);
    for (uint32_t l = 0; l < plan->lease_count && !status; l++) status = check_lease(c, l, seen);
    for (uint32_t j = 0; plan->lease_count > 0 && j < plan->jobs.count && !status; j++)
        status = check_lease_of_job(c, j);
    free(seen);
    return status;
}

static bool has_device(const struct plan *plan, uint32_t lease, uint32_t device)
{
    for (uint32_t i = 0; i < plan->leases[lease].device_count; i++)
        if (plan_lease_devices(plan, lease)[i] == device) return true;
    return false;
}

/* Of gangs check_parallel_place() knows the devices. */
enum status check_lease_place(struct checker *c, const struct plan_instance *instance, uint32_t index)
{
    const struct plan *plan = c->plan;
    uint32_t job = plan->units[instance->unit].job;
    if (plan->lease_count == 0 || instance->gang != PLAN_NONE) return STATUS_OK;
    uint32_t lease = plan->job_lease[job];
    bool peer = instance->peer != PLAN_NONE && !has_device(plan, lease, instance->peer);
    if (!peer && has_device(plan, lease, instance->device)) return STATUS_OK;
    return check_fail(c, RULE_LEASES, "instance %u of %s %s device %u, which is not of lease %u", index,
                      plan->jobs.jobs[job].name, peer ? "copies from" : "runs on",
                      peer ? instance->peer : instance->device, lease);
}

/* --- turns ---------------------------------------------------------------------------------- */

static enum status take_device(struct check_walk *r, uint32_t lease, uint32_t device)
{
    char text[PLAN_TEXT_BYTES];
    uint32_t holder = r->holders[device], left = check_live_on(r, device);
    if (left != PLAN_NONE)
        return check_fail(r->c, RULE_LEASES, "lease %u begins with the %s on device %u", lease,
                          plan_buffer_text(r->plan, left, text), device);
    if (holder != PLAN_NONE) r->lease_states[holder] = LEASE_OVER;
    if (holder != PLAN_NONE && holder > lease)
        return check_fail(r->c, RULE_LEASES, "lease %u takes device %u behind lease %u (expected in their order)",
                          lease, device, holder);
    r->holders[device] = lease;
    return STATUS_OK;
}

static enum status begin_lease(struct check_walk *r, uint32_t lease)
{
    const struct plan_lease *about = &r->plan->leases[lease];
    if (about->follows != PLAN_NONE && r->lease_states[about->follows] == LEASE_TO_COME)
        return check_fail(r->c, RULE_LEASES, "lease %u begins in front of lease %u, which it follows", lease,
                          about->follows);
    if (about->follows != PLAN_NONE) r->lease_states[about->follows] = LEASE_OVER;
    for (uint32_t i = 0; i < about->device_count; i++)
        TRY(take_device(r, lease, plan_lease_devices(r->plan, lease)[i]));
    r->lease_states[lease] = LEASE_RUNS;
    return STATUS_OK;
}

enum status check_lease_turn(struct check_walk *r)
{
    if (r->plan->lease_count == 0) return STATUS_OK;
    uint32_t lease = r->plan->job_lease[r->c->unit->job];
    if (r->lease_states[lease] == LEASE_RUNS) return STATUS_OK;
    if (r->lease_states[lease] == LEASE_TO_COME) return begin_lease(r, lease);
    return check_fail(r->c, RULE_LEASES, "lease %u goes on when another has begun behind it", lease);
}
