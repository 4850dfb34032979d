/*
 * The operations of a plan one by one, in plan order, each with what it waits for.
 *
 * Both interpreters walk a plan with this and so cannot disagree about rule 2 of plan.h. The walk
 * keeps one small record per live buffer and slot; its memory does not grow with the number of
 * operations. An operation's number is its position in plan order, from 0; the devices of a gang come one
 * after the other in each operation, in a collective group by group.
 */
#ifndef SPILLWAY_PLANNER_PLAN_WALK_H
#define SPILLWAY_PLANNER_PLAN_WALK_H

#include "planner/plan.h"

struct plan_walk; /* opaque */

struct plan_place_use {
    uint32_t buffer;
    uint32_t flags;       /* ACCESS_* */
    uint32_t place;       /* 0 host, 1 + device, PLAN_NONE storage */
    uint32_t slot;        /* device and staged buffers; PLAN_NONE for others */
    uint32_t life;        /* device buffers: a number that no other has that lives at this point of the walk, on
                             whatever device; small ones first. PLAN_NONE for others */
    uint64_t address;     /* byte offset of the access in the device's arena, the arena of staged
                             buffers, or the host buffer or stored state */
};

static inline bool plan_use_on_device(const struct plan_place_use *use)
{
    return use->place != 0 && use->place != PLAN_NONE;
}

struct plan_walk_op {
    uint64_t number;
    uint64_t minibatch;   /* of its job, from 0; LOAD belongs to 0, STORE to the count */
    uint64_t held_out;    /* EVALUATE and KEEP: the job's held-out minibatches in front of this one, or
                             of this KEEP */
    const struct plan_op *op;
    const struct plan_unit *unit;
    uint32_t op_index;    /* in the unit */
    uint32_t device;
    uint32_t peer;        /* the device that a P2P copy comes from; else PLAN_NONE */
    uint32_t gang;        /* of its instance, or PLAN_NONE */
    uint32_t group;       /* COLLECTIVE: which group of the gang, in the order of plan_gang_order() */
    uint32_t join_count, join_at; /* COLLECTIVE: of how many operations that are one this is which; their
                                     numbers follow each other. Of others the count is 1 */
    uint32_t stream;      /* as plan_stream() numbers them */
    const uint64_t *waits; /* numbers of operations that must have ended, ascending, at most one
                              per stream, none of its own (rule 1 covers that); what other waits
                              imply may be left out. Valid until the next call, like uses. */
    uint32_t wait_count;
    const struct plan_place_use *uses; /* the op's accesses, in order */
    uint32_t use_count;
};

/*
 * `stands_for` (per device, borrowed; NULL: each for itself): which device does what this one does at the
 * same time; of those that another stands for nothing is walked (sim/symmetry/symmetry.h). Operations are numbered
 * as they are walked.
 */
MUST_CHECK enum status plan_walk_create(const struct plan *plan, const uint32_t *stands_for,
                                        struct plan_walk **out, struct error *err);
void plan_walk_destroy(struct plan_walk *walk);

/* A walk without a plan order: instances are carried out as they are pushed, one at a time; behind each
 * plan_walk_next() is false until the next one is. For plans with choices. */
MUST_CHECK enum status plan_walk_create_open(const struct plan *plan, struct plan_walk **out,
                                             struct error *err);
/* `instance` is borrowed until the next one. What was pushed before must have been walked. */
void plan_walk_push(struct plan_walk *walk, const struct plan_instance *instance);

/* False at the end. A failed allocation asserts nothing: it ends the walk early and
 * plan_walk_failed() is true. The plan must have passed plan_check(). */
bool plan_walk_next(struct plan_walk *walk, struct plan_walk_op *out);
bool plan_walk_failed(const struct plan_walk *walk);

/* How many devices do this operation of an instance, and which is the at-th of them, with its peer. */
uint32_t plan_walk_members(const struct plan_walk *walk, const struct plan_instance *instance,
                           const struct plan_op *op);
struct plan_walk_member {
    uint32_t device, peer; /* peer: PLAN_NONE where the instance has none */
    uint32_t place;        /* in its gang; 0 where there is none */
};
struct plan_walk_member plan_walk_member(const struct plan_walk *walk, const struct plan_instance *instance,
                                         const struct plan_op *op, uint32_t at);

/* The one device that carries out all instances of the gang; PLAN_NONE: there are several. */
uint32_t plan_walk_sole(const struct plan_walk *walk, uint32_t gang);

/* Where the next operation is, or the last one was where that was the last of its instance. */
struct plan_walk_place {
    uint32_t segment, repeat;   /* of it, from 0 */
    uint32_t index, op, member; /* instance of the segment, operation of the unit, member of the gang */
};
struct plan_walk_place plan_walk_place(const struct plan_walk *walk);

/*
 * Leave out so many repetitions of the segment, of which two have been walked and at least one is to come behind the
 * one that the walk is in. Numbers go on without those of the operations left out; minibatches are counted. For who
 * knows that what they would tell is what the repetitions before told (sim/steady.h).
 */
void plan_walk_skip(struct plan_walk *walk, uint32_t repeats);

/* Back to the first operation. */
void plan_walk_rewind(struct plan_walk *walk);

#endif
