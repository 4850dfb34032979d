/*
 * Compressed boundaries and gradients in plans that are carried out (label: fast): they are sent and stored encoded,
 * and passes have room for plain numbers. The judge misses no code that is left out or too small.
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

/* Boundaries are sent and stored encoded, and passes have room for plain ones; gradients are exchanged encoded. */
static void codes(void **state)
{
    (void)state;
    struct plan plan, plain;
    test_parallel_variant(&plan, VARIANT_CODES + 12);
    test_parallel_variant(&plain, VARIANT_PLAIN + 12);
    const struct job *job = &plan.jobs.jobs[0];
    const uint64_t boundary = job->microbatch * job->sequence * job->network.width * sizeof(float);
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct chunk_memory own = chunk_memory(job, parallel_layers(job, c));
        const struct chunk_memory before = chunk_memory(&plain.jobs.jobs[0], parallel_layers(job, c));
        assert_int_equal(own.workspace_bytes, before.workspace_bytes + (c == 0 ? 1 : 2) * boundary);
        assert_int_equal(own.gradient_bytes, before.gradient_bytes);
        const uint64_t numbers = own.gradient_bytes / sizeof(float);
        assert_int_equal(test_parallel_op(&plan, PLAN_REDUCE, c, OP_COLLECTIVE)->bytes, numbers + (numbers + 14) / 15);
    }
    assert_int_equal(test_parallel_buffer(&plan, BUFFER_BOUNDARY, 1, true)->bytes, boundary / 2);
    assert_int_equal(test_parallel_buffer(&plan, BUFFER_BOUNDARY_GRADIENT, 1, true)->bytes, boundary / 2);
    assert_int_equal(test_parallel_op_on(&plan, PLAN_FORWARD, 1, STREAM_P2P)->bytes, boundary / 2);
    plan_release(&plan);
    plan_release(&plain);
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void sum_before_code(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++) {
        if (p->units[u].pass != PLAN_REDUCE || p->units[u].shard != 1) continue;
        struct plan_op *const encodes = &p->ops[p->units[u].first_op], kept = encodes[0];
        assert_int_equal(encodes[0].kind, OP_COMPUTE);
        encodes[0] = encodes[1];
        encodes[1] = kept;
        return;
    }
    fail_msg("no reduction");
}
static void code_left_out(struct plan *p)
{
    test_parallel_op(p, PLAN_REDUCE, 1, OP_COMPUTE)->stream = STREAM_DATA;
}
static void code_other_work(struct plan *p)
{
    struct plan_op *const encodes = test_parallel_op(p, PLAN_REDUCE, 1, OP_COMPUTE);
    encodes->work = test_parallel_op(p, PLAN_FORWARD, 1, OP_COMPUTE)->work;
}
static void code_only_read(struct plan *p)
{
    p->accesses[test_parallel_op(p, PLAN_REDUCE, 1, OP_COMPUTE)->first_access].flags = ACCESS_READ;
}
static void sent_plain(struct plan *p) { test_parallel_op(p, PLAN_REDUCE, 1, OP_COLLECTIVE)->bytes *= 2; }
static void fetched_short(struct plan *p) { test_parallel_op_on(p, PLAN_FORWARD, 1, STREAM_P2P)->bytes -= 2; }
static void boundary_code_small(struct plan *p) { test_parallel_buffer(p, BUFFER_BOUNDARY, 1, true)->bytes -= 2; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {sum_before_code, VARIANT_CODES + 12, "(expected encoded gradient of job-0 shard 1"},
        {sum_before_code, VARIANT_CODES_SHARES + 12, "(expected encoded gradient of job-0 shard 1"},
        {code_left_out, VARIANT_CODES + 12, "form: "},
        {code_other_work, VARIANT_CODES + 12, "work: has "},
        {code_other_work, VARIANT_CODES_SHARES + 12, "work: has "},
        {code_only_read, VARIANT_CODES + 12, "form: only reads the gradient of job-0 shard 1"},
        {code_only_read, VARIANT_CODES_SHARES + 12, "form: only reads the gradient of job-0 shard 1"},
        {sent_plain, VARIANT_CODES + 12, "0 times all-reduce of"},
        {sent_plain, VARIANT_CODES_SHARES + 12, "0 times reduce-scatter of"},
        {fetched_short, VARIANT_CODES + 12, "bytes of the boundary (expected"},
        {boundary_code_small, VARIANT_CODES + 12, "memory: the boundary of job-0 shard 1"},
        {damage_workspace_small, VARIANT_CODES + 12, "memory: the workspace of job-0 shard 1"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(codes),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
