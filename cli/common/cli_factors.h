/* Lists of "NAME=FACTOR" on the command line; a factor multiplies a duration. */
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
 * Reads the first element of *list (not NULL) and advances *list past it, to NULL at the end. `what` is the kind of the
 * names, for messages ("DEVICE"). `zero` allows the factor 0. Errors: STATUS_BAD_INPUT.
 */
MUST_CHECK enum status cli_factor_parse(const char **list, const char *option, const char *what, bool zero,
                                        struct cli_factor *out, struct error *err);

/* Reads a list of devices and returns a factor for each of `device_count` devices, 1 where the list has none. *out
 * is NULL when `list` is; it lives as long as `arena`. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status cli_device_factors(const char *list, const char *option, uint32_t device_count,
                                          struct arena *arena, const double **out, struct error *err);

#endif
