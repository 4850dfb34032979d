/*
 * A label set: partial schedules of equally many tasks, side by side; for label_setting.h.
 *
 * Of two that have done the same tasks, one makes the other superfluous when it can do all that the other can:
 * no job is ready later, and to each device of the other belongs one of its own of the same class that is free no
 * later for whatever is left. Which task was last there does not matter, only what it leaves of time.
 */
#ifndef SPILLWAY_PLANNER_LABEL_SET_H
#define SPILLWAY_PLANNER_LABEL_SET_H

#include "planner/solve/bounds/lagrangian_bound.h"

/* How it came about: `before` is the number of the step in front, by the caller's count. */
struct label_step {
    uint32_t before;
    uint8_t job, device;
};

struct label_entry {
    int64_t slack; /* lagrangian_bound_slack() */
    struct label_step step;
};

struct label_set; /* opaque */

/* Room for `label_max` labels of a net, mirrored or not. STATUS_NO_MEMORY. */
MUST_CHECK enum status label_set_create(const struct task_net *net, uint32_t label_max, struct label_set **out,
                                    struct error *err);
void label_set_destroy(struct label_set *set); /* NULL is fine */
size_t label_set_label_bytes(const struct task_net *net);

/* Empty, for this net of the same instance; it is borrowed. */
void label_set_begin(struct label_set *set, const struct task_net *net);
void label_set_clear(struct label_set *set);
uint32_t label_set_count(const struct label_set *set);
void label_set_add(struct label_set *set, const struct lagrangian_state *state, const struct label_entry *label);

/* Valid until the label set changes. */
struct label_entry *label_set_at(const struct label_set *set, uint32_t at);
void label_set_state(const struct label_set *set, uint32_t at, struct lagrangian_state *state);

/* Leave out what others make superfluous for schedules of makespan `limit`; stops early, with more left than
 * need be, at until_s. */
void label_set_reduce(struct label_set *set, int64_t limit, double until_s);

/* Leave out what has too little slack, by new prices; from until_s on the rest stays as it is. */
void label_set_bound(struct label_set *set, const struct lagrangian_bound *prices, double until_s);

/* Keep the `width` of most slack. */
void label_set_narrow(struct label_set *set, uint32_t width);

#endif
