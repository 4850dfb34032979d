/*
 * Finds the job that has a name, or that writes a file of a name.
 */
#ifndef SPILLWAY_MODELS_JOB_NAMES_H
#define SPILLWAY_MODELS_JOB_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct job_name {
    const char *text; /* borrowed; NULL: the cell is free */
    uint32_t job;
};

/* Zeroed: an empty one. The caller frees `cells` with free(). */
struct job_names {
    struct job_name *cells;
    size_t count, cell_count; /* the latter 0 or a power of two, above twice the count */
};

/* The job that has the name; UINT32_MAX: none. */
uint32_t job_names_find(const struct job_names *names, const char *text);

/* Adds `text`, which is not there yet and outlives `names`. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status job_names_add(struct job_names *names, const char *text, uint32_t job, struct error *err);

#endif
