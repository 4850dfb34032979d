#include "cli/common/cli_parallel.h"

#include <assert.h>

const char *const cli_schedule_choices[] = {"gpipe", "1f1b",      "interleaved", "zb-h1",    "zb-h2",
                                            "zb-v",  "pipedream", "2bw",         "terapipe", NULL};
const char *const cli_recompute_choices[] = {"none", "selective", "full", "stage", NULL};
#define ALGORITHM_NAME(algorithm, name) name,
const char *const cli_collective_choices[] = {"fastest", COLLECTIVE_ALGORITHMS(ALGORITHM_NAME) NULL};
#undef ALGORITHM_NAME
const char *const cli_partition_choices[] = {"equal", "balanced", "pipedream", "rannc", NULL};
static_assert(sizeof cli_schedule_choices / sizeof cli_schedule_choices[0] == PIPELINE_SCHEDULE_COUNT + 1 &&
                  sizeof cli_recompute_choices / sizeof cli_recompute_choices[0] == RECOMPUTE_COUNT + 1 &&
                  sizeof cli_partition_choices / sizeof cli_partition_choices[0] == PARALLEL_PARTITION_COUNT + 1 &&
                  sizeof cli_collective_choices / sizeof cli_collective_choices[0] == PARALLEL_ALGORITHM_COUNT + 1,
              "every schedule, way of recomputing, partition and algorithm can be asked for");

static const char *given(const struct cli_parallel *parallel)
{
    if (parallel->schedule != CLI_AS_THE_JOBS_SAY) return "schedule";
    if (parallel->partition != CLI_AS_THE_JOBS_SAY) return "partition";
    if (parallel->compress) return "compress";
    return parallel->recompute != CLI_AS_THE_JOBS_SAY ? "recompute" : "collective";
}

enum status cli_parallel_apply(const struct cli_parallel *parallel, struct job_set *jobs, struct error *err)
{
    for (uint32_t j = 0; j < jobs->count; j++) {
        struct job *job = &jobs->jobs[j];
        if (!cli_parallel_given(parallel)) {
            parallel_settle_replicas(job);
            continue;
        }
        if (parallel->degrees && parallel_parse_text(parallel->degrees, &job->parallel, err) != STATUS_OK)
            return error_add(err, "option '--parallel'");
        if (parallel->degrees && job_batch_settle(job, err) != STATUS_OK)
            return error_add(err, "job '%s'", job->name);
        if (!parallel_is_set(&job->parallel))
            return error_set(err, STATUS_BAD_INPUT,
                             "option '--%s' for job '%s', which is not a parallel job (see --parallel)",
                             given(parallel), job->name);
        if (parallel->compress && compression_parse_text(parallel->compress, job->compression, err) != STATUS_OK)
            return error_add(err, "option '--compress'");
        if (parallel->schedule != CLI_AS_THE_JOBS_SAY) job->parallel.schedule = (uint32_t)parallel->schedule;
        if (parallel->recompute != CLI_AS_THE_JOBS_SAY) job->parallel.recompute = (uint32_t)parallel->recompute;
        if (parallel->partition != CLI_AS_THE_JOBS_SAY) job->parallel.partition = (uint32_t)parallel->partition;
        if (parallel->collective != CLI_AS_THE_JOBS_SAY) job->parallel.collective = (uint32_t)parallel->collective;
        parallel_settle_replicas(job);
    }
    return STATUS_OK;
}
