/* The report of `mem`: every way of training with its memory, and one way's contents. */
#ifndef SPILLWAY_CLI_CAPACITY_CLI_MEM_REPORT_H
#define SPILLWAY_CLI_CAPACITY_CLI_MEM_REPORT_H

#include "cli/common/cli.h"
#include "cli/ways/cli_planned.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/capacity/feasibility_largest.h"

enum { CLI_MEM_BINDS_BYTES = 96 };
struct cli_mem_time {
    double minibatch_s; /* simulated, of a long run */
    char binds[CLI_MEM_BINDS_BYTES];
};

struct cli_mem {
    const struct hardware *hardware;
    const char *machine;        /* for --hw; NULL: the measured profile */
    const struct job *job;
    const struct feasibility_way *ways; /* (count) */
    const struct feasibility *fits;     /* (count) */
    const struct cli_mem_time *times;   /* (count) */
    const uint32_t *order;              /* (count) ways that fit, the fastest first, then the others by shortage */
    const struct feasibility_largest *largest; /* (count); may be NULL */
    uint32_t count;
    struct cli_planned planned; /* the time of `plan`, if computed */
    uint32_t chosen;            /* the way whose memory parts are shown */
    bool only_chosen;           /* named on the command line */
    struct cli_next_jobs next;  /* the command to suggest next */
};

MUST_CHECK enum status cli_mem_text(struct cli *cli, const struct cli_mem *mem, struct error *err);
MUST_CHECK enum status cli_mem_json(struct cli *cli, const struct cli_mem *mem, struct error *err);

/* Returns "a device lacks 3.1 GiB", or why more memory would not help. */
enum { CLI_MEM_VERDICT_BYTES = 320 };
const char *cli_mem_verdict(const struct cli_mem *mem, uint32_t way, char text[CLI_MEM_VERDICT_BYTES]);

#endif
