/* Lists of "NAME=FACTOR" that multiply durations. */
#ifndef SPILLWAY_CLI_COMMON_CLI_FACTORS_H
#define SPILLWAY_CLI_COMMON_CLI_FACTORS_H

#include "base/arena.h"
#include "cli/common/cli.h"

enum { CLI_FACTOR_NAME_BYTES = 32 };
struct cli_factor {
    char name[CLI_FACTOR_NAME_BYTES];
    double factor; /* at most 10^6 */
};

/*
 * Reads the first element of *list (not NULL) and advances it, to NULL at the end. `what` names the names in messages
 * ("DEVICE"). `zero` allows the factor 0. Errors: STATUS_BAD_INPUT.
 */
MUST_CHECK enum status cli_factor_parse(const char **list, const char *option, const char *what, bool zero,
                                        struct cli_factor *out, struct error *err);

/* Returns a factor per device, by default 1. *out is NULL when `list` is; it lives as long as `arena`. Errors:
 * STATUS_BAD_INPUT. */
MUST_CHECK enum status cli_device_factors(const char *list, const char *option, uint32_t device_count,
                                          struct arena *arena, const double **out, struct error *err);

#endif
