/* Bases that jobs share (models/jobs/job_base.h): what crosses, and what sharing gains; other plans have no such
 * lines. */
#ifndef SPILLWAY_CLI_REPORTS_CLI_SHARED_BASE_H
#define SPILLWAY_CLI_REPORTS_CLI_SHARED_BASE_H

#include <stdio.h>

#include "base/json/json_out.h"
#include "planner/plan.h"

struct cli_shared_base {
    uint32_t owner, jobs;        /* the job that has the buffers; how many share it */
    uint64_t bytes;              /* in host memory */
    double crossings;            /* bytes fetched in the whole run, over all of its bytes */
    double link_s, compute_s;    /* in a minibatch of the longest job: of copies of the base, and of all jobs' passes on
                                  * devices, each added up */
    double gain;                 /* at most, over one job after the other, each with the base to itself */
};

/* Works out the base of job `owner`; false: the job owns none. */
bool cli_shared_base_of(const struct plan *plan, uint32_t owner, struct cli_shared_base *out);

/* Print a line for each base; write "bases": [{"job", "jobs", "bytes", ...}, ...]. `width`: columns of the words
 * before. */
void cli_shared_base_print(FILE *out, const struct plan *plan, int width);
void cli_shared_base_json(struct json_out *json, const struct plan *plan);

#endif
