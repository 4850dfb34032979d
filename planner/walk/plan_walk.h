/*
 * Walks a plan's operations in plan order, each with the operations that it waits for.
 *
 * Both interpreters use it and so cannot disagree about rule 2 of plan.h. Memory is one small record per live buffer
 * and slot. An operation's number is its position in plan order, from 0; a gang's devices follow each other in each
 * operation, in a collective group by group.
 */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_WALK_H
#define SPILLWAY_PLANNER_WALK_PLAN_WALK_H

#include "planner/plan.h"

struct plan_walk; /* opaque */

struct plan_place_use {
    uint32_t buffer;
    uint32_t flags;       /* ACCESS_* */
    uint32_t place;       /* 0 host, 1 + device, PLAN_NONE storage */
    uint32_t slot;        /* device and staged buffers; PLAN_NONE for others */
    uint32_t life;        /* device buffers: a number, unique among all devices' live buffers now; small numbers first.
                           * PLAN_NONE for others */
    uint64_t address;     /* byte offset of the access in the device's arena, the arena of staged
                             buffers, or the host buffer or stored state */
};

static inline bool plan_use_on_device(const struct plan_place_use *use)
{
    return use->place != 0 && use->place != PLAN_NONE;
}

struct plan_walk_op {
    uint64_t number;
    uint64_t minibatch;   /* minibatch of its job, from 0; LOAD belongs to 0, STORE to the count */
    uint64_t held_out;    /* EVALUATE and KEEP: the job's held-out minibatches before this one, or before this KEEP */
    const struct plan_op *op;
    const struct plan_unit *unit;
    uint32_t op_index;    /* index in the unit */
    bool ends_unit;       /* it is the unit's last one, on the last of its devices */
    uint32_t device;
    uint32_t peer;        /* source device of a P2P copy; else PLAN_NONE */
    uint32_t gang;        /* gang of its task, or PLAN_NONE */
    uint32_t rank;        /* the device's place in its stage, or in a JOIN's gang; 0 without a gang */
    uint32_t group;       /* COLLECTIVE: group of the gang, in the order of plan_gang_order() */
    uint32_t join_count, join_at; /* COLLECTIVE: number of operations that are one collective, with consecutive numbers,
                                   * and this one's index. For others the count is 1 */
    uint32_t stream;      /* as plan_stream() numbers them */
    const uint64_t *waits; /* numbers of operations that must have ended, ascending, at most one per stream, none of its
                            * own (rule 1); implied ones may be left out. Valid until the next call, like uses */
    uint32_t wait_count;
    const struct plan_place_use *uses; /* the op's accesses, in order */
    uint32_t use_count;
};

/*
 * `stands_for` (per device, borrowed; NULL: each for itself): the device that does the same at the same time; devices
 * with another one are not walked (sim/symmetry/symmetry.h). Numbers count the walked operations.
 */
MUST_CHECK enum status plan_walk_create(const struct plan *plan, const uint32_t *stands_for,
                                        struct plan_walk **out, struct error *err);
void plan_walk_destroy(struct plan_walk *walk);

/* Creates a walk for plans of an open order: it walks pushed tasks, one at a time. After each, plan_walk_next() returns
 * false until the next push. */
MUST_CHECK enum status plan_walk_create_open(const struct plan *plan, struct plan_walk **out,
                                             struct error *err);
/* Pushes a task, after the walk of the earlier one. `task` is borrowed until the next push. */
void plan_walk_push(struct plan_walk *walk, const struct plan_task *task);

/* Returns false at the end, and early when an allocation failed (plan_walk_failed() is then true). The plan must have
 * passed plan_check(). */
bool plan_walk_next(struct plan_walk *walk, struct plan_walk_op *out);
bool plan_walk_failed(const struct plan_walk *walk);

/* Return the number of devices that do this operation of a task; the at-th of these devices, with its peer. */
uint32_t plan_walk_members(const struct plan_walk *walk, const struct plan_task *task,
                           const struct plan_op *op);
struct plan_walk_member {
    uint32_t device, peer; /* peer: PLAN_NONE where the task has none */
    uint32_t place;        /* its place in the gang; 0 without a gang */
};
struct plan_walk_member plan_walk_member(const struct plan_walk *walk, const struct plan_task *task,
                                         const struct plan_op *op, uint32_t at);

/* Returns the device that carries out all tasks of the gang; PLAN_NONE: there are several. */
uint32_t plan_walk_sole(const struct plan_walk *walk, uint32_t gang);

/* The place of the next operation, or of the last one at the end of a task. */
struct plan_walk_place {
    uint32_t segment, repeat;   /* of the segment, from 0 */
    uint32_t index, op, member; /* task of the segment, operation of the unit, member of the gang */
};
struct plan_walk_place plan_walk_place(const struct plan_walk *walk);

/*
 * Skips `repeats` repetitions of the segment, known to equal earlier ones (sim/steady.h). Two must have been walked,
 * and at least one must follow the current one. Numbers go on without the skipped operations; minibatches are counted.
 */
void plan_walk_skip(struct plan_walk *walk, uint32_t repeats);

/* Returns to the first operation. */
void plan_walk_rewind(struct plan_walk *walk);

#endif
