/* Several arrays from an arena, one check at the end. */
#ifndef SPILLWAY_SIM_TAKE_H
#define SPILLWAY_SIM_TAKE_H

#include "base/arena.h"

/* As arena_array(), but does nothing and returns NULL when *status says that something failed
 * before; a failure of its own goes to *status. */
static inline void *sim_take(struct arena *arena, size_t count, size_t size, enum status *status,
                             struct error *err)
{
    void *memory = NULL;
    if (*status == STATUS_OK) *status = arena_array(arena, count, size, &memory, err);
    return memory;
}

#endif
