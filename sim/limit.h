/* What a run waits for most, in words. */
#ifndef SPILLWAY_SIM_LIMIT_H
#define SPILLWAY_SIM_LIMIT_H

#include "sim/sim.h"

enum { SIM_LIMIT_TEXT_BYTES = 256 };

/* From the makespan, streams and links of `result`, whose streams are those of `trace`, and its jobs.
 * Returns `text`. */
const char *sim_limit_text(const struct hardware *hardware, const struct sim_result *result,
                           const struct trace *trace, char text[SIM_LIMIT_TEXT_BYTES]);

#endif
