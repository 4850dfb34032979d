/*
 * A walk's state: records of live buffers, with the operations that the next user of each must wait for, and the
 * position. plan_walk.c explains why this is enough; plan_walk_create.c allocates and clears it.
 */
#ifndef SPILLWAY_PLANNER_WALK_PLAN_WALK_STATE_H
#define SPILLWAY_PLANNER_WALK_PLAN_WALK_STATE_H

#include <assert.h>

#include "planner/walk/plan_freed.h"
#include "planner/walk/plan_walk.h"
#include "planner/walk/plan_walk_reservation.h"
#include "planner/walk/plan_walk_range.h"

enum { WALK_HOST_READERS_INLINE = 2 };

/* In place_of: an index of device buffers, not of host buffers; staged ones are host buffers. */
#define WALK_ON_DEVICE 0x80000000u
#define WALK_STAGED 0x40000000u
#define WALK_SHARED 0x20000000u /* a host buffer of all ranks */
static_assert(PLAN_BUFFERS_MAX <= WALK_SHARED, "an index leaves the flags free");
enum { WALK_RELEASED_BY, WALK_RELEASED_ON }; /* users of a staged buffer's freed range */

/* In all records a time is an operation's number + 1; 0: none. */

/* A device buffer from ACQUIRE to RELEASE. */
struct walk_live {
    uint64_t writer;
    uint64_t readers[PLAN_LOCAL_STREAMS]; /* since the writer */
    uint64_t cell;                        /* its place in cells */
    uint32_t slot;
    uint32_t writer_kind;            /* enum plan_stream_kind */
    uint32_t next_free;
};

/* A device buffer on a device. */
struct walk_cell {
    uint32_t live; /* its record + 1; 0: not live there */
    uint32_t hint; /* index in `freed` of its slot's beginning, as of the last use */
};

struct walk_host_reader {
    uint64_t number;
    uint32_t stream;
    uint32_t next; /* in the pool; PLAN_NONE at the end */
};
struct walk_host_buffer {
    uint64_t writer;
    uint32_t writer_stream;
    uint32_t reader_count; /* in `readers` */
    struct walk_host_reader readers[WALK_HOST_READERS_INLINE];
    uint32_t more;         /* the rest, in the pool; PLAN_NONE: none */
    uint32_t slot;         /* slot of a live staged buffer ... */
    uint32_t hint;         /* ... and index in `freed` of its beginning, as of the last use */
};

/* The position of the walk. */
struct walk_cursor {
    uint32_t segment, repeat, index; /* index: task of the segment */
    uint32_t op, acquire;            /* next operation of the task, next entry of its layout */
    uint32_t member;                 /* of the gang, in the list of devices that do the operation */
    uint64_t number;                 /* of the next operation */
    uint64_t position;               /* of the task, all repetitions counted */
};

/* A device of a gang that does an operation: its place in the gang, and in the group of a collective. */
struct walk_member {
    uint32_t place, device;
    uint32_t group, join_count, join_at;
};
struct walk_members {
    struct walk_member *of;
    uint32_t count;
};
enum { WALK_AXES_SETS = 1 << AXIS_COUNT }; /* set 0: not a collective */

struct plan_walk {
    const struct plan *plan;
    const uint32_t *stands_for;            /* NULL: each for itself */
    struct walk_members *members; /* [gang][set of axes] */
    struct reservation_ends *reservations;  /* NULL without reservations */
    struct range_users *ranges;            /* NULL without ranges of host memory */
    uint32_t device, peer;      /* of the current operation ... */
    uint32_t rank, staged_row;  /* ... its place in its gang, and the list of its staged buffers */
    uint32_t acquired;          /* buffers acquired, by it or the last one */
    uint32_t use_count;         /* its uses */
    struct walk_cursor at;
    bool open;                  /* without a plan order ... */
    const struct plan_task *pushed; /* ... tasks come here; NULL: none */
    bool skipped;               /* some repetitions were skipped; segment_positions and segment_numbers account for
                                   them */
    bool failed;
    uint64_t *minibatches; /* completed, per job */
    uint64_t *held_out;    /* completed held-out minibatches, per job; microbatches of parallel ones */

    uint32_t *place_of;    /* per buffer: index of its kind of place, | WALK_ON_DEVICE, WALK_STAGED or WALK_SHARED */
    uint32_t host_count, device_buffer_count;
    struct walk_host_buffer *hosts;
    struct walk_cell *cells; /* [device][device buffer] */
    struct walk_live *lives;
    uint32_t live_count, live_capacity, live_free; /* free list through next_free */
    struct plan_freed_list *freed;                 /* per device, then of staged buffers by host, then of gangs'
                                                      ranks */
    uint32_t arenas;                               /* length of `freed` */
    struct walk_host_reader *readers;              /* pool */
    uint32_t reader_count, reader_capacity, reader_free;

    uint64_t *ops_before;        /* prefix sums over `tasks`; NULL without afters */
    uint64_t *segment_positions; /* position of each segment's first task; likewise */
    uint64_t *segment_numbers;   /* number of each segment's first operation; likewise */

    uint32_t local_count;                /* streams of a device */
    uint32_t stream;                     /* of the current operation */
    uint32_t first_stream;               /* of its device */
    uint64_t latest[PLAN_LOCAL_STREAMS]; /* times to wait for on the streams of its device */
    uint64_t *waits;                     /* plan_stream_count() entries: one per stream at most */
    uint32_t *wait_stream;               /* of each wait on another device's streams */
    uint32_t *wait_at;                   /* per stream: its wait, if wait_stream agrees */
    uint32_t wait_count;
    struct plan_place_use *uses; /* the most that an operation has */
};

static inline uint64_t walk_segment_ops(const struct plan_walk *w, uint32_t segment)
{
    const struct plan_segment *s = &w->plan->segments[segment];
    return w->ops_before[s->first_task + s->task_count] -
           w->ops_before[s->first_task];
}

static inline uint32_t walk_device_for(const struct plan_walk *w, uint32_t device)
{
    return w->stands_for ? w->stands_for[device] : device;
}

#endif
