/*
 * The walk of the checker in plan order: what plan_check_run.c (operations and instances),
 * plan_check_live.c (memory) and plan_check_order.c (units) share. Nobody else includes this.
 */
#ifndef SPILLWAY_PLANNER_PLAN_CHECK_WALK_H
#define SPILLWAY_PLANNER_PLAN_CHECK_WALK_H

#include "planner/check/plan_checker.h"
#include "planner/plan_contents.h"
#include "planner/plan_gang.h"

/* A buffer that is alive, and the slot that it has. */
struct live {
    uint32_t buffer, device, slot;
    uint32_t next_free; /* of entries without one */
    struct contents contents;
};

/* The bytes that it takes, or that one took which was released. */
struct range {
    uint64_t first, end;
    uint32_t live; /* PLAN_NONE: released */
};
struct range_list {
    struct range *ranges; /* ascending, disjoint */
    size_t count, capacity, live_count;
};

/* A buffer at a place. */
struct live_cell {
    uint32_t live;  /* index into lives + 1, or 0: it does not live there */
    uint32_t range; /* where in the place's list its range was the last time */
};

struct job_progress {
    uint64_t position;  /* in the minibatch: 0 .. 2 S - 2, and on in what is behind it */
    uint64_t held_out;  /* held-out minibatches that have begun */
    uint64_t minibatch; /* completed ones */
    bool batch_made;    /* by a BATCH unit, for the next minibatch */
    uint32_t opened, closed; /* shards of a job that has a range of host memory ... */
    uint32_t host;      /* ... which is this host's */
    uint32_t loss, held_out_loss; /* their buffers on the host; PLAN_NONE: it has none */
};

/* What is known of a shard's state: it was brought to a device, brought back, found on the host. */
enum { LOADED = 1, STORED = 2, FOUND = 4 };

struct check_walk {
    struct checker *c;
    const struct plan *plan;
    uint32_t *index_of;       /* per buffer: among those that stay (its first rank's), or those that live and end */
    uint32_t host_count, device_buffer_count;
    struct contents *hosts;
    struct live_cell *live_at; /* [place][such buffer]; the places
                                 are the devices, the host's arena of staged buffers, and where ranks of
                                 gangs have some the arena of each device's */
    uint32_t places;
    struct live *lives;
    size_t live_count, live_capacity;
    uint32_t live_free;       /* PLAN_NONE: none */
    uint64_t live_now;
    struct range_list *ranges; /* per such place */
    struct job_progress *jobs;
    uint8_t *moved;           /* per shard: LOADED, STORED, FOUND */
    uint64_t *segment_start;  /* position of each segment's first instance */
    struct check_parallel_progress *parallel; /* of parallel jobs: per shard, and of its replicas that take turns */
    uint32_t *first_turn;     /* per shard: the first such entry; shards + 1 */
    const struct plan_instance *instance;
    bool one_place;           /* of each gang the first is followed for all */
    uint32_t *smallest;       /* then per device: that with the least memory which it is followed for; else
                                 the device itself */
    struct plan_gang_peers *peers; /* then per gang: whose ways between devices were looked at */
    uint32_t *holders;        /* per device: the reservation that has it, or PLAN_NONE; NULL without reservations */
    uint8_t *reservation_states;    /* per reservation: RESERVATION_* */
    uint32_t *under_way;      /* jobs that have a range of host memory now */
    uint32_t under_way_count;
    uint32_t device, peer;    /* of the operation at hand ... */
    uint32_t rank;            /* ... and the device's place in the gang */
    uint32_t own_first, own_end; /* accesses of the operation that it makes there ... */
    struct contents *contents[CHECK_ACCESSES_MAX]; /* ... and, by access, what is held there */
    struct check_versions versions; /* that a unit of a parallel job means: of the instance with ... */
    uint64_t versions_position;     /* ... this position in plan order, plus 1, ... */
    uint32_t versions_rank;         /* ... and this place of its gang */
    uint32_t segment;
    uint32_t acquire;         /* next entry of the instance's layout */
};

static inline enum status check_no_memory(struct check_walk *r)
{
    return error_memory(r->c->err, "checking a plan", r->live_count * sizeof *r->lives);
}

/* The walk's unit may run: its reservation has its devices, and took them over with nothing on them. */
enum { RESERVATION_TO_COME, RESERVATION_RUNS, RESERVATION_OVER };
MUST_CHECK enum status check_reservation_turn(struct check_walk *r);

/* Is the job of the walk's unit in host memory, or does the unit bring it there or back to its files? */
MUST_CHECK enum status check_range_turn(struct check_walk *r);

/* A buffer that is live on a device; PLAN_NONE: none is. */
uint32_t check_live_on(const struct check_walk *r, uint32_t device);

/* How far the run of a parallel job is, on one of the replicas that take turns. */
static inline struct check_parallel_progress *check_progress(const struct check_walk *r, uint32_t global_shard, uint32_t turn)
{
    return &r->parallel[r->first_turn[global_shard] + turn];
}

/* The access acquires the next slot of the instance's layout; the buffer that it releases was live. */
MUST_CHECK enum status check_acquire(struct check_walk *r, const struct plan_access *access);
void check_release(struct check_walk *r, const struct plan_access *access);

/* What the accessed buffer holds, which is on the host or lives. Borrowed until the next buffer is acquired. */
MUST_CHECK enum status check_is_live(struct check_walk *r, const struct plan_access *access, struct contents **out);

/* At the end. */
MUST_CHECK enum status check_nothing_lives(struct check_walk *r);

/* The walk's unit is what its job needs next; it has been gone through; all of the job's were. */
MUST_CHECK enum status check_unit_begins(struct check_walk *r);
MUST_CHECK enum status check_unit_ends(struct check_walk *r);
MUST_CHECK enum status check_job_done(struct check_walk *r, uint32_t job);

#endif
