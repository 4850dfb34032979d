/* label: medium, all rounds: slow
 * Jobs that stop and go on elsewhere, in another layout.
 *
 * Random pieces of a training, each spilled, resident, a pipeline, of replicas that split states, or of a tensor group,
 * on devices of its own, while another job trains on the others; with random pauses on every stream and NaN in all
 * memory that was released. Where all layouts keep one device's bits, the last piece has the losses and weights of the
 * job spilled on one device in one piece; else they are near. A training that is stopped within a piece, or fails
 * there, does not go on.
 *
 * Some pieces have a range of host memory, which they share with pieces before and after them: their states wait in
 * files. Some have their states in storage, and some trainings keep the weights of their best evaluation.
 *
 * The emulated GPUs run a few of these trainings, too, with all steps on the devices, so that all have the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/plan_runnable.h"
#include "planner/saturn/saturn.h"
#include "planner/strategy/plan_merge.h"
#include "planner/strategy/planner.h"
#include "planner/strategy/subproblem.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_seed.h"

#ifdef SPILLWAY_EMULATED
#include "tests/emulator/emulator_faults.h"
#define BACKEND "cuda"
enum { CASES = 1, EACH = 4, THREADS = 0, PLACE = PLANNER_PLACE_DEVICE }; /* a case takes many seconds */
#else
#define BACKEND "host"
enum { EACH = 1, THREADS = 1, PLACE = PLANNER_AUTO };
#define CASES support_rounds(2, 8)
#endif

enum { STEPS = 6, DEVICES = 4, PIECES_MOST = 4 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, "
    "\"vocab_size\": 61, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

/* A way to run a piece, on its number of devices. */
struct way {
    uint32_t devices;
    struct parallel parallel; /* tensor 0: spilled, or resident if `resident` */
    bool resident, keeps_bits;
};
static const struct way ways[] = {
    {.devices = 1, .keeps_bits = true},
    {.devices = 2, .keeps_bits = true},
    {.devices = 1, .resident = true, .keeps_bits = true},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B},
     .keeps_bits = true},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 2, .data = 1, .chunks = 2, .schedule = PIPELINE_ZB_V},
     .keeps_bits = true},
    {.devices = 3, .parallel = {.tensor = 1, .pipeline = 3, .data = 1, .chunks = 1, .schedule = PIPELINE_GPIPE},
     .keeps_bits = true},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2}},
    {.devices = 2, .parallel = {.tensor = 1, .pipeline = 1, .data = 2, .chunks = 2, .zero = 3}},
    {.devices = 2, .parallel = {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1}},
    {.devices = 3, .parallel = {.tensor = 3, .pipeline = 1, .data = 1, .chunks = 2}},
};
enum { KEEPING = 6 };

struct piece {
    const struct way *way;
    uint64_t first, count; /* minibatches */
    bool turns, stored;    /* it has a range of host memory; its states are in storage */
};

struct setting {
    const char *config;
    uint32_t precision;
    double rate;
    uint64_t every;
    struct piece pieces[PIECES_MOST];
    uint32_t count;
    bool keeps_best;
};

static void fill_job(const struct setting *s, struct job *job)
{
    job->microbatch = 2;
    job->microbatches = 2;
    job->precision = s->precision;
    job->optimizer.kind = s->rate > 1 ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
    job->optimizer.learning_rate = s->rate;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = 2};
    job->keep_best = s->keeps_best;
}

static void make_machine(struct hardware *out, uint32_t devices)
{
    test_hardware(out, devices, 1 << 24, 1e9);
    out->backend = BACKEND;
    out->threads = THREADS;
    out->host_bandwidth = out->types[0].memory_bandwidth;
    out->storage.capacity_bytes.value = 1e9;
    out->storage.read_rate.value = out->storage.write_rate.value = 1e9;
}

static struct planner_options options_of(const struct piece *piece)
{
    const struct way *way = piece->way;
    return (struct planner_options){.policy = way->parallel.tensor > 0 ? NULL : way->resident
                                              ? "model-parallel" : "spill-sequential",
                                    .host = piece->turns ? PLANNER_HOST_TURNS : PLANNER_HOST_AUTO,
                                    .storage = piece->stored ? PLANNER_STORAGE_ALL : PLANNER_STORAGE_NONE,
                                    .activations = PLANNER_AUTO, .optimizer = PLACE};
}

/* Plans the pieces as jobs of one plan, and beside them another job on the last device. */
static void make_plan(const struct setting *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    struct plan plans[PIECES_MOST + 1] = {0};
    struct merge_subplan subplans[PIECES_MOST + 1] = {0};
    uint32_t numbers[PIECES_MOST + 1], devices[DEVICES];
    static char names[PIECES_MOST + 1][16];
    double free_s = 0;
    make_machine(&hardware, DEVICES);
    test_network_jobs(&jobs, s->count + 1, s->config, STEPS);
    for (uint32_t d = 0; d < DEVICES; d++) devices[d] = d;
    for (uint32_t i = 0; i <= s->count; i++) {
        const bool other = i == s->count;
        const struct way *const way = other ? &ways[0] : s->pieces[i].way;
        struct job *const job = &jobs.jobs[i];
        numbers[i] = i;
        job->optimizer = jobs.jobs[0].optimizer;
        fill_job(s, job);
        snprintf(names[i], sizeof names[i], other ? "other" : "job.%u", i + 1);
        job->name = names[i];
        if (!other) {
            job->seed = jobs.jobs[0].seed;
            job->first_minibatch = s->pieces[i].first;
            job->minibatches = s->pieces[i].count;
        }
        const struct subproblem subproblem = {.jobs = &numbers[i], .job_count = 1,
                                              .devices = other ? &devices[DEVICES - 1] : devices,
                                              .device_count = way->devices};
        const struct planner_options options = options_of(other ? &(struct piece){.way = way} : &s->pieces[i]);
        if (subproblem_plan(&hardware, jobs.jobs, &subproblem, way->parallel.tensor > 0 ? &way->parallel : NULL, 1e9,
                            &options, &plans[i], &err))
            fail_msg("%s", err.text);
        subplans[i] = (struct merge_subplan){.plan = &plans[i], .jobs = &numbers[i], .devices = subproblem.devices,
                                             .follows = other || i == 0 ? PLAN_NONE : i - 1,
                                             .begin_s = other ? 0 : free_s,
                                             .end_s = (other ? 0 : free_s) + plans[i].estimated_makespan_s};
        if (!other) free_s = subplans[i].end_s;
    }
    const struct merge_options how = {.policy = "test"};
    enum status status = plan_merge(&hardware, &jobs, subplans, s->count + 1, &how, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (!status) status = plan_runnable(plan, &err);
    if (status) fail_msg("%s", err.text);
    for (uint32_t i = 0; i < s->count; i++) assert_int_equal(plan_has_range(plan, i), s->pieces[i].turns);
    for (uint32_t i = 0; i <= s->count; i++) plan_release(&plans[i]);
}

/* Plans the training in one piece, spilled on one device. */
static void make_alone(const struct setting *s, uint64_t minibatches, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.policy = "spill-sequential", .activations = PLANNER_AUTO,
                                            .optimizer = PLACE};
    make_machine(&hardware, 1);
    test_network_jobs(&jobs, 1, s->config, (uint32_t)minibatches);
    fill_job(s, &jobs.jobs[0]);
    if (planner_plan(&hardware, &jobs, &options, plan, &err)) fail_msg("%s", err.text);
}

struct outcome {
    double losses[STEPS];
    uint64_t minibatches[PIECES_MOST + 1], fingerprint, kept, evaluations;
    double last_evaluation;
};

/* Releases the plan. `last`: the job with the last results. */
static void run(struct plan *plan, uint32_t last, struct run_options options, struct outcome *out)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    *out = (struct outcome){.fingerprint = 0};
    options.poison = true;
    options.storage = (struct storage_options){.folder = BINARY_DIR};
    if (run_plan(plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
    for (uint32_t j = 0; j < plan->jobs.count; j++) out->minibatches[j] = result.jobs[j].minibatches;
    const struct run_job_result *const of = &result.jobs[last];
    memcpy(out->losses, of->losses, of->minibatches * sizeof *out->losses);
    out->fingerprint = of->weights_fingerprint;
    out->kept = of->kept_fingerprint;
    out->evaluations = of->evaluation_count;
    if (of->evaluation_count > 0) out->last_evaluation = of->evaluations[of->evaluation_count - 1].loss;
    trace_release(&trace);
    run_result_release(&result);
    plan_release(plan);
}

static struct setting draw(uint64_t seed, uint64_t at, const char *config, bool keeping)
{
    struct setting s = {.config = config, .rate = 0.01, .every = random_below(seed, at, 3)};
    s.keeps_best = s.every == 1; /* all minibatches are evaluated, however the training is cut */
    s.precision = test_precision(random_below(seed, at + 1, 3));
    if (s.precision == PRECISION_BF16 && strcmp(BACKEND, "host") != 0) s.precision = PRECISION_FP32;
    uint64_t done = 0;
    while (done < STEPS && s.count < PIECES_MOST) {
        const bool last = s.count + 1 == PIECES_MOST;
        struct piece *const piece = &s.pieces[s.count];
        piece->way = &ways[random_below(seed, at + 2 + 2 * s.count, keeping ? KEEPING : ARRAY_COUNT(ways))];
        piece->first = done;
        piece->turns = random_below(seed, at + 10 + s.count, 2) > 0;
        piece->stored = !s.keeps_best && !piece->turns && piece->way->parallel.tensor == 0 && !piece->way->resident &&
                        random_below(seed, at + 14 + s.count, 2) > 0;
        piece->count = last ? STEPS - done : 1 + random_below(seed, at + 3 + 2 * s.count, STEPS - done);
        done += piece->count;
        s.count++;
    }
    return s;
}

static char *pieces_text(const struct setting *s, char text[256])
{
    size_t used = (size_t)snprintf(text, 256, "%.28s..., precision %u", s->config, s->precision);
    for (uint32_t i = 0; i < s->count; i++)
        used += (size_t)snprintf(text + used, 256 - used, ", %u in way %u%s%s", (unsigned)s->pieces[i].count,
                                 (unsigned)(s->pieces[i].way - ways), s->pieces[i].turns ? " by turns" : "",
                                 s->pieces[i].stored ? " in storage" : "");
    return text;
}

static void test_pieces_are_one_training(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("pieces");
    for (size_t c = random_below(seed, 9999, EACH); c < ARRAY_COUNT(configs); c += EACH)
        for (uint64_t n = 0; n < CASES; n++) {
            const bool keeping = n % 2 == 0;
            const struct setting s = draw(seed, 20 * (c * CASES + n), configs[c], keeping);
            const double tolerance = s.precision == PRECISION_FP32 ? 1e-4 : 1e-2;
            struct outcome wanted, found;
            struct plan plan = {0};
            char text[256];
            make_alone(&s, STEPS, &plan);
            run(&plan, 0, (struct run_options){.delay_seed = 0}, &wanted);
            make_plan(&s, &plan);
            run(&plan, s.count - 1, (struct run_options){.delay_seed = n % 3 == 0 ? 0 : seed + n}, &found);
            for (uint32_t i = 0; i < s.count; i++)
                assert_int_equal(found.minibatches[i], s.pieces[i].first + s.pieces[i].count);
            assert_int_equal(found.minibatches[s.count], STEPS);
            for (uint32_t i = 0; i < STEPS; i++)
                if (keeping ? memcmp(&wanted.losses[i], &found.losses[i], sizeof(double)) != 0
                            : !(fabs(found.losses[i] / wanted.losses[i] - 1) <= tolerance))
                    fail_msg("%s: loss %u is %.17g, not %.17g", pieces_text(&s, text), i, found.losses[i],
                             wanted.losses[i]);
            if (keeping && wanted.fingerprint != found.fingerprint)
                fail_msg("%s: other weights", pieces_text(&s, text));
            assert_true(found.evaluations >= wanted.evaluations); /* the end of each piece is evaluated */
            if (keeping && wanted.kept != found.kept) fail_msg("%s: other best weights", pieces_text(&s, text));
            assert_true((found.kept != 0) == s.keeps_best);
            if (keeping && s.every > 0)
                assert_memory_equal(&found.last_evaluation, &wanted.last_evaluation, sizeof(double));
        }
}

static volatile bool stopped;

/* A training whose loss is not finite, or that is stopped, has no further pieces. */
static void test_pieces_that_end_early(void **state)
{
    (void)state;
    struct setting s = {.config = configs[0], .rate = 1e9, .count = 3,
                        .pieces = {{&ways[3], 0, 4}, {&ways[0], 4, 1}, {&ways[7], 5, 1}}};
    struct outcome found;
    struct plan plan = {0};
    make_plan(&s, &plan);
    run(&plan, 0, (struct run_options){.delay_seed = 3, .on_nan = RUN_NAN_STOP}, &found);
    assert_true(found.minibatches[0] < 5 && !isfinite(found.losses[found.minibatches[0] - 1]));
    assert_int_equal(found.minibatches[1], 0);
    assert_int_equal(found.minibatches[2], 0);
    s.rate = 0.01;
    make_plan(&s, &plan);
    stopped = true; /* before the first operation */
    run(&plan, 0, (struct run_options){.stop = &stopped}, &found);
    for (uint32_t i = 0; i < 3; i++) assert_int_equal(found.minibatches[i], 0);
}

#ifndef SPILLWAY_EMULATED

static enum status estimated(void *context, const struct plan *plan, double *seconds, struct error *err)
{
    (void)context, (void)err;
    *seconds = plan->estimated_makespan_s;
    return STATUS_OK;
}

enum { TOGETHER = 4 };

static void make_together(const char *config, double host_bytes, uint32_t devices, struct hardware *hardware,
                          struct job_set *jobs)
{
    test_hardware(hardware, devices, 1 << 24, host_bytes);
    hardware->backend = BACKEND;
    hardware->threads = THREADS;
    hardware->host_bandwidth = hardware->types[0].memory_bandwidth;
    test_network_jobs(jobs, TOGETHER, config, 3);
    for (uint32_t j = 0; j < TOGETHER; j++) jobs->jobs[j].microbatch = jobs->jobs[j].microbatches = 2;
}

/* Saturn's jobs on several devices each, in host memory that holds the states of two or fewer of them, train as
 * alone. */
static void test_saturn_in_little_memory(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("little memory");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        struct hardware hardware;
        struct job_set jobs;
        struct error err = {0};
        struct plan plan = {0}, alone = {0};
        struct saturn_report report = {0};
        const struct planner_options automatic = {.activations = PLANNER_AUTO, .optimizer = PLACE,
                                                  .iterations = 50};
        const struct saturn_clock clock = {.time = estimated};
        const struct saturn_options how = {.spilled = &automatic, .clock = &clock, .rule = SATURN_RULE_MAX,
                                           .interval_s = -1, .restart_s = -1};
        make_together(configs[c], 1e9, 3, &hardware, &jobs);
        const double room = 2.5 * (double)job_state(&jobs.jobs[0], 0, jobs.jobs[0].network.layer_count).bytes + 65536;
        hardware.host_bytes.value = room;
        if (saturn_plan(&hardware, &jobs, &how, &report, &plan, &err)) fail_msg("%s", err.text);
        if (plan_runnable(&plan, &err)) fail_msg("%s", err.text);
        assert_true(plan_host_bytes(&plan) <= (uint64_t)room);
        uint32_t gangs = 0;
        for (uint32_t j = 0; j < TOGETHER; j++) {
            assert_true(plan_has_range(&plan, j));
            gangs += parallel_is_set(&plan.jobs.jobs[j].parallel);
        }
        assert_true(gangs > 0);
        struct run_result result = {0}, wanted = {0};
        struct trace trace = {0};
        const struct run_options options = {.poison = true, .delay_seed = seed + c};
        if (run_plan(&plan, &options, &result, &trace, &err)) fail_msg("%s", err.text);
        trace_release(&trace);
        make_together(configs[c], 1e9, 1, &hardware, &jobs);
        if (planner_plan(&hardware, &jobs,
                         &(struct planner_options){.policy = "spill-sequential", .activations = PLANNER_AUTO,
                                                                    .optimizer = PLACE}, &alone, &err))
            fail_msg("%s", err.text);
        if (run_plan(&alone, &(struct run_options){.poison = true}, &wanted, &trace, &err)) fail_msg("%s", err.text);
        for (uint32_t j = 0; j < TOGETHER; j++)
            for (uint32_t i = 0; i < 3; i++)
                if (!(fabs(result.jobs[j].losses[i] / wanted.jobs[j].losses[i] - 1) <= 1e-4))
                    fail_msg("%.28s..., job %u: loss %u is %.17g, not %.17g", configs[c], j, i,
                             result.jobs[j].losses[i], wanted.jobs[j].losses[i]);
        trace_release(&trace);
        run_result_release(&result);
        run_result_release(&wanted);
        plan_release(&plan);
        plan_release(&alone);
    }
}

static void *stop_later(void *argument)
{
    const uint64_t *const after_us = argument;
    usleep((useconds_t)*after_us);
    stopped = true;
    return NULL;
}

/* A training that is stopped at any time, also while its state waits in a file, keeps the weights of its last
 * minibatch. */
static void test_stopped_anywhere(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("stopped pieces");
    uint32_t waited = 0, within = 0;
    for (uint64_t n = 0; n < 3 * CASES; n++) {
        struct setting s = draw(seed, 20 * n, configs[n % ARRAY_COUNT(configs)], true);
        struct outcome wanted, found;
        struct plan plan = {0};
        char text[256];
        pthread_t stopper;
        s.every = s.keeps_best = 0;
        for (uint32_t i = 0; i < s.count; i++) s.pieces[i].turns = !s.pieces[i].stored;
        make_plan(&s, &plan);
        const double begin_s = clock_s();
        run(&plan, 0, (struct run_options){.delay_seed = 1 + n}, &wanted);
        uint64_t after_us = (uint64_t)((0.6 + 0.4 * random_unit(seed, 20 * n + 19)) * 1e6 * (clock_s() - begin_s));
        make_plan(&s, &plan);
        stopped = false;
        assert_int_equal(pthread_create(&stopper, NULL, stop_later, &after_us), 0);
        struct run_result result = {0};
        struct trace trace = {0};
        struct error err = {0};
        const struct run_options options = {.poison = true, .delay_seed = 1 + n, .stop = &stopped,
                                            .storage = {.folder = BINARY_DIR}};
        if (run_plan(&plan, &options, &result, &trace, &err)) fail_msg("%s: %s", pieces_text(&s, text), err.text);
        pthread_join(stopper, NULL);
        uint32_t last = 0;
        for (uint32_t i = 1; i < s.count; i++)
            if (result.jobs[i].minibatches > s.pieces[i].first) last = i;
        const uint64_t done = result.jobs[last].minibatches;
        found.fingerprint = result.jobs[last].weights_fingerprint;
        waited += done == s.pieces[last].first + s.pieces[last].count && done < STEPS;
        within += done > 0 && done < STEPS;
        trace_release(&trace);
        run_result_release(&result);
        plan_release(&plan);
        if (done == 0) continue;
        make_alone(&s, done, &plan);
        run(&plan, 0, (struct run_options){.delay_seed = 0}, &wanted);
        if (wanted.fingerprint != found.fingerprint)
            fail_msg("%s: other weights after %llu minibatches", pieces_text(&s, text), (unsigned long long)done);
    }
    print_message("%u of %u were stopped within the training, %u of them between pieces\n", within, 3 * CASES, waited);
}

#endif

int main(void)
{
#ifdef SPILLWAY_EMULATED
    emulator_set_devices(DEVICES);
    setenv("SPILLWAY_NCCL", "off", 1);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pieces_are_one_training),
        cmocka_unit_test(test_pieces_that_end_early),
#ifndef SPILLWAY_EMULATED
        cmocka_unit_test(test_stopped_anywhere),
        cmocka_unit_test(test_saturn_in_little_memory),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
