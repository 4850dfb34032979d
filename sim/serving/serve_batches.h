/* Groups that batch requests: who waits with whom, and who begins when. See serving.h for the rule. */
#ifndef SPILLWAY_SERVING_SERVE_BATCHES_H
#define SPILLWAY_SERVING_SERVE_BATCHES_H

#include "sim/serving/serve_state.h"

/* The group's batches whose turn has come by `now_s` begin, and their requests are counted. Errors:
 * STATUS_NO_MEMORY. */
MUST_CHECK enum status batches_begin(struct server *server, struct group_state *group, double now_s,
                                     struct error *err);

/* Into a batch that waits or one of its own; turned away without admit_all where neither is in time: *admitted.
 * What has its turn by then must have begun. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status batches_add(struct server *server, struct group_state *group, uint32_t request,
                                   bool *admitted, struct error *err);

#endif
