/* The state that an operation accesses says which shard of which job it is about. */
#include "planner/plan_files.h"

#include <assert.h>

#include "models/job/host_files.h"

double plan_file_s(const struct plan *plan, const struct hardware *hardware, const struct plan_op *op)
{
    assert(plan_op_of_files(op));
    const struct plan_buffer *state = &plan->buffers[plan->accesses[op->first_access].buffer];
    const struct plan_shard *shard = &plan->shards[plan->job_first_shard[state->job] + state->shard];
    const struct job *job = &plan->jobs.jobs[state->job];
    return op->pass == PLAN_OPEN ? host_file_open_s(hardware, job, shard->first_layer, shard->layer_count)
                                 : host_file_close_s(hardware, job, shard->first_layer, shard->layer_count);
}
