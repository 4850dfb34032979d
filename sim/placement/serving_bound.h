/*
 * How many requests no placement can answer within their objectives: a bound on attainment.
 *
 * All devices together are taken for one that does their work at once, `devices` device seconds a second, may
 * leave a request for another at any time, and need not finish it: part of a request counts for that part.
 * What a request of a kind takes is the least of all its shapes; it can be worked on from its arrival until
 * its objective ends. Requests that are too slow on idle devices in every shape do not count at all.
 *
 * Earliest deadline first does the most work that is possible with any set of requests, and the work of sets
 * is submodular (a flow from requests to time), so taking kinds by what a request of theirs takes, the least
 * first, attains the most: kind k adds (work of the kinds up to k - work of those before it) / its work.
 */
#ifndef SPILLWAY_SERVING_SERVING_BOUND_H
#define SPILLWAY_SERVING_SERVING_BOUND_H

#include "sim/serving/traffic.h"

/* Requests of `traffic` that may attain their objective, rounded down. O(kinds requests log requests).
 * Errors: STATUS_NO_MEMORY. */
MUST_CHECK enum status serving_bound(const struct serving *in, const struct traffic *traffic, uint32_t *out,
                                     struct error *err);

#endif
