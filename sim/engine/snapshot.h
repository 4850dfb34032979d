/*
 * A simulation state as words: lists are equal if and only if the states are, to the last bit. A module writes exactly
 * what its further behaviour depends on.
 */
#ifndef SPILLWAY_SIM_ENGINE_SNAPSHOT_H
#define SPILLWAY_SIM_ENGINE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* A zeroed list is empty. */
struct sim_snapshot {
    uint64_t *words;
    size_t count, capacity;
    bool failed; /* memory ended; the list is invalid */
};

static inline void sim_snapshot_put(struct sim_snapshot *list, uint64_t word)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity > 0 ? list->capacity * 2 : 256;
        void *larger = alloc_resize(list->words, capacity * sizeof *list->words);
        if (!larger) {
            list->failed = true;
            return;
        }
        list->words = larger;
        list->capacity = capacity;
    }
    list->words[list->count++] = word;
}

/* Appends a double; 0 and -0 give the same word. */
static inline void sim_snapshot_put_real(struct sim_snapshot *list, double real)
{
    uint64_t bits;
    real += 0.0;
    memcpy(&bits, &real, sizeof bits);
    sim_snapshot_put(list, bits);
}

static inline bool sim_snapshot_equal(const struct sim_snapshot *a, const struct sim_snapshot *b)
{
    return !a->failed && !b->failed && a->count == b->count &&
           (a->count == 0 || memcmp(a->words, b->words, a->count * sizeof *a->words) == 0);
}

static inline void sim_snapshot_clear(struct sim_snapshot *list)
{
    list->count = 0;
    list->failed = false;
}

static inline void sim_snapshot_release(struct sim_snapshot *list)
{
    free(list->words);
    *list = (struct sim_snapshot){0};
}

#endif
