#include "planner/parallel/parallel_job_units.h"

#include "planner/parallel/parallel_job_cache.h"
#include "planner/parallel/parallel_job_gang.h"

static void emit_forward(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct gang_unit u = gang_begin_pass(s, r, PLAN_FORWARD, n);
    struct gang_accesses a = {0};
    gang_fetch(&u, PARALLEL_JOB_BOUNDARY, r, n, r - 1);
    gang_access_weights(&u, &a);
    gang_access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r, n, ACCESS_READ);
    gang_access_thing(&u, &a, PARALLEL_JOB_ACTIVATIONS, r, n, GANG_MAKE);
    gang_access_thing(&u, &a, PARALLEL_JOB_BOUNDARY, r + 1, n, GANG_MAKE);
    uint32_t output = a.of[a.count - 1].buffer; /* the activations if no boundary leaves */
    gang_access_context(&u, &a, n);
    if (r == 0) gang_access_batch(&u, &a, ACCESS_READ);
    gang_access_workspace(&u, &a, GANG_MAKE | ACCESS_RELEASE);
    gang_compute(&u, PLAN_FORWARD, gang_work(&u, PARALLEL_FORWARD), &a);
    gang_tensor_collectives(&u, PARALLEL_FORWARD, false, STREAM_COMPUTE, output);
    gang_tensor_collectives(&u, PARALLEL_FORWARD, true, STREAM_GROUP, output);
    gang_swap_out(&u, n);
    gang_end(&u);
}

/* The collectives of a tensor group follow; the executor carries them out within the pass. */
static void emit_backward_in_one(struct gang_unit *u, uint32_t n)
{
    struct gang_accesses a = {0};
    gang_access_weights(u, &a);
    gang_access_inputs(u, &a, n, ACCESS_RELEASE);
    gang_access_sum(u, &a);
    gang_access_levels(u, &a, GANG_CHANGE);
    gang_access_thing(u, &a, PARALLEL_JOB_GRADIENT, u->r, n, GANG_MAKE);
    uint32_t output = a.of[a.count - 1].buffer; /* the parameters' gradient if no boundary's leaves */
    gang_access_context(u, &a, n);
    gang_access_batch(u, &a, ACCESS_READ | gang_ends_batch(u));
    gang_access_loss(u, &a, GANG_CHANGE);
    gang_access_table(u, &a);
    gang_access_workspace(u, &a, GANG_MAKE | ACCESS_RELEASE);
    gang_compute(u, PLAN_BACKWARD, gang_work(u, PARALLEL_BACKWARD), &a);
    gang_tensor_collectives(u, PARALLEL_INPUT, false, STREAM_COMPUTE, output);
    gang_tensor_collectives(u, PARALLEL_WEIGHT, false, STREAM_COMPUTE, output);
    if (u->chunk->ends_sum) gang_copy_loss(u);
}

/* Chunks collectives during the second computation. */
static void emit_backward_in_three(struct gang_unit *u, uint32_t n)
{
    struct gang_accesses input = {0}, weight = {0}, output = {0};
    uint32_t scratch = gang_buffer(u, BUFFER_WORKSPACE, u->r, 0, u->chunk->workspace_bytes);
    gang_access_weights(u, &input);
    gang_access_inputs(u, &input, n, 0);
    gang_access_workspace(u, &input, GANG_MAKE);
    gang_compute(u, PLAN_BACKWARD_INPUT, gang_work(u, PARALLEL_INPUT), &input);
    gang_tensor_collectives(u, PARALLEL_INPUT, false, STREAM_COMPUTE, scratch);
    gang_tensor_collectives(u, PARALLEL_WEIGHT, false, STREAM_COMPUTE, scratch);
    gang_tensor_collectives(u, PARALLEL_INPUT, true, STREAM_GROUP, scratch);
    gang_tensor_collectives(u, PARALLEL_WEIGHT, true, STREAM_GROUP, scratch);
    gang_access_inputs(u, &weight, n, ACCESS_RELEASE);
    gang_access_sum(u, &weight);
    gang_compute(u, PLAN_BACKWARD_WEIGHT, gang_work(u, PARALLEL_WEIGHT), &weight);
    gang_access_workspace(u, &output, GANG_LAST);
    gang_access_thing(u, &output, PARALLEL_JOB_GRADIENT, u->r, n, GANG_MAKE);
    gang_compute(u, PLAN_BACKWARD, PLAN_NONE, &output);
}

static void emit_backward(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct gang_unit u = gang_begin_pass(s, r, PLAN_BACKWARD, n);
    gang_fetch(&u, PARALLEL_JOB_GRADIENT, r + 1, n, r + 1);
    (s->parallel->tensor == 1 || s->carried_out ? emit_backward_in_one : emit_backward_in_three)(&u, n);
    gang_end(&u);
}

static void emit_input(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct gang_unit u = gang_begin_pass(s, r, PLAN_BACKWARD_INPUT, n);
    struct gang_accesses a = {0};
    gang_fetch(&u, PARALLEL_JOB_GRADIENT, r + 1, n, r + 1);
    gang_access_weights(&u, &a);
    gang_access_inputs(&u, &a, n, 0);
    uint32_t output = a.of[r > 0 ? 2 : 1].buffer; /* the activations if no gradient leaves */
    gang_access_thing(&u, &a, PARALLEL_JOB_GRADIENT, r, n, GANG_MAKE);
    if (r > 0) output = a.of[a.count - 1].buffer;
    gang_access_thing(&u, &a, PARALLEL_JOB_HANDOVER, r, n, GANG_MAKE);
    gang_access_thing(&u, &a, PARALLEL_JOB_APART, r, n, GANG_MAKE);
    if (s->carried_out && !u.chunk->scatters) gang_access_gradient(&u, &a, GANG_CHANGE);
    gang_access_levels(&u, &a, GANG_CHANGE);
    gang_access_batch(&u, &a, ACCESS_READ);
    gang_access_loss(&u, &a, GANG_CHANGE);
    gang_access_table(&u, &a);
    gang_access_workspace(&u, &a, GANG_MAKE | ACCESS_RELEASE);
    gang_compute(&u, PLAN_BACKWARD_INPUT, gang_work(&u, PARALLEL_INPUT), &a);
    gang_tensor_collectives(&u, PARALLEL_INPUT, false, STREAM_COMPUTE, output);
    gang_tensor_collectives(&u, PARALLEL_INPUT, true, STREAM_GROUP, output);
    gang_end(&u);
}

/* The collectives gather the kept activations. Carried out, units find tensors in the state, where it has them, the
 * first chunk's reads data and weights of the embedding, and collectives are those of the embedding, within the
 * pass. */
static void emit_weight(struct parallel_job *s, uint32_t r, uint32_t n)
{
    struct gang_unit u = gang_begin_pass(s, r, PLAN_BACKWARD_WEIGHT, n);
    struct gang_accesses a = {0};
    gang_access_inputs(&u, &a, n, ACCESS_RELEASE);
    uint32_t kept = a.of[r > 0 ? 1 : 0].buffer;
    if (!s->carried_out) {
        gang_tensor_collectives(&u, PARALLEL_WEIGHT, false, STREAM_COMPUTE, kept);
        gang_tensor_collectives(&u, PARALLEL_WEIGHT, true, STREAM_COMPUTE, kept);
    }
    if (u.chunk->pools[PARALLEL_JOB_APART].bytes > 0) gang_access_thing(&u, &a, PARALLEL_JOB_APART, r, n, GANG_CHANGE);
    else gang_access_sum(&u, &a);
    const uint32_t gradient = a.of[a.count - 1].buffer;
    gang_access_levels(&u, &a, GANG_CHANGE);
    gang_access_thing(&u, &a, PARALLEL_JOB_HANDOVER, r, n, GANG_LAST);
    if (s->carried_out && (parallel_fetches_again(s->job, r) || !u.chunk->gathers))
        gang_access_weights(&u, &a);
    if (r == 0) gang_access_batch(&u, &a, ACCESS_READ);
    gang_access_workspace(&u, &a, GANG_MAKE | ACCESS_RELEASE);
    gang_compute(&u, PLAN_BACKWARD_WEIGHT, gang_work(&u, PARALLEL_WEIGHT), &a);
    if (s->carried_out) gang_tensor_collectives(&u, PARALLEL_WEIGHT, false, STREAM_COMPUTE, gradient);
    gang_end(&u);
}

void parallel_job_emit_pass(struct parallel_job *s, const struct pipeline_step *step)
{
    static void (*const emits[PIPELINE_PASSES])(struct parallel_job *s, uint32_t r, uint32_t n) = {
        [PIPELINE_FORWARD] = emit_forward,
        [PIPELINE_BACKWARD] = emit_backward,
        [PIPELINE_INPUT] = emit_input,
        [PIPELINE_WEIGHT] = emit_weight,
    };
    if (parallel_job_repeat_pass(s, step)) return;
    emits[step->pass](s, step->chunk, step->microbatch);
    parallel_job_cache_pass(s, step);
}
