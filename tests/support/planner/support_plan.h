/*
 * Plans written by hand, and broken by hand.
 *
 * A draft is an unfinished plan: units with room to drop, move and change operations, and tasks in order.
 * draft_init() writes a correct draft; a test changes it and calls plan_check(). Drafts are made without the planner,
 * so that planner and judge are tested independently.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLAN_H

#include "planner/walk/plan_build.h"

enum {
    DRAFT_ACCESSES_MAX = 12,
    DRAFT_ITEMS_MAX = 48,
    DRAFT_OPS_MAX = 64,
    DRAFT_UNITS_MAX = 512,
    DRAFT_TASKS_MAX = 4096,
    DRAFT_SHARDS_MAX = 64
};

struct draft_access {
    struct plan_buffer buffer;
    uint32_t flags;
    uint64_t offset_bytes;
    uint64_t slot_offset, slot_bytes; /* if it acquires */
    bool fixed; /* slot_offset counts from the start of the device's memory; else from the task's half */
};

struct draft_op {
    struct plan_op op;
    struct draft_access accesses[DRAFT_ACCESSES_MAX];
    uint32_t access_count;
    struct work_item items[DRAFT_ITEMS_MAX];
    uint32_t item_count;
    struct plan_after after;
    bool has_after;
};

struct draft_unit {
    uint32_t job, shard, pass;
    bool ends_minibatch;
    struct draft_op ops[DRAFT_OPS_MAX];
    uint32_t op_count;
};

struct draft_task {
    uint32_t unit, device;
    uint32_t peer; /* device that it fetches from; PLAN_NONE: it fetches nothing */
};

struct draft_shape {
    uint32_t devices;     /* 1 or more */
    uint32_t jobs;
    uint32_t middle;      /* shards between the embedding and the head, one block each */
    uint32_t blocks;      /* of each middle shard, and of the head's shard; 0: 1 and none */
    uint32_t slices;      /* of the embedding; 0: whole */
    uint64_t minibatches;
    uint32_t activations; /* enum plan_activations */
    bool resident;        /* with LOAD and STORE; else every unit copies in and out */
    bool profile;         /* measured layers: no embedding, batch, loss */
    bool direct;          /* boundaries and gradients come straight from the previous device; 2 or more devices */
};

struct draft {
    struct draft_shape shape;
    struct hardware hardware;
    struct job_set jobs;
    struct plan_shard shards[DRAFT_SHARDS_MAX];
    uint32_t shard_count, shards_per_job;
    struct draft_unit *units[DRAFT_UNITS_MAX];
    uint32_t unit_count;
    struct draft_task tasks[DRAFT_TASKS_MAX];
    uint32_t task_count;
    uint64_t half_bytes, keep_bytes; /* of a device: each half; the kept memory after both */
};

struct draft *draft_create(const struct draft_shape *shape);
void draft_destroy(struct draft *draft);

/* Returns the unit of a pass over a shard; NULL if there is none. */
struct draft_unit *draft_unit(struct draft *draft, uint32_t job, uint32_t shard, uint32_t pass);

/* Returns the index of the n-th task of a unit. Fails the test if there is none. */
uint32_t draft_task(struct draft *draft, uint32_t job, uint32_t shard, uint32_t pass,
                    uint32_t n);

/* Returns a copy of a task's unit that only this task uses. */
struct draft_unit *draft_own(struct draft *draft, uint32_t task);

/* Returns the first operation on `stream` with a buffer of this kind. Fails the test if there is none. */
uint32_t draft_find(const struct draft_unit *unit, uint32_t stream, uint32_t buffer_kind);
struct draft_access *draft_access(struct draft_op *op, uint32_t buffer_kind);

void draft_drop_op(struct draft_unit *unit, uint32_t op);
void draft_move_op(struct draft_unit *unit, uint32_t from, uint32_t to);
void draft_drop_task(struct draft *draft, uint32_t task);
void draft_repeat_task(struct draft *draft, uint32_t task);
void draft_swap_tasks(struct draft *draft, uint32_t a, uint32_t b);

/* Makes a plan by plan_builder. The draft keeps its units but loses machine and jobs. */
void draft_build(struct draft *draft, struct plan *out);

/* Makes a correct plan of this shape. */
void support_plan(const struct draft_shape *shape, struct plan *out);

#endif
