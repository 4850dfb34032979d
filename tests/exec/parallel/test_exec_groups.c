/* label: medium
 * Tensor groups that are carried out have one device's losses and weights to rounding, and stop at any time.
 *
 * Groups that cut the rows of norms and sums (sequence parallelism) have the bits of those that do not.
 *
 * For every family, random numbers of members, stages, replicas, schedules, microbatches and ways to recompute, with random
 * pauses on every stream and NaN in all memory that was released: the plan passes its check, the memory that it counts is
 * what the executor hands out, and the run has the losses and the last checkpoint of the job spilled on one device, to
 * rounding; a second run with other pauses has the same bits. Checkpoints do not show the groups: a job that stopped under
 * one cut goes on under another.
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
#include <time.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/run/run.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "planner/walk/plan_walk.h"
#include "tests/support/exec/support_checkpoints.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

enum { STEPS = 6, MANY_STEPS = 60, CASES = 5 };

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 4, \"n_embd\": 24, \"n_head\": 12, \"n_positions\": 16, \"vocab_size\": 61, "
    "\"tie_word_embeddings\": false}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"tie_word_embeddings\": false}",
    "{\"model_type\": \"qwen3\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, \"head_dim\": 4, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"gpt_neox\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 12, "
    "\"rotary_pct\": 0.5, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"phi\", \"num_hidden_layers\": 4, \"hidden_size\": 96, \"num_attention_heads\": 24, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 40}",
    "{\"model_type\": \"gemma2\", \"num_hidden_layers\": 4, \"hidden_size\": 48, \"num_attention_heads\": 24, \"head_dim\": 4, "
    "\"num_key_value_heads\": 12, \"intermediate_size\": 36, \"max_position_embeddings\": 16, \"sliding_window\": 5, "
    "\"final_logit_softcapping\": 2, \"vocab_size\": 67}",
    "{\"model_type\": \"opt\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, \"ffn_dim\": 36, "
    "\"word_embed_proj_dim\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"dropout\": 0.1}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 4, \"hidden_size\": 24, \"num_attention_heads\": 12, "
    "\"intermediate_size\": 36, \"image_size\": 12, \"patch_size\": 4, \"num_labels\": 5}",
};

struct setting {
    const char *config;
    struct parallel parallel; /* tensor 0: spilled on one device */
    uint64_t microbatches, first, last; /* first: minibatches that are done; last: the job's minibatches */
    uint32_t precision;
    double clip;                  /* 0: none */
    uint64_t every, held_out;     /* minibatches between evaluations, 0: none; and of each */
    bool encodes;                 /* replicas exchange bf16 gradients, and stages bf16 boundaries where they may */
    double dilation;              /* 0: none; with paced links between devices */
};

static char *setting_text(const struct setting *s, char text[256])
{
    char how[PARALLEL_TEXT_BYTES];
    snprintf(text, 256, "%.60s... %s, %s, recompute %s, %u microbatches, precision %u%s, clip %g, evaluation %u", s->config,
             s->parallel.tensor > 0 ? parallel_text(&s->parallel, how) : "spilled",
             pipeline_schedule_names[s->parallel.schedule], recompute_names[s->parallel.recompute], (unsigned)s->microbatches,
             s->precision, s->encodes ? ", encoded" : "", s->clip, (unsigned)s->every);
    return text;
}

static void make_plan(const struct setting *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    char text[256];
    const bool spilled = s->parallel.tensor == 0;
    test_hardware(&hardware, spilled ? 1 : (uint32_t)parallel_devices(&s->parallel), 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (s->parallel.storage)
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate = hardware.host_bandwidth;
    const struct hardware_options slower = {.dilation = s->dilation, .p2p_bytes_per_s = 1e9};
    if (s->dilation > 0 && hardware_adjust(&hardware, &slower, &err)) fail_msg("%s", err.text);
    test_network_jobs(&jobs, 1, s->config, STEPS);
    struct job *job = &jobs.jobs[0];
    job->microbatch = 2;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->optimizer.kind = OPTIMIZER_MOMENTUM;
    job->optimizer.learning_rate = 0.01;
    job->optimizer.clip = s->clip;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = s->held_out};
    job->first_minibatch = s->first;
    job->minibatches = s->last - s->first;
    job->parallel = s->parallel;
    if (s->encodes && !spilled) job->gradients = PRECISION_BF16;
    if (s->encodes && s->parallel.pipeline > 1 && !s->parallel.scatter && !pipeline_has_halves(s->parallel.schedule))
        job->compression[COMPRESSION_BOUNDARIES] = (struct compression){.ratio = 2, .encode_bytes_per_s = 1e11, .decode_bytes_per_s = 1e11};
    const struct planner_options options = {.policy = spilled ? "spill-sequential" : NULL, .shards = 3,
                                            .activations = PLANNER_AUTO, .optimizer = s->clip > 0 ? PLANNER_AUTO : PLANNER_PLACE_DEVICE};
    enum status status = parallel_check(job, &err);
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (status) fail_msg("%s: %s", setting_text(s, text), err.text);
    if (!spilled) assert_true(parallel_is_carried_out(&plan->jobs.jobs[0].parallel));
}

struct outcome {
    double losses[MANY_STEPS];
    uint64_t fingerprint, minibatches;
    struct evaluation_progress evaluations[STEPS];
    uint64_t evaluation_count;
    bool stopped;
};

/* Members of a collective of replicas, or over paced links, transfer from the moment when the last one has come; waits are
 * over then. */
static void check_waits(const struct plan *plan, const struct trace *trace, bool paced)
{
    struct plan_walk *walk;
    struct plan_walk_op op;
    struct error err = {0};
    double waited_s = 0, begun_s = 0;
    uint64_t members = 0;
    if (plan_walk_create(plan, NULL, &walk, &err)) fail_msg("%s", err.text);
    while (plan_walk_next(walk, &op)) {
        const struct trace_span *const span = &trace->spans[op.number];
        const bool together = op.op->stream == STREAM_DATA || paced;
        if (op.op->kind != OP_COLLECTIVE || !together || op.join_count < 2) continue;
        if (op.join_at == 0) begun_s = span->start_s;
        assert_true(!(span->start_s < begun_s) && !(span->start_s > begun_s));
        waited_s += span->waited_s;
        members++;
    }
    plan_walk_destroy(walk);
    assert_true(members == 0 || waited_s > 0);
}

/* Carries the setting out until `stop` is set, with checkpoints in `folder`. */
static void carry_out_until(const struct setting *s, const char *folder, uint64_t delay_seed, const volatile bool *stop,
                            struct outcome *out)
{
    struct plan plan = {0};
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    char text[256];
    const struct run_checkpoints checkpoints = {.folder = folder, .every_steps = 1, .keep = 100, .each = true};
    const struct run_options options = {.poison = true, .delay_seed = delay_seed, .record_spans = true,
                                        .checkpoints = folder ? &checkpoints : NULL, .stop = stop,
                                        .storage = {.folder = P_tmpdir}};
    make_plan(s, &plan);
    if (run_plan(&plan, &options, &result, &trace, &err)) fail_msg("%s: %s", setting_text(s, text), err.text);
    if (trace_check(&trace, &err)) fail_msg("%s: %s", setting_text(s, text), err.text);
    if (!result.stopped) assert_int_equal(trace.span_count, plan_operations(&plan));
    if (!result.stopped) check_waits(&plan, &trace, s->dilation > 0);
    *out = (struct outcome){.fingerprint = result.jobs[0].weights_fingerprint, .minibatches = result.jobs[0].minibatches,
                            .stopped = result.stopped};
    memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
    out->evaluation_count = result.jobs[0].evaluation_count;
    assert_true(out->evaluation_count <= STEPS);
    memcpy(out->evaluations, result.jobs[0].evaluations, out->evaluation_count * sizeof *out->evaluations);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(&plan);
}

static void carry_out(const struct setting *s, const char *folder, uint64_t delay_seed, struct outcome *out)
{
    carry_out_until(s, folder, delay_seed, NULL, out);
}

static void compare_losses(const struct setting *s, const struct outcome *wanted, const struct outcome *found)
{
    const double tolerance = s->precision == PRECISION_FP32 ? 1e-5 : 1e-2;
    char text[256];
    assert_int_equal(found->minibatches, s->last);
    for (uint64_t i = 0; i < s->last; i++)
        if (!(fabs(found->losses[i] / wanted->losses[i] - 1) <= tolerance))
            fail_msg("%s: loss %u is %.9g (expected %.9g)", setting_text(s, text), (unsigned)i, found->losses[i],
                     wanted->losses[i]);
    assert_int_equal(found->evaluation_count, wanted->evaluation_count);
    for (uint64_t i = 0; i < found->evaluation_count; i++)
        if (!(fabs(found->evaluations[i].loss / wanted->evaluations[i].loss - 1) <= tolerance))
            fail_msg("%s: evaluation %u is %.9g (expected %.9g)", setting_text(s, text), (unsigned)i,
                     found->evaluations[i].loss, wanted->evaluations[i].loss);
}

/* Compares all weights after the last step. */
static void compare_checkpoints(const struct setting *s, const char *wanted, const char *found)
{
    struct job_set jobs;
    char text[256];
    test_network_jobs(&jobs, 1, s->config, STEPS);
    support_checkpoints_compare(&jobs.jobs[0].network, wanted, found, s->last, setting_text(s, text));
    job_set_release(&jobs);
}

/* --- cases ------------------------------------------------------------------------------------ */

/* Jobs of bert and vit do not clip. */
static bool network_is_clipped(const char *config)
{
    return !strstr(config, "bert") && !strstr(config, "vit");
}

/* Draws a schedule with backward passes in two units for half of the pipelines. */
static void draw_schedule(uint64_t seed, uint64_t n, struct parallel *p)
{
    static const uint32_t halves[] = {PIPELINE_ZB_H1, PIPELINE_ZB_H2, PIPELINE_ZB_V};
    if (p->pipeline == 1 || random_below(seed, n, 2)) return;
    p->schedule = halves[random_below(seed, n + 1, 3)];
    p->chunks = p->schedule == PIPELINE_ZB_V ? 2 : 1;
    p->buckets = 1;
}

/* Draws a level of shares of replicas, and how far ahead weights are gathered. */
static void draw_shares(uint64_t seed, uint64_t n, struct parallel *p)
{
    if (p->data == 1) return;
    p->zero = (uint32_t)random_below(seed, n, 4);
    p->prefetch = (uint32_t)random_below(seed, n + 1, 3);
}

/* Draws where the states are, and the weights. Whole weights come up for one microbatch of each replica. */
static void draw_offload(uint64_t seed, uint64_t n, struct setting *s)
{
    const bool whole = s->parallel.data > 1 && s->parallel.zero == ZERO_NOTHING;
    s->parallel.offload = (uint32_t)random_below(seed, n, 3);
    if (s->parallel.offload != OFFLOAD_WEIGHTS) return;
    if ((s->parallel.zero > 0 && s->parallel.data > 1 && s->parallel.zero < ZERO_WEIGHTS) ||
        (whole && s->parallel.schedule == PIPELINE_INTERLEAVED))
        s->parallel.offload = OFFLOAD_STATES;
    else if (whole) s->microbatches = s->parallel.data;
}

/* Returns true if the devices of a group may cut the rows of norms and sums. */
static bool divides_tokens(const struct setting *s)
{
    struct job_set jobs;
    test_network_jobs(&jobs, 1, s->config, STEPS);
    const bool divides = parallel_divides_tokens(&jobs.jobs[0], s->parallel.tensor);
    job_set_release(&jobs);
    return divides;
}

static struct setting draw(uint64_t seed, uint64_t n, const char *config)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    const uint32_t pipeline = 1 + (uint32_t)random_below(seed, 10 * n, 2), interleaved = random_below(seed, 10 * n + 1, 3) == 0;
    struct setting s = {.config = config, .last = STEPS};
    s.parallel = (struct parallel){.tensor = 2 + (uint32_t)random_below(seed, 10 * n + 2, 3),
                                   .pipeline = pipeline,
                                   .data = 1 + (uint32_t)random_below(seed, 10 * n + 3, 2),
                                   .prefetch = 1,
                                   .chunks = pipeline > 1 && interleaved ? 2 : 1,
                                   .buckets = pipeline > 1 && !interleaved && random_below(seed, 10 * n + 4, 3) == 0 ? 2 : 1,
                                   .recompute = recompute[random_below(seed, 10 * n + 5, 4)],
                                   .blocking = random_below(seed, 10 * n + 6, 4) == 0};
    s.parallel.schedule = pipeline > 1 && interleaved ? PIPELINE_INTERLEAVED
                          : random_below(seed, 10 * n + 7, 2) ? PIPELINE_1F1B : PIPELINE_GPIPE;
    draw_schedule(seed, 1000 + 10 * n, &s.parallel);
    draw_shares(seed, 1000 + 10 * n + 6, &s.parallel);
    if (random_below(seed, 1000 + 10 * n + 2, 2) && network_is_clipped(config))
        s.clip = 0.05 + 0.5 * random_unit(seed, 1000 + 10 * n + 3);
    s.every = random_below(seed, 1000 + 10 * n + 4, 4);
    s.held_out = s.every > 0 ? 1 + random_below(seed, 1000 + 10 * n + 5, 3) : 0;
    s.microbatches = s.parallel.data * pipeline * (1 + random_below(seed, 10 * n + 8, 2));
    s.parallel.tree = random_below(seed, 10 * n + 9, 3) == 0 && !pipeline_has_halves(s.parallel.schedule) &&
                      s.parallel.zero == 0;
    s.precision = random_below(seed, 10 * n + 9, 4) == 0 ? PRECISION_BF16_WEIGHTS : PRECISION_FP32;
    draw_offload(seed, 2000 + 2 * n, &s);
    s.parallel.sequence = divides_tokens(&s) && random_below(seed, 6000 + n, 2);
    s.parallel.scatter = pipeline > 1 && !s.parallel.sequence && random_below(seed, 3000 + n, 2);
    s.encodes = s.precision == PRECISION_BF16_WEIGHTS && !s.parallel.tree && random_below(seed, 4000 + n, 2) &&
                !(s.parallel.offload == OFFLOAD_WEIGHTS && s.parallel.zero == ZERO_NOTHING);
    return s;
}

static void test_one_device(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("tensor groups");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            const struct setting s = draw(seed, c * CASES + n, configs[c]);
            struct setting alone = s, whole = s;
            struct outcome wanted, found, again;
            char text[256], one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
            support_folder_make(one);
            support_folder_make(many);
            print_message("%s\n", setting_text(&s, text));
            alone.parallel = (struct parallel){0};
            carry_out(&alone, one, 0, &wanted);
            carry_out(&s, many, n % 3 == 0 ? 0 : seed + n, &found);
            whole.parallel.sequence = false;
            whole.parallel.scatter = s.encodes && s.parallel.scatter; /* else whole boundaries are sent, with the same bits */
            whole.parallel.storage = s.parallel.offload != OFFLOAD_NOTHING;
            carry_out(&whole, NULL, seed + 1000 + n, &again);
            compare_losses(&s, &wanted, &found);
            if (s.precision == PRECISION_FP32) compare_checkpoints(&s, one, many);
            for (uint64_t i = 0; i < STEPS; i++)
                if (memcmp(&found.losses[i], &again.losses[i], sizeof *found.losses) != 0)
                    fail_msg("%s: loss %u is %.9g (expected %.9g)", setting_text(&s, text), (unsigned)i, found.losses[i],
                             again.losses[i]);
            if (found.fingerprint != again.fingerprint) fail_msg("%s: other weights", setting_text(&s, text));
            support_folder_remove(one);
            support_folder_remove(many);
        }
}

/* Each cut trains a minibatch and leaves the job to the next one. */
/* Dilated devices have the same losses and weights; members of their tensor groups wait for each other. */
static void test_dilated_groups(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("dilated tensor groups");
    for (uint32_t c = 0; c < 4; c++) {
        struct setting s = {.config = configs[c], .microbatches = 2, .last = 2,
                            .parallel = {.tensor = 2 + c % 2, .pipeline = 1 + c / 2, .data = 1, .chunks = 1,
                                         .schedule = PIPELINE_1F1B}};
        struct outcome plain, dilated;
        carry_out(&s, NULL, random_u64(seed, 2 * c), &plain);
        s.dilation = 3;
        s.parallel.sequence = divides_tokens(&s);
        carry_out(&s, NULL, random_u64(seed, 2 * c + 1), &dilated);
        assert_true(plain.fingerprint == dilated.fingerprint);
        assert_memory_equal(plain.losses, dilated.losses, s.last * sizeof *plain.losses);
    }
}

static void test_other_cuts_go_on(void **state)
{
    (void)state;
    const struct parallel cuts[] = {
        {.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .prefetch = 1, .sequence = true},
        {.tensor = 0},
        {.tensor = 2, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1, .zero = ZERO_STATES, .schedule = PIPELINE_1F1B,
         .sequence = true},
        {.tensor = 3, .pipeline = 1, .data = 2, .chunks = 2, .prefetch = 1, .zero = ZERO_WEIGHTS, .offload = OFFLOAD_STATES},
        {.tensor = 3, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B},
        {.tensor = 1, .pipeline = 2, .data = 2, .chunks = 1, .prefetch = 1},
    };
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++) {
        struct setting s = {.config = configs[c], .microbatches = 4, .last = STEPS};
        struct outcome wanted, found = {0};
        char one[SUPPORT_FOLDER_BYTES], many[SUPPORT_FOLDER_BYTES];
        support_folder_make(one);
        support_folder_make(many);
        carry_out(&s, one, 0, &wanted);
        for (uint64_t i = 0; i < ARRAY_COUNT(cuts); i++) {
            s.parallel = cuts[i];
            s.first = i;
            s.last = i + 1;
            carry_out(&s, many, 9 + i, &found);
            compare_losses(&s, &wanted, &found);
        }
        compare_checkpoints(&s, one, many);
        support_folder_remove(one);
        support_folder_remove(many);
    }
}

struct stopper {
    volatile bool stop;
    long wait_ns;
};

static void *stop_later(void *pointer)
{
    struct stopper *stopper = pointer;
    nanosleep(&(struct timespec){.tv_nsec = stopper->wait_ns}, NULL);
    stopper->stop = true;
    return NULL;
}

/* A run that is stopped at any time ends, and the rest is done without groups. */
static void test_stops(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("stops");
    struct setting s = {.config = configs[0], .microbatches = 4, .last = MANY_STEPS};
    struct outcome wanted, found = {0}, rest;
    uint32_t early = 0;
    carry_out(&s, NULL, 0, &wanted);
    for (uint64_t n = 0; n < 8; n++) {
        char folder[SUPPORT_FOLDER_BYTES];
        pthread_t thread;
        struct stopper stopper = {.wait_ns = (long)random_below(seed, n, 300) * 1000000};
        support_folder_make(folder);
        s.parallel = (struct parallel){.tensor = 2 + (uint32_t)n % 2, .pipeline = 1 + (uint32_t)n % 4 / 2, .data = 1,
                                       .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B, .sequence = n % 2 == 0};
        s.first = 0;
        if (pthread_create(&thread, NULL, stop_later, &stopper) != 0) abort();
        carry_out_until(&s, folder, seed + n, &stopper.stop, &found);
        pthread_join(thread, NULL);
        early += found.stopped;
        if (found.minibatches > 0 && found.minibatches < MANY_STEPS) {
            s.parallel = (struct parallel){0};
            s.first = found.minibatches;
            carry_out(&s, folder, 0, &rest);
            compare_losses(&s, &wanted, &rest);
        }
        support_folder_remove(folder);
    }
    print_message("%u of 8 stopped early\n", early);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_device), cmocka_unit_test(test_dilated_groups),
        cmocka_unit_test(test_other_cuts_go_on),
        cmocka_unit_test(test_stops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
