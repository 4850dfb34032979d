/* The state that an operation accesses says which shard of which job it is about. A parallel job's ranks share the
 * time. */
#include "planner/plan_files.h"

#include <assert.h>

#include "models/job/host_files.h"

/* Returns true if another job goes on from the job. Such a job writes no weights, which is looked at first. */
static bool goes_on(const struct plan *plan, uint32_t job)
{
    if (plan->jobs.jobs[job].weights_out || plan->reservation_count == 0) return false;
    for (uint32_t i = plan->job_reservation[job] + 1; i < plan->reservation_count; i++)
        if (plan->reservations[i].follows == plan->job_reservation[job]) return true;
    return false;
}

double plan_file_s(const struct plan *plan, const struct hardware *hardware, const struct plan_op *op)
{
    assert(plan_op_of_files(op));
    const struct plan_buffer *state = &plan->buffers[plan->accesses[op->first_access].buffer];
    const struct plan_shard *shard = &plan->shards[plan->job_first_shard[state->job] + state->shard];
    const struct job *job = &plan->jobs.jobs[state->job];
    const double seconds = op->pass == PLAN_OPEN
                             ? host_file_open_s(hardware, job, shard->first_layer, shard->layer_count)
                         : goes_on(plan, state->job)
                             ? host_file_wait_s(hardware, job, shard->first_layer, shard->layer_count)
                             : host_file_close_s(hardware, job, shard->first_layer, shard->layer_count);
    return seconds / plan_buffer_ranks(plan, state);
}
