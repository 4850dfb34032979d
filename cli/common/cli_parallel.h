/* Parallelism from options (models/job/parallel.h). */
#ifndef SPILLWAY_CLI_COMMON_CLI_PARALLEL_H
#define SPILLWAY_CLI_COMMON_CLI_PARALLEL_H

#include "cli/common/cli.h"
#include "models/job/job.h"

struct cli_parallel {
    const char *degrees;  /* "tp=8,pp=4"; NULL: the jobs file's */
    const char *compress; /* "gradients=10:400GB/s"; NULL: the jobs file's */
    size_t schedule, recompute, collective, partition; /* index below, or CLI_AS_THE_JOBS_SAY */
};
#define CLI_AS_THE_JOBS_SAY SIZE_MAX
#define CLI_PARALLEL_NONE                                                                         \
    {.schedule = CLI_AS_THE_JOBS_SAY,                                                             \
     .recompute = CLI_AS_THE_JOBS_SAY,                                                            \
     .collective = CLI_AS_THE_JOBS_SAY,                                                           \
     .partition = CLI_AS_THE_JOBS_SAY}

extern const char *const cli_schedule_choices[], *const cli_recompute_choices[],
    *const cli_collective_choices[], *const cli_partition_choices[]; /* NULL at the end */

/* `p` points to a struct cli_parallel. */
#define CLI_PARALLEL(p)                                                                           \
    OPTION_STRING("parallel", 0, "DEGREES", &(p)->degrees,                                        \
                  "degrees of each parallel job, such as tp=4,pp=2,dp=2,v=2,sp,zero=3"),          \
        OPTION_CHOICE("schedule", 0, "NAME", cli_schedule_choices, &(p)->schedule,                \
                      "pipeline schedule of parallel jobs (default 1f1b)"),                       \
        OPTION_CHOICE("recompute", 0, "WHAT", cli_recompute_choices, &(p)->recompute,             \
                      "activations that parallel jobs recompute (default none)"),                 \
        OPTION_CHOICE("collective", 0, "ALGORITHM", cli_collective_choices, &(p)->collective,     \
                      "collective algorithm of parallel jobs (default fastest)"),                 \
        OPTION_CHOICE("partition", 0, "HOW", cli_partition_choices, &(p)->partition,              \
                      "how layers are divided among pipeline stages (default equal)"),            \
        OPTION_STRING("compress", 0, "WHAT=RATIO:RATE,...", &(p)->compress,                       \
                      "compress gradients, boundaries or activations, as gradients=10:400GB/s")

/* Changes the jobs as the options ask. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status cli_parallel_apply(const struct cli_parallel *parallel, struct job_set *jobs,
                                          struct error *err);

static inline bool cli_parallel_given(const struct cli_parallel *parallel)
{
    return parallel->degrees || parallel->schedule != CLI_AS_THE_JOBS_SAY ||
           parallel->recompute != CLI_AS_THE_JOBS_SAY || parallel->collective != CLI_AS_THE_JOBS_SAY ||
           parallel->partition != CLI_AS_THE_JOBS_SAY || parallel->compress;
}

#endif
