/* The bottleneck of a run, in words. */
#ifndef SPILLWAY_SIM_LIMIT_H
#define SPILLWAY_SIM_LIMIT_H

#include "sim/sim.h"

enum { SIM_LIMIT_TEXT_BYTES = 256 };

/* Uses makespan, streams, links and jobs. `result` and `trace` have equal streams. Returns `text`. */
const char *sim_limit_text(const struct hardware *hardware, const struct sim_result *result,
                           const struct trace *trace, char text[SIM_LIMIT_TEXT_BYTES]);

#endif
