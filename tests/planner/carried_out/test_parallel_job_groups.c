/*
 * Plans of tensor groups that are carried out (label: fast): devices have equal slices of states, and exchange sums or,
 * with sequence parallelism, rows. The judge misses no exchange that is left out, too short or among other devices.
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

/* Devices of a tensor group have equal slices, in equal buffers. */
static void slices(void **state)
{
    (void)state;
    struct plan plan;
    struct job room;
    test_parallel_variant(&plan, VARIANT_GROUPS + 2);
    const struct job *job = &plan.jobs.jobs[0], *share = parallel_share_in(job, &room);
    uint64_t states = 0;
    assert_true(parallel_is_carried_out(&job->parallel));
    assert_int_equal(share->network.heads * 2, job->network.heads);
    assert_int_equal(share->network.ff_width * 2, job->network.ff_width);
    for (uint32_t c = 0; c < 2; c++) {
        const struct parallel_layers layers = parallel_layers(job, c);
        const uint64_t bytes = chunk_memory(job, layers).state_bytes;
        const struct plan_buffer *on_host = test_parallel_buffer(&plan, BUFFER_STATE, c, false);
        assert_true(bytes < job_state(job, layers.first, layers.count).bytes);
        assert_int_equal(on_host->bytes, bytes);
        assert_int_equal(plan_buffer_ranks(&plan, on_host), 2);
        states += bytes;
    }
    assert_int_equal(test_parallel_copied(&plan, STREAM_H2D, BUFFER_STATE), states);
    plan_release(&plan);
}

/* A tensor group that cuts rows keeps and sends half of the rows, and gathers rows and leaves each device its own in
 * place of adding all up. Every norm's pass adds up the gradients of its weights. */
static void rows(void **state)
{
    (void)state;
    struct plan whole, cut;
    test_parallel_variant(&whole, VARIANT_GROUPS + 2);
    test_parallel_variant(&cut, VARIANT_ROWS + 2);
    const struct job *job = &cut.jobs.jobs[0];
    const uint64_t stream = job->microbatch * job->sequence * job->network.width * sizeof(float);
    assert_true(parallel_is_carried_out(&job->parallel));
    for (uint32_t c = 0; c < 2; c++) {
        const struct chunk_memory all = chunk_memory(&whole.jobs.jobs[0], parallel_layers(job, c));
        const struct chunk_memory own = chunk_memory(job, parallel_layers(job, c));
        /* of 3 blocks */
        const uint64_t norms = 2 * 3, own_stats = norms * job->microbatch * job->sequence * sizeof(float);
        assert_int_equal(own.state_bytes, all.state_bytes);
        if (c == 1) /* norm1, middle, norm2 of 3 blocks, 3 outputs, normf */
            assert_int_equal(all.activation_bytes - own.activation_bytes,
                             (3 * 3 + 3 + 1) * stream / 2 + own_stats +
                             job->microbatch * job->sequence * sizeof(float));
        assert_int_equal(test_parallel_buffer(&cut, BUFFER_ACTIVATIONS, c, true)->bytes, own.activation_bytes);
        assert_int_equal(test_parallel_buffer(&cut, BUFFER_WORKSPACE, c, true)->bytes, own.workspace_bytes);
    }
    assert_int_equal(test_parallel_copied(&whole, STREAM_P2P, BUFFER_BOUNDARY),
                     2 * test_parallel_copied(&cut, STREAM_P2P, BUFFER_BOUNDARY));
    plan_release(&whole);
    plan_release(&cut);
}

/* --- broken plans ---------------------------------------------------------------------------- */

static void exchange_left_out(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 0, OP_COLLECTIVE)->rounds--; }
static void exchange_short(struct plan *p) { test_parallel_op(p, PLAN_BACKWARD, 0, OP_COLLECTIVE)->bytes /= 2; }

/* Returns the exchange of a kind in a pass over the last chunk. */
static struct plan_op *exchange_of_kind(struct plan *p, uint32_t pass, enum collective_kind kind)
{
    const struct plan_unit *unit = &p->units[test_parallel_task(p, pass, 1, 0)->unit];
    for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++)
        if (p->ops[o].kind == OP_COLLECTIVE && p->ops[o].collective == kind) return &p->ops[o];
    fail_msg("no such exchange");
    return NULL;
}
static void rows_not_gathered(struct plan *p) { exchange_of_kind(p, PLAN_FORWARD, COLLECTIVE_ALL_GATHER)->rounds--; }
static void rows_short(struct plan *p) { exchange_of_kind(p, PLAN_BACKWARD, COLLECTIVE_REDUCE_SCATTER)->bytes /= 2; }
static void rows_all_added(struct plan *p)
{
    exchange_of_kind(p, PLAN_BACKWARD, COLLECTIVE_REDUCE_SCATTER)->collective = COLLECTIVE_ALL_REDUCE;
}
static void norm_gradients_apart(struct plan *p) { exchange_of_kind(p, PLAN_BACKWARD, COLLECTIVE_ALL_REDUCE)->rounds--;
                                                  }
static void rows_in_data_groups(struct plan *p)
{
    exchange_of_kind(p, PLAN_FORWARD, COLLECTIVE_REDUCE_SCATTER)->axes = 1u << AXIS_DATA;
}
static void exchange_aside(struct plan *p) { test_parallel_op(p, PLAN_FORWARD, 0, OP_COLLECTIVE)->stream = STREAM_GROUP;
                                            }
static void exchange_of_replicas(struct plan *p)
{
    test_parallel_op(p, PLAN_BACKWARD, 0, OP_COLLECTIVE)->axes = 1u << AXIS_DATA;
}
static void member_twice(struct plan *p) { p->gang_devices[p->gangs[0].first + 1] = p->gang_devices[p->gangs[0].first];
                                          }
static void member_of_another(struct plan *p)
{
    const uint32_t first = p->gangs[0].first + 1, second = p->gangs[1].first + 1, device = p->gang_devices[first];
    p->gang_devices[first] = p->gang_devices[second];
    p->gang_devices[second] = device;
}

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {exchange_left_out, VARIANT_GROUPS + 2, "times all-reduce of"},
        {exchange_short, VARIANT_GROUPS + 2, "times all-reduce of"},
        {exchange_aside, VARIANT_GROUPS + 2, "form: a collective of a pass on the group stream"},
        {exchange_of_replicas, VARIANT_GROUPS + 2, "job-0"},
        {member_twice, VARIANT_GROUPS + 2, "gang"},
        {member_of_another, VARIANT_GROUPS + 2, "stage 0"},
        {damage_state_short, VARIANT_GROUPS + 2, "of the state (expected"},
        {damage_state_small, VARIANT_GROUPS + 2, "state of job-0 shard 1 on the host has"},
        {damage_workspace_small, VARIANT_GROUPS + 2, "memory: the workspace of job-0 shard 1"},
        {rows_not_gathered, VARIANT_ROWS + 2, "times all-gather of"},
        {rows_short, VARIANT_ROWS + 2, "times reduce-scatter of"},
        {rows_all_added, VARIANT_ROWS + 2, "0 times reduce-scatter of"},
        {norm_gradients_apart, VARIANT_ROWS + 2, "times all-reduce of"},
        {rows_in_data_groups, VARIANT_ROWS + 2, "job-0"},
        {damage_workspace_small, VARIANT_ROWS + 2, "memory: the workspace of job-0 shard 1"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), test_parallel_variant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slices),
        cmocka_unit_test(rows),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
