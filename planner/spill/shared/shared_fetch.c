/*
 * One walk per device, in order. The schedule's repeated rounds are there once; since the rounds before and after them
 * are like them, a round's end fetches ahead the shard that the next one begins with.
 */
#include "planner/spill/shared/shared_fetch.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "models/jobs/job_base.h"

enum { PIECE_ALIGNMENT = 4096 }; /* of pieces that are fetched ahead */

struct fetching {
    const struct job_set *jobs;
    const struct partition *cut;
    struct schedule *schedule;
    uint32_t *users;      /* per shard of an owner: the last user of one that stays; PLAN_NONE: none so far */
    uint32_t *tables;     /* per owner: the last user of its table, likewise */
    uint32_t *window;     /* units since the last visit began, which may fetch the next one's shard */
    uint32_t window_count;
};

uint64_t shared_fetch_bytes(const struct job_set *jobs, const struct partition *p, uint32_t job, uint32_t shard)
{
    const uint32_t s = p->job_first_shard[job] + shard;
    if (p->on_cpu[s] && p->shards[s].first_layer == 0) return 0;
    return job_base_bytes(&jobs->jobs[job], p->shards[s].first_layer, p->shards[s].layer_count);
}

static uint32_t shard_of(const struct fetching *f, const struct schedule_unit *unit)
{
    return schedule_unit_shard(partition_job_units(f->cut, unit->job), unit->position);
}

/* Has the units of the window fetch a shard in pieces; without a window the visit's first unit does. */
static void fetch_ahead(struct fetching *f, uint32_t first, uint32_t shard, uint64_t bytes)
{
    struct schedule_base *bases = f->schedule->bases;
    if (f->window_count == 0 || f->cut->base.turns < 2) {
        bases[first].fetches = true;
        return;
    }
    uint64_t at = 0;
    for (uint32_t i = 0; i < f->window_count && at < bytes; i++) {
        struct schedule_base *base = &bases[f->window[i]];
        const uint64_t left = bytes - at, share = left / (f->window_count - i);
        uint64_t piece = (share + PIECE_ALIGNMENT - 1) / PIECE_ALIGNMENT * PIECE_ALIGNMENT;
        if (piece > left || i + 1 == f->window_count) piece = left;
        base->ahead = shard;
        base->ahead_offset = at;
        base->ahead_bytes = piece;
        at += piece;
    }
}

/* Notes the use of something that is fetched once and stays. */
static bool stays_since(uint32_t *last, uint32_t unit)
{
    const bool first = *last == PLAN_NONE;
    *last = unit;
    return first;
}

/* Notes the unit's use of its shard's table, whose place is its own. */
static void use_table(struct fetching *f, uint32_t i, uint32_t owner)
{
    const struct schedule_unit *unit = &f->schedule->units[i];
    const struct job *job = &f->jobs->jobs[unit->job];
    const bool last = shard_of(f, unit) + 1 == partition_job_shards(f->cut, unit->job);
    const uint64_t frozen = job_base_bytes(job, 0, f->cut->shards[f->cut->job_first_shard[unit->job]].layer_count);
    if (!last || !footprint_has_table(job) || frozen == 0) return;
    f->schedule->bases[i].fetches_table = stays_since(&f->tables[owner], i);
}

static void walk_device(struct fetching *f, uint32_t device)
{
    struct schedule_base *bases = f->schedule->bases;
    uint32_t visited = PLAN_NONE, user = PLAN_NONE; /* the shard in turn, and its last user */
    uint32_t base = PLAN_NONE;                      /* the last unit's */
    f->window_count = 0;
    for (uint32_t i = 0; i < f->schedule->count; i++) {
        const struct schedule_unit *unit = &f->schedule->units[i];
        if (unit->device != device) continue;
        const uint32_t owner = f->cut->base.owner[unit->job], shard = shard_of(f, unit);
        const uint32_t global = f->cut->job_first_shard[owner] + shard;
        const uint64_t bytes = shared_fetch_bytes(f->jobs, f->cut, unit->job, shard);
        const bool on_host = f->cut->on_cpu[f->cut->job_first_shard[unit->job] + shard] && shard == 0;
        if (on_host) continue;
        if (owner != base) f->window_count = 0; /* units of another base cannot fetch it */
        base = owner;
        use_table(f, i, owner);
        if (bytes > 0 && f->cut->base.stays[global]) {
            bases[i].fetches = stays_since(&f->users[global], i);
        } else if (bytes > 0) {
            if (global != visited) {
                if (visited != PLAN_NONE) bases[user].releases = true;
                fetch_ahead(f, i, shard, bytes);
                f->window_count = 0;
            }
            visited = global;
            user = i;
        }
        f->window[f->window_count++] = i;
    }
    if (user != PLAN_NONE) bases[user].releases = true;
}

enum status shared_fetch_plan(const struct job_set *jobs, const struct partition *partition, uint32_t device_count,
                              struct schedule *schedule, struct error *err)
{
    struct fetching f = {.jobs = jobs, .cut = partition, .schedule = schedule};
    const size_t last = (size_t)partition->shard_count + jobs->count;
    f.users = alloc_resize(NULL, (last + schedule->count + 1) * sizeof *f.users);
    schedule->bases = alloc_zeroed(schedule->count + 1u, sizeof *schedule->bases);
    if (!f.users || !schedule->bases) {
        free(f.users);
        return error_memory(err, "the schedule", schedule->count * sizeof *schedule->bases);
    }
    f.tables = f.users + partition->shard_count;
    f.window = f.tables + jobs->count;
    for (size_t i = 0; i < last; i++) f.users[i] = PLAN_NONE;
    for (uint32_t i = 0; i < schedule->count; i++) schedule->bases[i].ahead = PLAN_NONE;
    for (uint32_t d = 0; d < device_count; d++) walk_device(&f, d);
    for (uint32_t s = 0; s < partition->shard_count; s++)
        if (f.users[s] != PLAN_NONE) schedule->bases[f.users[s]].releases = true;
    for (uint32_t j = 0; j < jobs->count; j++)
        if (f.tables[j] != PLAN_NONE) schedule->bases[f.tables[j]].releases_table = true;
    free(f.users);
    return STATUS_OK;
}
