/*
 * Plans of slices of tokens that are carried out (label: fast): a buffer hands over the keys and values of all tokens
 * of a microbatch from slice to slice, in training and evaluations. The judge misses nothing that is left out or of
 * another microbatch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/size.h"
#include "models/job/chunk_memory.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_parallel_variants.h"

/* Returns what the n-th unit over a slice of chunk 1 finds of the slices of its microbatch. */
static struct plan_access *context_of(struct plan *p, uint32_t pass, uint32_t slice, uint32_t n)
{
    for (uint32_t u = 0; u < p->unit_count; u++) {
        const struct plan_unit *unit = &p->units[u];
        if (unit->pass != pass || unit->shard != 1) continue;
        for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
            const struct plan_op *op = &p->ops[o];
            if (op->kind != OP_COMPUTE || op->slice != slice || n-- > 0) continue;
            for (uint32_t a = op->first_access; a < op->first_access + op->access_count; a++)
                if (p->buffers[p->accesses[a].buffer].kind == BUFFER_WORKSPACE &&
                    p->buffers[p->accesses[a].buffer].variant > 0)
                    return &p->accesses[a];
        }
    }
    fail_msg("no keys and values of slices");
    return NULL;
}

/* What slices hand over has the keys and values of all tokens, and their gradients; other buffers fit the largest
 * slice. */
static void slices_of_tokens(void **state)
{
    (void)state;
    struct plan plan;
    test_parallel_variant(&plan, VARIANT_SLICES + 2);
    const struct job *job = &plan.jobs.jobs[0];
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct parallel_layers layers = parallel_layers(job, c);
        const struct chunk_memory all = chunk_memory(job, layers);
        uint64_t activations = 0, workspace = 0;
        for (uint32_t i = 0; i < 3; i++) {
            const struct job slice = parallel_slice(job, i);
            const struct chunk_memory own = chunk_memory(&slice, layers);
            activations = own.activation_bytes > activations ? own.activation_bytes : activations;
            workspace = own.workspace_bytes > workspace ? own.workspace_bytes : workspace;
            assert_int_equal(own.handover_bytes, all.handover_bytes);
        }
        assert_int_equal(all.handover_bytes,
                         4 * 3 * job->microbatch * job->sequence * job->network.width * sizeof(float));
        assert_int_equal(all.activation_bytes, activations);
        assert_int_equal(all.workspace_bytes, workspace);
        assert_int_equal(test_parallel_buffer(&plan, BUFFER_ACTIVATIONS, c, true)->bytes, activations);
    }
    assert_int_equal(plan.buffers[context_of(&plan, PLAN_FORWARD, 0, 0)->buffer].bytes,
                     chunk_memory(job, parallel_layers(job, 1)).handover_bytes);
    plan_release(&plan);
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void context_small(struct plan *p) { p->buffers[context_of(p, PLAN_FORWARD, 0, 0)->buffer].bytes -= 64; }
static void context_found(struct plan *p) { context_of(p, PLAN_FORWARD, 0, 0)->flags |= ACCESS_READ; }
static void context_only_read(struct plan *p) { context_of(p, PLAN_BACKWARD, 1, 0)->flags = ACCESS_READ; }
static void context_only_written(struct plan *p) { context_of(p, PLAN_FORWARD, 2, 0)->flags = ACCESS_WRITE; }
static void context_kept(struct plan *p) { context_of(p, PLAN_BACKWARD, 0, 0)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void context_released(struct plan *p) { context_of(p, PLAN_BACKWARD, 1, 0)->flags |= ACCESS_RELEASE; }
static void context_of_another(struct plan *p)
{
    context_of(p, PLAN_FORWARD, 2, 1)->buffer = context_of(p, PLAN_FORWARD, 2, 0)->buffer;
}
static void gradients_of_another(struct plan *p)
{
    context_of(p, PLAN_BACKWARD, 1, 0)->buffer = context_of(p, PLAN_BACKWARD, 1, 1)->buffer;
}
static void slice_left_out(struct plan *p)
{
    struct plan_op *op = test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE);
    op->access_count = (uint16_t)(op->access_count - 2); /* the slices' keys and values, and the workspace */
}
static void held_out_slices_swapped(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_EVALUATE, 0, 1), test_parallel_task(p, PLAN_EVALUATE, 0, 2));
}
static void held_out_context_kept(struct plan *p) { context_of(p, PLAN_EVALUATE, 2,
                                                               0)->flags &= (uint8_t)~ACCESS_RELEASE; }
static void held_out_context_read(struct plan *p) { context_of(p, PLAN_EVALUATE, 1, 0)->flags = ACCESS_READ; }
static void held_out_context_of_training(struct plan *p)
{
    context_of(p, PLAN_EVALUATE, 1, 0)->buffer = context_of(p, PLAN_FORWARD, 2, 1)->buffer;
}
static void slices_swapped(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_FORWARD, 0, 1), test_parallel_task(p, PLAN_FORWARD, 0, 2));
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {context_small, VARIANT_SLICES + 2, "memory: the workspace of job-0 shard 1"},
        {context_found, VARIANT_SLICES + 2, "form: reads the workspace of job-0 shard 1 variant 1, which it acquires"},
        {context_only_read, VARIANT_SLICES + 2, "form: only reads the workspace of job-0 shard 1"},
        {context_only_written, VARIANT_SLICES + 2, "form: writes the workspace of job-0 shard 1"},
        {context_kept, VARIANT_SLICES + 2, "lifetimes: acquires the workspace of job-0 shard 1 variant 1, which is "
                                           "live"},
        {context_released, VARIANT_SLICES + 12, "lifetimes: accesses the workspace of job-0 shard 1 variant 1, which "
                                                "is not live"},
        {context_of_another, VARIANT_SLICES + 2, "finds handover of job-0 shard 1, microbatch 3 (expected handover of "
                                                 "job-0 shard 1, microbatch 5)"},
        {gradients_of_another, VARIANT_SLICES + 2, "finds handover of job-0 shard 1, microbatch 6 (expected handover "
                                                   "of job-0 shard 1, microbatch 2)"},
        {slice_left_out, VARIANT_SLICES + 2, "form: lacks the workspace"},
        {slices_swapped, VARIANT_SLICES + 2, "training: passes over slice 2 (expected slice 1)"},
        {damage_loss_short, VARIANT_SLICES + 2, "work: copies 4 bytes of the loss (expected 8 of the loss)"},
        {damage_reduced_short, VARIANT_SLICES + 12, "0 times all-reduce of"},
        {damage_data_late, VARIANT_SLICES + 2, "reads unwritten bytes of the batch"},
        {held_out_slices_swapped, VARIANT_SLICES_HELD_OUT + 2, "training: passes over slice 2 (expected slice 1)"},
        {held_out_context_kept, VARIANT_SLICES_HELD_OUT + 2,
         "lifetimes: acquires the workspace of job-0 shard 1 variant 1, which is live"},
        {held_out_context_read, VARIANT_SLICES_HELD_OUT + 2, "form: only reads the workspace of job-0 shard 1"},
        {held_out_context_of_training, VARIANT_SLICES_HELD_OUT + 2,
         "lifetimes: accesses the workspace of job-0 shard 1"},
        {damage_held_out_loss_lost, VARIANT_SLICES_HELD_OUT + 2, "copies 4 bytes of the loss in an evaluation"},
        {damage_held_out_ends_late, VARIANT_SLICES_HELD_OUT + 2, "does not end the minibatch"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices_of_tokens),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
