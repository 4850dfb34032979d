/*
 * An upper bound on attainment from the total computing time, without placements.
 *
 * One device with their total speed, `devices` device seconds per second, replaces all devices. It may leave a request
 * at any time: a part of a request counts as that part. A request's work is the least over all shapes, and can be done
 * from its arrival to the end of its objective. Requests too slow on idle devices in every shape do not count.
 *
 * Earliest deadline first does the most possible work for any set of requests, and the work of sets is submodular (a
 * flow from requests to time). So adding kinds in the order of their work per request attains the most: kind k adds
 * (work of kinds up to k - work of earlier kinds) / its work per request.
 */
#ifndef SPILLWAY_SIM_PLACEMENT_SERVING_BOUND_H
#define SPILLWAY_SIM_PLACEMENT_SERVING_BOUND_H

#include "sim/serving/traffic.h"

/* Computes the bound for the requests of `traffic`, rounded down. O(kinds requests log requests). */
MUST_CHECK enum status serving_bound(const struct serving *in, const struct traffic *traffic, uint32_t *out,
                                     struct error *err);

#endif
