/*
 * Passes that a job that is spread has had before: of planner/parallel/spread_units.c. Nobody else includes this.
 *
 * What a pass over a run is depends on the variants of what it accesses and on nothing else, where the run's weights
 * and gradients have one place and one replica is as another. There are few combinations of variants, and
 * thousands of microbatches: a pass that comes with a known combination is the instance that it was, once more.
 */
#ifndef SPILLWAY_PLANNER_SPREAD_AGAIN_H
#define SPILLWAY_PLANNER_SPREAD_AGAIN_H

#include "planner/parallel/spread_places.h"

/* The step's pass as it was emitted before. False: it is to be emitted ... */
bool spread_pass_again(struct spread *s, const struct pipeline_step *step);

/* ... and it is the instance appended last. */
void spread_note_pass(struct spread *s, const struct pipeline_step *step);

#endif
