/* The report of `serve`: attainment, latencies and loads of a placement. */
#ifndef SPILLWAY_CLI_SIMULATE_CLI_SERVING_REPORT_H
#define SPILLWAY_CLI_SIMULATE_CLI_SERVING_REPORT_H

#include "cli/common/cli.h"
#include "sim/placement/placement_bound.h"
#include "sim/placement/placement_search.h"

struct serving_report {
    const char *path, *output; /* output: where the placement was written; may be NULL */
    const struct serving *in;
    const struct traffic *traffic;
    const struct serving_placement *placement;
    const struct serve_result *result;
    double *latency_s;     /* of each request; NAN if it was rejected */
    uint32_t bound;        /* upper bound of requests within their objective, for any placement: the lesser of the next
                              two */
    uint32_t work_bound;   /* bound for one device with the work rate of all devices that holds every model */
    struct placement_bound placement_bound;
    uint64_t seed;
    bool admit_all;
    const struct placement_found *found; /* NULL: the placement was given */
    uint32_t replicated;   /* attained with whole models on single devices, if that was searched for */
    uint32_t planned;      /* requests for which the placement was found */
};

MUST_CHECK enum status serving_report_text(struct cli *cli, const struct serving_report *report, struct error *err);
MUST_CHECK enum status serving_report_json(struct cli *cli, const struct serving_report *report, struct error *err);

#endif
