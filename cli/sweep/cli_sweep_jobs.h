/* A jobs file with changed keys. */
#ifndef SPILLWAY_CLI_SWEEP_CLI_SWEEP_JOBS_H
#define SPILLWAY_CLI_SWEEP_CLI_SWEEP_JOBS_H

#include "base/arena.h"
#include "base/error.h"

/* '.' in the key leads into an object. The value is a JSON number, true or false, else a string. */
struct cli_sweep_change {
    const char *key, *value;
};

/*
 * Writes a temporary file, whose name lives in the arena; the caller unlinks it. Relative paths stay relative to the
 * folder of `path`. Errors: STATUS_BAD_INPUT if it is not a jobs file; STATUS_IO.
 */
MUST_CHECK enum status cli_sweep_jobs(const char *path, const struct cli_sweep_change *changes, size_t count,
                                      struct arena *arena, const char **temporary, struct error *err);

#endif
