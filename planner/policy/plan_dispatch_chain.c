/* Cursors over a job's tasks, and the slots of devices. */
#include "planner/policy/plan_dispatch_state.h"

static uint32_t segment_end(const struct plan *plan, uint32_t segment)
{
    return plan->segments[segment].first_task + plan->segments[segment].task_count;
}

void plan_dispatch_enter_segment(const struct plan_dispatch *d, struct plan_dispatch_chain *chain)
{
    if (plan_dispatch_is_done(chain)) return;
    while (d->entries[chain->first + chain->at] >= segment_end(d->plan, chain->segment)) chain->segment++;
    chain->segment_at = chain->at;
    chain->repeat = 0;
}

void plan_dispatch_advance(const struct plan_dispatch *d, struct plan_dispatch_chain *chain)
{
    const struct plan *plan = d->plan;
    chain->at++;
    if (!plan_dispatch_is_done(chain) && d->entries[chain->first + chain->at] < segment_end(plan, chain->segment))
        return;
    if (++chain->repeat < plan->segments[chain->segment].repeat_count) chain->at = chain->segment_at;
    else plan_dispatch_enter_segment(d, chain);
}

void plan_dispatch_show_device(struct plan_dispatch *d, uint32_t device)
{
    const struct plan_dispatch_device *on = &d->devices[device];
    struct policy_device *shown = &d->shown[device];
    shown->slots = device >= d->device_count ? 0 : on->slots - on->running;
    shown->memory = shown->slots * on->slot_bytes;
    shown->asks = shown->slots > 0;
}
