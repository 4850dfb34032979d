/* Seconds of a kernel by the rates that were measured at some sizes. */
#ifndef SPILLWAY_MODELS_COST_MEASURED_RATE_H
#define SPILLWAY_MODELS_COST_MEASURED_RATE_H

#include "models/hardware/hardware.h"
#include "models/kernel/work.h"

enum { MEASURED_ELEMENT_BYTES = 4 }; /* of a measured kernel's numbers */

struct measured_cost {
    double seconds, spread; /* spread: relative */
};

/* Returns the cost of all of the item's calls by the points of `kernel`, of which there is at least one. */
struct measured_cost measured_cost(uint32_t kernel, const struct kernel_rate *rate, const struct work_item *item);

#endif
