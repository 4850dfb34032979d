/* Several arrays from an arena, one check at the end; of records that are each looked at alone, in cache lines of
 * their own. */
#ifndef SPILLWAY_SIM_TAKE_H
#define SPILLWAY_SIM_TAKE_H

#include <stdint.h>

#include "base/arena.h"

enum { SIM_LINE = 64 };

/* As arena_array(), but does nothing and returns NULL when *status says that something failed
 * before; a failure of its own goes to *status. */
static inline void *sim_take(struct arena *arena, size_t count, size_t size, enum status *status,
                             struct error *err)
{
    void *memory = NULL;
    if (*status == STATUS_OK) *status = arena_array(arena, count, size, &memory, err);
    return memory;
}

/* The first of `count` of `size` bytes begins with a cache line. */
static inline void *sim_take_lines(struct arena *arena, size_t count, size_t size, enum status *status,
                                   struct error *err)
{
    char *lines = sim_take(arena, count * size + SIM_LINE, 1, status, err);
    return *status == STATUS_OK ? lines + (SIM_LINE - (uintptr_t)lines % SIM_LINE) % SIM_LINE : NULL;
}

#endif
