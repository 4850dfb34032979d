/*
 * Reservations: part of plan_check().
 *
 * A reservation has its devices from its first task in plan order to its last and, by rule 2 of plan.h, in every
 * timing from earlier users' end to later ones' beginning. So in plan order, after another reservation has taken a
 * device or follows it, it must run no more, and the other one must find its devices empty.
 *
 *     plan order    0 0 1 0 1 2 1     reservations 0 and 1 overlap; 2 takes a device of 0, and one of 1 too early
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/check/plan_check_walk.h"

/* --- tables --------------------------------------------------------------------------------- */

static enum status check_reservation(struct checker *c, uint32_t index, uint32_t *seen)
{
    const struct plan *plan = c->plan;
    const struct plan_reservation *reservation = &plan->reservations[index];
    if (reservation->device_count == 0 ||
        !check_in_table(reservation->first_device, reservation->device_count, plan->reservation_device_count))
        return check_fail(c, CHECK_RULE_RESERVATIONS, "reservation %u is of %u devices that do not exist", index,
                          reservation->device_count);
    for (uint32_t i = 0; i < reservation->device_count; i++) {
        uint32_t device = plan->reservation_devices[reservation->first_device + i];
        if (device >= plan->hardware.device_count || seen[device] == index + 1)
            return check_fail(c, CHECK_RULE_RESERVATIONS, "reservation %u has device %u%s", index, device,
                              device < plan->hardware.device_count ? " twice" : ", which does not exist");
        seen[device] = index + 1;
    }
    if (reservation->follows != PLAN_NONE && reservation->follows >= index)
        return check_fail(c, CHECK_RULE_RESERVATIONS, "reservation %u follows reservation %u (expected an earlier one)",
                          index, reservation->follows);
    if (!(reservation->begin_s >= 0) || !(reservation->end_s >= reservation->begin_s))
        return check_fail(c, CHECK_RULE_RESERVATIONS, "reservation %u is expected from %g s to %g s", index,
                          reservation->begin_s, reservation->end_s);
    if (!(reservation->restart_s >= 0) ||
        reservation->restart_s > (reservation->end_s - reservation->begin_s) * (1 + 1e-9))
        return check_fail(c, CHECK_RULE_RESERVATIONS, "reservation %u of %g s restarts for %g s", index,
                          reservation->end_s - reservation->begin_s, reservation->restart_s);
    return STATUS_OK;
}

static enum status check_reservation_of_job(struct checker *c, uint32_t job)
{
    const struct plan *plan = c->plan;
    const struct job *about = &plan->jobs.jobs[job];
    if (plan->job_reservation[job] >= plan->reservation_count)
        return check_fail(c, CHECK_RULE_RESERVATIONS, "%s is in none of the %u reservations", about->name,
                          plan->reservation_count);
    const struct plan_reservation *reservation = &plan->reservations[plan->job_reservation[job]];
    uint64_t needed = about->parallel.first_device + parallel_devices(&about->parallel);
    if (parallel_is_set(&about->parallel) && needed > reservation->device_count)
        return check_fail(c, CHECK_RULE_RESERVATIONS, "%s runs on %" PRIu64 " devices, and its reservation has %u",
                          about->name, needed, reservation->device_count);
    return STATUS_OK;
}

/* Of each reservation: its last job, and the numbers of its jobs and of the reservations that follow it. */
struct follow {
    uint32_t job, jobs, followers;
};

/* A job goes on with the minibatches after those of the job whose reservation its own follows; each is the only job of
 * its reservation, and no other goes on from it. */
static enum status check_goes_on(struct checker *c, const struct follow *own_place, const struct follow *place)
{
    const struct plan *plan = c->plan;
    if (own_place->jobs != 1 || place->jobs != 1 || place->followers != 1)
        return check_fail(c, CHECK_RULE_RESERVATIONS,
                          "a reservation of %u jobs follows one of %u jobs, as do %u (expected 1 "
                          "each)",
                          own_place->jobs, place->jobs, place->followers);
    const struct job *own = &plan->jobs.jobs[own_place->job], *before = &plan->jobs.jobs[place->job];
    if (own->first_minibatch != before->first_minibatch + before->minibatches)
        return check_fail(c, CHECK_RULE_RESERVATIONS,
                          "%s begins at minibatch %" PRIu64 " (expected %" PRIu64 ", where %s ends)", own->name,
                          own->first_minibatch, before->first_minibatch + before->minibatches, before->name);
    if (own->network.family == before->network.family && own->network.layer_count == before->network.layer_count &&
        own->precision == before->precision && own->optimizer.kind == before->optimizer.kind &&
        own->optimizer.moments == before->optimizer.moments)
        return STATUS_OK;
    return check_fail(c, CHECK_RULE_RESERVATIONS, "%s goes on from %s, which trains another network or in another way",
                      own->name, before->name);
}

static enum status check_follows(struct checker *c)
{
    const struct plan *plan = c->plan;
    struct follow *of = alloc_zeroed(plan->reservation_count, sizeof *of);
    enum status status = STATUS_OK;
    if (!of) return error_memory(c->err, "checking a plan", plan->reservation_count * sizeof *of);
    for (uint32_t j = 0; j < plan->jobs.count; j++) {
        of[plan->job_reservation[j]].job = j;
        of[plan->job_reservation[j]].jobs++;
    }
    for (uint32_t l = 0; l < plan->reservation_count; l++)
        if (plan->reservations[l].follows != PLAN_NONE) of[plan->reservations[l].follows].followers++;
    for (uint32_t l = 0; l < plan->reservation_count && !status; l++)
        if (plan->reservations[l].follows != PLAN_NONE)
            status = check_goes_on(c, &of[l], &of[plan->reservations[l].follows]);
    free(of);
    return status;
}

enum status check_reservations(struct checker *c)
{
    const struct plan *plan = c->plan;
    uint32_t *seen = alloc_zeroed(plan->hardware.device_count, sizeof *seen);
    enum status status = STATUS_OK;
    if (!seen) return error_memory(c->err, "checking a plan", plan->hardware.device_count * sizeof *seen);
    for (uint32_t l = 0; l < plan->reservation_count && !status; l++) status = check_reservation(c, l, seen);
    for (uint32_t j = 0; plan->reservation_count > 0 && j < plan->jobs.count && !status; j++)
        status = check_reservation_of_job(c, j);
    if (plan->reservation_count > 0 && !status) status = check_follows(c);
    free(seen);
    return status;
}

static bool has_device(const struct plan *plan, uint32_t reservation, uint32_t device)
{
    for (uint32_t i = 0; i < plan->reservations[reservation].device_count; i++)
        if (plan_reservation_devices(plan, reservation)[i] == device) return true;
    return false;
}

/* For gangs, check_parallel_place() knows the devices. */
enum status check_reservation_place(struct checker *c, const struct plan_task *task, uint32_t index)
{
    const struct plan *plan = c->plan;
    uint32_t job = plan->units[task->unit].job;
    if (plan->reservation_count == 0 || task->gang != PLAN_NONE) return STATUS_OK;
    uint32_t reservation = plan->job_reservation[job];
    bool peer = task->peer != PLAN_NONE && !has_device(plan, reservation, task->peer);
    if (!peer && has_device(plan, reservation, task->device)) return STATUS_OK;
    return check_fail(c, CHECK_RULE_RESERVATIONS, "task %u of %s %s device %u, which is not of reservation %u", index,
                      plan->jobs.jobs[job].name, peer ? "copies from" : "runs on",
                      peer ? task->peer : task->device, reservation);
}

/* --- turns ---------------------------------------------------------------------------------- */

static enum status hand_over_device(struct check_walk *r, uint32_t reservation, uint32_t device)
{
    char text[PLAN_TEXT_BYTES];
    uint32_t holder = r->holders[device], left = check_live_on(r, device);
    if (left != PLAN_NONE)
        return check_fail(r->c, CHECK_RULE_RESERVATIONS, "reservation %u begins with the %s on device %u", reservation,
                          plan_buffer_text(r->plan, left, text), device);
    if (holder != PLAN_NONE) r->reservation_states[holder] = CHECK_RESERVATION_OVER;
    if (holder != PLAN_NONE && holder > reservation)
        return check_fail(r->c, CHECK_RULE_RESERVATIONS,
                          "reservation %u takes device %u after reservation %u (expected in their order)", reservation,
                          device, holder);
    r->holders[device] = reservation;
    return STATUS_OK;
}

static enum status begin_reservation(struct check_walk *r, uint32_t reservation)
{
    const struct plan_reservation *about = &r->plan->reservations[reservation];
    if (about->follows != PLAN_NONE && r->reservation_states[about->follows] == CHECK_RESERVATION_TO_COME)
        return check_fail(r->c, CHECK_RULE_RESERVATIONS,
                          "reservation %u begins before reservation %u, which it follows", reservation, about->follows);
    if (about->follows != PLAN_NONE) r->reservation_states[about->follows] = CHECK_RESERVATION_OVER;
    for (uint32_t i = 0; i < about->device_count; i++)
        TRY(hand_over_device(r, reservation, plan_reservation_devices(r->plan, reservation)[i]));
    r->reservation_states[reservation] = CHECK_RESERVATION_RUNS;
    return STATUS_OK;
}

enum status check_reservation_turn(struct check_walk *r)
{
    if (r->plan->reservation_count == 0) return STATUS_OK;
    uint32_t reservation = r->plan->job_reservation[r->c->unit->job];
    if (r->reservation_states[reservation] == CHECK_RESERVATION_RUNS) return STATUS_OK;
    if (r->reservation_states[reservation] == CHECK_RESERVATION_TO_COME) return begin_reservation(r, reservation);
    return check_fail(r->c, CHECK_RULE_RESERVATIONS, "reservation %u continues after a later reservation has begun",
                      reservation);
}
