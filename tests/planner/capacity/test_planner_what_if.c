/* label: medium
 * planner/capacity/what_if.h: the best way is what its plan says, no plan made by hand is faster, less memory makes
 * nothing faster, equal input gives equal answers, and what does not fit says why.
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
#include "planner/capacity/what_if.h"
#include "sim/sim.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

static const struct saturn_clock clock_of_sim = {.time = sim_seconds};

static void read_job(const char *fields, struct job_set *out)
{
    char text[512];
    struct error err = {0};
    snprintf(text, sizeof text,
             "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": {\"model_type\": \"gpt2\", "
             "\"n_layer\": 4, \"n_embd\": 256, \"n_head\": 4, \"vocab_size\": 1000, \"n_positions\": 128}, %s}]}",
             fields);
    *out = (struct job_set){0};
    if (support_jobs(text, ".", out, &err) != STATUS_OK) fail_msg("%s", err.text);
}

static void limit(struct hardware *hardware, uint64_t bytes)
{
    for (uint32_t d = 0; d < hardware->device_count; d++) hardware->devices[d].memory_bytes = bytes;
}

static void search(const struct hardware *hardware, const struct job_set *jobs, struct what_if *out)
{
    struct error err = {0};
    *out = (struct what_if){0};
    if (what_if_search(hardware, &jobs->jobs[0], &clock_of_sim, false, out, &err) != STATUS_OK)
        fail_msg("%s", err.text);
}

/* Each machine is read again, because planner_plan() takes it over. */
static enum status by_hand(const char *machine, uint64_t bytes, const char *fields, const char *degrees,
                           const char *policy, double *seconds)
{
    struct hardware hardware;
    struct job_set jobs;
    struct plan plan = {0};
    struct error err = {0};
    support_machine(machine, &hardware);
    limit(&hardware, bytes);
    read_job(fields, &jobs);
    if (degrees) assert_int_equal(parallel_parse_text(degrees, &jobs.jobs[0].parallel, &err), STATUS_OK);
    const struct planner_options options = {.policy = policy, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    enum status status = planner_plan(&hardware, &jobs, &options, &plan, &err);
    if (!status) status = sim_seconds(NULL, &plan, seconds, &err);
    plan_release(&plan);
    return status;
}

static const char *const machines[] = {"4x a100-sxm4-40gb", "p3.8xlarge", "g5.12xlarge", "rtx-3090-24gb",
                                       "2x p4d.24xlarge"};
static const char *const degrees[] = {"dp=4", "tp=2,dp=2", "pp=2,dp=2", "pp=4", "tp=4", "dp=2", "tp=2,pp=2",
                                      "dp=4,zero=1,v=4", "dp=4,zero=3,v=4", "tp=1", "pp=4,dp=4", "tp=8,dp=2"};

static void no_plan_by_hand_is_faster(void **state)
{
    (void)state;
    uint64_t seed = support_seed("what if");
    uint32_t compared = 0;
    for (uint32_t i = 0; i < 12; i++) {
        char fields[128];
        const char *machine = machines[random_below(seed, 4 * i, ARRAY_COUNT(machines))];
        uint64_t bytes = (UINT64_C(1) << 26) << random_below(seed, 4 * i + 1, 4);
        unsigned microbatch = 1u << random_below(seed, 4 * i + 2, 3),
            minibatches = 1 + (unsigned)random_below(seed, 4 * i + 3, 6);
        snprintf(fields, sizeof fields, "\"microbatch\": %u, \"microbatches\": 16, \"minibatches\": %u", microbatch,
                 minibatches);
        struct hardware hardware;
        struct job_set jobs;
        struct what_if found;
        support_machine(machine, &hardware);
        limit(&hardware, bytes);
        read_job(fields, &jobs);
        search(&hardware, &jobs, &found);
        double best = found.best < found.count ? found.tries[found.best].run_s : 1e300, seconds;
        for (size_t d = 0; d <= ARRAY_COUNT(degrees); d++) {
            const char *by = d < ARRAY_COUNT(degrees) ? degrees[d] : NULL;
            if (by_hand(machine, bytes, fields, by, by ? NULL : "sharded-lrtf", &seconds) != STATUS_OK) continue;
            compared++;
            if (!by && hardware.device_count > 1) continue; /* streams over several devices: one job uses one at a
                                                               time */
            if (seconds < best * (1 - 1e-9))
                fail_msg("%s, %llu bytes, %s: %s takes %g s, the best %g s", machine, (unsigned long long)bytes, fields,
                         by ? by : "sharded-lrtf", seconds, best);
        }
        what_if_release(&found);
        job_set_release(&jobs);
        hardware_release(&hardware);
    }
    assert_true(compared > 20);
}

/* The best is at least as good as with half of the memory. */
static void less_memory_is_never_faster(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    double before = 0;
    support_machine("4x a100-sxm4-40gb", &hardware);
    read_job("\"microbatch\": 2, \"microbatches\": 16, \"minibatches\": 5", &jobs);
    for (uint64_t bytes = UINT64_C(1) << 30; bytes >= UINT64_C(1) << 24; bytes /= 2) {
        struct what_if found;
        limit(&hardware, bytes);
        search(&hardware, &jobs, &found);
        double now = found.best < found.count ? found.tries[found.best].run_s : 1e300;
        assert_true(now >= before * (1 - 1e-9));
        before = now;
        what_if_release(&found);
    }
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/* Of 40 minibatches 4 and 2 are simulated; the whole run, simulated, takes as long within 1 %. */
static void long_jobs_are_timed_by_their_step(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct what_if found, again;
    double seconds;
    struct error err = {0};
    struct plan plan = {0};
    support_machine("4x a100-sxm4-40gb", &hardware);
    read_job("\"microbatch\": 2, \"microbatches\": 16, \"minibatches\": 40", &jobs);
    search(&hardware, &jobs, &found);
    search(&hardware, &jobs, &again);
    assert_int_equal(found.best, again.best);
    const struct what_if_try *best = &found.tries[found.best];
    assert_true(best->run_s == again.tries[found.best].run_s);
    assert_int_equal(what_if_plan(&hardware, &jobs.jobs[0], &best->way, 40, &plan, &err), STATUS_OK);
    assert_int_equal(sim_seconds(NULL, &plan, &seconds, &err), STATUS_OK);
    assert_true(best->run_s > seconds * 0.99 && best->run_s < seconds * 1.01);
    plan_release(&plan);
    what_if_release(&found);
    what_if_release(&again);
    job_set_release(&jobs);
    hardware_release(&hardware);
}

static void what_does_not_fit_says_why(void **state)
{
    (void)state;
    struct hardware hardware;
    struct job_set jobs;
    struct what_if found;
    support_machine("a100-sxm4-40gb", &hardware);
    limit(&hardware, 4096);
    read_job("\"microbatch\": 2, \"minibatches\": 5", &jobs);
    search(&hardware, &jobs, &found);
    assert_int_equal(found.best, found.count);
    assert_true(found.count > 3);
    for (uint32_t i = 0; i < found.count; i++) {
        assert_false(found.tries[i].fits);
        assert_true(strlen(found.tries[i].reason) > 10);
    }
    what_if_release(&found);
    job_set_release(&jobs);
    hardware_release(&hardware);
}

static bool is_among(const struct what_if_way *ways, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(ways[i].fit.name, name) == 0) return true;
    return false;
}

/* Every way trains the same minibatch, and has a name of its own. Sixteen replicas have no even part of 24
 * microbatches of 2 samples, but three of 48 of one. */
static void ways_keep_the_minibatch(void **state)
{
    (void)state;
    static struct what_if_way ways[WHAT_IF_WAYS_MAX];
    struct hardware hardware;
    struct job_set jobs;
    support_machine("2x p4d.24xlarge", &hardware);
    read_job("\"microbatch\": 2, \"microbatches\": 24, \"minibatches\": 5", &jobs);
    uint32_t count = what_if_ways(&hardware, &jobs.jobs[0], ways);
    assert_true(count > 50);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(ways[i].microbatch * ways[i].microbatches, 48);
        assert_true(ways[i].fit.devices >= 1 && ways[i].fit.devices <= 16);
        for (uint32_t k = 0; k < i; k++) assert_string_not_equal(ways[i].fit.name, ways[k].fit.name);
    }
    assert_true(is_among(ways, count, "dp=16,v=4,zero=3 mb=1"));
    assert_true(is_among(ways, count, "dp=16,v=4,zero=2,offload=states mb=1"));
    assert_true(is_among(ways, count, "dp=16,v=4,zero=3,offload=weights mb=1"));
    assert_true(is_among(ways, count, "tp=2,pp=4,dp=2,sp zb-h1"));
    assert_true(is_among(ways, count, "tp=2,pp=4,dp=2 zb-h1")); /* without sequence parallelism */
    assert_true(is_among(ways, count, "tp=2,dp=8,v=4,zero=1 mb=1"));
    struct error err = {0};
    assert_int_equal(parallel_parse_text("tp=2,dp=4", &jobs.jobs[0].parallel, &err), STATUS_OK);
    assert_int_equal(what_if_ways(&hardware, &jobs.jobs[0], ways), 1); /* it says itself how */
    job_set_release(&jobs);
    hardware_release(&hardware);
}

/*
 * Machines by a GPU's name and by a cloud's name that differ only in host memory, cores and NICs are as fast to 10 %.
 * Sixteen GPUs of one host and of two hosts differ in the NICs of these as well, over which pipelines send little.
 */
static void equivalent_machines(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"4xl4-24gb", "g6.12xlarge"},      {"8x l4-24gb", "g6.48xlarge"},
                                           {"4x t4-16gb", "g4dn.12xlarge"},   {"4x a10g-24gb", "g5.12xlarge"},
                                           {"8x l40s-48gb", "g6e.48xlarge"},  {"4x v100-pcie-16gb", "nc24v3"},
                                           {"16xa10g", "2x aws:g5.48xlarge"}};
    static const char job[] = "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2-xl\", "
                              "\"sequence\": 1024, \"microbatch\": 1, \"microbatches\": 8, \"minibatches\": 1, "
                              "\"precision\": \"bf16\"}]}";
    for (uint32_t p = 0; p < ARRAY_COUNT(pairs); p++) {
        double seconds[2];
        for (uint32_t m = 0; m < 2; m++) {
            struct hardware hardware;
            struct job_set jobs = {0};
            struct what_if found;
            struct error err = {0};
            support_machine(pairs[p][m], &hardware);
            hardware.stack = STACK_FRAMEWORKS; /* two hosts bring states to their devices in half of the time */
            if (support_jobs(job, ".", &jobs, &err) != STATUS_OK) fail_msg("%s", err.text);
            search(&hardware, &jobs, &found);
            assert_true(found.best < found.count);
            seconds[m] = found.tries[found.best].run_s;
            what_if_release(&found);
            job_set_release(&jobs);
            hardware_release(&hardware);
        }
        if (seconds[0] > 1.1 * seconds[1] || seconds[1] > 1.1 * seconds[0])
            fail_msg("'%s' takes %g s and '%s' %g s", pairs[p][0], seconds[0], pairs[p][1], seconds[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equivalent_machines),
        cmocka_unit_test(no_plan_by_hand_is_faster),
        cmocka_unit_test(less_memory_is_never_faster),
        cmocka_unit_test(long_jobs_are_timed_by_their_step),
        cmocka_unit_test(what_does_not_fit_says_why),
        cmocka_unit_test(ways_keep_the_minibatch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
