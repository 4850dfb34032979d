/* Units between data-parallel ranks, and between them and their hosts. */
#include "models/job/parallel_memory.h"
#include "models/job/parallel_offload.h"
#include "models/job/parallel_work.h"
#include "planner/parallel/parallel_job_gang.h"
#include "planner/parallel/parallel_job_units.h"

/* Copies the tied table of the first chunk up, to the end of the head's weights. */
static void raise_table(struct gang_unit *u, uint32_t ring_buffer)
{
    struct gang_accesses up = {0};
    gang_access_raised_table(u, &up);
    gang_access(&up, ring_buffer, ACCESS_WRITE);
    up.of[1].offset_bytes = u->chunk->whole_weight_bytes - u->chunk->gathered_table_bytes;
    gang_copy(u, STREAM_H2D, u->chunk->raised_table_bytes, &up);
}

/* Copies weights up from the host; ranks that copy shares gather them. */
static void emit_raise(struct parallel_job *s, const struct pipeline_step *step)
{
    struct gang_unit u = gang_begin(s, step->chunk, PLAN_GATHER, false);
    struct gang_accesses up = {0}, whole = {0};
    struct parallel_job_ring *ring = &u.stage->weights;
    uint32_t turn = ring->taken++;
    uint64_t bytes = u.chunk->whole_weight_bytes, table_bytes = u.chunk->gathered_table_bytes;
    gang_access_raised(&u, &up);
    gang_access_ring(&u, &up, BUFFER_PARAMETERS, ring, turn, bytes, GANG_MAKE);
    gang_copy(&u, STREAM_H2D, u.chunk->host.weight_bytes, &up);
    if (table_bytes > 0) raise_table(&u, up.of[1].buffer);
    gang_access_ring(&u, &whole, BUFFER_PARAMETERS, ring, turn, bytes, GANG_CHANGE);
    if (parallel_splits(s->parallel, ZERO_WEIGHTS)) {
        gang_in_data_group(&u, COLLECTIVE_ALL_GATHER, bytes - table_bytes, &whole);
        whole.of[0].offset_bytes = bytes - table_bytes;
        if (table_bytes > 0) gang_in_data_group(&u, COLLECTIVE_ALL_GATHER, table_bytes, &whole);
    }
    if (step->pass == PIPELINE_BACKWARD || step->pass == PIPELINE_INPUT) gang_swap_in(&u, step->microbatch);
    gang_end(&u);
}

void parallel_job_emit_gather(struct parallel_job *s, const struct pipeline_step *step)
{
    if (s->parallel->offload == OFFLOAD_WEIGHTS) {
        emit_raise(s, step);
        return;
    }
    struct gang_unit u = gang_begin(s, step->chunk, PLAN_GATHER, false);
    struct gang_accesses a = {0}, of_table = {0};
    uint64_t bytes = u.chunk->whole_weight_bytes, table_bytes = u.chunk->gathered_table_bytes;
    uint32_t turn = u.stage->weights.taken++;
    gang_access_state(&u, &a, ACCESS_READ);
    gang_access_ring(&u, &a, BUFFER_PARAMETERS, &u.stage->weights, turn, bytes, GANG_MAKE);
    gang_in_data_group(&u, COLLECTIVE_ALL_GATHER, bytes - table_bytes, &a);
    if (table_bytes > 0) {
        gang_access_other(&u, &of_table, BUFFER_STATE, 0, s->of[0].state_bytes);
        gang_access_ring(&u, &of_table, BUFFER_PARAMETERS, &u.stage->weights, turn, bytes, GANG_CHANGE);
        gang_in_data_group(&u, COLLECTIVE_ALL_GATHER, table_bytes, &of_table);
    }
    gang_end(&u);
}

/* Copies a gradient's share to the host, which keeps it or adds it to the minibatch's sum, and frees its place. */
static void emit_drain(struct parallel_job *s, uint32_t r)
{
    struct gang_unit u = gang_begin(s, r, PLAN_REDUCE, false);
    struct gang_accesses reduced = {0}, down = {0}, sum = {0};
    struct parallel_job_ring *ring = &u.stage->gradients;
    uint32_t turn = ring->given++;
    bool sums = parallel_sums_on_host(s->job);
    uint64_t bytes = u.chunk->whole_gradient_bytes, share = u.chunk->host.gradient_bytes;
    gang_access_ring(&u, &reduced, BUFFER_GRADIENT, ring, turn, bytes, GANG_CHANGE);
    if (u.chunk->joins && parallel_splits(s->parallel, ZERO_GRADIENTS))
        gang_in_data_group(&u, COLLECTIVE_REDUCE_SCATTER, bytes, &reduced);
    gang_access_ring(&u, &down, BUFFER_GRADIENT, ring, turn, bytes, GANG_LAST);
    gang_access(&down, gang_host_buffer(&u, BUFFER_GRADIENT, sums, share), ACCESS_WRITE);
    gang_copy(&u, STREAM_D2H, share, &down);
    if (sums) {
        uint64_t sum_bytes = parallel_host_sum_bytes(s->job, u.chunk->layers);
        gang_access(&sum, gang_host_buffer(&u, BUFFER_GRADIENT, 0, sum_bytes), GANG_CHANGE);
        gang_access(&sum, gang_host_buffer(&u, BUFFER_GRADIENT, 1, share), ACCESS_READ);
        gang_host_compute(&u, PLAN_REDUCE, PARALLEL_SUM, &sum);
    }
    gang_end(&u);
}

void parallel_job_emit_reduce(struct parallel_job *s, uint32_t r)
{
    if (parallel_drains(s->job)) {
        emit_drain(s, r);
        return;
    }
    struct gang_unit u = gang_begin(s, r, PLAN_REDUCE, false);
    struct gang_accesses a = {0};
    struct parallel_job_ring *ring = &u.stage->gradients;
    uint64_t bytes = u.chunk->whole_gradient_bytes;
    if (u.chunk->pools[PARALLEL_JOB_APART].bytes > 0)
        gang_access_thing(&u, &a, PARALLEL_JOB_APART, r, (uint32_t)s->microbatch, GANG_LAST);
    else if (u.chunk->scatters) gang_access_ring(&u, &a, BUFFER_GRADIENT, ring, ring->given++, bytes, GANG_LAST);
    gang_access_gradient(&u, &a, GANG_CHANGE);
    bool shares = parallel_splits(s->parallel, ZERO_STATES);
    if (parallel_encodes_gradients(s->job)) {
        struct gang_accesses encoded = {.of = {a.of[0]}, .count = 1}; /* what is exchanged: a pass's gradient, or the
                                                                         sum */
        encoded.of[0].flags = GANG_CHANGE;
        gang_compute(&u, PLAN_REDUCE, gang_work(&u, PARALLEL_ENCODE), &encoded);
        bytes = s->carried_out ? compression_code_bytes(parallel_gradient_code(s->job), bytes / sizeof(float))
                               : parallel_reduced_bytes(s->job, u.chunk->layers);
    }
    gang_in_data_group(&u, shares ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE, bytes, &a);
    gang_end(&u);
}

void parallel_job_emit_join(struct parallel_job *s)
{
    struct gang_unit u = gang_begin(s, 0, PLAN_JOIN, false);
    struct gang_accesses a = {0};
    uint32_t last = s->chunks - 1;
    u.gang = s->ends_gang;
    gang_access(&a, gang_gradient(&u, 0), GANG_CHANGE);
    gang_access(&a, gang_gradient(&u, last), GANG_CHANGE);
    gang_collective(&u, COLLECTIVE_ALL_REDUCE, AXIS_ENDS, STREAM_DATA, 1, s->joined_bytes, &a);
    gang_end(&u);
}

void parallel_job_emit_host_update(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    struct gang_unit u = gang_begin(s, r, PLAN_UPDATE, ends_minibatch);
    struct gang_accesses step = {0}, joined = {0};
    uint32_t gradient = gang_host_buffer(&u, BUFFER_GRADIENT, 0, parallel_host_gradient_bytes(s->job, u.chunk->layers));
    gang_access(&joined, gradient, GANG_CHANGE);
    if (u.chunk->joins && parallel_joins_on_hosts(s->job))
        gang_in_data_group(&u, COLLECTIVE_ALL_REDUCE, u.chunk->host.gradient_bytes, &joined);
    gang_access_stepped(&u, &step);
    gang_access(&step, gradient, ACCESS_READ);
    gang_host_compute(&u, PLAN_UPDATE, PARALLEL_UPDATE, &step);
    gang_write_stepped(&u);
    gang_end(&u);
}

/* Gives the gradient's buffer to the next minibatch's sum. */
static void reset_sum(struct gang_unit *u)
{
    struct gang_accesses gradient = {0};
    gang_access_gradient(u, &gradient, GANG_CHANGE);
    gang_compute(u, PLAN_REFRESH, PLAN_NONE, &gradient);
}

void parallel_job_emit_reset(struct parallel_job *s, uint32_t r)
{
    struct gang_unit u = gang_begin(s, r, PLAN_REFRESH, false);
    reset_sum(&u);
    gang_end(&u);
}

void parallel_job_emit_refresh(struct parallel_job *s, uint32_t r, bool ends_minibatch)
{
    if (s->of[r].whole_weight_bytes + s->of[r].state_bytes == 0 || (s->carried_out && parallel_drains(s->job))) return;
    struct gang_unit u = gang_begin(s, r, PLAN_REFRESH, ends_minibatch);
    struct gang_accesses up = {0}, whole = {0};
    if (s->carried_out && (!s->parallel->delayed || s->stepped == s->chunks)) reset_sum(&u); /* it is on the host */
    if (s->parallel->offload == OFFLOAD_STATES) {
        gang_access_raised(&u, &up);
        gang_access_state(&u, &up, ACCESS_WRITE);
        gang_copy(&u, STREAM_H2D, u.chunk->host.weight_bytes, &up);
    }
    gang_access_state(&u, &whole, GANG_CHANGE);
    if (u.chunk->joins && !u.chunk->gathers && parallel_splits(s->parallel, ZERO_STATES))
        gang_in_data_group(&u, COLLECTIVE_ALL_GATHER, u.chunk->whole_weight_bytes, &whole);
    gang_end(&u);
}
