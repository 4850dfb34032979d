#include "exec/run/run_rows.h"

#include "base/extreme.h"
#include "base/size.h"
#include "base/try.h"
#include "exec/files/data.h"

/* Returns the tokens of the largest minibatch of packed rows; 0: there is none. */
static uint64_t most_tokens(const struct plan *plan)
{
    uint64_t most = 0;
    for (uint32_t j = 0; j < plan->jobs.count; j++)
        if (plan->jobs.jobs[j].packs)
            most = max_u64(most, job_samples(&plan->jobs.jobs[j]) * plan->jobs.jobs[j].sequence);
    return most;
}

enum status run_rows_open(struct run *run, struct error *err)
{
    static const uint32_t kinds[] = {STREAM_COMPUTE, STREAM_CPU, STREAM_HOST};
    const struct plan *const plan = run->plan;
    const uint64_t tokens = most_tokens(plan);
    if (tokens == 0) return STATUS_OK;
    TRY(ARENA_NEW(&run->arena, plan_stream_count(plan), run->row_begins, err));
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
            TRY(ARENA_NEW(&run->arena, 2 * tokens, run->row_begins[plan_stream(plan, d, kinds[i])], err));
    return STATUS_OK;
}

int32_t *run_rows_of(const struct run *run, const struct plan_walk_op *op)
{
    switch (op->op->pass) {
    case PLAN_FORWARD:
    case PLAN_LOSS:
    case PLAN_EVALUATE:
    case PLAN_BACKWARD:
    case PLAN_BACKWARD_INPUT:
    case PLAN_BACKWARD_WEIGHT: return run->plan->jobs.jobs[op->unit->job].packs ? run->row_begins[op->stream] : NULL;
    default: return NULL;
    }
}

int32_t *run_rows_positions(const struct job *job, int32_t *begins)
{
    return begins ? begins + job_samples(job) * job->sequence : NULL;
}

void run_rows_fill(const struct run *run, uint32_t job, uint32_t pass, uint64_t batch_index,
                   const struct unit_microbatch *microbatch, int32_t *begins)
{
    const struct job *const of = &run->plan->jobs.jobs[job];
    const struct data_source *const source = (pass == PLAN_EVALUATE ? run->held_out : run->sources)[job];
    const struct parallel_microbatches one = {microbatch->index, 1, 1}, all = {0, 1, of->microbatches};
    const struct parallel_microbatches part = microbatch->alone ? one : all;
    int32_t *const positions = run_rows_positions(of, begins);
    data_begins(source, batch_index, &part, begins);
    for (uint64_t i = 0; i < part.count * of->microbatch * of->sequence; i++)
        positions[i] = (int32_t)(of->network.vocabulary + i % of->sequence) - begins[i];
}
