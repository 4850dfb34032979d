/* `bench --library`: a folder of instances with the best schedules known; does the search still reach
 * them? */
#ifndef SPILLWAY_CLI_BENCH_LIBRARY_H
#define SPILLWAY_CLI_BENCH_LIBRARY_H

#include "cli/common/cli.h"

/*
 * Certify every instance of the folder in limit_s seconds each, and report values and bounds beside the best
 * known ones. Errors: those of planner/solve/certify/instance_library.h; STATUS_CHECK, behind the report, when a value is
 * worse than the best known.
 */
MUST_CHECK enum status bench_library(struct cli *cli, const char *folder, double limit_s, uint64_t seed,
                                     struct error *err);

#endif
