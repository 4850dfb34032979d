/*
 * Plans whose hosts update (label: fast): gradients come down, and weights go up once for each update or, with
 * offloaded weights, for each pass. States may be in storage, updates may follow a minibatch later, and activations may
 * leave. The judge misses no copy, no step and no flush that is left out, too short, early or late.
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

/* The host has whole states, devices only weights; a rank's weights go up once for each update. */
static void hosts(void **state)
{
    (void)state;
    struct plan plan;
    uint64_t loaded = 0, raised = 0, down = 0;
    test_parallel_variant(&plan, VARIANT_HOSTS + 12);
    const struct job *job = &plan.jobs.jobs[0];
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct chunk_memory memory = chunk_memory(job, parallel_layers(job, c));
        assert_int_equal(test_parallel_buffer(&plan, BUFFER_STATE, c, false)->bytes, memory.state_bytes);
        assert_int_equal(test_parallel_buffer(&plan, BUFFER_STATE, c, true)->bytes, memory.device_state_bytes);
        assert_true(memory.raised_bytes < memory.device_state_bytes && memory.device_state_bytes < memory.state_bytes);
        loaded += memory.device_state_bytes;
        raised += memory.raised_bytes;
        down += memory.gradient_bytes;
    }
    assert_int_equal(test_parallel_copied(&plan, STREAM_H2D, BUFFER_STATE), loaded + VARIANT_MINIBATCHES * raised);
    assert_int_equal(test_parallel_copied(&plan, STREAM_D2H, BUFFER_STATE), 0);
    assert_int_equal(test_parallel_copied(&plan, STREAM_D2H, BUFFER_GRADIENT), VARIANT_MINIBATCHES * down);
    plan_release(&plan);
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void step_on_device(struct plan *p)
{
    test_parallel_op_on(p, PLAN_UPDATE, 0, STREAM_CPU)->stream = STREAM_COMPUTE;
}
static void step_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_REDUCE, 1, 0));
}
static void step_before_join(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_JOIN, 0, 0));
}
static void step_reads_state(struct plan *p)
{
    test_parallel_access(p, test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_CPU), BUFFER_STATE)->flags = ACCESS_READ;
}
static void step_reads_gradient(struct plan *p)
{
    test_parallel_access(p, test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_CPU), BUFFER_GRADIENT)->flags = ACCESS_READ;
}
static void step_without_norms(struct plan *p) { test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_CPU)->access_count--; }
static void step_writes_norms(struct plan *p)
{
    test_parallel_access(p, test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_CPU), BUFFER_NORMS)->flags =
        ACCESS_READ | ACCESS_WRITE;
}
static void step_before_norm(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_NORM, 0, 0));
}
static void step_by_norms_of_device(struct plan *p)
{
    struct plan_access *const norms = test_parallel_access(p, test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_CPU),
                                                           BUFFER_NORMS);
    norms->buffer = (uint32_t)(test_parallel_buffer(p, BUFFER_NORMS, PLAN_NONE, true) - p->buffers);
}
static void step_with_the_loss(struct plan *p)
{
    struct plan_op *const down = test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_D2H);
    const struct plan_op *const loss = test_parallel_op(p, PLAN_NORM, 1, OP_COPY);
    down->first_access = loss->first_access;
    down->bytes = loss->bytes;
}

static struct plan_op *raise_of(struct plan *p, uint32_t chunk, bool table)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, PLAN_GATHER, chunk, 0)->unit];
    return &p->ops[unit->first_op + table];
}
static void raise_short(struct plan *p) { raise_of(p, 0, false)->bytes -= 64; }
static void raise_of_another(struct plan *p)
{
    p->accesses[raise_of(p, 0, false)->first_access].buffer = p->accesses[raise_of(p, 1, false)->first_access].buffer;
}
static void table_short(struct plan *p) { raise_of(p, 1, true)->bytes -= 64; }
static void table_elsewhere(struct plan *p) { p->accesses[raise_of(p, 1, true)->first_access + 1].offset_bytes = 0; }
static void table_of_itself(struct plan *p)
{
    p->accesses[raise_of(p, 1, true)->first_access].buffer = p->accesses[raise_of(p, 1, false)->first_access].buffer;
}
static void table_left_out(struct plan *p)
{
    struct plan_unit *const unit = &p->units[test_parallel_task(p, PLAN_GATHER, 1, 0)->unit];
    struct plan_op *const op = &p->ops[unit->first_op + 1];
    for (uint32_t o = 1; o + 1 < unit->op_count; o++) op[o - 1] = op[o];
    unit->op_count--;
}
static void table_gathered_elsewhere(struct plan *p)
{
    p->accesses[(test_parallel_op_on(p, PLAN_GATHER, 1, STREAM_DATA) + 1)->first_access].offset_bytes -= 64;
}

static struct plan_op *swap_of(struct plan *p, uint32_t pass, uint32_t at)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, 0, at)->unit];
    struct plan_op *const op = &p->ops[unit->first_op + unit->op_count - 1];
    if (op->kind != OP_COPY) fail_msg("nothing is swapped");
    return op;
}
static void swap_short(struct plan *p) { swap_of(p, PLAN_FORWARD, 0)->bytes -= 64; }
static void swap_in_short(struct plan *p) { swap_of(p, PLAN_GATHER, 1)->bytes -= 64; }
static void swap_in_of_another(struct plan *p)
{
    p->accesses[swap_of(p, PLAN_GATHER, 1)->first_access].buffer =
        (uint32_t)(test_parallel_buffer(p, BUFFER_GRADIENT, 1, false) - p->buffers);
}
static void swap_in_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_GATHER, 0, 1), test_parallel_task(p, PLAN_BACKWARD, 3, 0));
}
static void drained_short(struct plan *p) { test_parallel_op_on(p, PLAN_REDUCE, 1, STREAM_D2H)->bytes -= 64; }
static void drained_to_another(struct plan *p)
{
    p->accesses[test_parallel_op_on(p, PLAN_REDUCE, 1, STREAM_D2H)->first_access + 1].buffer =
        p->accesses[test_parallel_op_on(p, PLAN_REDUCE, 0, STREAM_D2H)->first_access + 1].buffer;
}
static void hosts_sum_short(struct plan *p) { test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_DATA)->bytes -= 64; }
static void hosts_sum_late(struct plan *p)
{
    struct plan_op *const sum = test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_DATA), kept = *sum;
    *sum = *(sum + 1);
    *(sum + 1) = kept;
}
static void step_before_down(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_UPDATE, 1, 0), test_parallel_task(p, PLAN_REDUCE, 1, 0));
}
static void down_short(struct plan *p) { test_parallel_op_on(p, PLAN_UPDATE, 0, STREAM_D2H)->bytes -= 64; }
static void raised_short(struct plan *p) { test_parallel_op_on(p, PLAN_REFRESH, 1, STREAM_H2D)->bytes -= 64; }
static void gathered_short(struct plan *p) { test_parallel_op_on(p, PLAN_REFRESH, 1, STREAM_DATA)->bytes -= 64; }
static void not_reset(struct plan *p) { test_parallel_op_on(p, PLAN_REFRESH, 1, STREAM_COMPUTE)->pass = PLAN_UPDATE; }
static void refresh_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 0), test_parallel_task(p, PLAN_UPDATE, 1, 0));
}
static void refresh_not_last(struct plan *p)
{
    for (uint32_t u = 0; u < p->unit_count; u++)
        if (p->units[u].pass == PLAN_REFRESH) p->units[u].ends_minibatch = false;
}

/* The first refresh of the second minibatch begins a sum; the next one brings weights up. */
static void sum_begins_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 0), test_parallel_task(p, PLAN_BACKWARD, 1, 2));
}
static void sum_begins_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 0), test_parallel_task(p, PLAN_UPDATE, 1, 0));
}
static void delayed_raised_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 1), test_parallel_task(p, PLAN_REFRESH, 1, 0));
}
static void delayed_raised_late(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 1), test_parallel_task(p, PLAN_UPDATE, 1, 1));
}
static void delayed_raised_short(struct plan *p)
{
    const struct plan_unit *const unit = &p->units[test_parallel_task(p, PLAN_REFRESH, 1, 1)->unit];
    p->ops[unit->first_op].bytes -= 64;
}
static void stored_read_short(struct plan *p) { test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_READ)->bytes -= 64; }
static void stored_written_short(struct plan *p) { test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_WRITE)->bytes -= 64; }
static void stored_read_twice(struct plan *p) { test_parallel_op_on(p, PLAN_UPDATE, 1,
                                                                    STREAM_WRITE)->stream = STREAM_READ; }
static void stored_read_late(struct plan *p)
{
    struct plan_op *const read = test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_READ), kept = *read;
    *read = *(read + 1);
    *(read + 1) = kept;
}
static void stored_not_written(struct plan *p)
{
    struct plan_op *const write = test_parallel_op_on(p, PLAN_UPDATE, 1, STREAM_WRITE);
    *write = *(write + 1); /* the loss */
    p->units[test_parallel_task(p, PLAN_UPDATE, 1, 0)->unit].op_count--;
}
static void stored_raised_of_another(struct plan *p)
{
    p->accesses[test_parallel_op_on(p, PLAN_REFRESH, 1, STREAM_READ)->first_access].buffer =
        p->accesses[test_parallel_op_on(p, PLAN_REFRESH, 0, STREAM_READ)->first_access].buffer;
}
static void stored_raised_short(struct plan *p) { test_parallel_op_on(p, PLAN_REFRESH, 1, STREAM_READ)->bytes -= 64; }
static void stored_small(struct plan *p) { test_parallel_buffer(p, BUFFER_STORED, 1, false)->bytes -= 64; }
static void flush_forgotten(struct plan *p) { p->jobs.jobs[0].parallel.flush = 0; }
static void flush_elsewhere(struct plan *p) { p->jobs.jobs[0].parallel.flush = 1; }
static void delay_unsaid(struct plan *p) { p->jobs.jobs[0].parallel.delayed = false; }
static void flushed_early(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REFRESH, 1, 2), test_parallel_task(p, PLAN_UPDATE, 1, 1));
}
static void weights_small(struct plan *p) { test_parallel_buffer(p, BUFFER_STATE, 0, true)->bytes -= 64; }
static void down_small(struct plan *p) { test_parallel_buffer(p, BUFFER_GRADIENT, 0, false)->bytes -= 64; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {step_on_device, VARIANT_HOSTS + 12, "form: a computation on the compute stream (expected cpu: its states are "
                                             "offloaded)"},
        {step_early, VARIANT_HOSTS + 12, "job-0 shard 1"},
        {step_before_join, VARIANT_HOSTS + 12, "(expected joined gradient of job-0 shard 1, microbatch 2)"},
        {step_reads_state, VARIANT_HOSTS + 12, "form: does not change the state of job-0 shard 1"},
        {step_reads_gradient, VARIANT_HOSTS + 12, "form: does not change the gradient of job-0 shard 1"},
        {down_short, VARIANT_HOSTS + 12, "bytes of the gradient (expected"},
        {raised_short, VARIANT_HOSTS + 12, "bytes of the state (expected"},
        {gathered_short, VARIANT_HOSTS + 12, "0 times all-gather of"},
        {not_reset, VARIANT_HOSTS + 12, "form: a computation on the compute stream"},
        {refresh_early, VARIANT_HOSTS + 12, "job-0 shard 1"},
        {refresh_not_last, VARIANT_HOSTS + 12, "does not end the minibatch"},
        {weights_small, VARIANT_HOSTS + 12, "of the state of job-0 shard 0 (it has"},
        {down_small, VARIANT_HOSTS + 12, "job-0 shard 0"},
        {step_without_norms, VARIANT_HOSTS_CLIP + 12, "form: lacks the norms"},
        {step_writes_norms, VARIANT_HOSTS_CLIP + 2, "form: has no use for the norms of job-0"},
        {step_before_norm, VARIANT_HOSTS_CLIP + 2, "job-0"},
        {step_by_norms_of_device, VARIANT_HOSTS_CLIP + 12, "form: has no use for the norms of job-0"},
        {step_with_the_loss, VARIANT_HOSTS_CLIP + 12, "copies gradients 0 times and losses 1 times (expected 1 and 0)"},
        {damage_norms_small, VARIANT_HOSTS_CLIP + 12, "memory: the norms of job-0 has 600 bytes (expected 608)"},
        {step_on_device, VARIANT_HOSTS_CLIP + 2, "form: a computation on the compute stream (expected cpu: its states "
                                                 "are offloaded)"},
        {weights_small, VARIANT_HOSTS_CLIP + 2, "of the state of job-0 shard 0 (it has"},
        {swap_short, VARIANT_SWAPS + 4, "bytes of the activations (expected"},
        {swap_in_short, VARIANT_SWAPS + 4, "bytes of the activations (expected"},
        {swap_in_of_another, VARIANT_SWAPS + 4, "of the gradient of job-0 shard 1 (it has"},
        {swap_in_early, VARIANT_SWAPS + 4, "job-0"},
        {raise_short, VARIANT_BELOW + 12, "bytes of the state to 0 (expected"},
        {raise_of_another, VARIANT_BELOW + 12, "form: copies the state of job-0 shard 1 to the parameters of job-0 "
                                               "shard 0"},
        {table_short, VARIANT_BELOW + 12, "bytes of the state to"},
        {table_elsewhere, VARIANT_BELOW + 12, "bytes of the state to 0 (expected"},
        {table_of_itself, VARIANT_BELOW + 12, "bytes of the state to"},
        {table_left_out, VARIANT_BELOW_SHARES + 12, "copies weights 1 times and a table 0 times (expected 1 and 1)"},
        {damage_shares_gathered_short, VARIANT_BELOW_SHARES + 12, "0 times all-gather of"},
        {table_gathered_elsewhere, VARIANT_BELOW_SHARES + 12, "form: a collective on the parameters of job-0 shard 1"},
        {table_short, VARIANT_BELOW_SHARES + 12, "bytes of the state to"},
        {drained_short, VARIANT_BELOW + 12, "bytes of the gradient (expected one copy of"},
        {drained_to_another, VARIANT_BELOW + 12, "bytes of the gradient (expected one copy of"},
        {hosts_sum_short, VARIANT_BELOW + 12, "0 times all-reduce of"},
        {hosts_sum_late, VARIANT_BELOW + 12, "job-0 shard 1"},
        {step_before_down, VARIANT_BELOW + 12, "job-0 shard 1"},
        {step_reads_state, VARIANT_BELOW + 12, "form: does not change the state of job-0 shard 1"},
        {down_small, VARIANT_BELOW + 12, "job-0 shard 0"},
        {damage_state_small, VARIANT_BELOW_SHARES + 12, "job-0 shard 1"},
        {down_short, VARIANT_BELOW_SHARES + 12, "bytes of the gradient (expected"},
        {not_reset, VARIANT_BELOW_SHARES + 12, "form: a computation on the compute stream"},
        {refresh_not_last, VARIANT_BELOW_SHARES + 12, "does not end the minibatch"},
        {damage_state_small, VARIANT_HOSTS + 2, "state of job-0 shard 1 on the host has"},
        {damage_state_short, VARIANT_HOSTS + 2, "of the state (expected"},
        {stored_read_short, VARIANT_STORES + 12, "bytes of the stored_state of shard 1 (expected"},
        {stored_written_short, VARIANT_STORES + 12, "bytes of the staged_state of shard 1 (expected"},
        {stored_read_twice, VARIANT_STORES + 12, "form: a copy on the read stream of something else than a state"},
        {stored_read_late, VARIANT_STORES + 12, "staged state of job-0 shard 1"},
        {stored_not_written, VARIANT_STORES + 12, "the staged state of job-0 shard 1 variant 1 is live at its end"},
        {stored_raised_of_another, VARIANT_STORES + 12, "form: a copy on the read stream of something else than a "
                                                        "state"},
        {stored_raised_short, VARIANT_STORES + 12, "bytes of the stored_state of shard 1 (expected"},
        {stored_small, VARIANT_STORES + 12, "stored state of job-0 shard 1 on storage has"},
        {sum_begins_late, VARIANT_DELAYS + 12, "finds joined gradient of job-0 shard 1, microbatch 2 (expected "
                                               "gradient of job-0 shard 1"},
        {sum_begins_early, VARIANT_DELAYS + 12, "job-0 shard 1"},
        {delayed_raised_early, VARIANT_DELAYS + 12, "finds state of job-0 shard 1, version 1 (expected state of job-0 "
                                                    "shard 1, version 0)"},
        {delayed_raised_late, VARIANT_DELAYS + 12, "job-0 shard 1"},
        {delayed_raised_short, VARIANT_DELAYS + 12, "bytes of the state (expected"},
        {flush_forgotten, VARIANT_DELAYS + 12, "job-0"},
        {flush_elsewhere, VARIANT_DELAYS + 12, "job-0"},
        {flushed_early, VARIANT_DELAYS + 12, "job-0 shard 1"},
        {delay_unsaid, VARIANT_DELAYS + 12, "job-0"},
        {refresh_not_last, VARIANT_DELAYS + 12, "does not end the minibatch"},
        {step_on_device, VARIANT_DELAYS + 12, "form: a computation on the compute stream (expected cpu: its states "
                                              "are offloaded)"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
