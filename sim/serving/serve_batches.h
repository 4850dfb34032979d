/* Groups that batch requests: how batches are formed, and when they begin. serving.h has the rule. */
#ifndef SPILLWAY_SIM_SERVING_SERVE_BATCHES_H
#define SPILLWAY_SIM_SERVING_SERVE_BATCHES_H

#include "sim/serving/serve_state.h"

/* Begins the group's batches whose turn comes by `now_s`, and counts their requests. */
MUST_CHECK enum status serve_batches_begin(struct serve_state *server, struct serve_group *group, double now_s,
                                           struct error *err);

/* Adds a request to a waiting batch or a new one. *admitted: false if neither is in time and admit_all is not set. All
 * due batches must have begun. */
MUST_CHECK enum status serve_batches_add(struct serve_state *server, struct serve_group *group, uint32_t request,
                                         bool *admitted, struct error *err);

#endif
