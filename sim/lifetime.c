/*
 * A plan gives the order of ACQUIRE, uses and RELEASE, but time differs on each stream: the copy that releases a buffer
 * may end before a computation that also reads it. So each lifetime counts its users. It ends when it has been released
 * (in plan order) and its last user has ended (in time):
 *
 *     plan order:   copy in ACQUIRE     compute     copy out RELEASE
 *     users known:        1                2               3, released
 *     time:         |--- copy in ---|---- compute ----|--- copy out ---|
 *     in use:       [==================================================]
 *
 * The current lifetime of a buffer on a device is found by the walk's number for it, valid from ACQUIRE to RELEASE.
 * There are only as many numbers as simultaneous lifetimes in plan order.
 *
 * These levels are memory in use and not reserved memory: the end of the highest slot (rule 4 of plan.h) is larger
 * because of fragmentation and of gaps between two lifetimes.
 *
 * Cost: two visits of a 16-byte record per access.
 */
#include "sim/lifetime.h"

#include <assert.h>
#include <stdlib.h>

#include "base/alloc.h"

#define NONE UINT32_MAX
#define BEGINS 0x80000000u /* in sim_use */

struct lifetime {
    uint64_t bytes;
    uint32_t users;        /* known users that have not ended */
    uint32_t device : 31;
    uint32_t released : 1;
};

struct sim_lifetimes {
    const struct plan *plan;
    struct trace *trace;
    bool levels;
    struct trace_writer *writer; /* may be NULL */
    uint32_t *current;     /* by the walk's number of the lifetime ... */
    uint32_t current_capacity; /* ... numbers so far */
    struct lifetime *records;
    uint32_t count, capacity;
    uint32_t free_first;   /* linked through `users` */
    uint64_t *in_use;      /* bytes, by device */
    struct trace_level *now; /* levels of the last moment, at most one per device */
    uint32_t now_count;
    uint32_t *now_at;      /* by device: its level's index in `now`, if there */
    struct sim_caching **caching; /* by device; NULL: no caching allocators */
    uint32_t *blocks;      /* of `caching`, by record */
    bool caching_failed;
};

static bool create_caching(struct sim_lifetimes *l, const struct hardware *hardware)
{
    l->caching = alloc_zeroed(l->plan->hardware.device_count, sizeof *l->caching);
    for (uint32_t d = 0; l->caching && d < l->plan->hardware.device_count; d++) {
        l->caching[d] = sim_caching_create(hardware->devices[d].memory_bytes);
        if (!l->caching[d]) return false;
    }
    return l->caching != NULL;
}

enum status sim_lifetimes_create(const struct plan *plan, struct trace *trace, bool levels, struct trace_writer *writer,
                                 const struct hardware *caching, struct sim_lifetimes **out, struct error *err)
{
    struct sim_lifetimes *l = alloc_zeroed(1, sizeof *l);
    if (!l) return error_memory(err, "memory in use", sizeof *l);
    uint32_t devices = plan->hardware.device_count;
    l->plan = plan;
    l->trace = trace;
    l->levels = levels;
    l->writer = writer;
    l->free_first = NONE;
    l->in_use = alloc_zeroed(devices, sizeof *l->in_use);
    l->now = alloc_zeroed(devices, sizeof *l->now);
    l->now_at = alloc_zeroed(devices, sizeof *l->now_at);
    if (!l->in_use || !l->now || !l->now_at || (caching && !create_caching(l, caching))) {
        uint64_t bytes = sim_lifetimes_bytes(l);
        sim_lifetimes_destroy(l);
        return error_memory(err, "memory in use", bytes);
    }
    *out = l;
    return STATUS_OK;
}

void sim_lifetimes_destroy(struct sim_lifetimes *lifetimes)
{
    if (!lifetimes) return;
    for (uint32_t d = 0; lifetimes->caching && d < lifetimes->plan->hardware.device_count; d++)
        sim_caching_destroy(lifetimes->caching[d]);
    free(lifetimes->caching);
    free(lifetimes->blocks);
    free(lifetimes->current);
    free(lifetimes->records);
    free(lifetimes->in_use);
    free(lifetimes->now);
    free(lifetimes->now_at);
    free(lifetimes);
}

uint64_t sim_lifetimes_bytes(const struct sim_lifetimes *lifetimes)
{
    return sizeof *lifetimes + lifetimes->current_capacity * sizeof *lifetimes->current +
           (uint64_t)lifetimes->capacity * sizeof *lifetimes->records +
           lifetimes->plan->hardware.device_count *
               (sizeof *lifetimes->in_use + sizeof *lifetimes->now + sizeof *lifetimes->now_at);
}

/* --- records -------------------------------------------------------------------------------- */

/* Returns a record, or NONE when memory ends. */
static uint32_t record_take(struct sim_lifetimes *l)
{
    uint32_t index = l->free_first;
    if (index != NONE) {
        l->free_first = l->records[index].users;
        return index;
    }
    if (l->count == l->capacity) {
        if (l->capacity >= BEGINS / 2) return NONE;
        uint32_t capacity = l->capacity > 0 ? l->capacity * 2 : 64;
        void *larger = alloc_resize(l->records, capacity * sizeof *l->records);
        if (!larger) return NONE;
        l->records = larger;
        if (l->caching) {
            void *blocks = alloc_resize(l->blocks, capacity * sizeof *l->blocks);
            if (!blocks) return NONE;
            l->blocks = blocks;
        }
        l->capacity = capacity;
    }
    return l->count++;
}

/* Returns false when memory ends. */
static bool reserve_current(struct sim_lifetimes *l, uint32_t life)
{
    if (life < l->current_capacity) return true;
    uint32_t capacity = l->current_capacity > 0 ? l->current_capacity : 64;
    while (capacity <= life) capacity *= 2;
    void *larger = alloc_resize(l->current, capacity * sizeof *l->current);
    if (!larger) return false;
    l->current = larger;
    l->current_capacity = capacity;
    return true;
}

static void record_give_back(struct sim_lifetimes *l, uint32_t index)
{
    l->records[index].users = l->free_first;
    l->free_first = index;
}

static bool begin_record(struct sim_lifetimes *l, const struct plan_place_use *use)
{
    uint32_t index = record_take(l);
    if (index == NONE || !reserve_current(l, use->life)) return false;
    l->records[index] = (struct lifetime){.bytes = l->plan->buffers[use->buffer].bytes,
                                          .device = (use->place - 1) & 0x7fffffffu};
    l->current[use->life] = index;
    return true;
}

/* --- levels --------------------------------------------------------------------------------- */

void sim_lifetimes_finish(struct sim_lifetimes *l)
{
    for (uint32_t i = 0; i < l->now_count; i++) {
        if (l->levels) l->trace->levels[l->trace->level_count++] = l->now[i];
        if (l->writer) trace_writer_level(l->writer, &l->now[i]);
    }
    l->now_count = 0;
}

/* Notes a level; the last one at a time is kept. */
static void note_level(struct sim_lifetimes *l, uint32_t device, double now_s)
{
    if (l->now_count > 0 && l->now[0].time_s < now_s) sim_lifetimes_finish(l);
    uint32_t i = l->now_at[device];
    if (i >= l->now_count || l->now[i].place != 1 + device) i = l->now_at[device] = l->now_count++;
    l->now[i] = (struct trace_level){.time_s = now_s, .bytes = l->in_use[device], .place = 1 + device};
}

static void note_use(struct sim_lifetimes *l, uint32_t device, double now_s)
{
    struct trace_place *place = &l->trace->places[1 + device];
    if (l->in_use[device] > place->peak_bytes) {
        place->peak_bytes = l->in_use[device];
        place->peak_time_s = now_s;
    }
    if (l->levels || l->writer) note_level(l, device, now_s);
}

/* --- public --------------------------------------------------------------------------------- */

bool sim_lifetimes_use(struct sim_lifetimes *lifetimes, const struct plan_place_use *uses, uint32_t count,
                       struct sim_uses *out)
{
    for (const struct plan_place_use *use = uses; use < uses + count; use++) {
        if (!plan_use_on_device(use)) continue;
        bool begins = use->flags & ACCESS_ACQUIRE;
        if (begins && !begin_record(lifetimes, use)) return false;
        assert(use->life < lifetimes->current_capacity);
        uint32_t current = lifetimes->current[use->life];
        struct lifetime *record = &lifetimes->records[current];
        record->users++;
        if (use->flags & ACCESS_RELEASE) record->released = 1;
        out->ring[out->end++ & out->mask] = current | (begins ? BEGINS : 0);
    }
    return true;
}

static void start(struct sim_lifetimes *lifetimes, uint32_t index, double now_s)
{
    const struct lifetime *record = &lifetimes->records[index];
    lifetimes->in_use[record->device] += record->bytes;
    if (lifetimes->caching && !lifetimes->caching_failed)
        lifetimes->caching_failed =
            !sim_caching_allocate(lifetimes->caching[record->device], record->bytes, &lifetimes->blocks[index]);
    note_use(lifetimes, record->device, now_s);
}

void sim_lifetimes_start(struct sim_lifetimes *lifetimes, const struct sim_uses *uses, double now_s)
{
    for (uint32_t at = uses->first; at != uses->end; at++) {
        sim_use use = uses->ring[at & uses->mask];
        if (use & BEGINS) start(lifetimes, use & ~BEGINS, now_s);
    }
}

/* Ends a lifetime that is released and has no users. */
static void end(struct sim_lifetimes *lifetimes, uint32_t index, double now_s)
{
    const struct lifetime *record = &lifetimes->records[index];
    assert(lifetimes->in_use[record->device] >= record->bytes);
    lifetimes->in_use[record->device] -= record->bytes;
    if (lifetimes->caching && !lifetimes->caching_failed)
        sim_caching_give(lifetimes->caching[record->device], lifetimes->blocks[index]);
    if (lifetimes->levels || lifetimes->writer) note_level(lifetimes, record->device, now_s);
    record_give_back(lifetimes, index);
}

void sim_lifetimes_end(struct sim_lifetimes *lifetimes, const struct sim_uses *uses, double now_s)
{
    for (uint32_t at = uses->first; at != uses->end; at++) {
        uint32_t index = uses->ring[at & uses->mask] & ~BEGINS;
        struct lifetime *record = &lifetimes->records[index];
        assert(record->users > 0);
        if (--record->users == 0 && record->released) end(lifetimes, index, now_s);
    }
}

uint64_t sim_lifetimes_in_use(const struct sim_lifetimes *lifetimes, uint32_t device)
{
    return lifetimes->in_use[device];
}

bool sim_lifetimes_reserved(const struct sim_lifetimes *lifetimes, uint32_t device, struct sim_reserved *out)
{
    if (lifetimes->caching_failed) return false;
    *out = *sim_caching_reserved(lifetimes->caching[device]);
    return true;
}
