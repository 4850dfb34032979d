#include "cli/sweep/grid.h"

#include <assert.h>
#include <string.h>

#include "base/try.h"

enum status sweep_grid_add(struct sweep_grid *grid, const char *text, struct arena *arena, struct error *err)
{
    struct sweep_axis axis;
    if (grid->axis_count == SWEEP_AXES_MAX)
        return error_set(err, STATUS_LIMIT, "too many options '--vary' (limit is %d)", SWEEP_AXES_MAX);
    TRY(sweep_axis_parse(text, arena, &axis, err));
    for (uint32_t a = 0; a < grid->axis_count; a++)
        if (strcmp(grid->axes[a].name, axis.name) == 0)
            return error_set(err, STATUS_BAD_INPUT, "option '--vary': '%s' is varied twice", axis.name);
    uint64_t points = (grid->axis_count == 0 ? 1 : grid->point_count) * axis.count;
    if (points > SWEEP_POINTS_MAX)
        return error_set(err, STATUS_LIMIT, "too many points (limit is %d)", SWEEP_POINTS_MAX);
    grid->axes[grid->axis_count++] = axis;
    grid->point_count = points;
    return STATUS_OK;
}

size_t sweep_grid_index(const struct sweep_grid *grid, uint64_t point, uint32_t axis)
{
    assert(point < grid->point_count && axis < grid->axis_count);
    for (uint32_t a = grid->axis_count - 1; a > axis; a--) point /= grid->axes[a].count;
    return (size_t)(point % grid->axes[axis].count);
}
