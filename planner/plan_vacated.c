/*
 * Ranges painted one over the other.
 *
 * A release puts its range over whatever older ranges lie there: those inside vanish, those at the
 * borders are cut. So the list has about as many ranges as the device has neighbouring buffers. A
 * plan uses the same few slots again and again; the usual paint replaces one range by one with the
 * same borders, and the usual search ends where it ended the last time for that slot (the hint).
 *
 *     [0, 40) a   [40, 100) b   paint [20, 60) c   ->   [0, 20) a   [20, 60) c   [60, 100) b
 *
 * Cost: constant in the usual case; else a binary search, and a move of what is behind.
 */
#include "planner/plan_vacated.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { FEW = 8 }; /* ranges are found as fast as a hint is, which may be far away */

uint32_t vacated_find(const struct vacated_list *list, uint64_t offset, uint32_t *hint)
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

bool vacated_paint(struct vacated_list *list, const struct vacated *added, uint32_t *hint)
{
    if (added->first == added->end) return true;
    uint32_t low = vacated_find(list, added->first, hint);
    uint32_t high = low;
    while (high < list->count && list->ranges[high].first < added->end) high++;
    if (high == low + 1 && list->ranges[low].first == added->first &&
        list->ranges[low].end == added->end) {
        list->ranges[low] = *added; /* the usual case: the same slot again */
        return true;
    }

    struct vacated pieces[3];
    uint32_t piece_count = 0;
    if (low < high && list->ranges[low].first < added->first) {
        pieces[piece_count] = list->ranges[low];
        pieces[piece_count++].end = added->first;
    }
    pieces[piece_count++] = *added;
    if (low < high && list->ranges[high - 1].end > added->end) {
        pieces[piece_count] = list->ranges[high - 1];
        pieces[piece_count++].first = added->end;
    }
    uint32_t count = list->count - (high - low) + piece_count;
    if (count > list->capacity) {
        uint32_t capacity = list->capacity > 0 ? list->capacity * 2 : 16;
        void *larger = alloc_resize(list->ranges, capacity * sizeof *list->ranges);
        if (!larger) return false;
        list->ranges = larger;
        list->capacity = capacity;
    }
    memmove(list->ranges + low + piece_count, list->ranges + high,
            (list->count - high) * sizeof *list->ranges);
    memcpy(list->ranges + low, pieces, piece_count * sizeof *pieces);
    list->count = count;
    return true;
}
