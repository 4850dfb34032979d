/*
 * Plans of jobs that share a base. Closed forms: on a device that holds all of it, each byte crosses once; where
 * nothing stays, a shard crosses twice a round, but the embedding, and the last one, of the loss, which cross once. A
 * link-bound round of k jobs takes as long as one of one job, and k jobs one after the other k times as long. No plan
 * ends before the bound of all plans. The judge refuses plans that are broken in each way that bases add, with the
 * operation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "models/jobs/job_base.h"
#include "planner/check/plan_check.h"
#include "planner/spill/cut/bound.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"

enum { ROUNDS = 50 };

static const char config[] = "{\"model_type\": \"llama\", \"num_hidden_layers\": 12, \"hidden_size\": 128, "
                             "\"num_attention_heads\": 4, \"num_key_value_heads\": 4, \"intermediate_size\": 344, "
                             "\"max_position_embeddings\": 32, \"vocab_size\": 131}";

/* Makes k jobs with adapters of one network, and their plan. */
static void make(uint32_t count, uint32_t devices, uint64_t memory_bytes, double rate, const char *policy,
                 struct plan *out)
{
    const struct planner_options options = {.policy = policy, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, devices, memory_bytes, rate);
    hardware.host_bytes.value = 1e9;
    test_network_jobs(&jobs, count, config, ROUNDS);
    for (uint32_t j = 0; j < count; j++) {
        jobs.jobs[j].base = "llama";
        jobs.jobs[j].optimizer.kind = OPTIMIZER_SGD;
        jobs.jobs[j].adapter = (struct job_adapter){.rank = 1 + j % 2, .alpha = 8, .all_linear = true};
        support_train_only(&jobs.jobs[j], &jobs.arena);
    }
    *out = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, out, &err)) fail_msg("%s", err.text);
}

/* Returns the bytes of a shard of the base that are fetched in the whole run. */
static uint64_t fetched(const struct plan *plan, uint32_t shard)
{
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < plan->segment_count; s++)
        for (uint32_t t = 0; t < plan->segments[s].task_count; t++) {
            const struct plan_unit *unit = &plan->units[plan->tasks[plan->segments[s].first_task + t].unit];
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++) {
                const struct plan_buffer *from = &plan->buffers[plan->accesses[plan->ops[o].first_access].buffer];
                if (plan->ops[o].kind == OP_COPY && from->kind == BUFFER_BASE && from->shard == shard)
                    bytes += plan->ops[o].bytes * plan->segments[s].repeat_count;
            }
        }
    return bytes;
}

static uint64_t base_of(const struct plan *plan, uint32_t shard)
{
    const struct plan_shard *s = &plan->shards[shard];
    return job_base_bytes(&plan->jobs.jobs[0], s->first_layer, s->layer_count);
}

static double simulated(const struct plan *plan)
{
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    const struct sim_options options = {0};
    if (sim_run(plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
    const double seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    return seconds;
}

static void all_stays(void **state)
{
    (void)state;
    for (uint32_t devices = 1; devices <= 3; devices++) {
        struct plan plan;
        make(3, devices, 1 << 26, 1e9, "shared-base", &plan);
        for (uint32_t s = 1; s < plan_job_shards(&plan, 0); s++) assert_int_equal(fetched(&plan, s), base_of(&plan, s));
        plan_release(&plan);
    }
}

/* Takes memory away until nothing stays: then the embedding and the last shard cross once a round, the others twice. */
static void nothing_stays(void **state)
{
    struct plan plan;
    uint32_t streamed = 0;
    (void)state;
    for (uint64_t memory = 1 << 23; memory > 1 << 21; memory -= memory / 9) {
        make(3, 1, memory, 1e8, "shared-base", &plan);
        const uint32_t count = plan_job_shards(&plan, 0);
        uint32_t now = 0;
        for (uint32_t s = 0; s < count; s++) {
            const uint64_t times = s == 0 || s + 1 == count ? ROUNDS : 2 * ROUNDS;
            const uint64_t bytes = fetched(&plan, s), all = base_of(&plan, s);
            now += bytes > all;
            if (bytes % all != 0 || bytes > times * all)
                fail_msg("%llu bytes of memory, shard %u: %llu of %llu bytes", (unsigned long long)memory, s,
                         (unsigned long long)bytes, (unsigned long long)all);
        }
        for (uint32_t s = 0; s < count && now == count; s++)
            assert_int_equal(fetched(&plan, s), (s == 0 || s + 1 == count ? 1u : 2u) * ROUNDS * base_of(&plan, s));
        streamed += now == count;
        plan_release(&plan);
    }
    assert_true(streamed > 0);
}

/* Link-bound: with a slow link k jobs take little longer than one. Compute-bound: k times one. */
static void crosses_for_all(void **state)
{
    static const double rates[] = {2e6, 1e12};
    double seconds[2][5];
    (void)state;
    for (size_t r = 0; r < 2; r++)
        for (uint32_t k = 1; k <= 4; k *= 2) {
            struct plan plan;
            struct bound bound;
            make(k, 1, 3 << 20, rates[r], "shared-base", &plan);
            seconds[r][k] = simulated(&plan);
            bound_makespan(&plan.hardware, &plan.jobs, hardware_has_cpu(&plan.hardware), &bound);
            assert_true(seconds[r][k] >= bound.any_s * (1 - 1e-9));
            plan_release(&plan);
        }
    print_message("1, 2, 4 jobs: %.4g, %.4g, %.4g s on a slow link, %.4g, %.4g, %.4g on a fast one\n", seconds[0][1],
                  seconds[0][2], seconds[0][4], seconds[1][1], seconds[1][2], seconds[1][4]);
    assert_true(seconds[0][4] < 1.35 * seconds[0][1]); /* adapters and boundaries cross for each */
    assert_true(seconds[1][4] > 3.5 * seconds[1][1] && seconds[1][4] < 4.2 * seconds[1][1]);
}

/* The bound of all plans is not above the makespan of this one, though other policies have the base cross for each. */
static void bound_holds(void **state)
{
    struct plan shared, spilled;
    struct bound bound;
    (void)state;
    make(4, 1, 3 << 20, 2e6, "shared-base", &shared);
    make(4, 1, 3 << 20, 2e6, "sharded-lrtf", &spilled);
    bound_makespan(&spilled.hardware, &spilled.jobs, hardware_has_cpu(&spilled.hardware), &bound);
    const double together = simulated(&shared), apart = simulated(&spilled);
    assert_true(bound.any_s <= together && together < apart / 2.5);
    plan_release(&shared);
    plan_release(&spilled);
}

/* --- broken plans ----------------------------------------------------------------------------- */

/* Returns the first access of a base's buffer on a device with all of these flags, of a computation or a copy. */
static struct plan_access *find(struct plan *plan, uint8_t kind, uint32_t flags, struct plan_op **op)
{
    for (uint32_t o = 0; o < plan->op_count; o++)
        for (uint32_t a = 0; a < plan->ops[o].access_count; a++) {
            struct plan_access *access = &plan->accesses[plan->ops[o].first_access + a];
            const struct plan_buffer *b = &plan->buffers[access->buffer];
            if (plan->ops[o].kind != kind || b->kind != BUFFER_BASE || !b->on_device ||
                (access->flags & flags) != flags)
                continue;
            *op = &plan->ops[o];
            return access;
        }
    fail_msg("no such access");
    return NULL;
}

static void keep_forever(struct plan *plan)
{
    struct plan_op *op;
    find(plan, OP_COMPUTE, ACCESS_RELEASE, &op)->flags &= ~(uint32_t)ACCESS_RELEASE;
}

static void fetch_too_little(struct plan *plan)
{
    struct plan_op *op;
    find(plan, OP_COPY, ACCESS_WRITE, &op);
    op->bytes -= 64;
}

static void write_it(struct plan *plan)
{
    struct plan_op *op;
    find(plan, OP_COMPUTE, ACCESS_READ, &op)->flags |= ACCESS_WRITE;
}

static void own_another(struct plan *plan) { plan->jobs.jobs[1].base_owner = 2; }

static void own_itself(struct plan *plan) { plan->jobs.jobs[1].base_owner = 1; }

static void come_from_elsewhere(struct plan *plan) { plan->jobs.jobs[1].base = "another"; }

static void shrink(struct plan *plan)
{
    uint32_t b = 0;
    while (plan->buffers[b].kind != BUFFER_BASE || plan->buffers[b].on_device) b++;
    plan->buffers[b].bytes -= 64;
}

static void broken(void **state)
{
    static const struct {
        void (*breaks)(struct plan *plan);
        const char *expected; /* a part of the message */
    } cases[] = {
        {keep_forever, "base of job-0 shard"},
        {fetch_too_little, "base of job-0 shard"},
        {write_it, "(expected: reads it)"},
        {own_another, "form: job-1 shares the base of a job that does not own one"},
        {own_itself, "of another job"},
        {come_from_elsewhere, "form: job-1 has not the base of job-0: their weights come from different seeds"},
        {shrink, "bytes (expected"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct plan plan;
        struct error err = {0};
        make(3, 1, 3 << 20, 1e8, "shared-base", &plan);
        cases[i].breaks(&plan);
        assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
        if (!strstr(err.text, cases[i].expected)) fail_msg("%zu: %s (expected %s)", i, err.text, cases[i].expected);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_stays), cmocka_unit_test(nothing_stays),
                                       cmocka_unit_test(crosses_for_all), cmocka_unit_test(bound_holds),
                                       cmocka_unit_test(broken)};
    return cmocka_run_group_tests_name("planner/spill/shared", tests, NULL, NULL);
}
