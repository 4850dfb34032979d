#include "tests/support/exec/support_cut_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/planner/support_planner.h"
#include "tests/support/planner/support_trained.h"
#include "tests/support/support_memory.h"

const char *const cut_job_configs[CUT_JOB_CONFIGS] = {
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67}",
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 2, \"n_positions\": 16, "
    "\"vocab_size\": 67, \"tie_word_embeddings\": false, \"embd_pdrop\": 0.1, \"resid_pdrop\": 0.2, "
    "\"attn_pdrop\": 0.15}",
    "{\"model_type\": \"llama\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"num_key_value_heads\": 2, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"tie_word_embeddings\": true}",
    "{\"model_type\": \"bert\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67, \"type_vocab_size\": 2, "
    "\"architectures\": [\"BertForMaskedLM\"]}",
    "{\"model_type\": \"vit\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 2, "
    "\"intermediate_size\": 24, \"image_size\": 8, \"patch_size\": 4, \"num_labels\": 5}",
};

#define SHAPE "\"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, \"intermediate_size\": 24, " \
              "\"max_position_embeddings\": 16, \"vocab_size\": 67}"
#define SIZES \
    "\"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, \"num_key_value_heads\": 2, " \
    "\"head_dim\": 4, \"intermediate_size\": 24, \"max_position_embeddings\": 16, \"vocab_size\": 67}"
const char *const cut_job_families[CUT_JOB_FAMILIES] = {
    "{\"model_type\": \"mistral\", \"sliding_window\": 5, " SIZES,
    "{\"model_type\": \"qwen2\", \"use_sliding_window\": true, \"sliding_window\": 3, \"max_window_layers\": 4, " SIZES,
    "{\"model_type\": \"qwen3\", \"attention_dropout\": 0.3, " SIZES,
    "{\"model_type\": \"gemma\", " SIZES,
    "{\"model_type\": \"gpt_neox\", \"rotary_pct\": 0.5, " SHAPE,
    "{\"model_type\": \"phi\", \"num_key_value_heads\": 2, \"resid_pdrop\": 0.1, \"embd_pdrop\": 0.2, " SHAPE,
    "{\"model_type\": \"gptj\", \"n_layer\": 6, \"n_embd\": 16, \"n_head\": 4, \"n_inner\": 24, \"n_positions\": 16, "
    "\"rotary_dim\": 2, \"vocab_size\": 67}",
    "{\"model_type\": \"gemma2\", \"sliding_window\": 5, \"query_pre_attn_scalar\": 6, " SIZES,
    "{\"model_type\": \"gemma3_text\", \"sliding_window\": 4, \"sliding_window_pattern\": 3, " SIZES,
    "{\"model_type\": \"gpt_neox\", \"use_parallel_residual\": false, \"hidden_dropout\": 0.15, " SHAPE,
    "{\"model_type\": \"opt\", \"num_hidden_layers\": 6, \"hidden_size\": 16, \"num_attention_heads\": 4, "
    "\"ffn_dim\": 24, \"word_embed_proj_dim\": 16, \"max_position_embeddings\": 16, \"vocab_size\": 67, "
    "\"dropout\": 0.1, \"attention_dropout\": 0.2}",
    "{\"model_type\": \"mixtral\", \"num_local_experts\": 4, \"sliding_window\": 5, " SIZES,
    "{\"model_type\": \"qwen3_moe\", \"num_experts\": 6, \"num_experts_per_tok\": 3, \"moe_intermediate_size\": 8, "
    "\"mlp_only_layers\": [0, 4], " SIZES,
    "{\"model_type\": \"qwen2_moe\", \"num_experts\": 3, \"num_experts_per_tok\": 1, \"moe_intermediate_size\": 8, "
    "\"shared_expert_intermediate_size\": 12, \"decoder_sparse_step\": 2, " SIZES,
};
#undef SIZES
#undef SHAPE

const struct job_cut job_cuts[JOB_CUTS] = {
    {2, 1, 1, PIPELINE_GPIPE, 1},       {3, 1, 1, PIPELINE_GPIPE, 1}, {2, 1, 1, PIPELINE_1F1B, 1},
    {3, 1, 1, PIPELINE_1F1B, 1},        {4, 1, 1, PIPELINE_1F1B, 1},  {2, 2, 1, PIPELINE_INTERLEAVED, 1},
    {2, 3, 1, PIPELINE_INTERLEAVED, 1}, {1, 3, 1, PIPELINE_1F1B, 1},  {2, 1, 3, PIPELINE_1F1B, 1},
    {2, 1, 2, PIPELINE_GPIPE, 1},       {2, 1, 1, PIPELINE_ZB_H1, 1}, {3, 1, 1, PIPELINE_ZB_H1, 1},
    {2, 1, 1, PIPELINE_ZB_H2, 1},       {4, 1, 1, PIPELINE_ZB_H2, 1}, {2, 2, 1, PIPELINE_ZB_V, 1},
    {3, 2, 1, PIPELINE_ZB_V, 1},
};

const struct job_cut job_cuts_replicated[JOB_CUTS_REPLICATED] = {
    {1, 1, 1, PIPELINE_GPIPE, 2}, {1, 3, 1, PIPELINE_1F1B, 2},        {2, 1, 1, PIPELINE_1F1B, 2},
    {3, 1, 1, PIPELINE_GPIPE, 2}, {2, 2, 1, PIPELINE_INTERLEAVED, 2}, {2, 1, 2, PIPELINE_1F1B, 2},
    {2, 1, 1, PIPELINE_ZB_H1, 2}, {2, 2, 1, PIPELINE_ZB_V, 2},        {1, 1, 1, PIPELINE_1F1B, 4},
    {2, 1, 1, PIPELINE_GPIPE, 4}, {2, 1, 1, PIPELINE_ZB_H2, 4},
};

static uint64_t steps_of(const struct cut_job *s)
{
    return s->steps > 0 ? s->steps : CUT_JOB_STEPS;
}

void cut_job_plan(const struct cut_job *s, struct plan *plan)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    test_hardware(&hardware, !s->cut && !s->parallel ? 1 : s->devices > 0 ? s->devices : CUT_JOB_DEVICES,
                  s->device_bytes > 0 ? s->device_bytes : 1 << 24, 1e9);
    hardware.backend = "host";
    hardware.threads = 1;
    hardware.host_bandwidth = hardware.types[0].memory_bandwidth;
    if (s->stored)
        hardware.storage.capacity_bytes = hardware.storage.read_rate = hardware.storage.write_rate =
            hardware.host_bandwidth;
    test_network_jobs(&jobs, 1, s->config, steps_of(s));
    struct job *job = &jobs.jobs[0];
    job->microbatch = 2;
    job->microbatches = s->microbatches;
    job->precision = s->precision;
    job->freeze = s->freeze;
    job->adapter = s->adapter;
    if (s->freeze.layer_count > 0 || s->freeze.tensor_count > 0 || s->adapter.rank > 0)
        support_train_only(job, &jobs.arena);
    if (s->cut || s->parallel) job->gradients = s->gradients;
    if (s->ratio > 0)
        job->compression[COMPRESSION_GRADIENTS] =
            (struct compression){.ratio = s->ratio, .encode_bytes_per_s = 1e11, .decode_bytes_per_s = 1e11};
    if (s->kept_ratio > 0)
        job->compression[COMPRESSION_ACTIVATIONS] =
            (struct compression){.ratio = s->kept_ratio, .encode_bytes_per_s = 1e11, .decode_bytes_per_s = 1e11};
    job->optimizer.learning_rate = s->rate > 0 ? s->rate : 0.01;
    job->optimizer.moments = s->moments;
    job->optimizer.kind = s->optimizer;
    job->first_minibatch = s->first;
    job->minibatches = steps_of(s) - s->first;
    if (s->diverges) job->optimizer = (struct job_optimizer){.kind = OPTIMIZER_SGD, .learning_rate = 1e6};
    job->optimizer.clip = s->clip;
    job->evaluation = (struct job_evaluation){.every = s->every, .minibatches = s->held_out};
    job->keep_best = s->keeps_best;
    job->tree = s->tree && !s->cut; /* else as the cut says */
    if (s->cut)
        job->parallel = (struct parallel){.tensor = s->tensor > 0 ? s->tensor : 1, .prefetch = 1 + s->prefetch,
                                          .pipeline = s->cut->pipeline,
                                          .data = s->cut->data, .zero = s->zero,
                                          .chunks = s->cut->chunks, .buckets = s->cut->buckets,
                                          .schedule = s->cut->schedule, .recompute = s->recompute,
                                          .blocking = s->blocking, .tree = s->tree, .scatter = s->scatters,
                                          .swap = s->swaps, .choose = s->chooses,
                                          .offload = s->weights_below ? OFFLOAD_WEIGHTS
                                                     : s->offload     ? OFFLOAD_STATES
                                                                      : OFFLOAD_NOTHING,
                                          .storage = s->stored && (s->offload || s->weights_below)};
    if (s->cut) job->parallel.slices = s->slices;
    for (uint32_t i = 0; s->cut && i < s->slices; i++) job->parallel.slice_tokens[i] = s->slice_tokens[i];
    if (s->parallel) job->parallel = *s->parallel;
    const struct planner_options options = {.policy = s->cut || s->parallel ? NULL : "spill-sequential", .shards = 3,
                                            .activations = PLANNER_AUTO,
                                            .optimizer = s->clip > 0 ? PLANNER_AUTO : PLANNER_PLACE_DEVICE};
    enum status status = parallel_is_set(&job->parallel) ? parallel_check(job, &err) : STATUS_OK;
    if (!status) status = planner_plan(&hardware, &jobs, &options, plan, &err);
    if (!status) status = plan_check(plan, &err);
    if (status) fail_msg("%s", err.text);
}

void cut_job_run(struct plan *plan, const struct run_options *options, struct cut_job_outcome *out)
{
    struct run_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    struct run_options stored = *options;
    stored.storage.folder = P_tmpdir;
    if (run_plan(plan, &stored, &result, &trace, &err)) fail_msg("%s", err.text);
    if (!result.stopped) assert_memory_as_planned(plan, &result);
    if (options->record_spans && trace_check(&trace, &err)) fail_msg("%s", err.text);
    if (options->record_spans) assert_int_equal(trace.span_count, plan_operations(plan));
    out->minibatches = result.jobs[0].minibatches;
    out->fingerprint = result.jobs[0].weights_fingerprint;
    memcpy(out->losses, result.jobs[0].losses, out->minibatches * sizeof *out->losses);
    out->evaluation_count = result.jobs[0].evaluation_count;
    memcpy(out->evaluations, result.jobs[0].evaluations, out->evaluation_count * sizeof *out->evaluations);
    trace_release(&trace);
    run_result_release(&result);
    plan_release(plan);
}

void cut_job_same(const struct cut_job_outcome *wanted, const struct cut_job_outcome *found, const struct cut_job *s)
{
    char what[240], how[PARALLEL_TEXT_BYTES];
    if (s->parallel)
        snprintf(what, sizeof what, "%.25s..., %s, %s, %u microbatches, clip %g, evaluation %u", s->config,
                 pipeline_schedule_names[s->parallel->schedule], parallel_text(s->parallel, how),
                 (unsigned)s->microbatches, s->clip, (unsigned)s->every);
    else
        snprintf(what, sizeof what,
             "%.25s..., %u stages, %u chunks, %u buckets, %u replicas, zero %u, prefetch %u, precision %u, moments %u, "
             "%s, recompute %s, %u microbatches, clip %g%s", s->config, s->cut->pipeline, s->cut->chunks,
             s->cut->buckets,
             s->cut->data, s->zero, s->prefetch, s->precision, s->moments, pipeline_schedule_names[s->cut->schedule],
             recompute_names[s->recompute], (unsigned)s->microbatches, s->clip,
             s->weights_below ? (s->stored ? ", weights come up from storage" : ", weights come up")
             : s->offload     ? (s->stored ? ", the host updates storage" : ", the host updates")
                              : "");
    assert_int_equal(found->minibatches, steps_of(s));
    for (uint32_t i = 0; i < steps_of(s); i++)
        if (memcmp(&wanted->losses[i], &found->losses[i], sizeof(double)) != 0)
            fail_msg("%s: loss %u is %.17g, not %.17g", what, i, found->losses[i], wanted->losses[i]);
    assert_int_equal(found->evaluation_count, wanted->evaluation_count);
    for (uint32_t i = 0; i < found->evaluation_count; i++) {
        const struct evaluation_progress *a = &wanted->evaluations[i], *b = &found->evaluations[i];
        if (a->step != b->step || memcmp(&a->loss, &b->loss, sizeof a->loss) != 0)
            fail_msg("%s: evaluation after step %u is %.17g, not %.17g", what, (unsigned)b->step, b->loss, a->loss);
    }
    if (wanted->fingerprint != found->fingerprint) fail_msg("%s: other weights", what);
}

bool cut_job_clips(const char *config)
{
    return !strstr(config, "bert") && !strstr(config, "vit");
}

struct cut_job cut_job_draw(uint64_t seed, uint64_t n, const char *config)
{
    static const uint32_t recompute[] = {RECOMPUTE_NONE, RECOMPUTE_SELECTIVE, RECOMPUTE_FULL, RECOMPUTE_STAGE};
    struct cut_job s = {.config = config,
                        .cut = &job_cuts[random_below(seed, 7 * n, JOB_CUTS)],
                        .recompute = recompute[random_below(seed, 7 * n + 1, 4)],
                        .precision = test_precision(random_below(seed, 7 * n + 2, 3)),
                        .blocking = random_below(seed, 7 * n + 3, 4) == 0};
    s.microbatches = 1 + random_below(seed, 7 * n + 4, 5);
    if (n % 2 == 0 && cut_job_clips(config)) s.clip = 0.05 + 0.5 * random_unit(seed, 7 * n + 5);
    const uint64_t place = random_below(seed, 1000000 + n, 3);
    s.offload = place > 0;
    s.weights_below = place > 1;
    s.stored = random_below(seed, 3000000 + n, 2);
    s.prefetch = (uint32_t)random_below(seed, 2000000 + n, 3);
    s.every = random_below(seed, 7 * n + 5, 4);
    s.held_out = 1 + random_below(seed, 7 * n + 6, 3);
    if (s.cut->schedule == PIPELINE_INTERLEAVED)
        s.microbatches = s.cut->pipeline * (1 + random_below(seed, 7 * n + 4, 2));
    return s;
}
