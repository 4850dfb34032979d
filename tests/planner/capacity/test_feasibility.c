/*
 * planner/capacity/feasibility.h: where states stay of any length, the memory it gives for a way is the memory that a
 * plan of that way takes (otherwise the best choice of resident states depends on how often they come back); a device
 * with the least memory that it names is enough and one with less is not; parts add up and match the weights of layers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "planner/capacity/feasibility.h"
#include "planner/check/plan_check.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

enum { DEVICES = 4 };

static void make_machine(struct hardware *out, uint64_t device_bytes, uint64_t host_bytes)
{
    struct error err = {0};
    const struct hardware_options options = {.device_count = DEVICES,
                                             .device_memory_bytes = device_bytes,
                                             .host_memory_bytes = host_bytes,
                                             .storage_bytes = UINT64_C(1) << 40,
                                             .storage_bytes_per_s = 3e9};
    *out = (struct hardware){0};
    if (hardware_find("dgx-a100-80gb", out, &err) || hardware_adjust(out, &options, &err)) fail_msg("%s", err.text);
}

static const char *const networks[] = {
    "\"gpt2-tiny-bytes\"",
    "\"llama-tiny-bytes\"",
    "{\"model_type\": \"bert\", \"hidden_size\": 64, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
    "\"intermediate_size\": 192, \"vocab_size\": 521, \"max_position_embeddings\": 128}",
    "{\"model_type\": \"vit\", \"hidden_size\": 64, \"num_hidden_layers\": 5, \"num_attention_heads\": 4, "
    "\"intermediate_size\": 128, \"image_size\": 32, \"patch_size\": 8, \"architectures\": "
    "[\"ViTForImageClassification\"]}",
    "{\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 40000, \"activation_bytes\": 300000, "
    "\"boundary_bytes\": 8192, \"forward\": \"2ms\", \"backward_ns\": 4000000, \"repeat\": 7}]}",
};

static void make_job(struct job_set *out, uint64_t key)
{
    struct error err = {0};
    char text[1024];
    uint64_t network = random_below(key, 1, ARRAY_COUNT(networks));
    bool images = network == 3, bf16 = network < 3 && random_below(key, 2, 2) == 1;
    char sequence[32] = "";
    if (!images) snprintf(sequence, sizeof sequence, "\"sequence\": %d, ", 32 << random_below(key, 3, 2));
    snprintf(text, sizeof text,
             "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": %s, %s\"microbatch\": %" PRIu64
             ", \"microbatches\": %" PRIu64 ", \"minibatches\": 1, \"precision\": \"%s\", "
             "\"optimizer\": {\"kind\": \"%s\"}}]}",
             networks[network], sequence, 1 + random_below(key, 4, 3), DEVICES * (1 + random_below(key, 5, 2)),
             bf16 ? "bf16" : "fp32", random_below(key, 6, 2) ? "adamw" : "sgd");
    *out = (struct job_set){0};
    if (support_jobs(text, ".", out, &err)) fail_msg("%s\n%s", text, err.text);
}

/* Plans with the planner and the same number of minibatches, for the whole machine, as `plan` does. */
static enum status plan_way(const struct hardware *machine, uint64_t key, const struct feasibility_way *way,
                            uint64_t minibatches, uint64_t device_bytes, uint64_t host_bytes, struct plan *out)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct hardware_options fewer = {.device_count = way->devices};
    make_machine(&hardware, machine->devices[0].memory_bytes, host_bytes);
    if (hardware_adjust(&hardware, &fewer, &err)) fail_msg("%s", err.text);
    for (uint32_t d = 0; d < hardware.device_count; d++) hardware.devices[d].memory_bytes = device_bytes;
    make_job(&jobs, key);
    jobs.jobs[0].minibatches = minibatches;
    jobs.jobs[0].parallel = way->parallel;
    const struct planner_options options = {.policy = way->policy,
                                            .activations = way->activations,
                                            .optimizer = way->optimizer,
                                            .storage = way->storage,
                                            .last = way->last};
    *out = (struct plan){0};
    enum status status = planner_plan(&hardware, &jobs, &options, out, &err);
    if (status == STATUS_OK && plan_check(out, &err)) fail_msg("%s: %s", way->name, err.text);
    return status;
}

static uint64_t sum_of(const struct memory_breakdown *parts)
{
    uint64_t sum = 0;
    for (uint32_t p = 0; p < MEMORY_PART_COUNT; p++) sum += parts->bytes[p];
    return sum;
}

static uint64_t fullest(const struct plan *plan)
{
    uint64_t most = 0;
    for (uint32_t d = 0; d < plan->hardware.device_count; d++)
        if (plan_device_bytes(plan, d) > most) most = plan_device_bytes(plan, d);
    return most;
}

static void check_figures(const struct hardware *machine, uint64_t key, const struct feasibility_way *way,
                          const struct feasibility *f)
{
    struct plan plan;
    uint64_t minibatches = feasibility_way_stays(way) ? 3 + random_below(key, 9, 3) : 2;
    if (f->verdict != FEASIBILITY_YES) return;
    enum status status = plan_way(machine, key, way, minibatches, machine->devices[0].memory_bytes,
                                  (uint64_t)machine->host_bytes.value, &plan);
    if (status != STATUS_OK) fail_msg("%s is said to fit", way->name);
    if (f->device_bytes != fullest(&plan) || f->host_bytes != plan_host_bytes(&plan) ||
        f->stored_bytes != plan_stored_bytes(&plan))
        fail_msg("%s: said %" PRIu64 ", %" PRIu64 ", %" PRIu64 ", its plan takes %" PRIu64 ", %" PRIu64 ", %" PRIu64,
                 way->name, f->device_bytes, f->host_bytes, f->stored_bytes, fullest(&plan), plan_host_bytes(&plan),
                 plan_stored_bytes(&plan));
    plan_release(&plan);
}

/* Checks that the least memory is enough, and one alignment less is not. Stages that do not fit are other stages on
 * another device. */
static void check_least(const struct hardware *machine, uint64_t key, const struct feasibility_way *way,
                        const struct feasibility *f)
{
    struct plan plan;
    const uint64_t plenty = UINT64_C(1) << 40, step = 256;
    if (f->verdict == FEASIBILITY_IMPOSSIBLE || (way->policy && way->devices > 1)) return;
    enum status status = plan_way(machine, key, way, 2, f->least_bytes, plenty, &plan);
    plan_release(&plan);
    if (status != STATUS_OK) fail_msg("%s does not fit the least that it needs, %" PRIu64, way->name, f->least_bytes);
    status = plan_way(machine, key, way, 2, f->least_bytes - step, plenty, &plan);
    plan_release(&plan);
    if (status != STATUS_INFEASIBLE) fail_msg("%s fits with less than %" PRIu64, way->name, f->least_bytes);
}

static void figures_are_those_of_plans(void **state)
{
    (void)state;
    uint64_t seed = support_seed("figures_are_those_of_plans"), verdicts[FEASIBILITY_VERDICTS] = {0};
    for (uint64_t round = 0; round < 12; round++) {
        uint64_t key = random_mix(seed + round);
        struct hardware machine;
        struct job_set jobs;
        struct feasibility_way ways[FEASIBILITY_WAYS_MAX];
        struct feasibility fit;
        struct error err = {0};
        make_machine(&machine, UINT64_C(1) << (20 + random_below(key, 7, 5)),
                     UINT64_C(1) << (22 + random_below(key, 8, 4)));
        make_job(&jobs, key);
        uint32_t count = feasibility_ways(&machine, &jobs.jobs[0], ways);
        for (uint32_t i = 0; i < count; i++) {
            if (feasibility_find(&machine, &jobs.jobs[0], &ways[i], &fit, &err)) fail_msg("%s", err.text);
            verdicts[fit.verdict]++;
            if (sum_of(&fit.device) != fit.device_bytes || sum_of(&fit.host) != fit.host_bytes)
                fail_msg("parts of %s do not add up", ways[i].name);
            check_figures(&machine, key, &ways[i], &fit);
            check_least(&machine, key, &ways[i], &fit);
        }
        job_set_release(&jobs);
        hardware_release(&machine);
    }
    printf("%" PRIu64 " fit, %" PRIu64 " lack device memory, %" PRIu64 " host memory, %" PRIu64 " are impossible\n",
           verdicts[FEASIBILITY_YES], verdicts[FEASIBILITY_DEVICE], verdicts[FEASIBILITY_HOST],
           verdicts[FEASIBILITY_IMPOSSIBLE]);
}

/* --- closed forms ----------------------------------------------------------------------------- */

static struct feasibility fit_of(const char *job_text, const char *way_name)
{
    struct hardware machine;
    struct job_set jobs = {0};
    struct feasibility_way ways[FEASIBILITY_WAYS_MAX];
    struct feasibility fit = {.verdict = FEASIBILITY_IMPOSSIBLE};
    struct error err = {0};
    make_machine(&machine, 0, 0);
    if (support_jobs(job_text, ".", &jobs, &err)) fail_msg("%s", err.text);
    uint32_t count = feasibility_ways(&machine, &jobs.jobs[0], ways), found = 0;
    while (found < count && strcmp(ways[found].name, way_name) != 0) found++;
    if (found == count) fail_msg("no way '%s'", way_name);
    if (feasibility_find(&machine, &jobs.jobs[0], &ways[found], &fit, &err)) fail_msg("%s", err.text);
    job_set_release(&jobs);
    hardware_release(&machine);
    return fit;
}

#define GPT(more) \
    "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2\", \"microbatches\": 4, \"minibatches\": 1" more "}]}"

/*
 * GPT-2, P = 124 439 808, on one device. fp32 and AdamW: weights 4 P, moments 8 P; tensors of 768 n numbers need no
 * padding. The head reads the table in the embedding's state, and makes a gradient of it. The loss holds logits of 1024
 * rows or fewer of 50257 words.
 */
static void a_resident_network_weighs_what_it_weighs(void **state)
{
    (void)state;
    const uint64_t parameters = 124439808;
    struct feasibility f = fit_of(GPT(""), "resident");
    assert_int_equal(f.verdict, FEASIBILITY_YES);
    assert_int_equal(f.device.bytes[MEMORY_PART_WEIGHTS], 4 * parameters);
    assert_int_equal(f.device.bytes[MEMORY_PART_MOMENTS], 8 * parameters);
    assert_int_equal(f.device.bytes[MEMORY_PART_MASTER], 0);
    assert_int_equal(f.device.bytes[MEMORY_PART_TABLES], UINT64_C(50257) * 768 * 4);
    assert_int_equal(f.device.bytes[MEMORY_PART_LOGITS] % (50257 * 4), 0);
    assert_true(f.device.bytes[MEMORY_PART_LOGITS] > 0 &&
                f.device.bytes[MEMORY_PART_LOGITS] <= UINT64_C(1024) * 50257 * 4);
    assert_string_equal(f.moment, "loss of layers 1 to 13");
}

/* A 16-bit job with replicas and P parameters: 2 P of weights, 4 P of gradients, a fourth of 4 P and 8 P. The shares
 * of twelve runs are rounded up to whole parameters, and master and moments are counted from these. */
static void shares_are_shares(void **state)
{
    (void)state;
    const uint64_t parameters = 124439808, share = parameters / DEVICES, rounding = 12 * 12 + 13 * 64;
    struct feasibility f = fit_of(GPT(", \"precision\": \"bf16\""), "dp=4,v=12,zero=1");
    assert_int_equal(f.verdict, FEASIBILITY_YES);
    assert_in_range(f.device.bytes[MEMORY_PART_WEIGHTS], 2 * parameters, 2 * parameters + rounding);
    assert_in_range(f.device.bytes[MEMORY_PART_MASTER], 4 * share, 4 * share + rounding);
    assert_in_range(f.device.bytes[MEMORY_PART_MOMENTS], 8 * share, 8 * share + rounding);
    assert_in_range(f.device.bytes[MEMORY_PART_GRADIENTS], 4 * parameters, 4 * parameters + rounding);
}

/* With the states on storage host memory holds no states. */
static void what_is_stored_is_not_on_the_host(void **state)
{
    (void)state;
    struct feasibility f = fit_of(GPT(""), "dp=4,v=12,zero=3,offload=weights,storage");
    assert_int_equal(f.verdict, FEASIBILITY_YES);
    assert_in_range(f.stored_bytes, UINT64_C(12) * 124439808, UINT64_C(12) * 124439808 + 4 * 12 * 12);
    assert_int_equal(f.host.bytes[MEMORY_PART_WEIGHTS] + f.host.bytes[MEMORY_PART_MOMENTS], 0);
    assert_true(f.host.bytes[MEMORY_PART_STAGED] > 0);
}

/* Tensor groups divide the heads, stages are at most the blocks, and storage ways need storage. */
static void ways_are_those_that_are_possible(void **state)
{
    (void)state;
    struct hardware machine;
    struct job_set jobs = {0};
    struct feasibility_way ways[FEASIBILITY_WAYS_MAX];
    struct error err = {0};
    const struct hardware_options six = {.device_count = 6};
    if (hardware_find("dgx-a100-80gb", &machine, &err) || hardware_adjust(&machine, &six, &err) ||
        support_jobs("{\"spillway_jobs\": 1, \"jobs\": [{\"network\": \"gpt2-tiny-bytes\", \"microbatches\": 6, "
                     "\"minibatches\": 1}]}", ".", &jobs, &err))
        fail_msg("%s", err.text);
    uint32_t count = feasibility_ways(&machine, &jobs.jobs[0], ways);
    for (uint32_t i = 0; i < count; i++) {
        const struct parallel *p = &ways[i].parallel;
        assert_null(strstr(ways[i].name, "storage"));
        assert_true(p->tensor != 3 && p->tensor != 6);
        assert_true(p->pipeline <= 4);
        for (uint32_t k = 0; k < i; k++) assert_string_not_equal(ways[i].name, ways[k].name);
    }
    job_set_release(&jobs);
    hardware_release(&machine);
}

/* Variants of one listed way, by name. */
static void variants_are_schedules_and_plain_groups(void **state)
{
    (void)state;
    static const char *const expected[] = {"tp=2,pp=2,sp zb-h1", "tp=2,pp=2,v=2,sp interleaved", "tp=2,pp=2",
                                           "tp=2,pp=2 zb-h1", "tp=2,pp=2,v=2 interleaved"};
    struct job_set jobs = {0};
    struct error err = {0};
    struct feasibility_way variants[FEASIBILITY_VARIANTS_MAX];
    struct feasibility_way way = {.parallel = {.tensor = 2, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1,
                                               .schedule = PIPELINE_1F1B, .sequence = true}};
    if (support_jobs(GPT(""), ".", &jobs, &err)) fail_msg("%s", err.text);
    assert_int_equal(feasibility_variants(&jobs.jobs[0], &way, variants), 5);
    for (uint32_t i = 0; i < 5; i++) assert_string_equal(variants[i].name, expected[i]);
    way.parallel.sequence = false;
    way.parallel.recompute = RECOMPUTE_FULL;
    assert_int_equal(feasibility_variants(&jobs.jobs[0], &way, variants), 2);
    assert_string_equal(variants[0].name, "tp=2,pp=2 zb-h1+recompute");
    way.parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 4, .chunks = 12, .prefetch = 1,
                                     .schedule = PIPELINE_1F1B};
    assert_int_equal(feasibility_variants(&jobs.jobs[0], &way, variants), 0);
    job_set_release(&jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_those_of_plans),
        cmocka_unit_test(a_resident_network_weighs_what_it_weighs),
        cmocka_unit_test(shares_are_shares),
        cmocka_unit_test(what_is_stored_is_not_on_the_host),
        cmocka_unit_test(ways_are_those_that_are_possible),
        cmocka_unit_test(variants_are_schedules_and_plain_groups),
    };
    return cmocka_run_group_tests_name("fit", tests, NULL, NULL);
}
