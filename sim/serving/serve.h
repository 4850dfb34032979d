/*
 * The simulation: requests, one after the other, through the groups of a placement.
 *
 * First come, first served through stages in a row has a recurrence instead of events: with a(s) the time at
 * which stage s is free again,
 *
 *     end(s) = max(end(s - 1), a(s)) + seconds of stage s        end(-1): when the request arrives
 *
 * and the ends of a group's requests ascend, so those under way are a queue. O(groups + stages) a request,
 * nothing but their state in memory. Groups with batches keep a line of what waits as well (serve_batches.h).
 */
#ifndef SPILLWAY_SERVING_SERVE_H
#define SPILLWAY_SERVING_SERVE_H

#include "sim/serving/placement.h"
#include "sim/serving/traffic.h"

/* What came of a model's requests, and of a group. */
struct serving_share {
    uint32_t requests;
    uint32_t attained; /* of them within the objective */
    uint32_t served;   /* of them answered at all */
};
struct serving_load {
    uint32_t served;
    double busy_s; /* of all its devices */
};

struct serve_options {
    bool admit_all;    /* requests that are too late are answered as well */
    double *latency_s; /* (requests): of each, NAN where it was turned away; NULL: not wanted */
};

struct serve_result {
    struct serving_share *models; /* (model_count) */
    struct serving_load *groups;  /* (group_count) */
    uint32_t attained;
    double strain; /* sum over answered requests of (latency / objective)^2, or of latency in seconds squared
                      where there is none: how close it all is to failing */
};

/* What a simulation works with, for placements of at most `groups_max` groups. Not thread-safe. Lives as long
 * as `arena`. Errors: STATUS_NO_MEMORY. */
struct server;
MUST_CHECK enum status server_create(struct arena *arena, const struct serving_cuts *cuts, uint32_t groups_max,
                                     struct server **out, struct error *err);

/* One simulation. What *out points to is the server's, until its next. Errors: STATUS_NO_MEMORY, where more
 * requests than ever before are under way or wait. */
MUST_CHECK enum status server_run(struct server *server, const struct serving_placement *placement,
                                  const struct traffic *traffic, const struct serve_options *options,
                                  struct serve_result *out, struct error *err);

/* To be called before the arena ends. */
void server_destroy(struct server *server);

#endif
