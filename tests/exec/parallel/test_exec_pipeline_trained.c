/* label: long, all rounds: slow
 * Parallel jobs with frozen tensors and adapters.
 *
 * Pipelines have the bits of the job spilled on one device, whatever is frozen: the first layers, with the embedding
 * and its tied table; layers in the middle; the head; single tensors; or all but adapters, of all linear layers or of
 * some. Replicas exchange gradients of what is trained only, and have equal bits for equally many replicas, however
 * states are split; a tree's sums have those of one device. Random pauses on every stream, NaN in all released memory,
 * planned memory against memory handed out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/chunk_memory.h"
#include "tests/support/exec/support_cut_job.h"
#include "tests/support/exec/support_reference_run.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/support_seed.h"

#define CASES support_rounds(3, 48)

static const uint64_t ranges[][1][2] = {{{0, 0}}, {{0, 2}}, {{0, 4}}, {{3, 3}}, {{6, 7}}, {{1, 1}}, {{2, 4}}};
static const char *const tensors[][2] = {{"*.ln_1.*", "h.0.*"}, {"*norm*", "*.layers.3.*"},
                                             {"bert.encoder.*.bias", "*.layer.3.*"}};
static const char *const targets[][2] = {{"c_attn", "h.4.mlp.c_proj"}, {"q_proj", "layers.3.mlp.down_proj"},
                                             {"query_key_value", "layers.5.mlp.dense_4h_to_h"}};

static const char *const configs[] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"gpt_neox\", \"rotary_pct\": 0.5, \"num_hidden_layers\": 6, \"hidden_size\": 16, "
    "\"num_attention_heads\": 4, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67}",
    "{\"model_type\": \"mixtral\", \"num_local_experts\": 4, \"num_hidden_layers\": 6, \"hidden_size\": 16, "
    "\"num_attention_heads\": 4, \"num_key_value_heads\": 2, \"intermediate_size\": 24, "
    "\"max_position_embeddings\": 16, \"vocab_size\": 67}",
};

/* Draws what is trained; `config`: its index. */
static void draw_trained(uint64_t seed, uint64_t n, size_t config, struct cut_job *s)
{
    const uint64_t kind = random_below(seed, n, 6);
    const bool decoder = config != 2, experts = config == 4;
    const size_t names = config == 0 ? 0 : config == 2 ? 2 : 1;
    s->freeze = (struct network_freeze){0};
    s->adapter = (struct job_adapter){0};
    if (decoder && kind < 3) {
        s->adapter = (struct job_adapter){.rank = 1 + random_below(seed, n + 1, 5), .alpha = 40,
                                          .all_linear = kind > 0 && !experts};
        if (s->adapter.all_linear) return;
        s->adapter.targets = targets[config == 0 ? 0 : config == 3 ? 2 : 1];
        s->adapter.target_count = experts ? 1 : 2;
    } else if (kind == 5 && config != 3) {
        s->freeze = (struct network_freeze){.tensors = tensors[names], .tensor_count = 2};
        if (experts) s->freeze.tensor_count = 1;
    } else {
        s->freeze = (struct network_freeze){.layers = ranges[random_below(seed, n + 2, ARRAY_COUNT(ranges))],
                                            .layer_count = 1};
    }
}

static void run(const struct cut_job *s, uint64_t delay, struct cut_job_outcome *out)
{
    struct plan plan = {0};
    cut_job_plan(s, &plan);
    cut_job_run(&plan, &(struct run_options){.poison = true, .delay_seed = delay, .record_spans = s->cut != NULL}, out);
}

static void test_bits_of_one_device(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("pipelines");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            const uint64_t at = 16 * (c * CASES + n);
            struct cut_job s = cut_job_draw(seed, c * CASES + n, configs[c]), alone;
            struct cut_job_outcome wanted, found;
            s.precision = (uint32_t)random_below(seed, 5000000 + at, PRECISION_COUNT);
            draw_trained(seed, 6000000 + at, c, &s);
            alone = s;
            alone.cut = NULL;
            run(&alone, 0, &wanted);
            run(&s, n % 3 == 0 ? 0 : seed + n, &found);
            cut_job_same(&wanted, &found, &s);
        }
}

/* Draws stages, chunks and a schedule for `data` replicas. */
static struct job_cut draw_cut(uint64_t seed, uint64_t n, uint32_t data)
{
    const uint32_t pipeline = 1 + (uint32_t)random_below(seed, n, 3);
    struct job_cut cut = {.pipeline = pipeline, .data = data, .buckets = 1, .chunks = 1, .schedule = PIPELINE_1F1B};
    if (pipeline == 1) cut.chunks = 1 + (uint32_t)random_below(seed, n + 1, 3);
    else if (random_below(seed, n + 1, 3) == 0) cut.schedule = PIPELINE_ZB_H1;
    else cut.buckets = 1 + (uint32_t)random_below(seed, n + 2, 2);
    return cut;
}

/* States, gradients and weights may be split, and on the host. Levels 0 and 1 add up in one order, and all do with one
 * microbatch each. */
static void test_bits_of_equal_replicas(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("replicas");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES; n++) {
            const uint64_t at = 16 * (c * CASES + n);
            const uint32_t data = 2 + (uint32_t)random_below(seed, at, 3);
            const uint32_t each = 1 + (uint32_t)random_below(seed, at + 1, 3);
            struct cut_job_outcome wanted, found;
            struct cut_job s = {.config = configs[c], .microbatches = (uint64_t)data * each,
                                .precision = (uint32_t)random_below(seed, at + 2, PRECISION_COUNT),
                                .optimizer = random_below(seed, at + 3, 2) ? OPTIMIZER_ADAMW : OPTIMIZER_MOMENTUM,
                                .moments = random_below(seed, at + 4, 2) ? PRECISION_BF16 : PRECISION_FP32,
                                .every = random_below(seed, at + 5, 3), .held_out = 1};
            const struct job_cut first = draw_cut(seed, 7000000 + at, data);
            const struct job_cut second = draw_cut(seed, 8000000 + at, data);
            draw_trained(seed, 6000000 + at, c, &s);
            s.cut = &first;
            run(&s, 0, &wanted);
            s.cut = &second;
            s.zero = (uint32_t)random_below(seed, at + 6, each == 1 ? 4 : 2);
            s.prefetch = (uint32_t)random_below(seed, at + 9, 3);
            s.offload = random_below(seed, at + 8, 2);
            s.weights_below = s.offload && random_below(seed, at + 10, 2) && second.schedule != PIPELINE_ZB_H1 &&
                              (s.zero == ZERO_WEIGHTS || (s.zero == ZERO_NOTHING && each == 1));
            s.stored = random_below(seed, at + 11, 3) == 0;
            s.recompute = random_below(seed, at + 7, 2) ? RECOMPUTE_NONE : RECOMPUTE_STAGE;
            run(&s, seed + n, &found);
            cut_job_same(&wanted, &found, &s);
        }
}

static void test_bits_of_trees(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("trees");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES / 2; n++) {
            const uint64_t at = 16 * (c * CASES + n);
            struct job_cut cut = draw_cut(seed, 7000000 + at, 1 + (uint32_t)random_below(seed, at, 4));
            struct cut_job_outcome wanted, found;
            struct cut_job s = {.config = configs[c], .tree = true,
                                .microbatches = (uint64_t)cut.data << random_below(seed, at + 1, 3),
                                .precision = (uint32_t)random_below(seed, at + 2, PRECISION_COUNT)};
            if (random_below(seed, at + 4, 3) == 0) s.zero = ZERO_STATES;
            else if (random_below(seed, at + 3, 2) && cut_job_clips(configs[c])) s.clip = 0.2;
            draw_trained(seed, 6000000 + at, c, &s);
            run(&s, 0, &wanted);
            s.cut = &cut;
            run(&s, seed + n, &found);
            cut_job_same(&wanted, &found, &s);
        }
}

/* Stages keep versions of their weights, with the frozen ones, and have the bits of a reference that keeps all. */
static void test_bits_without_flushes(void **state)
{
    (void)state;
    static const uint64_t frozen[][2] = {{0, 1}};
    static const char *const of_gpt2[] = {"c_attn"}, *const of_llama[] = {"q_proj", "down_proj"};
    const uint64_t seed = support_seed("asynchronous");
    for (uint64_t n = 0; n < 2 * CASES; n++) {
        const char *const config = reference_configs[n % REFERENCE_CONFIGS];
        const bool decoder = cut_job_clips(config), adapts = decoder && n % 3 < 2;
        struct arena arena = {0};
        struct job_set jobs;
        test_network_jobs(&jobs, 1, config, 1);
        struct job job = reference_draw(seed, n, &jobs.jobs[0], decoder);
        const bool fused = job.network.family == NETWORK_GPT2;
        if (!adapts) job.freeze = (struct network_freeze){.layers = frozen, .layer_count = 1};
        else
            job.adapter = (struct job_adapter){.rank = 3, .alpha = 20, .targets = fused ? of_gpt2 : of_llama,
                                               .target_count = fused ? 1 : 2};
        support_train_only(&job, &arena);
        reference_compare(&job, config, n % 3 == 0 ? 0 : seed + n);
        arena_release(&arena);
        job_set_release(&jobs);
    }
}

/* A tensor group has one device's losses to rounding, and its own bits whatever else is cut. */
static void test_groups(void **state)
{
    (void)state;
    const uint64_t seed = support_seed("groups");
    for (size_t c = 0; c < ARRAY_COUNT(configs); c++)
        for (uint64_t n = 0; n < CASES / 2; n++) {
            const uint64_t at = 16 * (c * CASES + n);
            struct parallel p = {.tensor = 2, .pipeline = 1 + (uint32_t)random_below(seed, at, 2), .data = 1,
                                 .chunks = 1, .prefetch = 1, .schedule = PIPELINE_1F1B,
                                 .sequence = random_below(seed, at + 1, 2)};
            struct cut_job_outcome alone, first, found;
            struct cut_job s = {.config = configs[c], .microbatches = 4, .steps = 6, .every = 4, .held_out = 1,
                                .precision = c == 4 ? PRECISION_FP32 : (uint32_t)random_below(seed, at + 2, 2)};
            draw_trained(seed, 6000000 + at, c, &s);
            if (random_below(seed, at + 4, 2) && cut_job_clips(configs[c])) s.clip = 0.2;
            run(&s, 0, &alone);
            s.parallel = &p;
            run(&s, 0, &first);
            for (uint32_t i = 0; i < 6; i++)
                if (!(fabs(first.losses[i] / alone.losses[i] - 1) <= (s.precision == PRECISION_FP32 ? 1e-5 : 1e-2)))
                    fail_msg("%.25s...: loss %u is %.9g, of one device %.9g", s.config, i, first.losses[i],
                             alone.losses[i]);
            p.pipeline = p.pipeline % 2 + 1;
            if (p.pipeline == 2 && n % 2 == 0) p.schedule = PIPELINE_ZB_H1;
            run(&s, seed + n, &found);
            cut_job_same(&first, &found, &s);
            p.data = 2;
            s.microbatches = n % 2 ? 2 : 4;
            run(&s, 0, &first);
            p.zero = n % 2 ? ZERO_WEIGHTS : ZERO_STATES;
            p.offload = n % 4 > 1 ? OFFLOAD_STATES : OFFLOAD_NOTHING;
            run(&s, seed + n, &found);
            if (s.clip > 0) continue; /* shares add up their squares in another order */
            cut_job_same(&first, &found, &s);
        }
}

/* Replicas exchange the adapters' gradients and, with split states, weights: nothing of the frozen network. */
static void test_exchanged_bytes(void **state)
{
    (void)state;
    static const struct job_cut cut = {.pipeline = 2, .data = 2, .buckets = 1, .chunks = 1, .schedule = PIPELINE_1F1B};
    for (uint32_t zero = ZERO_NOTHING; zero <= ZERO_GRADIENTS; zero++) {
        const struct cut_job s = {.config = configs[1], .microbatches = 2, .cut = &cut, .zero = zero,
                                  .adapter = {.rank = 2, .alpha = 4, .all_linear = true}};
        struct plan plan = {0};
        uint64_t wanted, found = 0;
        cut_job_plan(&s, &plan);
        /* width 16, 8 columns of keys and of values, 24 of the feed-forward part: of each of seven layers the rank
         * times (in + out) numbers, all multiples of 64 bytes; three blocks on each stage */
        const uint64_t block = 2 * (32 + 24 + 24 + 32 + 40 + 40 + 40) * sizeof(float);
        wanted = 2 * 3 * block;
        for (uint32_t o = 0; o < plan.op_count; o++)
            if (plan.ops[o].kind == OP_COLLECTIVE && plan.ops[o].pass == 0) found += plan.ops[o].bytes;
        const uint64_t times = zero == ZERO_NOTHING ? 1 : 2; /* the plan repeats a minibatch */
        if (found != times * wanted)
            fail_msg("zero %u: %llu bytes, expected %llu", zero, (unsigned long long)found,
                     (unsigned long long)(times * wanted));
        plan_release(&plan);
    }
}

static void test_refused(void **state)
{
    (void)state;
    struct job_set jobs;
    struct error err = {0};
    test_network_jobs(&jobs, 1, configs[1], 1);
    struct job *const job = &jobs.jobs[0];
    job->parallel = (struct parallel){.tensor = 2, .pipeline = 1, .data = 1, .chunks = 1, .tensor_pieces = 2};
    job->adapter = (struct job_adapter){.rank = 2, .alpha = 4, .all_linear = true};
    support_train_only(job, &jobs.arena);
    assert_int_equal(parallel_check(job, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "'parallel' with 'tensor_pieces' beside 'adapter' is not supported (expected none)");
    job_set_release(&jobs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits_of_one_device),
                                       cmocka_unit_test(test_bits_of_equal_replicas),
                                       cmocka_unit_test(test_bits_of_trees),
                                       cmocka_unit_test(test_bits_without_flushes),
                                       cmocka_unit_test(test_groups), cmocka_unit_test(test_exchanged_bytes),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests_name("frozen tensors and adapters in parallel", tests, NULL, NULL);
}
