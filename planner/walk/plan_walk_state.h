/*
 * What a walk over a plan keeps: records of buffers that live, whom the next user of each must wait for, and where it
 * stands. plan_walk.c says why so little is enough; plan_walk_create.c makes and clears it.
 */
#ifndef SPILLWAY_PLANNER_PLAN_WALK_STATE_H
#define SPILLWAY_PLANNER_PLAN_WALK_STATE_H

#include <assert.h>

#include "planner/walk/plan_vacated.h"
#include "planner/walk/plan_walk.h"
#include "planner/walk/plan_walk_reservation.h"
#include "planner/walk/plan_walk_range.h"

enum { HOST_READERS_INLINE = 2 };

/* In place_of: an index of device buffers, not of host buffers; a staged one among the latter. */
#define ON_DEVICE 0x80000000u
#define STAGED 0x40000000u
static_assert(PLAN_BUFFERS_MAX <= STAGED, "an index leaves the flags free");
enum { RELEASED_BY, RELEASED_ON }; /* users of a staged buffer's vacated range */

/* In all records a time is an operation's number + 1; 0: none. */

/* A device buffer from ACQUIRE to RELEASE. */
struct live {
    uint64_t writer;
    uint64_t readers[LOCAL_STREAMS]; /* since the writer */
    uint64_t cell;                   /* its place in cells */
    uint32_t slot;
    uint32_t writer_kind;            /* enum plan_stream_kind */
    uint32_t next_free;
};

/* A device buffer on a device. */
struct cell {
    uint32_t live; /* its record + 1; 0: it does not live there */
    uint32_t hint; /* where its slot begins in `vacated`, or did the last time */
};

struct host_reader {
    uint64_t number;
    uint32_t stream;
    uint32_t next; /* in the pool; PLAN_NONE at the end */
};
struct host_buffer {
    uint64_t writer;
    uint32_t writer_stream;
    uint32_t reader_count; /* in `readers` */
    struct host_reader readers[HOST_READERS_INLINE];
    uint32_t more;         /* the rest, in the pool; PLAN_NONE: none */
    uint32_t slot;         /* of a staged one that lives ... */
    uint32_t hint;         /* ... and where that begins in `vacated`, or did the last time */
};

/* Where the walk stands. */
struct cursor {
    uint32_t segment, repeat, index; /* index: instance of the segment */
    uint32_t op, acquire;            /* next operation of the instance, next entry of its layout */
    uint32_t member;                 /* of the gang, in the list of those that do the operation */
    uint64_t number;                 /* of the next operation */
    uint64_t position;               /* of the instance, all repetitions counted */
    uint64_t segment_position, segment_number; /* of the segment's first */
};

/* A device of a gang that does an operation: its place, and of a collective its place in what is joined. */
struct member {
    uint32_t place, device;
    uint32_t group, join_count, join_at;
};
struct members {
    struct member *of;
    uint32_t count;
};
enum { AXES_SETS = 1 << AXIS_COUNT }; /* set 0: not a collective */

struct plan_walk {
    const struct plan *plan;
    const uint32_t *stands_for; /* NULL: each for itself */
    struct members *members;    /* [gang][set of axes] */
    struct reservation_ends *reservations;  /* NULL where there are none */
    struct range_users *ranges; /* NULL where no job has a range of host memory */
    uint32_t device, peer;      /* of the current operation ... */
    uint32_t rank, staged_row;  /* ... its place in its gang, and the list of its staged buffers */
    uint32_t acquired;          /* buffers, by it or the last one */
    uint32_t use_count;         /* of it, in uses */
    struct cursor at;
    bool open;                  /* without a plan order ... */
    const struct plan_instance *pushed; /* ... instances come here; NULL: none */
    bool skipped;               /* repetitions of some segment: segment_positions and segment_numbers know */
    bool failed;
    uint64_t *minibatches; /* completed, per job */
    uint64_t *held_out;    /* the same of held-out ones */

    uint32_t *place_of;    /* per buffer: index of its kind of place, | ON_DEVICE or STAGED */
    uint32_t host_count, device_buffer_count;
    struct host_buffer *hosts;
    struct cell *cells;    /* [device][device buffer] */
    struct live *lives;
    uint32_t live_count, live_capacity, live_free; /* free list through next_free */
    struct vacated_list *vacated; /* per device, then those of staged buffers by host, then those of gangs' ranks */
    uint32_t arenas;              /* how many that are */
    struct host_reader *readers;  /* pool */
    uint32_t reader_count, reader_capacity, reader_free;

    uint64_t *ops_before;        /* prefix sums over `instances`; NULL without afters */
    uint64_t *segment_positions; /* of each segment's first instance; likewise */
    uint64_t *segment_numbers;   /* of each segment's first operation; likewise */

    uint32_t local_count;  /* streams of a device */
    uint32_t stream;       /* of the current operation */
    uint32_t first_stream; /* of its device */
    uint64_t latest[LOCAL_STREAMS]; /* to wait for on the streams of its device */
    uint64_t *waits;       /* plan_stream_count() entries: one per stream at most */
    uint32_t *wait_stream; /* of each wait on another device's streams */
    uint32_t *wait_at;     /* per stream: its wait, if wait_stream agrees */
    uint32_t wait_count;
    struct plan_place_use *uses; /* as many as an operation has at most */
};

static inline uint64_t segment_ops(const struct plan_walk *w, uint32_t segment)
{
    const struct plan_segment *s = &w->plan->segments[segment];
    return w->ops_before[s->first_instance + s->instance_count] -
           w->ops_before[s->first_instance];
}

static inline uint32_t device_for(const struct plan_walk *w, uint32_t device)
{
    return w->stands_for ? w->stands_for[device] : device;
}

#endif
