/* `bench --library`: whether the search still reaches the best known schedules of a folder. */
#ifndef SPILLWAY_CLI_BENCH_CLI_BENCH_LIBRARY_H
#define SPILLWAY_CLI_BENCH_CLI_BENCH_LIBRARY_H

#include "cli/common/cli.h"

/*
 * Certifies every instance, limit_s seconds each, and compares with the best known values. Errors: as in
 * planner/solve/certify/instance_library.h; STATUS_CHECK, after the report, when a value is worse.
 */
MUST_CHECK enum status bench_library(struct cli *cli, const char *folder, double limit_s, uint64_t seed,
                                     struct error *err);

#endif
