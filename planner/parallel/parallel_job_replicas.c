#include "planner/parallel/parallel_job_replicas.h"

#include <assert.h>

#include "base/try.h"
#include "planner/parallel/pipeline/stage_blocks.h"
#include "planner/parallel/parallel_job_cut.h"

enum status parallel_job_replicas_find(struct arena *arena, const struct hardware *hardware, const struct job *job,
                                       struct stage_partition *out, struct error *err)
{
    const struct parallel *p = &job->parallel;
    struct stage_chain chain, blocks;
    uint64_t least = hardware_least_memory(hardware, p->first_device, parallel_devices(p));
    struct stage_request request = {.method = STAGE_BALANCED, .levels = {{p->pipeline * p->data, 1}}, .level_count = 1,
                                    .memory_bytes = least, .microbatches = 1};
    assert(request.levels[0].components <= PARALLEL_JOB_GROUPS_MAX);
    TRY(parallel_job_cut_chain(arena, job, hardware, p->first_device, &chain, err));
    TRY(stage_blocks_join(arena, &chain, PARALLEL_JOB_BLOCKS, &blocks, err));
    return stage_partition_each(arena, &blocks, &request, out, err);
}
