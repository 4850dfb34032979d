/*
 * Finds a job by its name, or by the name of a file that it writes.
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_NAMES_H
#define SPILLWAY_MODELS_JOBS_JOB_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct job_name {
    const char *text; /* borrowed; NULL: free */
    uint32_t job;
};

/* A hash table, empty when zeroed. The caller frees `cells` with free(). */
struct job_names {
    struct job_name *cells;
    size_t count, cell_count; /* cell_count: 0, or a power of two above 2 * count */
};

/* Returns UINT32_MAX when there is no such job. */
uint32_t job_names_find(const struct job_names *names, const char *text);

/* Adds `text`, which must be new and outlive `names`. */
MUST_CHECK enum status job_names_add(struct job_names *names, const char *text, uint32_t job, struct error *err);

#endif
