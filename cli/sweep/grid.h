/* All combinations of axes' values, numbered from 0; the last axis varies fastest. */
#ifndef SPILLWAY_CLI_SWEEP_GRID_H
#define SPILLWAY_CLI_SWEEP_GRID_H

#include <stdint.h>

#include "cli/sweep/axis.h"

enum { SWEEP_AXES_MAX = 8, SWEEP_POINTS_MAX = 1000000 };

struct sweep_grid {
    struct sweep_axis axes[SWEEP_AXES_MAX];
    uint32_t axis_count;
    uint64_t point_count; /* product of the counts; 1 without axes */
};

/* Adds an axis. Errors: as sweep_axis_parse(); STATUS_BAD_INPUT for a name that is already there; STATUS_LIMIT. */
MUST_CHECK enum status sweep_grid_add(struct sweep_grid *grid, const char *text, struct arena *arena,
                                      struct error *err);

/* Returns the index of the point's value on an axis. */
size_t sweep_grid_index(const struct sweep_grid *grid, uint64_t point, uint32_t axis);

static inline const struct sweep_value *sweep_grid_value(const struct sweep_grid *grid, uint64_t point, uint32_t axis)
{
    return &grid->axes[axis].values[sweep_grid_index(grid, point, axis)];
}

#endif
