/* Names of options' values. */
#include "planner/planner_options.h"

const char *const planner_place_names[PLANNER_PLACE_COUNT] = {
    [PLANNER_PLACE_DEVICE] = "device",
    [PLANNER_PLACE_CPU] = "cpu",
    [PLANNER_PLACE_SPLIT] = "split",
};
