/* Workload W on SimGrid, where that is installed. */
#ifndef SPILLWAY_TESTS_BENCH_BENCH_ENGINE_SIMGRID_H
#define SPILLWAY_TESTS_BENCH_BENCH_ENGINE_SIMGRID_H

#include "tests/support/support_workload.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The makespan; *cpu_s: of the simulation loop, without making the platform. Once in a process: SimGrid
 * keeps its state in globals. */
double bench_engine_simgrid(const struct workload *w, double *cpu_s);

#ifdef __cplusplus
}
#endif

#endif
