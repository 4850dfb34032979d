/*
 * Memory in use at each device: from the start of the operation that acquires a buffer to the end of its last user.
 *
 * sim_lifetimes_use() is called in plan order, for each operation's device accesses; sim_lifetimes_start() and
 * sim_lifetimes_end() as it starts and ends in virtual time.
 */
#ifndef SPILLWAY_SIM_LIFETIME_H
#define SPILLWAY_SIM_LIFETIME_H

#include "planner/walk/plan_walk.h"
#include "sim/caching.h"
#include "traces/trace.h"
#include "traces/trace_writer.h"

struct sim_lifetimes; /* opaque */

/* The caller frees them with sim_lifetimes_destroy(). Peaks go to trace->places and, with `levels`, every change to
 * trace->levels; both borrowed. `writer` gets every change, too; it may be NULL. `caching`: the machine whose device
 * memory comes from a caching allocator (sim/caching.h), or NULL. */
MUST_CHECK enum status sim_lifetimes_create(const struct plan *plan, struct trace *trace,
                                            bool levels, struct trace_writer *writer, const struct hardware *caching,
                                            struct sim_lifetimes **out, struct error *err);
void sim_lifetimes_destroy(struct sim_lifetimes *lifetimes); /* NULL is fine */

/* A use: the lifetime, and whether it begins there. */
typedef uint32_t sim_use;

/* An operation's uses, consecutive in a ring of entries 0 .. mask. */
struct sim_uses {
    sim_use *ring;
    uint32_t mask, first, end;
};

/* Appends the uses on devices to `out`, which has room. Returns false without memory. */
bool sim_lifetimes_use(struct sim_lifetimes *lifetimes, const struct plan_place_use *uses, uint32_t count,
                       struct sim_uses *out);

/* Start or end the operation with these uses. */
void sim_lifetimes_start(struct sim_lifetimes *lifetimes, const struct sim_uses *uses, double now_s);
void sim_lifetimes_end(struct sim_lifetimes *lifetimes, const struct sim_uses *uses, double now_s);

/* Hands on the last moment's levels, after the last operation. */
void sim_lifetimes_finish(struct sim_lifetimes *lifetimes);

/* Returns the bytes in use at the device. */
uint64_t sim_lifetimes_in_use(const struct sim_lifetimes *lifetimes, uint32_t device);

/* Reads the reservations of the device's allocator; needs `caching`. Returns false if it ran out of host memory. */
bool sim_lifetimes_reserved(const struct sim_lifetimes *lifetimes, uint32_t device, struct sim_reserved *out);

uint64_t sim_lifetimes_bytes(const struct sim_lifetimes *lifetimes);

#endif
