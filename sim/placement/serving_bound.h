/*
 * An upper bound on attainment from the total computing time, without placements.
 *
 * All devices together are replaced by one device with their total speed, `devices` device seconds per second. It may
 * leave a request for another at any time and need not finish it: a part of a request counts as that part. The work of
 * a request is the least over all shapes. It can be done from its arrival to the end of its objective. Requests that
 * are too slow on idle devices in every shape do not count.
 *
 * Earliest deadline first does the most possible work for any set of requests, and the work of sets is submodular (a
 * flow from requests to time). So adding kinds in the order of their work per request attains the most: kind k adds
 * (work of the kinds up to k - work of the kinds before k) / its work per request.
 */
#ifndef SPILLWAY_SIM_PLACEMENT_SERVING_BOUND_H
#define SPILLWAY_SIM_PLACEMENT_SERVING_BOUND_H

#include "sim/serving/traffic.h"

/* Computes the bound for the requests of `traffic`, rounded down. O(kinds requests log requests). */
MUST_CHECK enum status serving_bound(const struct serving *in, const struct traffic *traffic, uint32_t *out,
                                     struct error *err);

#endif
