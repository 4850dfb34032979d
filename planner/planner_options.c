/* Names of options' values. */
#include "planner/planner_options.h"

const char *const planner_place_names[PLACE_COUNT] = {
    [PLACE_DEVICE] = "device",
    [PLACE_CPU] = "cpu",
    [PLACE_SPLIT] = "split",
};
