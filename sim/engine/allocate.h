/* Several arrays from an arena with one check at the end; sim_allocate_lines(): records that start at a cache line. */
#ifndef SPILLWAY_SIM_ENGINE_ALLOCATE_H
#define SPILLWAY_SIM_ENGINE_ALLOCATE_H

#include <stdint.h>

#include "base/arena.h"

enum { SIM_LINE = 64 };

/* As arena_array(), but returns NULL if *status is an error. Its own failure goes to *status. */
static inline void *sim_allocate(struct arena *arena, size_t count, size_t size, enum status *status,
                                 struct error *err)
{
    void *memory = NULL;
    if (*status == STATUS_OK) *status = arena_array(arena, count, size, &memory, err);
    return memory;
}

/* Allocates `count` records of `size` bytes; the first record starts at a cache line. */
static inline void *sim_allocate_lines(struct arena *arena, size_t count, size_t size, enum status *status,
                                       struct error *err)
{
    char *lines = sim_allocate(arena, count * size + SIM_LINE, 1, status, err);
    return *status == STATUS_OK ? lines + (SIM_LINE - (uintptr_t)lines % SIM_LINE) % SIM_LINE : NULL;
}

#endif
