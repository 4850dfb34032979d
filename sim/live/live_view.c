/*
 * The policy's view, updated by events, and its queries.
 *
 * Most of a view's entries stay between two decisions; so an entry is written when it changes. Only a policy that
 * chooses reads all. One that ranks is asked once per unit: ready jobs are in a heap by rank (ready.h), and devices in
 * sets by free slots, so a decision is O(log jobs + devices / 64):
 *
 *     free slots 2   { 3, 7 }      emptiest: device 3; for jobs that accept any device: the lowest of all sets,
 *                1   { 0, 1, 9 }   or the job's last device if it is in one of them
 *
 * The device must have memory for the job; else all jobs and devices are tried by rank()'s rule (policy_decide()).
 * sim_live_options.scan always does so; tests compare both.
 */
#include "sim/live/live_state.h"

#include <assert.h>
#include <math.h>

enum { WORD = 64 };

/* --- sets of devices ------------------------------------------------------------------------- */

static inline void set_flip(struct live_set *set, uint32_t device, bool in)
{
    set->words[device / WORD] ^= UINT64_C(1) << device % WORD;
    set->count += in ? 1 : UINT32_MAX; /* subtracts one */
}

static inline uint32_t set_lowest(const struct live_set *set)
{
    const uint64_t *word = set->words;
    while (*word == 0) word++;
    return (uint32_t)(word - set->words) * WORD + (uint32_t)__builtin_ctzll(*word);
}

static uint32_t lowest_asking(const struct live *live)
{
    uint32_t lowest = POLICY_NONE;
    for (uint32_t n = 1; n <= live->slot_limit; n++) {
        if (live->with_free[n].count == 0) continue;
        uint32_t device = set_lowest(&live->with_free[n]);
        if (device < lowest) lowest = device;
    }
    return lowest;
}

static uint32_t emptiest(const struct live *live)
{
    uint32_t n = live->slot_limit;
    while (live->with_free[n].count == 0) n--;
    return set_lowest(&live->with_free[n]);
}

static void show_slots(struct live *live, uint32_t device, uint32_t before, uint32_t after)
{
    struct policy_device *shown = &live->devices_shown[device];
    shown->slots = after;
    shown->asks = after > 0;
    if (device >= live->device_count) return;
    set_flip(&live->with_free[before], device, false);
    set_flip(&live->with_free[after], device, true);
    live->open_slots += after - before;
}

uint32_t live_acquire_slot(struct live *live, uint32_t job, uint32_t device, const struct live_unit *unit)
{
    struct live_device *d = &live->devices[device];
    struct policy_device *shown = &live->devices_shown[device];
    assert(d->free_bits != 0);
    uint32_t slot = (uint32_t)__builtin_ctzll(d->free_bits);
    d->free_bits &= d->free_bits - 1;
    show_slots(live, device, shown->slots, shown->slots - 1);
    shown->memory -= unit->memory;
    if (shown->memory < d->memory_least) d->memory_least = shown->memory;
    if (shown->free < live->view.now) shown->free = live->view.now;
    shown->free += unit->compute_ticks;
    shown->job = job;
    shown->shard = unit->shard;
    struct policy_job *j = &live->jobs_shown[job];
    j->last_device = device;
    j->taken = true;
    double out_s = unit->out_volume < 0 ? -unit->out_volume : unit->out_volume / d->out_rate;
    j->ready = shown->free + out_s * live->ticks_per_s;
    j->remaining -= unit->compute_ticks;
    if (live->ranks) sim_ready_remove(&live->ranked, job);
    live->ready_count--;
    return device * live->slot_limit + slot;
}

void live_give_slot(struct live *live, uint32_t slot)
{
    const struct live_slot *s = &live->slots[slot];
    struct policy_device *shown = &live->devices_shown[s->device];
    live->devices[s->device].free_bits |= UINT64_C(1) << (slot - s->device * live->slot_limit);
    show_slots(live, s->device, shown->slots, shown->slots + 1);
    shown->memory += s->memory;
}

/* --- jobs ------------------------------------------------------------------------------------ */

enum status live_show_ready(struct live *live, uint32_t job, struct error *err)
{
    const struct live_job *j = &live->jobs[job];
    struct policy_job *shown = &live->jobs_shown[job];
    uint32_t index = j->first_unit + j->unit;
    const struct live_unit *unit = &live->units[index];
    live->view.now = live->now_s * live->ticks_per_s;
    shown->ready = live->view.now;
    shown->taken = false;
    shown->shard = unit->shard;
    shown->memory = unit->memory;
    shown->next = live->costs + (size_t)index * live->in->class_count;
    live->ready_count++;
    if (!live->ranks) return STATUS_OK;
    double rank = live->options->policy->rank(live->session.state, &live->view, job);
    if (isnan(rank))
        return error_set(err, STATUS_BAD_INPUT, "policy '%s': the rank of job %u is not a number",
                         live->options->policy->name, job);
    sim_ready_add(&live->ranked, job, rank);
    return STATUS_OK;
}

/* --- asking ---------------------------------------------------------------------------------- */

static bool holds(const struct live *live, uint32_t device, uint32_t job)
{
    return live->jobs_shown[job].memory <= live->devices_shown[device].memory;
}

/* Returns a job's device among the devices with free slots, at least one, ignoring memory. */
static uint32_t device_for(const struct live *live, uint32_t job)
{
    if (live->options->policy->emptiest) return emptiest(live);
    uint32_t last = live->jobs_shown[job].last_device;
    if (last < live->device_count && live->devices_shown[last].asks && holds(live, last, job)) return last;
    return lowest_asking(live);
}

enum status live_ask(struct live *live, struct policy_choice *out, bool *waits, struct error *err)
{
    assert(live->open_slots > 0);
    live->view.now = live->now_s * live->ticks_per_s;
    if (live->ranks) {
        uint32_t job = sim_ready_first(&live->ranked), device = device_for(live, job);
        if (holds(live, device, job)) {
            *out = (struct policy_choice){job, device};
            *waits = false;
            live->session.decisions++;
            return STATUS_OK;
        }
    }
    live->view.device = lowest_asking(live);
    return policy_session_ask(&live->session, &live->view, out, waits, err);
}

void live_expect(struct live *live)
{
    if (!live->ranks || live->ready_count == 0) return;
    uint32_t next = sim_ready_next(&live->ranked);
    const struct live_job *job = &live->jobs[next];
    const char *shown = (const char *)&live->jobs_shown[next];
    __builtin_prefetch(shown);
    __builtin_prefetch(shown + sizeof live->jobs_shown[next] - 1);
    __builtin_prefetch(&live->units[job->first_unit + job->unit]);
}
