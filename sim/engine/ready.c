/* An entry before another has the smaller (key, job), compared as one number of 128 bits. */
#include "sim/engine/ready.h"

#include "sim/engine/queue.h"
#include "sim/engine/allocate.h"

static inline bool is_before(struct sim_ready_entry a, struct sim_ready_entry b)
{
    unsigned __int128 left = (unsigned __int128)a.key << 64 | a.job, right = (unsigned __int128)b.key << 64 | b.job;
    return left < right;
}

/* Moves an entry into the open `place`, or above it. */
static void rise(struct sim_ready *ready, uint32_t place, struct sim_ready_entry entry)
{
    while (place > 1 && is_before(entry, ready->entries[place / 2])) {
        ready->entries[place] = ready->entries[place / 2];
        place /= 2;
    }
    ready->entries[place] = entry;
}

/* Moves an entry into the open `place`, or below or above it. At each level the better child moves up, without a branch
 * on this random choice. */
static void sink(struct sim_ready *ready, uint32_t place, struct sim_ready_entry entry)
{
    uint32_t child = place * 2;
    while (child < ready->count) {
        child += is_before(ready->entries[child + 1], ready->entries[child]);
        ready->entries[place] = ready->entries[child];
        place = child;
        child = place * 2;
    }
    if (child == ready->count) {
        ready->entries[place] = ready->entries[child];
        place = child;
    }
    rise(ready, place, entry);
}

/* Moves the last entry into the open `place`. */
static void close_with_last(struct sim_ready *ready, uint32_t place)
{
    struct sim_ready_entry last = ready->entries[ready->count--];
    if (place <= ready->count) sink(ready, place, last);
}

static inline void close_first(struct sim_ready *ready)
{
    if (!ready->open) return;
    ready->open = false;
    close_with_last(ready, 1);
}

enum status sim_ready_create(struct arena *arena, uint32_t job_count, struct sim_ready *out, struct error *err)
{
    enum status status = STATUS_OK;
    struct sim_ready ready = {0};
    ready.entries = sim_allocate_lines(arena, (size_t)job_count + 1, sizeof *ready.entries, &status, err);
    if (status == STATUS_OK) *out = ready;
    return status;
}

void sim_ready_add(struct sim_ready *ready, uint32_t job, double rank)
{
    struct sim_ready_entry entry = {sim_queue_key(-rank), job};
    if (ready->open) {
        ready->open = false;
        sink(ready, 1, entry);
    } else {
        rise(ready, ++ready->count, entry);
    }
}

void sim_ready_remove(struct sim_ready *ready, uint32_t job)
{
    close_first(ready);
    uint32_t place = 1;
    while (place <= ready->count && ready->entries[place].job != job) place++;
    assert(place <= ready->count);
    if (place == 1) ready->open = true;
    else close_with_last(ready, place);
}

uint32_t sim_ready_first(struct sim_ready *ready)
{
    close_first(ready);
    assert(ready->count > 0);
    return (uint32_t)ready->entries[1].job;
}

uint32_t sim_ready_next(const struct sim_ready *ready)
{
    const struct sim_ready_entry *entries = ready->entries;
    assert(ready->count > (ready->open ? 1 : 0));
    if (!ready->open) return (uint32_t)entries[1].job;
    return (uint32_t)entries[ready->count > 2 && is_before(entries[3], entries[2]) ? 3 : 2].job;
}
