/*
 * A release paints its range over older ones: those inside vanish, those at the borders are cut. So the list has about
 * one range per neighbouring buffer. A plan reuses the same few slots: paint mostly replaces a range with the same
 * borders, and a search mostly ends where it last ended for that slot (the hint).
 *
 *     [0, 40) a   [40, 100) b   paint [20, 60) c   ->   [0, 20) a   [20, 60) c   [60, 100) b
 *
 * Cost: constant in the usual case; else a binary search, and a move of later ranges. Until each slot has been used
 * once, each moves half of the list; so a range's users, larger than its borders, do not move, in an array of their
 * own.
 */
#include "planner/walk/plan_freed.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FEW = 8 }; /* so few ranges are searched as fast as by a hint */

uint32_t plan_freed_find(const struct plan_freed_list *list, uint64_t offset, uint32_t *hint)
{
    uint32_t low = 0, high = list->count;
    bool many = list->count > FEW;
    if (many && *hint < high && list->ranges[*hint].end > offset) high = *hint + 1;
    if (many && *hint > 0 && *hint <= high && list->ranges[*hint - 1].end <= offset) low = *hint;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->ranges[middle].end > offset)
            high = middle;
        else
            low = middle + 1;
    }
    if (many) *hint = low;
    return low;
}

/* Makes room for two more ranges: one is added, one may be cut in two. */
static bool reserve(struct plan_freed_list *list)
{
    if (list->count + 2 <= list->capacity) return true;
    uint32_t capacity = list->capacity > 0 ? list->capacity * 2 : 16;
    void *ranges = alloc_resize(list->ranges, capacity * sizeof *list->ranges);
    if (ranges) list->ranges = ranges;
    void *users = ranges ? alloc_resize(list->users, capacity * sizeof *list->users) : NULL;
    if (users) list->users = users;
    void *spare = users ? alloc_resize(list->spare, capacity * sizeof *list->spare) : NULL;
    if (!spare) return false;
    list->spare = spare;
    for (uint32_t i = list->capacity; i < capacity; i++) list->spare[i] = i;
    list->capacity = capacity;
    return true;
}

bool plan_freed_paint(struct plan_freed_list *list, uint64_t first, uint64_t end, const struct plan_freed_users *users,
                      uint32_t *hint)
{
    if (first == end) return true;
    uint32_t low = plan_freed_find(list, first, hint), high = low;
    while (high < list->count && list->ranges[high].first < end) high++;
    if (high == low + 1 && list->ranges[low].first == first && list->ranges[low].end == end) {
        list->users[list->ranges[low].users] = *users; /* the usual case: the same slot again */
        return true;
    }
    if (!reserve(list)) return false;

    /* A range cut at its end stays before the new one, one cut at its beginning after it; one cut at both becomes
     * two. */
    const struct plan_freed_range *ranges = list->ranges;
    bool front = low < high && ranges[low].first < first, behind = low < high && ranges[high - 1].end > end;
    struct plan_freed_range pieces[3], last = behind ? ranges[high - 1] : (struct plan_freed_range){0};
    uint32_t count = 0, spare = list->count;
    if (front) {
        pieces[count] = ranges[low];
        pieces[count++].end = first;
    }
    uint32_t kept_end = behind && (!front || high - 1 > low) ? high - 1 : high;
    for (uint32_t i = low + front; i < kept_end; i++) list->spare[--spare] = ranges[i].users;
    uint32_t own = list->spare[spare++];
    pieces[count++] = (struct plan_freed_range){first, end, own};
    list->users[own] = *users;
    if (behind) {
        last.first = end;
        if (kept_end == high) { /* cut in two */
            uint32_t copy = list->spare[spare++];
            list->users[copy] = list->users[last.users];
            last.users = copy;
        }
        pieces[count++] = last;
    }
    memmove(list->ranges + low + count, list->ranges + high, (list->count - high) * sizeof *list->ranges);
    memcpy(list->ranges + low, pieces, count * sizeof *pieces);
    list->count += count - (high - low);
    assert(list->count == spare);
    return true;
}

void plan_freed_clear(struct plan_freed_list *list)
{
    list->count = 0;
    for (uint32_t i = 0; i < list->capacity; i++) list->spare[i] = i;
}

void plan_freed_release(struct plan_freed_list *list)
{
    free(list->ranges);
    free(list->users);
    free(list->spare);
    *list = (struct plan_freed_list){0};
}
