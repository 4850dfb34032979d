#include "planner/solve/instance/setup_table.h"

#include <stdlib.h>

#include "base/alloc.h"

enum { UNITS_MAX = 512 }; /* 1 MiB */

void setup_table_make(const struct instance *in, struct setup_table *out)
{
    uint32_t n = in->unit_count;
    *out = (struct setup_table){.in = in};
    if (in->class_count > 1 || n > UNITS_MAX || in->horizon > INT32_MAX) return;
    out->ticks = alloc_zeroed((size_t)n * n, sizeof *out->ticks);
    for (uint32_t j = 0; out->ticks && j < n; j++)
        for (uint32_t k = 0; k < n; k++)
            out->ticks[(size_t)j * n + k] = (int32_t)instance_setup(in, j, k, 0);
}

void setup_table_release(struct setup_table *table)
{
    free(table->ticks);
    *table = (struct setup_table){0};
}
