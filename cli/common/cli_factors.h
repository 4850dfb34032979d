/* Lists of "NAME=FACTOR" on the command line: by how many times something takes longer. */
#ifndef SPILLWAY_CLI_FACTORS_H
#define SPILLWAY_CLI_FACTORS_H

#include "base/arena.h"
#include "cli/common/cli.h"

enum { CLI_FACTOR_NAME_BYTES = 32 };
struct cli_factor {
    char name[CLI_FACTOR_NAME_BYTES];
    double factor; /* at most 10^6 */
};

/*
 * The first element of *list (not NULL), which becomes what is behind it, NULL at the end. `what` is that of which
 * names are, for messages: "DEVICE". zero: a factor may be 0.
 * Errors: STATUS_BAD_INPUT.
 */
MUST_CHECK enum status cli_factor_take(const char **list, const char *option, const char *what, bool zero,
                                       struct cli_factor *out, struct error *err);

/* A list whose names are devices, as a factor for each of `device_count`, 1 where none is given; NULL: no list.
 * *out lives as long as `arena`. Errors: STATUS_BAD_INPUT, STATUS_NO_MEMORY. */
MUST_CHECK enum status cli_device_factors(const char *list, const char *option, uint32_t device_count,
                                          struct arena *arena, const double **out, struct error *err);

#endif
