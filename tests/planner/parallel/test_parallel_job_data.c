/*
 * The data that data-parallel ranks exchange, and when (label: fast): makespans of uniform chunks by closed forms,
 * bytes by ZeRO's paper, memory of a rank by its table, and broken plans of each level.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "models/job/parallel_memory.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_parallel_plan.h"

/* --- makespans ------------------------------------------------------------------------------- */

struct uniform {
    uint32_t replicas, chunks, microbatches; /* these on each replica */
    uint32_t minibatches, zero, prefetch;
    double forward_s, backward_s, steps_s; /* steps_s: of a reduce-scatter or an all-gather of a chunk */
};

/* fp32 throughout, so that weights and gradients have the same bytes; a profile's own step takes no time. */
static void make_uniform(const struct uniform *u, struct plan *out)
{
    const double rate = 1e9;
    uint32_t d = u->replicas;
    struct hardware hardware;
    struct job_set jobs;
    struct test_layer layer = {.forward_ns = (uint64_t)llround(1e9 * u->forward_s),
                               .backward_ns = (uint64_t)llround(1e9 * u->backward_s), .activation_bytes = 64};
    /* d - 1 steps of b / d bytes */
    layer.parameter_bytes = (uint64_t)llround(u->steps_s * rate * d / (d - 1));
    test_parallel_machine(&hardware, d, rate, 0);
    test_profile_jobs(&jobs, 1, u->chunks, u->minibatches, test_layer_equal, &layer);
    jobs.jobs[0].microbatches = u->microbatches * d;
    jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = d, .chunks = u->chunks,
                                              .schedule = PIPELINE_1F1B, .zero = u->zero, .prefetch = u->prefetch};
    *out = (struct plan){0};
    test_parallel_plan(&hardware, &jobs, out);
}

static double uniform_s(const struct uniform *u)
{
    struct plan plan;
    make_uniform(u, &plan);
    double makespan_s = test_parallel_simulate(&plan, u->chunks % 2).makespan_s;
    plan_release(&plan);
    return makespan_s;
}

/* v chunks, each reduced in a seconds as soon as the last microbatch has gone back over it. The first such pass ends
 * b after the last forward pass; from then on the slower of the two sets the pace:
 *     (m - 1) v (f + b) + v f + max(v b + a, b + v a)
 * An all-reduce has twice the steps of a reduce-scatter; with shares of states the other half comes after the
 * updates, which follow the last reduction: v all-gathers. */
static void overlap(void **state)
{
    (void)state;
    static const double exchanges_s[] = {1.2e-3, 4.2e-3, 6e-3, 9e-3}; /* whole bytes */
    for (uint32_t v = 1; v <= 5; v++)
        for (uint32_t m = 1; m <= 3; m++)
            for (size_t e = 0; e < ARRAY_COUNT(exchanges_s); e++) {
                struct uniform u = {.replicas = 2 + (v + m) % 3, .chunks = v, .microbatches = m, .minibatches = 1,
                                    .forward_s = 2e-3, .backward_s = 5e-3, .steps_s = exchanges_s[e]};
                double f = u.forward_s, b = u.backward_s, s = u.steps_s, a = 2 * s;
                double passes_s = (m - 1) * v * (f + b) + v * f;
                test_parallel_near(uniform_s(&u), passes_s + fmax(v * b + a, b + v * a));
                u.zero = 1;
                test_parallel_near(uniform_s(&u), passes_s + fmax(v * b + s, b + v * s) + v * s);
            }
}

/* Level 2: each microbatch's gradients are reduced during the passes that follow; where these take at least that
 * long, the plan waits only for the last reduction and for the weights. */
static void shares_of_gradients(void **state)
{
    (void)state;
    for (uint32_t v = 1; v <= 4; v++)
        for (uint32_t m = 1; m <= 3; m++) {
            struct uniform u = {.replicas = 4, .chunks = v, .microbatches = m, .minibatches = 1, .zero = 2,
                                .forward_s = 2e-3, .backward_s = 5e-3, .steps_s = 1.5e-3};
            test_parallel_near(uniform_s(&u), m * v * (u.forward_s + u.backward_s) + u.steps_s + v * u.steps_s);
        }
}

/* Level 3, g for a gather as for a reduction:
 *   g small       the first gather and the last reduction are waited for, minibatch by minibatch, for the next
 *                 one's weights come out of the update: k (g + m v (f + b) + g)
 *   nothing ahead every pass waits for its gather: m v (2 g + f + b) + g
 *   g large       the stream of the data group never stops: m v 3 g, half more than data parallelism's 2 g
 */
static void shares_of_weights(void **state)
{
    (void)state;
    for (uint32_t v = 2; v <= 5; v++)
        for (uint32_t m = 1; m <= 3; m++) {
            struct uniform u = {.replicas = 2 + v % 3, .chunks = v, .microbatches = m, .minibatches = 1, .zero = 3,
                                .prefetch = 1, .forward_s = 4e-3, .backward_s = 6e-3, .steps_s = 0.9e-3};
            double f = u.forward_s, b = u.backward_s, g = u.steps_s;
            test_parallel_near(uniform_s(&u), m * v * (f + b) + 2 * g);
            u.minibatches = 3;
            test_parallel_near(uniform_s(&u), 3 * (m * v * (f + b) + 2 * g));
            u.minibatches = 1;
            u.prefetch = 0;
            test_parallel_near(uniform_s(&u), m * v * (2 * g + f + b) + g);
            u.prefetch = 1;
            u.steps_s = g = 6.6e-3;
            test_parallel_near(uniform_s(&u), m * v * 3 * g);
            u.prefetch = 3; /* a gather may run further ahead, and still has to wait for the wire */
            test_parallel_near(uniform_s(&u), m * v * 3 * g);
        }
}

/* --- bytes ----------------------------------------------------------------------------------- */

static void make_gpt(struct plan *out, struct parallel parallel, uint64_t microbatches, uint32_t precision,
                     uint64_t minibatches)
{
    struct hardware hardware;
    struct job_set jobs;
    *out = (struct plan){0};
    test_parallel_machine(&hardware, (uint32_t)parallel_devices(&parallel), 1e10, 0);
    test_gpt_jobs(&jobs, 1, 6, 64, 256, minibatches);
    jobs.jobs[0].network.heads = 4;
    jobs.jobs[0].network.head_width = 16;
    jobs.jobs[0].microbatches = microbatches * parallel.data;
    jobs.jobs[0].precision = precision;
    jobs.jobs[0].optimizer.kind = OPTIMIZER_ADAMW;
    jobs.jobs[0].parallel = parallel;
    test_parallel_plan(&hardware, &jobs, out);
}

/* The bytes that a rank sends over its data group, times n / (n - 1): b of a reduce-scatter or an all-gather, 2 b of
 * an all-reduce. */
static uint64_t exchanged_bytes(const struct plan *plan)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t i = 0; i < plan->segments[s].task_count; i++) {
            const struct plan_unit *unit =
                &plan->units[plan->tasks[plan->segments[s].first_task + i].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
                const struct plan_op *op = &plan->ops[o];
                if (op->kind != OP_COLLECTIVE || op->axes != 1u << AXIS_DATA) continue;
                uint64_t times = op->collective == COLLECTIVE_ALL_REDUCE ? 2 : 1;
                bytes += times * op->rounds * op->bytes * plan->segments[s].repeat_count;
            }
        }
    return bytes;
}

/* A step of one microbatch, in parameters: 2, 2, 2 and 3; source: arXiv 1910.02054, section 7. With m microbatches
 * gradients are reduced and weights gathered for each. In 16 bits a weight has half the bytes of its gradient. */
static void volumes(void **state)
{
    (void)state;
    for (uint32_t chunks = 1; chunks <= 6; chunks += 5)
        for (uint32_t m = 1; m <= 4; m += 3)
            for (uint32_t zero = 0; zero <= 3; zero++) {
                struct plan plan;
                struct parallel p = {.tensor = 1, .pipeline = 1, .data = 3, .chunks = chunks,
                                     .schedule = PIPELINE_1F1B, .zero = zero, .prefetch = 1};
                make_gpt(&plan, p, m, PRECISION_FP32, 2);
                uint64_t all = network_parameters(&plan.jobs.jobs[0].network);
                uint64_t numbers = zero < 2 ? 2 : zero == 2 ? m + 1 : 3 * m;
                assert_int_equal(exchanged_bytes(&plan), 2 * 4 * numbers * all);
                plan_release(&plan);
                make_gpt(&plan, p, m, PRECISION_BF16, 2);
                uint64_t bytes = zero == 0 ? 8 : zero == 1 ? 4 + 2 : zero == 2 ? 4 * m + 2 : (4 + 2 * 2) * m;
                assert_int_equal(exchanged_bytes(&plan), 2 * bytes * all);
                plan_release(&plan);
            }
}

/* --- memory ---------------------------------------------------------------------------------- */

/* Rounds to 64 bytes, the unit of memory. */
static uint64_t rounded(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* The memory of v chunks of P parameters with d ranks and Adam, in bytes, is 16 P v. A level leaves a share of the 8
 * of moments, the 4 of gradients, the 4 of weights; arXiv 1910.02054, table 1, in fp32. Where gradients are split,
 * two whole gradients of a chunk are on their way; where weights are split, the weights of prefetch + 1 chunks. */
static void memory_of_a_rank(void **state)
{
    (void)state;
    for (uint32_t zero = 0; zero <= 3; zero++)
        for (uint32_t prefetch = 0; prefetch <= 2; prefetch++) {
            const uint64_t d = 4, v = 5, numbers = 4096, weight = 4 * numbers;
            struct test_layer layer = {.forward_ns = 1000, .backward_ns = 3000, .activation_bytes = 128,
                                       .parameter_bytes = weight, .boundary_bytes = 192};
            struct hardware hardware;
            struct job_set jobs;
            struct plan plan = {0};
            test_parallel_machine(&hardware, d, 1e9, 0);
            test_profile_jobs(&jobs, 1, v, 2, test_layer_equal, &layer);
            jobs.jobs[0].microbatches = 2 * d;
            jobs.jobs[0].optimizer.kind = OPTIMIZER_ADAMW;
            jobs.jobs[0].parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = d, .chunks = v,
                                                      .schedule = PIPELINE_1F1B, .zero = zero, .prefetch = prefetch};
            test_parallel_plan(&hardware, &jobs, &plan);
            uint64_t moments = 2 * weight / (zero >= 1 ? d : 1), gradient = weight / (zero >= 2 ? d : 1);
            uint64_t own = weight / (zero >= 3 ? d : 1), expected = v * (rounded(own + moments) + rounded(gradient));
            if (zero >= 2) expected += 2 * weight;
            if (zero >= 3) expected += (prefetch + 1) * weight;
            expected += 64;                      /* a workspace that nothing is in */
            expected += v * 128;                 /* activations of all chunks at once */
            expected += (v - 1) * 192;           /* what enters all but the first */
            expected += 2 * 192;                 /* and its gradient: chunks take turns */
            for (uint32_t device = 0; device < d; device++)
                assert_int_equal(plan_device_bytes(&plan, device), expected);
            assert_true(test_parallel_simulate(&plan, false).peak_bytes <= expected);
            plan_release(&plan);
        }
}

/* Each level needs less than the one before; a ring has places for the largest chunk of the stage. */
static void less_than_whole(void **state)
{
    (void)state;
    uint64_t bytes[4];
    for (uint32_t zero = 0; zero <= 3; zero++) {
        struct plan plan;
        struct parallel p = {.tensor = 2, .pipeline = 1, .data = 4, .chunks = 6, .sequence = true,
                             .schedule = PIPELINE_1F1B, .zero = zero, .prefetch = 1};
        make_gpt(&plan, p, 1, PRECISION_BF16, 1);
        bytes[zero] = plan_device_bytes(&plan, 7);
        assert_true(test_parallel_simulate(&plan, true).peak_bytes <= bytes[zero]);
        plan_release(&plan);
    }
    assert_true(bytes[1] < bytes[0] && bytes[2] < bytes[1] && bytes[3] < bytes[2]);
}

/* --- broken plans ---------------------------------------------------------------------------- */

/* Six chunks on one stage of two ranks; two microbatches each; variant: ZeRO's level. */
static void whole_plan(struct plan *out, uint32_t zero)
{
    make_gpt(out, (struct parallel){.tensor = 1, .pipeline = 1, .data = 2, .chunks = 6, .schedule = PIPELINE_1F1B,
                                    .zero = zero, .prefetch = 1}, 2, PRECISION_BF16, 2);
}

static struct plan_op *gather_of(struct plan *p) { return test_parallel_op(p, PLAN_GATHER, 2, OP_COLLECTIVE); }
static struct plan_op *reduce_of(struct plan *p) { return test_parallel_op(p, PLAN_REDUCE, 2, OP_COLLECTIVE); }
static struct plan_access *access_of(struct plan *p, const struct plan_op *op, uint32_t at)
{
    return &p->accesses[op->first_access + at];
}

static void break_late_gather(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_GATHER, 2, 0), test_parallel_task(p, PLAN_FORWARD, 2, 0));
}
static void break_gather_bytes(struct plan *p) { gather_of(p)->bytes /= 2; }
static void break_gather_kind(struct plan *p) { gather_of(p)->collective = COLLECTIVE_ALL_REDUCE; }
static void break_gather_axes(struct plan *p) { gather_of(p)->axes = 1u << AXIS_TENSOR; }
static void break_gather_ends(struct plan *p) { access_of(p, gather_of(p), 0)->flags |= ACCESS_WRITE; }
static void break_gather_room(struct plan *p) { p->buffers[access_of(p, gather_of(p), 1)->buffer].bytes -= 64; }
static void break_gather_source(struct plan *p)
{
    access_of(p, gather_of(p), 0)->buffer = access_of(p, test_parallel_op(p, PLAN_GATHER, 3, OP_COLLECTIVE), 0)->buffer;
}
/* Writes both minibatches out, and puts the first gather of the second before the last update of the first. */
static void break_stale_weights(struct plan *p)
{
    static struct plan_task order[512];
    static struct plan_segment segment;
    uint32_t count = 0, update = 0;
    bool moved = false;
    for (uint32_t s = 0; s < p->segment_count; s++)
        for (uint32_t repeat = 0; repeat < p->segments[s].repeat_count; repeat++)
            for (uint32_t i = 0; i < p->segments[s].task_count; i++) {
                struct plan_task task = p->tasks[p->segments[s].first_task + i];
                const struct plan_unit *unit = &p->units[task.unit];
                assert_true(count < ARRAY_COUNT(order));
                if (unit->pass == PLAN_UPDATE && unit->shard == 0 && update == 0) update = count;
                uint32_t at = count++;
                if (unit->pass == PLAN_GATHER && unit->shard == 0 && update > 0 && !moved) {
                    memmove(order + update + 1, order + update, (at - update) * sizeof *order);
                    at = update;
                    moved = true;
                }
                order[at] = task;
            }
    segment = (struct plan_segment){0, count, 1};
    p->tasks = order;
    p->task_count = count;
    p->segments = &segment;
    p->segment_count = 1;
}
/* Keeps the weights of one pass, so that the next gathered weights have no place. */
static void break_release(struct plan *p)
{
    const struct plan_op *op = test_parallel_op(p, PLAN_FORWARD, 2, OP_COMPUTE);
    access_of(p, op, 0)->flags &= ~(uint32_t)ACCESS_RELEASE;
}
/* Makes a pass compute with its rank's share. */
static void break_share(struct plan *p)
{
    const struct plan_op *op = test_parallel_op(p, PLAN_FORWARD, 2, OP_COMPUTE);
    uint32_t share = access_of(p, gather_of(p), 0)->buffer;
    *access_of(p, op, 0) = (struct plan_access){.buffer = share, .flags = ACCESS_READ};
}
static void break_state_share(struct plan *p)
{
    const struct plan_op *op = test_parallel_op(p, PLAN_UPDATE, 2, OP_COMPUTE);
    p->buffers[access_of(p, op, 0)->buffer].bytes -= 64;
}
static void break_early_reduce(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 2, 0), test_parallel_task(p, PLAN_BACKWARD, 2, 0));
}
static void break_early_update(struct plan *p)
{
    test_parallel_swap(test_parallel_task(p, PLAN_REDUCE, 2, 1), test_parallel_task(p, PLAN_UPDATE, 2, 0));
}
static void break_reduce_kind(struct plan *p) { reduce_of(p)->collective = COLLECTIVE_ALL_REDUCE; }
static void break_reduce_bytes(struct plan *p) { reduce_of(p)->bytes /= 2; }
/* Overwrites the share instead of adding to it. */
static void break_reduce_sum(struct plan *p) { access_of(p, reduce_of(p), 1)->flags = ACCESS_WRITE; }
/* Gathers weights before the update of shares. */
static void break_update_order(struct plan *p)
{
    struct plan_op *compute = test_parallel_op(p, PLAN_UPDATE, 2, OP_COMPUTE), swap = *compute;
    assert_int_equal(compute[1].kind, OP_COLLECTIVE);
    compute[0] = compute[1];
    compute[1] = swap;
}
/* Adds an all-reduce in place that the level does not have. */
static void break_level(struct plan *p) { p->jobs.jobs[0].parallel.zero = 1; }

static void broken(void **state)
{
    (void)state;
    static const struct test_parallel_damage cases[] = {
        {break_late_gather, 3, "lifetimes: accesses the parameters of job-0 shard 2, which is not live"},
        {break_stale_weights, 3, "finds weights of job-0 shard 0, version 0 (expected weights of job-0 shard 0, "
                                 "version 1)"},
        {break_gather_bytes, 3, "0 times all-gather of"},
        {break_gather_kind, 3, "0 times all-gather of"},
        {break_gather_axes, 3, "a collective on the state of job-0 shard 2"},
        {break_gather_ends, 3, "form: a collective on the state of job-0 shard 2"},
        {break_gather_room, 3, "memory: the parameters of job-0 shard 2 has"},
        {break_gather_source, 3, "form: a collective on the state of job-0 shard 3"},
        {break_release, 3, "memory: the parameters of job-0 shard 4 at bytes"},
        {break_share, 3, "form: has no use for the state of job-0 shard 2"},
        {break_state_share, 3, "memory: the state of job-0 shard 2 has"},
        {break_early_reduce, 3, "lifetimes: accesses the gradient of job-0 shard 2 variant"},
        {break_early_reduce, 2, "lifetimes: accesses the gradient of job-0 shard 2 variant"},
        {break_early_update, 2, "finds reduced gradient of job-0 shard 2, microbatch 1 (expected reduced gradient of "
                                "job-0 shard 2, microbatch 2)"},
        {break_reduce_kind, 2, "0 times reduce-scatter of"},
        {break_reduce_bytes, 2, "over the data group (expected 1)"},
        {break_reduce_sum, 2, "form: a collective on the gradient of job-0 shard 2"},
        {break_update_order, 2, "finds state of job-0 shard 2, version 0 (expected updated shares of job-0 shard 2, "
                                "version 1)"},
        {break_update_order, 1, "finds state of job-0 shard 2, version 0 (expected updated shares of job-0 shard 2, "
                                "version 1)"},
        {break_level, 0, "0 times reduce-scatter of"},
    };
    test_parallel_broken(cases, ARRAY_COUNT(cases), whole_plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap),          cmocka_unit_test(shares_of_gradients),
        cmocka_unit_test(shares_of_weights), cmocka_unit_test(volumes),
        cmocka_unit_test(memory_of_a_rank), cmocka_unit_test(less_than_whole),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
