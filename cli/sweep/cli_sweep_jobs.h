/* A jobs file with a key changed in every job, for one point of a sweep. */
#ifndef SPILLWAY_CLI_SWEEP_JOBS_H
#define SPILLWAY_CLI_SWEEP_JOBS_H

#include "base/arena.h"
#include "base/error.h"

/* One change: the key of a job, in which '.' leads into an object; the value is a JSON number, true or false, or else a string. */
struct cli_sweep_change {
    const char *key, *value;
};

/*
 * Write `path` with the changes to a temporary file, whose name lives in the arena; the caller unlinks it. Paths that
 * the file names stay those seen from its own folder.
 * Errors: STATUS_BAD_INPUT when it is no jobs file; STATUS_IO, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status cli_sweep_jobs(const char *path, const struct cli_sweep_change *changes, size_t count,
                                      struct arena *arena, const char **temporary, struct error *err);

#endif
