/*
 * A layer: partial schedules of equally many tasks, side by side; for layer_search.h.
 *
 * Of two that have done the same tasks, one makes the other superfluous when it can do all that the other can:
 * no job is ready later, and to each device of the other belongs one of its own of the same class that is free no
 * later for whatever is left. Which task was last there does not matter, only what it leaves of time.
 */
#ifndef SPILLWAY_PLANNER_LAYER_H
#define SPILLWAY_PLANNER_LAYER_H

#include "planner/solve/bounds/path_prices.h"

/* How it came about: `before` is the number of the step in front, by the caller's count. */
struct layer_step {
    uint32_t before;
    uint8_t job, device;
};

struct layer_label {
    int64_t slack; /* path_prices_slack() */
    struct layer_step step;
};

struct layer; /* opaque */

/* Room for `label_max` labels of a net, mirrored or not. STATUS_NO_MEMORY. */
MUST_CHECK enum status layer_create(const struct task_net *net, uint32_t label_max, struct layer **out,
                                    struct error *err);
void layer_destroy(struct layer *layer); /* NULL is fine */
size_t layer_label_bytes(const struct task_net *net);

/* Empty, for this net of the same instance; it is borrowed. */
void layer_begin(struct layer *layer, const struct task_net *net);
void layer_clear(struct layer *layer);
uint32_t layer_count(const struct layer *layer);
void layer_add(struct layer *layer, const struct path_state *state, const struct layer_label *label);

/* Valid until the layer changes. */
struct layer_label *layer_label(const struct layer *layer, uint32_t at);
void layer_state(const struct layer *layer, uint32_t at, struct path_state *state);

/* Leave out what others make superfluous for schedules of makespan `limit`; stops early, with more left than
 * need be, at until_s. */
void layer_reduce(struct layer *layer, int64_t limit, double until_s);

/* Leave out what has too little slack, by new prices; from until_s on the rest stays as it is. */
void layer_bound(struct layer *layer, const struct path_prices *prices, double until_s);

/* Keep the `width` of most slack. */
void layer_narrow(struct layer *layer, uint32_t width);

#endif
