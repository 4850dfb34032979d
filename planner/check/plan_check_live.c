/*
 * Live device buffers and their places. A device's list is sorted by offset: two neighbours show whether a new buffer
 * fits. A released buffer's range stays until a buffer needs its bytes, because the next buffer mostly has the same
 * range; a pipeline's first device has hundreds of entries, which would have to move.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "planner/check/plan_check_walk.h"

enum { NOT_LIVE = 0 };

/* --- places and ranges ---------------------------------------------------------------------- */

/* Returns the accessed buffer's place: the device, the peer for the start of a copy between devices, or for host
 * buffers a place after all devices, with a rank's place after that. */
static uint32_t place_of(const struct check_walk *r, const struct plan_access *access)
{
    uint32_t devices = r->plan->hardware.device_count;
    if (!r->plan->buffers[access->buffer].on_device)
        return devices + (r->task->gang == PLAN_NONE ? 0 : 1 + r->device);
    bool fetched = r->c->op->stream == STREAM_P2P && (access->flags & ACCESS_READ);
    return fetched ? r->peer : r->device;
}

static const char *place_text(const struct check_walk *r, uint32_t place, char text[32])
{
    snprintf(text, 32, place < r->plan->hardware.device_count ? "device %u" : "the host", place);
    return text;
}

static struct check_live_cell *live_cell(struct check_walk *r, const struct plan_access *access)
{
    assert(plan_buffer_lives(&r->plan->buffers[access->buffer]));
    size_t row = (size_t)place_of(r, access) * r->device_buffer_count;
    return &r->live_at[row + r->index_of[access->buffer]];
}

/* Returns the index for a range from `first`, before any range that begins there. */
static size_t range_place(const struct check_range_list *list, uint64_t first)
{
    size_t low = 0, high = list->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (list->ranges[middle].first < first)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void erase_range(struct check_range_list *list, size_t at)
{
    list->count--;
    memmove(list->ranges + at, list->ranges + at + 1, (list->count - at) * sizeof *list->ranges);
}

/* Takes released ranges within [first, end) out of the list. Returns the index for a range from `first`. */
static size_t make_way(struct check_range_list *list, uint64_t first, uint64_t end)
{
    size_t at = range_place(list, first);
    if (at > 0 && list->ranges[at - 1].end > first && list->ranges[at - 1].live == PLAN_NONE) erase_range(list, --at);
    while (at < list->count && list->ranges[at].first < end && list->ranges[at].live == PLAN_NONE)
        erase_range(list, at);
    return at;
}

/* Returns the index of the range from `first`, or the index for it. `hint`: its last index, mostly right. */
static size_t find_range(const struct check_range_list *list, uint64_t first, uint32_t hint)
{
    return hint < list->count && list->ranges[hint].first == first ? hint : range_place(list, first);
}

/* Handles the same slot again, the usual case; else returns false. */
static bool replace_range(struct check_range_list *list, struct check_range added, uint32_t *hint)
{
    size_t at = find_range(list, added.first, *hint);
    if (at == list->count) return false;
    struct check_range *known = &list->ranges[at];
    if (known->live != PLAN_NONE || known->first != added.first || known->end != added.end) return false;
    *known = added;
    list->live_count++;
    *hint = (uint32_t)at;
    return true;
}

static enum status insert_range(struct check_walk *r, struct check_range added, uint32_t *hint)
{
    char text[PLAN_TEXT_BYTES], other_text[PLAN_TEXT_BYTES], where[32];
    uint32_t place = r->lives[added.live].device;
    struct check_range_list *list = &r->ranges[place];
    if (replace_range(list, added, hint)) return STATUS_OK;
    size_t at = make_way(list, added.first, added.end);
    const struct check_range *other = NULL;
    if (at < list->count && list->ranges[at].first < added.end) other = &list->ranges[at];
    if (at > 0 && list->ranges[at - 1].end > added.first) other = &list->ranges[at - 1];
    if (other)
        return check_fail(r->c, CHECK_RULE_MEMORY,
                          "the %s at bytes %" PRIu64 " to %" PRIu64 " of %s overlaps the %s "
                          "at %" PRIu64 " to %" PRIu64,
                          plan_buffer_text(r->plan, r->lives[added.live].buffer, text), added.first,
                          added.end, place_text(r, place, where),
                          plan_buffer_text(r->plan, r->lives[other->live].buffer, other_text), other->first,
                          other->end);
    TRY(array_reserve(&list->ranges, &list->capacity, list->count, sizeof *list->ranges,
                      PLAN_ACCESSES_MAX, "live buffers", r->c->err));
    memmove(list->ranges + at + 1, list->ranges + at, (list->count - at) * sizeof *list->ranges);
    list->ranges[at] = added;
    list->count++;
    list->live_count++;
    *hint = (uint32_t)at;
    return STATUS_OK;
}

static void remove_range(struct check_walk *r, uint32_t index, uint64_t first, uint32_t hint)
{
    struct check_range_list *list = &r->ranges[r->lives[index].device];
    size_t at = find_range(list, first, hint);
    assert(at < list->count && list->ranges[at].first == first && list->ranges[at].live == index);
    list->ranges[at].live = PLAN_NONE;
    list->live_count--;
}

/* --- lives ---------------------------------------------------------------------------------- */

static enum status allocate_live(struct check_walk *r, uint32_t *out)
{
    if (r->live_free != PLAN_NONE) {
        *out = r->live_free;
        r->live_free = r->lives[*out].next_free;
        return STATUS_OK;
    }
    TRY(array_reserve(&r->lives, &r->live_capacity, r->live_count, sizeof *r->lives,
                      PLAN_ACCESSES_MAX, "live buffers", r->c->err));
    *out = (uint32_t)r->live_count++;
    r->lives[*out] = (struct check_live){0};
    return STATUS_OK;
}

enum status check_acquire(struct check_walk *r, const struct plan_access *access)
{
    const struct plan *plan = r->plan;
    char text[PLAN_TEXT_BYTES], where[32];
    uint32_t buffer = access->buffer, place = place_of(r, access), index;
    uint32_t slot_index = plan->layouts[r->task->layout + r->acquire++];
    const struct plan_slot *slot = &plan->slots[slot_index];
    uint64_t end = slot->offset_bytes + slot->bytes;
    struct check_live_cell *cell = live_cell(r, access);
    if (cell->live != NOT_LIVE)
        return check_fail(r->c, CHECK_RULE_LIFETIMES, "acquires the %s, which is live on %s",
                          plan_buffer_text(r->plan, buffer, text), place_text(r, place, where));
    if (slot->bytes < plan->buffers[buffer].bytes)
        return check_fail(r->c, CHECK_RULE_MEMORY,
                          "slot %u has %" PRIu64 " bytes, the %s %" PRIu64, slot_index, slot->bytes,
                          plan_buffer_text(r->plan, buffer, text), plan->buffers[buffer].bytes);
    if (plan->buffers[buffer].on_device) {
        uint32_t device = r->smallest[place];
        if (end > plan->hardware.devices[device].memory_bytes)
            return check_fail(r->c, CHECK_RULE_MEMORY,
                              "slot %u ends at byte %" PRIu64 ", device %u at %" PRIu64, slot_index,
                              end, device, plan->hardware.devices[device].memory_bytes);
    }
    TRY(allocate_live(r, &index));
    struct check_live *live = &r->lives[index];
    live->buffer = buffer;
    live->device = place;
    live->slot = slot_index;
    buffer_contents_clear(&live->contents);
    cell->live = index + 1;
    r->live_now++;
    if (slot->bytes == 0) return STATUS_OK;
    return insert_range(r, (struct check_range){slot->offset_bytes, end, index}, &cell->range);
}

void check_release(struct check_walk *r, const struct plan_access *access)
{
    struct check_live_cell *cell = live_cell(r, access);
    uint32_t index = cell->live - 1;
    const struct plan_slot *slot = &r->plan->slots[r->lives[index].slot];
    if (slot->bytes > 0) remove_range(r, index, slot->offset_bytes, cell->range);
    cell->live = NOT_LIVE;
    r->lives[index].next_free = r->live_free;
    r->live_free = index;
    r->live_now--;
}

enum status check_is_live(struct check_walk *r, const struct plan_access *access, struct buffer_contents **out)
{
    char text[PLAN_TEXT_BYTES], where[32];
    if (!plan_buffer_lives(&r->plan->buffers[access->buffer])) {
        uint32_t host = r->index_of[access->buffer] +
                        plan_buffer_rank(r->plan, &r->plan->buffers[access->buffer], r->rank);
        *out = &r->hosts[host];
        return check_repeat_note(r, host, false);
    }
    const struct check_live_cell *cell = live_cell(r, access);
    TRY(check_repeat_note(r, (uint64_t)(cell - r->live_at), true));
    if (cell->live == NOT_LIVE)
        return check_fail(r->c, CHECK_RULE_LIFETIMES, "accesses the %s, which is not live on %s",
                          check_access_text(r->c, access, text), place_text(r, place_of(r, access), where));
    *out = &r->lives[cell->live - 1].contents;
    return STATUS_OK;
}

uint32_t check_live_on(const struct check_walk *r, uint32_t device)
{
    const struct check_range_list *list = &r->ranges[device];
    for (size_t i = 0; list->live_count > 0 && i < list->count; i++)
        if (list->ranges[i].live != PLAN_NONE) return r->lives[list->ranges[i].live].buffer;
    return PLAN_NONE;
}

enum status check_nothing_lives(struct check_walk *r)
{
    if (r->live_now == 0) return STATUS_OK;
    size_t cells = (size_t)r->places * r->device_buffer_count, at = 0;
    while (at < cells && r->live_at[at].live == NOT_LIVE) at++;
    assert(at < cells);
    const struct check_live *live = &r->lives[r->live_at[at].live - 1];
    char text[PLAN_TEXT_BYTES], where[32];
    return check_fail(r->c, CHECK_RULE_LIFETIMES, "the %s is live on %s at the end",
                      plan_buffer_text(r->plan, live->buffer, text), place_text(r, live->device, where));
}
