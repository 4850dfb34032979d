/*
 * Partial schedules (labels) with equal numbers of tasks, for label_setting.h.
 *
 * One of two labels with the same tasks dominates the other when no job is ready later, and each device of the other is
 * matched to its own device, of the same class, that is free no later for any remaining task.
 */
#ifndef SPILLWAY_PLANNER_SOLVE_EXACT_LABEL_SET_H
#define SPILLWAY_PLANNER_SOLVE_EXACT_LABEL_SET_H

#include "planner/solve/bounds/lagrangian_bound.h"

/* The last step of a label. `before`: number of the step before it, in the caller's count. */
struct label_step {
    uint32_t before;
    uint8_t job, device;
};

struct label_entry {
    int64_t slack; /* lagrangian_bound_slack() */
    struct label_step step;
};

struct label_set; /* opaque */

/* Creates a set with room for `label_max` labels of a net, mirrored or not. */
MUST_CHECK enum status label_set_create(const struct task_net *net, uint32_t label_max, struct label_set **out,
                                        struct error *err);
void label_set_destroy(struct label_set *set); /* NULL is fine */
size_t label_set_label_bytes(const struct task_net *net);

/* Empties the set, for this net of the same instance. `net` is borrowed. */
void label_set_begin(struct label_set *set, const struct task_net *net);
void label_set_clear(struct label_set *set);
uint32_t label_set_count(const struct label_set *set);
void label_set_add(struct label_set *set, const struct lagrangian_state *state, const struct label_entry *label);

/* Returns label `at`. It is valid until the label set changes. */
struct label_entry *label_set_at(const struct label_set *set, uint32_t at);
void label_set_state(const struct label_set *set, uint32_t at, struct lagrangian_state *state);

/* Removes labels that others dominate for schedules of makespan `limit`. At until_s it stops and leaves more labels
 * than necessary. */
void label_set_reduce(struct label_set *set, int64_t limit, double until_s);

/* Removes labels with too little slack by the new prices. From until_s on, the other labels stay. */
void label_set_bound(struct label_set *set, const struct lagrangian_bound *prices, double until_s);

/* Keeps the `width` labels with the most slack. */
void label_set_narrow(struct label_set *set, uint32_t width);

#endif
