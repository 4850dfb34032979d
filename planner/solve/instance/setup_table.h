/*
 * Sequence-dependent setup times: a table of instance_setup(), the time between the starts of neighbours on a device.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_INSTANCE_SETUP_TABLE_H
#define SPILLWAY_PLANNER_SOLVE_INSTANCE_SETUP_TABLE_H

#include "planner/solve/instance/instance.h"

struct setup_table { /* zeroed: released */
    const struct instance *in;
    int32_t *ticks; /* (unit_count, unit_count); NULL: no table, each value is computed */
};

/* The table stays empty with over 512 units, several classes of devices or a horizon over 2^31 ticks, or without memory
 * for it. */
void setup_table_make(const struct instance *in, struct setup_table *out);
void setup_table_release(struct setup_table *table);

static inline int64_t setup_table_at(const struct setup_table *table, uint32_t j, uint32_t k, uint32_t class)
{
    if (table->ticks) return table->ticks[(size_t)j * table->in->unit_count + k];
    return instance_setup(table->in, j, k, class);
}

#endif
