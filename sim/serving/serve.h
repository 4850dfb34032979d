/*
 * Requests in sequence through a placement's groups.
 *
 * First come, first served through a line of stages is a recurrence: with a(s) the time at which stage s is free,
 *
 *     end(s) = max(end(s - 1), a(s)) + seconds of stage s        end(-1): arrival of the request
 *
 * A group's ends ascend, so its active requests form a queue. Cost: O(groups + stages) per request; only their state is
 * in memory. Groups with batches also have a queue of waiting batches (serve_batches.h).
 */
#ifndef SPILLWAY_SIM_SERVING_SERVE_H
#define SPILLWAY_SIM_SERVING_SERVE_H

#include "sim/serving/placement.h"
#include "sim/serving/traffic.h"

/* The results of a model's requests, and of a group. */
struct serving_share {
    uint32_t requests;
    uint32_t attained; /* requests within the objective */
    uint32_t served;   /* answered requests */
};
struct serving_load {
    uint32_t served;
    double busy_s; /* busy seconds of all its devices */
};

struct serve_options {
    bool admit_all;    /* also answer requests that are too late */
    double *latency_s; /* (requests): latency of each, NAN if it was rejected; NULL: not needed */
};

struct serve_result {
    struct serving_share *models; /* (model_count) */
    struct serving_load *groups;  /* (group_count) */
    uint32_t attained;
    double strain; /* sum over answered requests of (latency / objective)^2, or of latency^2 in s^2 without an
                    * objective: how close requests are to failing */
};

/* The workspace of simulations with at most `groups_max` groups. Not thread-safe. It lives as long as `arena`. */
struct serve_state;
MUST_CHECK enum status serve_create(struct arena *arena, const struct serving_cuts *cuts, uint32_t groups_max,
                                     struct serve_state **out, struct error *err);

/* *out points to the server's arrays, valid until its next run. Errors: STATUS_NO_MEMORY when active or waiting
 * requests exceed all earlier numbers. */
MUST_CHECK enum status serve_requests(struct serve_state *server, const struct serving_placement *placement,
                                  const struct traffic *traffic, const struct serve_options *options,
                                  struct serve_result *out, struct error *err);

/* Destroys the server; must be called before the arena ends. */
void serve_destroy(struct serve_state *server);

#endif
