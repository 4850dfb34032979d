#include "planner/plan_gang.h"

/* Returns true if the place is the first of its group: 0 along all axes of the group. */
static bool begins_group(const struct plan_gang *gang, uint32_t axes, uint32_t place)
{
    for (uint32_t a = 0; a < AXIS_COUNT; place /= gang->extents[a++])
        if (axes & 1u << a && place % gang->extents[a] != 0) return false;
    return true;
}

void plan_gang_order(const struct plan_gang *gang, uint32_t axes, uint32_t *places)
{
    uint32_t size = plan_gang_size(gang), joined = plan_gang_group_size(gang, axes), count = 0;
    for (uint32_t first = 0; first < size; first++) {
        if (!begins_group(gang, axes, first)) continue;
        for (uint32_t i = 0; i < joined; i++) {
            uint32_t place = first, rest = i;
            for (uint32_t a = 0, stride = 1; a < AXIS_COUNT; stride *= gang->extents[a++]) {
                if (!(axes & 1u << a)) continue;
                place += rest % gang->extents[a] * stride;
                rest /= gang->extents[a];
            }
            places[count++] = place;
        }
    }
}
