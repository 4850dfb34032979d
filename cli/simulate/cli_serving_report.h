/* The report of `serve`. */
#ifndef SPILLWAY_CLI_SIMULATE_CLI_SERVING_REPORT_H
#define SPILLWAY_CLI_SIMULATE_CLI_SERVING_REPORT_H

#include "cli/common/cli.h"
#include "sim/placement/placement_bound.h"
#include "sim/placement/placement_search.h"

struct serving_report {
    const char *path, *output; /* output: the placement's; may be NULL */
    const struct serving *in;
    const struct traffic *traffic;
    const struct serving_placement *placement;
    const struct serve_result *result;
    double *latency_s;     /* per request; NAN: rejected */
    uint32_t bound;        /* requests within their objective, for any placement: the lesser of two */
    uint32_t work_bound;   /* of one device with all devices' work rate and every model */
    struct placement_bound placement_bound;
    uint64_t seed;
    bool admit_all;
    const struct placement_found *found; /* NULL: given */
    uint32_t replicated;   /* attained with whole models on single devices, if searched */
    uint32_t planned;      /* requests of the search */
};

MUST_CHECK enum status serving_report_text(struct cli *cli, const struct serving_report *report, struct error *err);
MUST_CHECK enum status serving_report_json(struct cli *cli, const struct serving_report *report, struct error *err);

#endif
