/*
 * Finds what comes again in a sequence of numbers (Ziv and Lempel, 1977).
 *
 *     7 8 9 7 8 9 7 8 9 5     0 copies, 7 8 9 fresh; 6 copies from 3 back, 5 fresh
 *
 * A copy may reach into itself, so it also stands for repetitions.
 */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_COPIES_H
#define SPILLWAY_PLANNER_WALK_PLAN_COPIES_H

#include <stdbool.h>
#include <stdint.h>

/* Numbers that equal those `back` before, and fresh ones after them, at numbers[first]. */
struct plan_copy {
    uint32_t count, back; /* back: 0 where nothing is copied */
    uint32_t first, fresh;
};

struct plan_copies; /* opaque */

/* Creates a search in `numbers`, borrowed. A copy has at least `shortest` numbers, at least 1. Returns NULL without
 * memory. The caller frees it with plan_copies_destroy(). */
struct plan_copies *plan_copies_create(const uint32_t *numbers, uint32_t count, uint32_t shortest);
void plan_copies_destroy(struct plan_copies *copies);

/* Finds the next copy, with at most `fresh_max` fresh numbers, at least 1. Returns false at the end. */
bool plan_copies_next(struct plan_copies *copies, uint32_t fresh_max, struct plan_copy *out);

#endif
