/* label: medium
 * planner/capacity/what_if_floor.h and the search that leans on it: what a way takes when its plan is simulated is
 * never below its floor, nor is what its plan takes of a device; on machines that nothing disturbs an even pipeline's
 * floor is its time; and leaving out what cannot be the fastest finds what timing everything finds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "models/job/parallel_offload.h"
#include "planner/capacity/what_if.h"
#include "planner/capacity/what_if_floor.h"
#include "sim/sim.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

static uint32_t simulations;

static enum status simulated_s(void *context, const struct plan *plan, double *seconds, struct error *err)
{
    simulations++;
    return sim_seconds(context, plan, seconds, err);
}
static const struct saturn_clock clock_of_sim = {.time = simulated_s};

/* --- random jobs and machines ------------------------------------------------------------------ */

static const char *const machines[] = {
    "4x a100-sxm4-40gb", "p3.8xlarge",    "g5.12xlarge",     "2x a100-sxm4-40gb + 2x v100-sxm2-32gb",
    "2x p4d.24xlarge",   "rtx-3090-24gb", "dgx-a100-80gb 2:1", "3x a100-sxm4-80gb",
};

static const char *const networks[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 256, \"n_head\": 4, \"vocab_size\": 1000, "
    "\"n_positions\": 128}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 5, \"hidden_size\": 512, \"num_attention_heads\": 8, "
    "\"intermediate_size\": 2048, \"vocab_size\": 3000, \"max_position_embeddings\": 128}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 256, \"num_attention_heads\": 8, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 512, \"vocab_size\": 1000, \"max_position_embeddings\": 128, "
    "\"rms_norm_eps\": 1e-5}",
    /* blocks of two kinds, and the first of each kind another */
    "{\"model_type\": \"t5\", \"d_model\": 256, \"d_kv\": 32, \"d_ff\": 1024, \"num_heads\": 8, \"num_layers\": 4, "
    "\"num_decoder_layers\": 4, \"vocab_size\": 1000, \"relative_attention_num_buckets\": 32, "
    "\"feed_forward_proj\": \"relu\", \"is_encoder_decoder\": true}",
    /* layers that differ */
    "{\"model_type\": \"resnet\", \"depths\": [2, 1, 2], \"hidden_sizes\": [64, 128, 256], \"embedding_size\": 32, "
    "\"layer_type\": \"basic\", \"num_channels\": 3, \"num_labels\": 10}",
};
enum { RESNET = 4 };

struct sample {
    struct hardware hardware;
    struct job_set jobs;
    char text[1024];
};

static void draw(uint64_t seed, uint64_t number, uint32_t minibatches_most, struct sample *out)
{
    struct error err = {0};
    uint64_t key = random_u64(seed, number);
    *out = (struct sample){0};
    const char *machine = machines[random_below(key, 0, ARRAY_COUNT(machines))];
    uint64_t bytes = (UINT64_C(1) << 25) << random_below(key, 1, 6),
        network = random_below(key, 2, ARRAY_COUNT(networks));
    bool half = network != RESNET && random_below(key, 6, 2);
    snprintf(out->text, sizeof out->text,
             "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": %s, %s\"microbatch\": %u, "
             "\"microbatches\": %u, \"minibatches\": %u, \"precision\": \"%s\", "
             "\"optimizer\": {\"kind\": \"adamw\"}}]}",
             networks[network], network == RESNET ? "" : "\"sequence\": 128, ", 1u << random_below(key, 3, 3),
             4u << random_below(key, 4, 3), 1 + (unsigned)random_below(key, 5, minibatches_most),
             half ? "bf16" : "fp32");
    if (hardware_find(machine, &out->hardware, &err) != STATUS_OK) { /* one that the catalogue does not spell so */
        err = (struct error){0};
        if (hardware_find(machine = machines[0], &out->hardware, &err) != STATUS_OK) fail_msg("%s", err.text);
    }
    if (support_jobs(out->text, ".", &out->jobs, &err) != STATUS_OK) fail_msg("%s", err.text);
    for (uint32_t d = 0; d < out->hardware.device_count; d++) out->hardware.devices[d].memory_bytes = bytes;
    snprintf(out->text + strlen(out->text), sizeof out->text - strlen(out->text), " on %s with %llu bytes each",
             machine, (unsigned long long)bytes);
}

static void release(struct sample *sample)
{
    job_set_release(&sample->jobs);
    hardware_release(&sample->hardware);
}

/* --- floors ------------------------------------------------------------------------------------ */

static void check_memory(const struct sample *sample, const struct what_if_way *way, const struct what_if_floor *floor)
{
    struct plan plan = {0};
    struct error err = {0};
    enum status status = what_if_plan(&sample->hardware, &sample->jobs.jobs[0], way, 1, &plan, &err);
    if (!status && floor->device_bytes > 0) {
        uint64_t takes = plan_device_bytes(&plan, plan.gang_devices[plan.gangs[floor->stage].first]);
        if (takes < floor->device_bytes)
            fail_msg("%s, %s: takes %llu bytes of stage %u, its floor is %llu", sample->text, way->fit.name,
                     (unsigned long long)takes, floor->stage, (unsigned long long)floor->device_bytes);
    }
    plan_release(&plan);
}

static void nothing_is_below_its_floor(void **state)
{
    (void)state;
    static struct what_if_way ways[WHAT_IF_WAYS_MAX];
    uint64_t seed = support_seed("floors");
    uint32_t compared = 0, refused = 0;
    double tightest = 0;
    for (uint32_t i = 0; i < 120; i++) {
        struct sample sample;
        draw(seed, i, 3, &sample);
        const struct job *job = &sample.jobs.jobs[0];
        uint32_t count = what_if_ways(&sample.hardware, job, ways);
        for (uint32_t k = 0; k < 4; k++) {
            struct what_if_way *way = &ways[random_below(seed, 1000 + 8 * i + 2 * k, count)];
            struct what_if_floor floor;
            struct error err = {0};
            double run_s;
            if (way->keeps_less)
                way->fit.parallel.recompute = (uint32_t)random_below(seed, 1001 + 8 * i + 2 * k, RECOMPUTE_COUNT);
            if (what_if_floor(&sample.hardware, job, way, &floor, &err) != STATUS_OK) fail_msg("%s", err.text);
            enum status status = what_if_time(&sample.hardware, job, way, &clock_of_sim, &run_s, &err);
            if (floor.device_bytes > floor.have_bytes) {
                assert_int_not_equal(status, STATUS_OK);
                refused++;
                continue;
            }
            check_memory(&sample, way, &floor);
            if (status != STATUS_OK) continue;
            compared++;
            if (floor.run_s > run_s * (1 + 1e-9))
                fail_msg("%s, %s: simulated %.12g s, the floor is %.12g s", sample.text, way->fit.name, run_s,
                         floor.run_s);
            if (floor.run_s / run_s > tightest) tightest = floor.run_s / run_s;
        }
        release(&sample);
    }
    assert_true(compared > 30 && refused > 5);
    assert_true(tightest > 0.9);
}

/* Checks all offloaded ways of a job, which are few in the grid. */
static void offloaded_ways_have_floors(void **state)
{
    (void)state;
    static struct what_if_way ways[WHAT_IF_WAYS_MAX];
    uint64_t seed = support_seed("offloaded");
    uint32_t compared = 0;
    double tightest = 0;
    for (uint32_t i = 0; i < 10; i++) {
        struct sample sample;
        draw(seed, i, 3, &sample);
        uint32_t count = what_if_ways(&sample.hardware, &sample.jobs.jobs[0], ways);
        for (uint32_t k = 0; k < count; k++) {
            struct what_if_floor floor;
            struct error err = {0};
            double run_s;
            if (!parallel_offloads(&ways[k].fit.parallel)) continue;
            if (what_if_floor(&sample.hardware, &sample.jobs.jobs[0], &ways[k], &floor, &err) != STATUS_OK)
                fail_msg("%s", err.text);
            if (what_if_time(&sample.hardware, &sample.jobs.jobs[0], &ways[k], &clock_of_sim, &run_s, &err) !=
                STATUS_OK)
                continue;
            if (!(floor.run_s > 0 && floor.run_s <= run_s * (1 + 1e-9)))
                fail_msg("%s, %s: simulated %.12g s, the floor is %.12g s", sample.text, ways[k].fit.name, run_s,
                         floor.run_s);
            check_memory(&sample, &ways[k], &floor);
            compared++;
            if (floor.run_s / run_s > tightest) tightest = floor.run_s / run_s;
        }
        release(&sample);
    }
    assert_true(compared > 10);
    assert_true(tightest > 0.6);
}

/*
 * A network whose boundaries are large and whose states stay (a plan with no copies out that anybody waits for): what
 * copies out take in all is no bound on such an order. Plans that claim a bound above their own order are wrong, and
 * refused.
 */
static void boundaries_that_nobody_waits_for(void **state)
{
    (void)state;
    static struct what_if_way ways[WHAT_IF_WAYS_MAX];
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct error err = {0};
    uint32_t planned = 0;
    char text[512];
    snprintf(text, sizeof text,
             "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": %s, \"microbatch\": 2, "
             "\"microbatches\": 8, \"minibatches\": 10, \"optimizer\": {\"kind\": \"adamw\"}}]}", networks[RESNET]);
    assert_int_equal(hardware_find("2x p4d.24xlarge", &hardware, &err), STATUS_OK);
    assert_int_equal(support_jobs(text, ".", &jobs, &err), STATUS_OK);
    for (uint32_t d = 0; d < hardware.device_count; d++) hardware.devices[d].memory_bytes = UINT64_C(3) << 27;
    uint32_t count = what_if_ways(&hardware, &jobs.jobs[0], ways);
    for (uint32_t k = 0; k < count; k++) {
        struct plan plan = {0};
        err = (struct error){0};
        if (parallel_is_set(&ways[k].fit.parallel)) continue;
        if (what_if_plan(&hardware, &jobs.jobs[0], &ways[k], 2, &plan, &err) == STATUS_CHECK)
            fail_msg("%s: %s", ways[k].fit.name, err.text);
        planned += err.status == STATUS_OK;
        plan_release(&plan);
    }
    assert_true(planned > 10);
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/* One node, very fast links, equal blocks: passes of stages follow each other with no gap except the pipeline's. */
static void an_even_pipeline_takes_its_floor(void **state)
{
    (void)state;
    static struct what_if_way ways[WHAT_IF_WAYS_MAX];
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct error err = {0};
    struct what_if_floor floor;
    double run_s;
    uint32_t i = 0;
    char text[512];
    snprintf(text, sizeof text,
             "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": %s, \"sequence\": 128, "
             "\"microbatch\": 2, \"microbatches\": 24, \"minibatches\": 3}]}", networks[0]);
    assert_int_equal(hardware_find("3x a100-sxm4-80gb", &hardware, &err), STATUS_OK);
    hardware.stack = STACK_FRAMEWORKS; /* states are in place */
    assert_int_equal(support_jobs(text, ".", &jobs, &err), STATUS_OK);
    uint32_t count = what_if_ways(&hardware, &jobs.jobs[0], ways);
    while (i < count && strcmp(ways[i].fit.name, "pp=3") != 0) i++;
    assert_true(i < count);
    assert_int_equal(what_if_floor(&hardware, &jobs.jobs[0], &ways[i], &floor, &err), STATUS_OK);
    assert_int_equal(what_if_time(&hardware, &jobs.jobs[0], &ways[i], &clock_of_sim, &run_s, &err), STATUS_OK);
    assert_true(floor.run_s <= run_s * (1 + 1e-9));
    assert_true(floor.run_s > 0.9 * run_s);
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/* --- the search -------------------------------------------------------------------------------- */

static void leaving_out_finds_what_all_finds(void **state)
{
    (void)state;
    uint64_t seed = support_seed("search");
    uint32_t few = 0, many = 0;
    for (uint32_t i = 0; i < 6; i++) {
        struct sample sample;
        struct what_if some = {0}, all = {0};
        struct error err = {0};
        draw(seed, i, 12, &sample);
        const struct job *job = &sample.jobs.jobs[0];
        simulations = 0;
        if (what_if_search(&sample.hardware, job, &clock_of_sim, false, &some, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        few += simulations;
        simulations = 0;
        if (what_if_search(&sample.hardware, job, &clock_of_sim, true, &all, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        many += simulations;
        assert_int_equal(some.count, all.count);
        if (some.best != all.best)
            fail_msg("%s: best is %u, of all ways it is %u", sample.text, some.best, all.best);
        for (uint32_t k = 0; k < all.count; k++) {
            const struct what_if_try *t = &some.tries[k], *other = &all.tries[k];
            assert_false(other->slower);
            assert_false(t->fits && t->slower);
            if (t->fits) assert_true(other->fits && t->run_s == other->run_s);
            if (t->slower && other->fits && other->run_s * (1 + 1e-9) < t->run_s)
                fail_msg("%s, %s: simulated %.12g s, the floor is %.12g s", sample.text, all.tries[k].way.fit.name,
                         other->run_s, t->run_s);
            if (t->slower) assert_true(t->run_s > some.tries[some.best].run_s);
        }
        what_if_release(&some);
        what_if_release(&all);
        release(&sample);
    }
    assert_true(2 * many > 3 * few); /* more than three times, as a rule */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_below_its_floor),
        cmocka_unit_test(offloaded_ways_have_floors),
        cmocka_unit_test(boundaries_that_nobody_waits_for),
        cmocka_unit_test(an_even_pipeline_takes_its_floor),
        cmocka_unit_test(leaving_out_finds_what_all_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
