/*
 * A tournament tree: keeps the minimum of numbers that change.
 *
 * Cost: O(log count) to change a number, less where minima stay the same; O(1) for the minimum, O(log count) for the
 * first number up to a limit.
 *
 * Source: Knuth, The Art of Computer Programming, vol. 3, sec. 5.4.1.
 */
#ifndef SPILLWAY_BASE_TOURNAMENT_H
#define SPILLWAY_BASE_TOURNAMENT_H

#include <math.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/extreme.h"

struct tournament {
    double *keys;    /* [1, 2 * leaves): key i is the smaller of keys 2 i and 2 i + 1; the last `leaves` are the
                        numbers */
    uint32_t leaves; /* a power of two; numbers past the count are HUGE_VAL */
};

/* Creates `count` numbers, all equal to `key`. Lives as long as `arena`. */
MUST_CHECK enum status tournament_create(struct arena *arena, uint32_t count, double key, struct tournament *out,
                                         struct error *err);

static inline double tournament_get(const struct tournament *t, uint32_t index)
{
    return t->keys[t->leaves + index];
}

static inline double tournament_least(const struct tournament *t)
{
    return t->keys[1];
}

static inline void tournament_set(struct tournament *t, uint32_t index, double key)
{
    uint32_t at = t->leaves + index;
    t->keys[at] = key;
    while (at > 1) {
        at /= 2;
        double least = min_s(t->keys[2 * at], t->keys[2 * at + 1]);
        if (!(least < t->keys[at] || least > t->keys[at])) return;
        t->keys[at] = least;
    }
}

/* Returns the index of the first number that is at most `limit`; limit >= tournament_least(). */
static inline uint32_t tournament_first(const struct tournament *t, double limit)
{
    uint32_t at = 1;
    while (at < t->leaves) at = 2 * at + (t->keys[2 * at] <= limit ? 0 : 1);
    return at - t->leaves;
}

#endif
