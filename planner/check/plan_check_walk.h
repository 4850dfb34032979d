/*
 * The checker's walk in plan order: plan_check_run.c (operations and tasks), plan_check_live.c (memory),
 * plan_check_order.c (units).
 */
#ifndef SPILLWAY_PLANNER_CHECK_PLAN_CHECK_WALK_H
#define SPILLWAY_PLANNER_CHECK_PLAN_CHECK_WALK_H

#include "planner/check/plan_checker.h"
#include "planner/buffer_contents.h"
#include "planner/plan_gang.h"

/* A live buffer and its slot. */
struct check_live {
    uint32_t buffer, device, slot;
    uint32_t next_free; /* next of the unused entries */
    struct buffer_contents contents;
};

/* The bytes of a live or released buffer. */
struct check_range {
    uint64_t first, end;
    uint32_t live; /* PLAN_NONE: released */
};
struct check_range_list {
    struct check_range *ranges; /* ascending, disjoint */
    size_t count, capacity, live_count;
};

/* A buffer at a place. */
struct check_live_cell {
    uint32_t live;  /* index into lives + 1; 0: not live */
    uint32_t range; /* its range's last known index in the place's list */
};

struct check_job_progress {
    uint64_t position;  /* in the minibatch: 0 .. 2 S - 2, and beyond for the units that follow */
    uint64_t held_out;  /* held-out minibatches begun */
    uint64_t minibatch; /* completed minibatches */
    bool batch_made;    /* the next minibatch's batch is made */
    uint32_t opened, closed; /* shards opened and closed, of a job with a range of host memory ... */
    uint32_t host;      /* ... on this host */
    uint32_t loss, held_out_loss, outputs; /* their buffers on the host; PLAN_NONE: none */
};

/* A shard's state was brought to a device, brought back, found on the host. */
enum { CHECK_LOADED = 1, CHECK_STORED = 2, CHECK_FOUND = 4 };

struct check_words {
    uint64_t *words;
    size_t count, capacity;
};

/* Search for repetitions of a segment (plan_check_repeat.c). */
struct check_repeats {
    uint32_t next_try;          /* repetitions before it, and the noted one */
    bool noting;                /* what the repetition touches */
    struct check_words touched; /* cells of live_at and hosts */
    struct check_words jobs;    /* of the segment, ascending */
    uint64_t farthest;          /* tasks that its orderings reach back */
    uint32_t look;              /* the one being made */
    struct check_words shapes[3], numbers[3]; /* by look */
    uint64_t left_out;          /* repetitions ... */
    size_t moved;               /* ... and numbers that know of them */
};

struct check_walk {
    struct checker *c;
    const struct plan *plan;
    uint32_t *index_of;       /* per buffer: its number among the staying (of the first rank), or among the acquired and
                               * released */
    uint32_t host_count, device_buffer_count;
    struct buffer_contents *hosts;
    struct check_live_cell *live_at; /* [place][such buffer]. The places are the devices, the host's arena of staged
                                      * buffers, and each device's, where gangs' ranks have such arenas */
    uint32_t places;
    struct check_live *lives;
    size_t live_count, live_capacity;
    uint32_t live_free;       /* PLAN_NONE: none */
    uint64_t live_now;
    struct check_range_list *ranges; /* per such place */
    struct check_job_progress *jobs;
    uint8_t *moved;           /* per shard: CHECK_LOADED, CHECK_STORED, CHECK_FOUND */
    uint64_t *segment_start;  /* position of each segment's first task */
    struct check_parallel_progress *parallel; /* parallel jobs: per shard, and per replica in turn */
    uint32_t *first_turn;     /* per shard: its first entry; shards + 1 */
    const struct plan_task *task;
    bool one_place;           /* of each gang only the first place is followed */
    uint32_t *smallest;       /* per device: of those followed together, the one with the least memory; else itself */
    struct plan_gang_peers *peers; /* then per gang: the peers whose routes were checked */
    uint32_t *holders;        /* per device: its reservation, or PLAN_NONE; NULL without reservations */
    uint8_t *reservation_states;    /* per reservation: RESERVATION_* */
    uint32_t *under_way;      /* jobs that have a range of host memory now */
    uint32_t under_way_count;
    uint32_t device, peer;                                /* device and peer of the current operation ... */
    uint32_t rank;                                        /* ... and the device's place in the gang */
    uint32_t own_first, own_end;                          /* accesses of the operation at that place ... */
    struct buffer_contents *contents[CHECK_ACCESSES_MAX]; /* ... and, by access, the buffer's contents */
    struct check_versions versions;                       /* of a parallel job's unit: in the task with ... */
    uint64_t versions_position;                           /* ... this position in plan order, plus 1, ... */
    uint32_t versions_rank;                               /* ... and this place of its gang */
    uint32_t segment;
    uint32_t acquire;         /* next entry of the task's layout */
    struct check_repeats repeats;
};

static inline enum status check_no_memory(struct check_walk *r)
{
    return error_memory(r->c->err, "checking a plan", r->live_count * sizeof *r->lives);
}

/* Begin a segment. After `done` walked repetitions, *left_out more provably pass and are skipped. Note an operation's
 * access to a cell of live_at (lives) or an entry of hosts. */
void check_repeat_enter(struct check_walk *r);
MUST_CHECK enum status check_repeat_done(struct check_walk *r, const struct plan_segment *segment, uint32_t done,
                                         uint32_t *left_out);
MUST_CHECK enum status check_repeat_note(struct check_walk *r, uint64_t index, bool lives);
void check_repeat_release(struct check_repeats *repeats);

/* Checks that the unit's reservation has its devices, and took them over empty. */
enum { CHECK_RESERVATION_TO_COME, CHECK_RESERVATION_RUNS, CHECK_RESERVATION_OVER };
MUST_CHECK enum status check_reservation_turn(struct check_walk *r);

/* Checks that the unit's job is in host memory, or that the unit opens or closes it. */
MUST_CHECK enum status check_range_turn(struct check_walk *r);

/* Checks that a minibatch's outputs are on the host, of a job that makes them. */
MUST_CHECK enum status check_outputs_made(struct check_walk *r, uint32_t job);

/* Returns a buffer live on a device, or PLAN_NONE. */
uint32_t check_live_on(const struct check_walk *r, uint32_t device);

/* Returns a parallel job's progress, on one of the replicas in turn. */
static inline struct check_parallel_progress *check_progress(const struct check_walk *r, uint32_t global_shard,
                                                             uint32_t turn)
{
    return &r->parallel[r->first_turn[global_shard] + turn];
}

/* Acquires the layout's next slot for the access; releases a live buffer. */
MUST_CHECK enum status check_acquire(struct check_walk *r, const struct plan_access *access);
void check_release(struct check_walk *r, const struct plan_access *access);

/* Returns the accessed buffer's contents; a device's must be live. Borrowed until the next buffer is acquired. */
MUST_CHECK enum status check_is_live(struct check_walk *r, const struct plan_access *access,
                                     struct buffer_contents **out);

/* Checks that no buffer is live at the end. */
MUST_CHECK enum status check_nothing_lives(struct check_walk *r);

/* Check that the unit is its job's next; that it has ended; that the job did all units. */
MUST_CHECK enum status check_unit_begins(struct check_walk *r);
MUST_CHECK enum status check_unit_ends(struct check_walk *r);
MUST_CHECK enum status check_job_done(struct check_walk *r, uint32_t job);

#endif
