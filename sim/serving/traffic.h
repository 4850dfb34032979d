/* The requests that come for the models of a serving problem, in the order of their arrival. */
#ifndef SPILLWAY_SERVING_TRAFFIC_H
#define SPILLWAY_SERVING_TRAFFIC_H

#include "sim/serving/serving.h"

struct request {
    double at_s;
    uint32_t model;
};

struct traffic {
    struct request *requests; /* by time, then by model */
    uint32_t count;
};

/*
 * All of [0, horizon_s). What is random depends on `seed` and the model's number alone; `rate_scale` and so
 * many times as many requests come as stated (given times move closer together). Release it with
 * traffic_release().
 * Errors: STATUS_LIMIT for more than SERVING_REQUESTS_MAX, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status traffic_make(const struct serving *in, uint64_t seed, double rate_scale,
                                    struct traffic *out, struct error *err);
void traffic_release(struct traffic *traffic);

#endif
