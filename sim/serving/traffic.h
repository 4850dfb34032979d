/* The requests of the models of a serving problem, in the order of their arrival. */
#ifndef SPILLWAY_SIM_SERVING_TRAFFIC_H
#define SPILLWAY_SIM_SERVING_TRAFFIC_H

#include "sim/serving/serving.h"

struct traffic_request {
    double at_s;
    uint32_t model;
};

struct traffic {
    struct traffic_request *requests; /* by time, then by model */
    uint32_t count;
};

/*
 * Makes all requests in [0, horizon_s). Random times depend only on `seed` and the model's number. `rate_scale`
 * multiplies the rate (given times move closer together). The caller releases `out` with traffic_release(). Errors:
 * STATUS_LIMIT for more than SERVING_REQUESTS_MAX requests.
 */
MUST_CHECK enum status traffic_make(const struct serving *in, uint64_t seed, double rate_scale,
                                    struct traffic *out, struct error *err);
void traffic_release(struct traffic *traffic);

#endif
