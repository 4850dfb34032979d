/*
 * Changes of memory in use: they come in plan order and are wanted in the order of time. Those that do not fit in
 * memory are sorted in a file.
 */
#ifndef SPILLWAY_EXEC_STATE_RUN_CHANGES_H
#define SPILLWAY_EXEC_STATE_RUN_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct run_change {
    double time_s;
    uint64_t order; /* of arrival */
    int64_t bytes;  /* more, or less */
    uint32_t place;
};

struct run_changes; /* opaque */

/* Keeps at most `capacity` in memory. The caller frees *out with run_changes_destroy(). */
MUST_CHECK enum status run_changes_create(size_t capacity, struct run_changes **out, struct error *err);
void run_changes_destroy(struct run_changes *changes); /* NULL does nothing */

/* Adds a change; a failure is reported when they are read. */
void run_changes_add(struct run_changes *changes, double time_s, uint32_t place, int64_t bytes);

/*
 * Takes changes in the order of time; *more is false at the end. At equal times memory is given back before it is
 * taken, since the next user of a slot waits for the last one; then they come as they arrived. No change is added
 * after the first call. Errors: STATUS_IO.
 */
MUST_CHECK enum status run_changes_next(struct run_changes *changes, struct run_change *out, bool *more,
                                        struct error *err);

#endif
