/*
 * Choices: every order of the jobs' tasks must be within memory, on any devices.
 *
 * Two conditions are enough. A unit that gives back all that it acquires leaves only the current task's buffers
 * live on a device, in any order. And each choice gives them disjoint ranges within the device. By rule 3 of plan.h
 * this holds in every legal timing. Such units meet only in host memory, where buffers belong to one job: the contents
 * that a computation finds depend only on its job's order, which plan_check_run.c checks.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/try.h"
#include "planner/check/plan_checker.h"

/* Buffers that the unit has acquired and not released. */
struct plan_check_choices_held {
    uint32_t *buffers, *slots;
    uint32_t count;
};

static uint32_t find(const struct plan_check_choices_held *held, uint32_t buffer)
{
    uint32_t at = 0;
    while (at < held->count && held->buffers[at] != buffer) at++;
    return at;
}

static bool overlap(const struct plan_slot *a, const struct plan_slot *b)
{
    return a->bytes > 0 && b->bytes > 0 && a->offset_bytes < b->offset_bytes + b->bytes &&
           b->offset_bytes < a->offset_bytes + a->bytes;
}

static enum status acquire(struct checker *c, struct plan_check_choices_held *held, uint32_t buffer,
                           uint32_t slot_index, uint32_t device)
{
    const struct plan *plan = c->plan;
    const struct plan_slot *slot = &plan->slots[slot_index];
    char text[PLAN_TEXT_BYTES], other[PLAN_TEXT_BYTES];
    if (find(held, buffer) < held->count)
        return check_fail(c, CHECK_RULE_LIFETIMES, "a choice acquires the %s twice",
                          plan_buffer_text(plan, buffer, text));
    if (slot->bytes < plan->buffers[buffer].bytes)
        return check_fail(c, CHECK_RULE_MEMORY, "a choice has slot %u of %" PRIu64 " bytes, the %s %" PRIu64,
                          slot_index, slot->bytes, plan_buffer_text(plan, buffer, text), plan->buffers[buffer].bytes);
    if (plan->buffers[buffer].on_device &&
        slot->offset_bytes + slot->bytes > plan->hardware.devices[device].memory_bytes)
        return check_fail(c, CHECK_RULE_MEMORY, "slot %u of a choice ends at byte %" PRIu64 ", device %u at %" PRIu64,
                          slot_index, slot->offset_bytes + slot->bytes, device,
                          plan->hardware.devices[device].memory_bytes);
    for (uint32_t i = 0; i < held->count; i++)
        if (plan->buffers[held->buffers[i]].on_device == plan->buffers[buffer].on_device &&
            overlap(slot, &plan->slots[held->slots[i]]))
            return check_fail(c, CHECK_RULE_MEMORY, "slots %u and %u of a choice on device %u overlap (%s, %s)",
                              slot_index, held->slots[i], device, plan_buffer_text(plan, buffer, text),
                              plan_buffer_text(plan, held->buffers[i], other));
    held->buffers[held->count] = buffer;
    held->slots[held->count++] = slot_index;
    return STATUS_OK;
}

/* Checks the unit in these slots on an empty device. */
static enum status check_choice(struct checker *c, const struct plan_task *choice, struct plan_check_choices_held *held)
{
    const struct plan *plan = c->plan;
    const uint32_t *layout = plan->layouts + choice->layout;
    char text[PLAN_TEXT_BYTES];
    held->count = 0;
    c->unit = &plan->units[choice->unit];
    for (uint32_t o = c->unit->first_op; o < c->unit->first_op + c->unit->op_count; o++) {
        c->op = &plan->ops[o];
        const struct plan_access *accesses = plan->accesses + c->op->first_access;
        if (c->op->after_count > 0)
            return check_fail(c, CHECK_RULE_WAITING, "names an operation to wait for, and has choices");
        for (uint32_t a = 0; a < c->op->access_count; a++) {
            uint32_t buffer = accesses[a].buffer;
            if (!plan_buffer_lives(&plan->buffers[buffer])) continue;
            if (accesses[a].flags & ACCESS_ACQUIRE)
                TRY(acquire(c, held, buffer, *layout++, choice->device));
            else if (find(held, buffer) == held->count)
                return check_fail(c, CHECK_RULE_LIFETIMES, "uses the %s from another task, and has choices",
                                  plan_buffer_text(plan, buffer, text));
        }
        for (uint32_t a = 0; a < c->op->access_count; a++) {
            uint32_t at = find(held, accesses[a].buffer);
            if (!(accesses[a].flags & ACCESS_RELEASE) || at == held->count) continue;
            held->count--;
            held->buffers[at] = held->buffers[held->count];
            held->slots[at] = held->slots[held->count];
        }
    }
    c->op = NULL;
    if (held->count > 0)
        return check_fail(c, CHECK_RULE_LIFETIMES, "leaves the %s on the device, and has choices",
                          plan_buffer_text(plan, held->buffers[0], text));
    c->unit = NULL;
    return STATUS_OK;
}

/* Each unit needs a choice on every device of each node where the order has it. `there`: zeroed, [unit][device]. */
static enum status check_all_there(struct checker *c, bool *there)
{
    const struct plan *plan = c->plan;
    size_t devices = plan->hardware.device_count;
    for (uint32_t i = plan_first_choice(plan); i < plan->task_count; i++)
        there[plan->tasks[i].unit * devices + plan->tasks[i].device] = true;
    for (uint32_t i = 0; i < plan_first_choice(plan); i++)
        for (uint32_t d = 0; d < devices; d++) {
            c->unit = &plan->units[plan->tasks[i].unit];
            if (plan->hardware.devices[d].host == plan->hardware.devices[plan->tasks[i].device].host &&
                !there[plan->tasks[i].unit * devices + d])
                return check_fail(c, CHECK_RULE_FORM, "there are choices, and none for it on device %u", d);
        }
    c->unit = NULL;
    return STATUS_OK;
}

enum status check_choices(struct checker *c)
{
    const struct plan *plan = c->plan;
    if (plan->choice_count == 0) return STATUS_OK;
    if (plan->gang_count > 0) return check_fail(c, CHECK_RULE_FORM, "choices in a plan with gangs");
    uint32_t most = 0;
    for (uint32_t u = 0; u < plan->unit_count; u++)
        if (plan->units[u].acquire_count > most) most = plan->units[u].acquire_count;
    struct plan_check_choices_held held = {.buffers = alloc_zeroed(most, sizeof *held.buffers),
                                           .slots = alloc_zeroed(most, sizeof *held.slots)};
    bool *there = alloc_zeroed((size_t)plan->unit_count * plan->hardware.device_count, sizeof *there);
    enum status status = STATUS_OK;
    if (!held.buffers || !held.slots || !there)
        status = error_memory(c->err, "checking a plan", most * sizeof *held.slots);
    for (uint32_t i = plan_first_choice(plan); i < plan->task_count && status == STATUS_OK; i++) {
        const struct plan_task *choice = &plan->tasks[i];
        if (choice->peer != PLAN_NONE) status = check_fail(c, CHECK_RULE_FORM, "choice %u has a peer", i);
        else status = check_choice(c, choice, &held);
    }
    if (status == STATUS_OK) status = check_all_there(c, there);
    free(there);
    free(held.buffers);
    free(held.slots);
    return status;
}
