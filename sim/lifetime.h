/*
 * Memory in use at each device: what is between the start of the operation that acquired it and the
 * end of the last operation that used it.
 *
 * sim_lifetimes_use() is called in plan order, for every device access of an operation; start and
 * end when the operation does so in virtual time.
 */
#ifndef SPILLWAY_SIM_LIFETIME_H
#define SPILLWAY_SIM_LIFETIME_H

#include "planner/walk/plan_walk.h"
#include "sim/caching.h"
#include "traces/trace.h"

struct sim_lifetimes; /* opaque */

/* The caller frees it with sim_lifetimes_destroy(). Peaks go to trace->places and, when `levels`,
 * every change to trace->levels; both borrowed. `caching` is the machine on whose devices all that comes from a
 * caching allocator (sim/caching.h), or NULL. Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status sim_lifetimes_create(const struct plan *plan, struct trace *trace,
                                            bool levels, const struct hardware *caching,
                                            struct sim_lifetimes **out, struct error *err);
void sim_lifetimes_destroy(struct sim_lifetimes *lifetimes); /* NULL is fine */

/* A use as operations keep it: which lifetime, and whether it begins there. */
typedef uint32_t sim_use;

/* Those of an operation, one behind the other in a ring of entries 0 .. mask. */
struct sim_uses {
    sim_use *ring;
    uint32_t mask, first, end;
};

/* Adds those that are on devices at the end of `out`, which has room. False when there is no memory. */
bool sim_lifetimes_use(struct sim_lifetimes *lifetimes, const struct plan_place_use *uses, uint32_t count,
                       struct sim_uses *out);

/* The operation of these uses starts; it ends. */
void sim_lifetimes_start(struct sim_lifetimes *lifetimes, const struct sim_uses *uses, double now_s);
void sim_lifetimes_end(struct sim_lifetimes *lifetimes, const struct sim_uses *uses, double now_s);

/* Bytes in use at the device. */
uint64_t sim_lifetimes_in_use(const struct sim_lifetimes *lifetimes, uint32_t device);

/* What the device's allocator has reserved; `caching` was given. False: its books had no memory. */
bool sim_lifetimes_reserved(const struct sim_lifetimes *lifetimes, uint32_t device, struct sim_reserved *out);

uint64_t sim_lifetimes_bytes(const struct sim_lifetimes *lifetimes);

#endif
