/* Cost: linear in the segments, which are few: the ranges of jobs under way, and the gaps. */
#include "planner/spill/order/host_ranges.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/extreme.h"

void host_ranges_begin(struct host_ranges *ranges, uint32_t hosts, uint64_t room)
{
    ranges->count = hosts;
    ranges->room = room;
    for (uint32_t h = 0; h < hosts; h++)
        ranges->segments[h] = (struct host_segment){.first = h * room, .end = (h + 1) * room, .job = PLAN_NONE};
}

/* Finds the segments [first, behind) with `bytes` contiguous bytes that are free first; *first == count: none. */
static void find(const struct host_ranges *r, uint32_t host, uint64_t bytes, uint32_t *first, uint32_t *behind,
                 double *ready_s)
{
    uint64_t from = host * r->room, to = from + r->room;
    *first = r->count;
    *behind = 0;
    *ready_s = HUGE_VAL;
    for (uint32_t i = 0; i < r->count; i++) {
        double ready = 0;
        uint32_t k = i;
        if (r->segments[i].first < from) continue;
        if (r->segments[i].first >= to) break;
        for (; k < r->count && r->segments[k].job == PLAN_NONE && r->segments[k].first < to; k++) {
            ready = max_s(ready, r->segments[k].free_s);
            if (r->segments[k].end - r->segments[i].first < bytes) continue;
            if (ready < *ready_s) {
                *first = i;
                *behind = k + 1;
                *ready_s = ready;
            }
            break;
        }
    }
}

bool host_ranges_find(const struct host_ranges *ranges, uint32_t host, uint64_t bytes, double *ready_s)
{
    uint32_t first, behind;
    find(ranges, host, bytes, &first, &behind, ready_s);
    return first < ranges->count;
}

uint64_t host_ranges_allocate(struct host_ranges *ranges, uint32_t host, uint64_t bytes, uint32_t job, double *ready_s)
{
    uint32_t first, behind;
    find(ranges, host, bytes, &first, &behind, ready_s);
    assert(first < ranges->count);
    struct host_segment *at = &ranges->segments[first], rest = ranges->segments[behind - 1];
    *at = (struct host_segment){.first = at->first, .end = at->first + bytes, .free_s = *ready_s, .job = job};
    rest.first = at->end;
    uint32_t kept = first + 1 + (rest.first < rest.end);
    memmove(ranges->segments + kept, ranges->segments + behind, (ranges->count - behind) * sizeof rest);
    if (kept > first + 1) ranges->segments[first + 1] = rest;
    ranges->count = ranges->count - behind + kept;
    return at->first - host * ranges->room;
}

/* Returns true if a segment and the next are on one host and free for all later requests. */
static bool are_one(const struct host_ranges *r, uint32_t at, double horizon_s)
{
    const struct host_segment *a = &r->segments[at], *b = a + 1;
    return at + 1 < r->count && a->job == PLAN_NONE && b->job == PLAN_NONE && b->first % r->room != 0 &&
           a->free_s <= horizon_s && b->free_s <= horizon_s;
}

void host_ranges_give_back(struct host_ranges *ranges, uint32_t job, double free_s, double horizon_s)
{
    for (uint32_t i = 0; i < ranges->count; i++)
        if (ranges->segments[i].job == job) {
            ranges->segments[i].job = PLAN_NONE;
            ranges->segments[i].free_s = free_s;
        }
    for (uint32_t i = 0; i < ranges->count; i++)
        while (are_one(ranges, i, horizon_s)) {
            struct host_segment *a = &ranges->segments[i];
            a->end = a[1].end;
            a->free_s = max_s(a->free_s, a[1].free_s);
            ranges->count--;
            memmove(a + 1, a + 2, (ranges->count - i - 1) * sizeof *a);
        }
}
