/* What `spillway mem` says: every way of fitting with its memory, and of one way what the memory is for. */
#ifndef SPILLWAY_CLI_MEM_REPORT_H
#define SPILLWAY_CLI_MEM_REPORT_H

#include "cli/common/cli.h"
#include "cli/ways/cli_planned.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/capacity/fit_largest.h"

/* How long a way takes: where it fits. */
enum { CLI_MEM_BINDS_BYTES = 96 };
struct cli_mem_time {
    double minibatch_s; /* simulated, of each minibatch of a long run */
    char binds[CLI_MEM_BINDS_BYTES];
};

struct cli_mem {
    const struct hardware *hardware;
    const char *machine;        /* its name for --hw; NULL: what 'measure' found */
    const struct job *job;
    const struct fit_way *ways; /* (count) */
    const struct fit *fits;     /* (count) */
    const struct cli_mem_time *times; /* (count) */
    const uint32_t *order;      /* (count) ways that fit, the fastest first, then those that lack least */
    const struct fit_largest *largest; /* (count); NULL: it was not asked for */
    uint32_t count;
    struct cli_planned planned; /* what `plan` takes, where that was looked into */
    uint32_t chosen;            /* whose parts are shown */
    bool only_chosen;           /* it was asked for by name */
    struct cli_next_jobs next;  /* what to plan after it */
};

MUST_CHECK enum status cli_mem_text(struct cli *cli, const struct cli_mem *mem, struct error *err);
MUST_CHECK enum status cli_mem_json(struct cli *cli, const struct cli_mem *mem, struct error *err);

/* "a device lacks 3.1 GiB"; the reason where no memory would help. */
enum { CLI_MEM_VERDICT_BYTES = 320 };
const char *cli_mem_verdict(const struct cli_mem *mem, uint32_t way, char text[CLI_MEM_VERDICT_BYTES]);

#endif
