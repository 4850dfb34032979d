/*
 * Families of networks (models/network/network_traits.h): parameters of published models from their config.json,
 * refused models, work against closed forms, and plans of each.
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

#include "base/size.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "models/job/memory.h"
#include "planner/check/plan_check.h"
#include "planner/strategy/planner.h"
#include "tests/support/support_models.h"

/* --- parameters ------------------------------------------------------------------------------- */

/*
 * Counts: "card" as the model's card has them, in all or without the tables of words (Pythia's has 85 056 000 and
 * 1 208 602 624, next to 2 V C); "metadata" as the file's has it; "rounded" where only some digits are published
 * (Mixtral: 46.7 billion); "shapes": V C and what each block has, added up by hand from the published configuration,
 * such as
 *
 *     opt-125m  50272 x 768 + 2050 x 768 + 12 x (4 x 590 592 + 2 x 1536 + 4 722 432) + 1536
 *     gpt-j-6b  50400 x 4096 x 2 + 50400 + 28 x (8192 + 4 x 4096^2 + 2 x 4096 x 16384 + 16384 + 4096) + 8192
 */
static const struct {
    const char *name, *source, *config;
    uint64_t parameters;
} published[] = {
    {"opt-125m", "shapes", "\"model_type\": \"opt\", \"word_embed_proj_dim\": 768", 125239296},
    /* 50272 x 512 + 2050 x 1024 + 2 x 512 x 1024 + 24 x 12 596 224, and no last norm */
    {"opt-350m", "metadata",
     "\"model_type\": \"opt\", \"hidden_size\": 1024, \"num_hidden_layers\": 24, \"num_attention_heads\": 16, "
     "\"ffn_dim\": 4096, \"word_embed_proj_dim\": 512, \"do_layer_norm_before\": false", 331196416},
    {"opt-13b", "shapes",
     "\"model_type\": \"opt\", \"hidden_size\": 5120, \"num_hidden_layers\": 40, \"num_attention_heads\": 40, "
     "\"ffn_dim\": 20480, \"word_embed_proj_dim\": 5120", 12853473280},
    {"pythia-160m", "card",
     "\"model_type\": \"gpt_neox\", \"hidden_size\": 768, \"num_hidden_layers\": 12, \"num_attention_heads\": 12, "
     "\"intermediate_size\": 3072, \"vocab_size\": 50304", 162322944},
    {"pythia-1.4b", "card",
     "\"model_type\": \"gpt_neox\", \"hidden_size\": 2048, \"num_hidden_layers\": 24, \"num_attention_heads\": 16, "
     "\"intermediate_size\": 8192, \"vocab_size\": 50304", 1414647808},
    {"gpt-neox-20b", "shapes", "\"model_type\": \"gpt_neox\", \"hidden_act\": \"gelu_fast\"", 20554567680},
    {"gpt-j-6b", "shapes", "\"model_type\": \"gptj\", \"n_inner\": null", 6050882784},
    {"phi-2", "shapes",
     "\"model_type\": \"phi\", \"hidden_size\": 2560, \"num_hidden_layers\": 32, \"intermediate_size\": 10240, "
     "\"partial_rotary_factor\": 0.4, \"num_key_value_heads\": null", 2779683840},
    {"mistral-7b", "shapes", "\"model_type\": \"mistral\", \"sliding_window\": 4096", 7241732096},
    {"mixtral-8x7b", "rounded", "\"model_type\": \"mixtral\"", 46702792704},
    {"qwen2-0.5b", "shapes",
     "\"model_type\": \"qwen2\", \"hidden_size\": 896, \"num_hidden_layers\": 24, \"num_attention_heads\": 14, "
     "\"num_key_value_heads\": 2, \"intermediate_size\": 4864, \"tie_word_embeddings\": true", 494032768},
    {"qwen3-0.6b", "shapes",
     "\"model_type\": \"qwen3\", \"hidden_size\": 1024, \"num_hidden_layers\": 28, \"num_attention_heads\": 16, "
     "\"num_key_value_heads\": 8, \"head_dim\": 128, \"intermediate_size\": 3072, \"tie_word_embeddings\": true",
     596049920},
    {"qwen3-8b", "shapes",
     "\"model_type\": \"qwen3\", \"num_hidden_layers\": 36, \"num_key_value_heads\": 8, \"intermediate_size\": 12288",
     8190735360},
    {"qwen3-30b-a3b", "shapes",
     "\"model_type\": \"qwen3_moe\", \"num_hidden_layers\": 48, \"head_dim\": 128, \"mlp_only_layers\": []",
     30532122624},
    {"qwen1.5-moe-a2.7b", "metadata",
     "\"model_type\": \"qwen2_moe\", \"rope_theta\": 1000000.0, \"shared_expert_intermediate_size\": 5632",
     14315784192},
    /* 2 614 341 888 in the file, and the shapes of the other two */
    {"gemma-2-2b", "metadata", "\"model_type\": \"gemma2\"", 2614341888},
    {"gemma-2-9b", "metadata",
     "\"model_type\": \"gemma2\", \"hidden_size\": 3584, \"num_hidden_layers\": 42, \"num_attention_heads\": 16, "
     "\"num_key_value_heads\": 8, \"intermediate_size\": 14336", 9241705984},
    {"gemma-2-27b", "metadata",
     "\"model_type\": \"gemma2\", \"hidden_size\": 4608, \"num_hidden_layers\": 46, \"num_attention_heads\": 32, "
     "\"num_key_value_heads\": 16, \"head_dim\": 128, \"intermediate_size\": 36864, \"query_pre_attn_scalar\": 144",
     27227128320},
    {"gemma-3-1b", "metadata",
     "\"model_type\": \"gemma3_text\", \"sliding_window\": 512, \"hidden_size\": 1152, \"num_attention_heads\": 4, "
     "\"num_key_value_heads\": 1, \"intermediate_size\": 6912, \"vocab_size\": 262144, "
     "\"max_position_embeddings\": 32768", 999885952},
    {"gemma-2b", "shapes",
     "\"model_type\": \"gemma\", \"hidden_size\": 2048, \"num_hidden_layers\": 18, \"num_attention_heads\": 8, "
     "\"num_key_value_heads\": 1, \"intermediate_size\": 16384", 2506172416},
    {"gemma-7b", "metadata", "\"model_type\": \"gemma\"", 8537680896},
};

static void parse(const char *keys, struct arena *arena, struct network *out)
{
    struct error err = {0};
    char text[1024];
    snprintf(text, sizeof text, "{%s}", keys);
    if (support_network(text, arena, out, &err)) fail_msg("%s", err.text);
}

/* A preset is its config.json: the same parameters, and the same work in a block. */
static void presets_are_their_configurations(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct network n, preset;
    for (size_t i = 0; i < ARRAY_COUNT(published); i++) {
        struct work_item items[2][LAYER_WORK_MAX];
        parse(published[i].config, &arena, &n);
        if (network_find(published[i].name, &arena, &preset, &err)) fail_msg("%s", err.text);
        assert_int_equal(preset.family, n.family);
        assert_int_equal(network_parameters(&preset), published[i].parameters);
        uint32_t count = network_layer_work(&n, 1, PASS_FORWARD, 1, 128, (struct state_format){0}, items[0]);
        assert_int_equal(network_layer_work(&preset, 1, PASS_FORWARD, 1, 128, (struct state_format){0}, items[1]),
                         count);
        if (work_flops(items[0], count) != work_flops(items[1], count) ||
            memory_activation_bytes(&n, 1, 1, 1, 128, PRECISION_FP32) !=
            memory_activation_bytes(&preset, 1, 1, 1, 128, PRECISION_FP32) ||
            preset.rotary_width != n.rotary_width || preset.gelu_tanh != n.gelu_tanh || preset.tied_head != n.tied_head)
            fail_msg("%s is not what its config.json says", published[i].name);
    }
    arena_release(&arena);
}

static void published_models_have_their_parameters(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct network n;
    for (size_t i = 0; i < ARRAY_COUNT(published); i++) {
        parse(published[i].config, &arena, &n);
        if (network_parameters(&n) != published[i].parameters)
            fail_msg("%s has %" PRIu64 " parameters, found %" PRIu64 " (%s)", published[i].name,
                     published[i].parameters, network_parameters(&n), published[i].source);
    }
    arena_release(&arena);
}

/* Only the chosen experts count: Mixtral's card says 12.9 billion of 46.7, Qwen's 3.3 of 30.5 and 2.7 of 14.3. */
static void experts_that_are_not_chosen_are_not_met(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t active;
    } rows[] = {{"mixtral-8x7b", 46702792704 - UINT64_C(32) * 6 * 3 * 4096 * 14336},
                {"qwen3-30b-a3b", 30532122624 - UINT64_C(48) * 120 * 3 * 2048 * 768},
                {"qwen1.5-moe-a2.7b", 14315784192 - UINT64_C(24) * 56 * 3 * 2048 * 1408},
                {"gemma-2b", 2506172416}};
    struct arena arena = {0};
    struct error err = {0};
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct network n;
        if (network_find(rows[i].name, &arena, &n, &err)) fail_msg("%s", err.text);
        assert_int_equal(network_active_parameters(&n), rows[i].active);
    }
    arena_release(&arena);
}

/* A network of text and images is read as its text model, and its name says so. */
static void text_models_are_found(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct network n, alone;
    parse("\"model_type\": \"gemma3\", \"vision_config\": {\"hidden_size\": 1152}, \"text_config\": {\"model_type\": "
          "\"gemma3_text\", \"hidden_size\": 2560, \"num_hidden_layers\": 34, \"intermediate_size\": 10240}", &arena,
          &n);
    parse("\"model_type\": \"gemma3_text\", \"hidden_size\": 2560, \"num_hidden_layers\": 34, "
          "\"intermediate_size\": 10240",
          &arena, &alone);
    assert_non_null(strstr(n.name, ", its text model"));
    assert_int_equal(network_parameters(&n), network_parameters(&alone));
    memcpy(n.name, alone.name, sizeof n.name);
    assert_memory_equal(&n, &alone, sizeof n);
    arena_release(&arena);
}

/* A written network is read back unchanged. */
static void networks_survive_writing(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct error err = {0};
    struct network n, again;
    for (size_t i = 0; i < ARRAY_COUNT(published); i++) {
        parse(published[i].config, &arena, &n);
        char *text = support_network_text(&n);
        assert_non_null(text);
        if (support_network(text, &arena, &again, &err)) fail_msg("%s: %s", text, err.text);
        if (memcmp(&n, &again, sizeof n) != 0)
            fail_msg("%s comes back as another network: %s", published[i].name, text);
        free(text);
    }
    arena_release(&arena);
}

/* Names are the names in the files on the hub: the first tensor of the second block. */
static void tensors_have_their_names(void **state)
{
    (void)state;
    static const struct {
        const char *config, *first, *last;
    } cases[] = {
        {"\"model_type\": \"opt\"", "model.decoder.layers.1.self_attn_layer_norm.weight",
         "model.decoder.layers.1.fc2.bias"},
        {"\"model_type\": \"gpt_neox\"", "gpt_neox.layers.1.input_layernorm.weight",
         "gpt_neox.layers.1.mlp.dense_4h_to_h.bias"},
        {"\"model_type\": \"gptj\"", "transformer.h.1.ln_1.weight", "transformer.h.1.mlp.fc_out.bias"},
        {"\"model_type\": \"phi\"", "model.layers.1.input_layernorm.weight", "model.layers.1.mlp.fc2.bias"},
        {"\"model_type\": \"qwen2\"", "model.layers.1.self_attn.q_proj.weight",
         "model.layers.1.post_attention_layernorm.weight"},
    };
    struct arena arena = {0};
    struct network n;
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        parse(cases[i].config, &arena, &n);
        uint32_t count = network_layer_tensors(&n, 2, specs);
        assert_string_equal(specs[0].name, cases[i].first);
        assert_string_equal(specs[count - 1].name, cases[i].last);
    }
    arena_release(&arena);
}

/* Other spellings: keys that versions 4 and 5 of transformers interpret differently, and null values. */
static void other_spellings_mean_the_same(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct network n;
    parse("\"model_type\": \"qwen3_moe\", \"num_local_experts\": 64", &arena, &n);
    assert_int_equal(n.experts, 64);
    parse("\"model_type\": \"qwen3_moe\", \"num_experts\": 60", &arena, &n);
    assert_int_equal(n.experts, 60);
    parse("\"model_type\": \"mistral\", \"num_key_value_heads\": null", &arena, &n);
    assert_int_equal(n.kv_heads, 32);
    parse("\"model_type\": \"mistral\"", &arena, &n);
    assert_int_equal(n.kv_heads, 8);
    parse("\"model_type\": \"opt\", \"init_std\": 0.006", &arena, &n);
    assert_true(n.initializer_range == 0.006);
    /* heads of 64 and of 96 */
    parse("\"model_type\": \"phi\", \"rope_parameters\": {\"rope_theta\": 1e4, \"partial_rotary_factor\": 0.75}",
          &arena, &n);
    assert_int_equal(n.rotary_width, 48);
    parse("\"model_type\": \"gpt_neox\", \"rope_parameters\": {\"partial_rotary_factor\": 0.5}", &arena, &n);
    assert_int_equal(n.rotary_width, 48);
    arena_release(&arena);
}

/* Blocks with windows, and their rotary positions, as versions 4 and 5 spell them. */
static void windows_of_both_spellings_are_the_same(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 4, \"sliding_window_pattern\": 3, "
         "\"rope_theta\": 5e5, \"rope_local_base_freq\": 2e4, \"rope_scaling\": {\"rope_type\": \"linear\", "
         "\"factor\": 8.0}",
         "\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 4, \"_sliding_window_pattern\": 6, \"layer_types\": "
         "[\"sliding_attention\", \"sliding_attention\", \"full_attention\", \"sliding_attention\"], "
         "\"rope_parameters\": {\"full_attention\": {\"rope_theta\": 5e5, \"rope_type\": \"linear\", \"factor\": 8}, "
         "\"sliding_attention\": {\"rope_theta\": 2e4, \"rope_type\": \"default\"}}"},
        {"\"model_type\": \"gemma2\", \"num_hidden_layers\": 3",
         "\"model_type\": \"gemma2\", \"num_hidden_layers\": 3, "
         "\"layer_types\": [\"sliding_attention\", \"full_attention\", \"sliding_attention\"]"},
        {"\"model_type\": \"gemma2\", \"num_hidden_layers\": 2, \"sliding_window\": null",
         "\"model_type\": \"gemma2\", \"num_hidden_layers\": 2, \"layer_types\": [\"full_attention\", "
         "\"full_attention\"]"},
        {"\"model_type\": \"qwen2\", \"num_hidden_layers\": 3, \"use_sliding_window\": true, \"max_window_layers\": 1",
         "\"model_type\": \"qwen2\", \"num_hidden_layers\": 3, \"use_sliding_window\": true, \"layer_types\": "
         "[\"full_attention\", \"sliding_attention\", \"sliding_attention\"]"},
        {"\"model_type\": \"qwen2_moe\"", "\"model_type\": \"qwen2_moe\", \"sliding_window\": 0"},
    };
    struct arena arena = {0};
    struct network old, new;
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) {
        parse(pairs[i][0], &arena, &old);
        parse(pairs[i][1], &arena, &new);
        assert_memory_equal(&old, &new, sizeof old);
    }
    parse(pairs[0][0], &arena, &old);
    static const uint64_t windows[] = {4096, 4096, 0, 4096};
    for (uint64_t block = 0; block < 4; block++) {
        const struct network_rope rope = network_block_rope(&old, block + 1);
        assert_int_equal(network_block_window(&old, block + 1), windows[block]);
        assert_true(rope.theta == (windows[block] ? 2e4 : 5e5) &&
                    rope.kind == (windows[block] ? ROPE_DEFAULT : ROPE_LINEAR));
    }
    arena_release(&arena);
}

/* --- refused ---------------------------------------------------------------------------------- */

static void what_would_be_another_network_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"{\"model_type\": \"opt\", \"word_embed_proj_dim\": 0}",
         "test:1:46: 'word_embed_proj_dim' is 0 (expected 1 to 1048576)"},
        {"{\"model_type\": \"gemma2\", \"num_hidden_layers\": 4, \"layer_types\": [\"sliding_attention\"]}",
         "test:1:65: 'layer_types' has 1 layers (expected 4)"},
        {"{\"model_type\": \"gemma3_text\", \"num_hidden_layers\": 1, \"layer_types\": [\"linear_attention\"]}",
         "test:1:71: attention of kind 'linear_attention' (expected 'full_attention' or 'sliding_attention')"},
        {"{\"model_type\": \"gemma2\", \"num_hidden_layers\": 3, \"layer_types\": [\"sliding_attention\", "
         "\"full_attention\", \"full_attention\"]}",
         "test:1:105: blocks with windows follow no rule that is supported (expected all from one on, or all but "
         "every n-th one)"},
        {"{\"model_type\": \"gemma3_text\", \"rope_parameters\": {\"sliding_attention\": {\"rope_type\": \"linear\", "
         "\"factor\": 2}}}",
         "test:1:86: rotary positions of blocks with windows are of type 'linear' (only 'default' is supported)"},
        {"{\"model_type\": \"gemma2\", \"attn_logit_softcapping\": 0}",
         "test:1:52: 'attn_logit_softcapping' is 0 (expected 1e-6 to 1000000)"},
        {"{\"model_type\": \"gemma3_text\", \"use_bidirectional_attention\": true}",
         "test:1:62: 'use_bidirectional_attention' is true (only false is supported)"},
        {"{\"model_type\": \"gemma2\", \"hidden_activation\": \"gelu\"}",
         "test:1:47: unknown hidden_activation 'gelu' (expected gelu_pytorch_tanh)"},
        {"{\"model_type\": \"phi\", \"qk_layernorm\": true}",
         "test:1:39: 'qk_layernorm' is true (only false is supported)"},
        {"{\"model_type\": \"qwen3_moe\", \"mlp_only_layers\": [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16]}",
         "test:1:48: 'mlp_only_layers' has 17 layers (limit is 16)"},
        {"{\"model_type\": \"mixtral\", \"num_local_experts\": 600}",
         "test:1:48: 600 experts of 14336 columns are too wide together (limit is 8388608)"},
        {"{\"model_type\": \"phi\", \"rope_parameters\": {\"partial_rotary_factor\": 1.5}}",
         "test:1:68: 'partial_rotary_factor' is 1.5 (expected 0 to 1)"},
        {"{\"model_type\": \"mixtral\", \"num_experts_per_tok\": 9}",
         "test:1:50: 'num_experts_per_tok' is 9 (expected 1 to 8)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) support_network_refused(cases[i][0], cases[i][1]);
}

/* --- work ------------------------------------------------------------------------------------- */

static double block_flops(const struct network *n, uint64_t microbatch, uint64_t sequence)
{
    struct work_item items[LAYER_WORK_MAX];
    uint32_t count = network_layer_work(n, 1, PASS_FORWARD, microbatch, sequence, (struct state_format){0}, items);
    return work_flops(items, count);
}

/* 2 FLOPs for each row and each number of a matrix that it meets; attention 2 x 2 R T / 2 x H D. Only chosen experts
 * count: R k rows divide evenly here, and the router meets all. */
static void a_block_computes_what_its_matrices_say(void **state)
{
    (void)state;
    const uint64_t batch = 3, tokens = 512, rows = batch * tokens;
    struct arena arena = {0};
    struct network n;
    for (size_t i = 0; i < ARRAY_COUNT(published); i++) {
        struct tensor_spec specs[LAYER_TENSORS_MAX];
        double met = 0;
        parse(published[i].config, &arena, &n);
        uint32_t count = network_layer_shapes(&n, 1, specs);
        for (uint32_t t = 0; t < count; t++) {
            double share = n.experts > 0 && specs[t].rank == 3 ? (double)n.experts_chosen / (double)n.experts : 1;
            if (specs[t].matrix) met += share * (double)specs[t].elements;
        }
        double attention = 2.0 * (double)rows * (double)(tokens * n.heads * n.head_width);
        double expected = 2 * (double)rows * met + attention, found = block_flops(&n, batch, tokens);
        if (found < 0.999 * expected || found > 1.005 * expected)
            fail_msg("%s: %g FLOPs of a block, expected %g", published[i].name, found, expected);
    }
    arena_release(&arena);
}

static double layer_flops(const struct network *n, uint64_t layer, enum network_pass pass, uint64_t tokens)
{
    struct work_item items[LAYER_WORK_MAX];
    uint32_t count = network_layer_work(n, layer, pass, 1, tokens, (struct state_format){0}, items);
    return work_flops(items, count);
}

/* opt-350m's words are half as wide as the rest, R C E there and R E C + R V E back; a BERT of classes has no words
 * at all, but a square and the classes of a sample. Backward is twice that. */
static void narrow_words_and_classes_have_their_products(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct network n;
    const double r = 96, c = 1024, e = 512, v = 50272;
    parse("\"model_type\": \"opt\", \"hidden_size\": 1024, \"num_attention_heads\": 16, \"word_embed_proj_dim\": 512, "
          "\"do_layer_norm_before\": false", &arena, &n);
    assert_true(layer_flops(&n, 0, PASS_FORWARD, 96) == 2 * r * c * e);
    assert_true(layer_flops(&n, 0, PASS_BACKWARD, 96) == 4 * r * c * e);
    assert_true(layer_flops(&n, n.layer_count - 1, PASS_FORWARD, 96) == 2 * r * e * (c + v));
    assert_true(layer_flops(&n, n.layer_count - 1, PASS_BACKWARD, 96) == 4 * r * e * (c + v));
    parse("\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"], \"num_labels\": 7", &arena,
          &n);
    assert_true(layer_flops(&n, n.layer_count - 1, PASS_FORWARD, 96) == 2 * 768.0 * (768 + 7));
    assert_true(layer_flops(&n, n.layer_count - 1, PASS_BACKWARD, 96) == 4 * 768.0 * (768 + 7));
    arena_release(&arena);
}

/*
 * Kept of a block of width C without its output, in numbers a row, layer by layer of the chain in network_work.c:
 * opt's is gpt2's; a parallel block has no stream in the middle, and one norm less if it has one.
 */
static void parallel_blocks_keep_less(void **state)
{
    (void)state;
    static const char *const shape = "\"hidden_size\": 256, \"num_hidden_layers\": 3, \"num_attention_heads\": 4, "
                                     "\"vocab_size\": 512, ";
    const uint64_t width = 256, rows = 2 * 64;
    struct arena arena = {0};
    struct network opt, neox, phi;
    char text[512];
    snprintf(text, sizeof text, "%s\"model_type\": \"opt\", \"ffn_dim\": 1024, \"word_embed_proj_dim\": 256", shape);
    parse(text, &arena, &opt);
    snprintf(text, sizeof text, "%s\"model_type\": \"gpt_neox\", \"intermediate_size\": 1024", shape);
    parse(text, &arena, &neox);
    snprintf(text, sizeof text, "%s\"model_type\": \"phi\", \"intermediate_size\": 1024", shape);
    parse(text, &arena, &phi);
    uint64_t two = memory_activation_bytes(&opt, 1, 1, 2, 64, PRECISION_FP32),
        none = memory_activation_bytes(&neox, 1, 1, 2, 64, PRECISION_FP32);
    uint64_t one = memory_activation_bytes(&phi, 1, 1, 2, 64, PRECISION_FP32);
    assert_int_equal(two - none, rows * width * 4);          /* middle */
    assert_int_equal(none - one, rows * (width + 2) * 4);    /* norm2 and its statistics */
    arena_release(&arena);
}

/* --- plans ------------------------------------------------------------------------------------ */

/* Small networks of each family, spilled, resident and parallel: plan_check() accepts their plans. */
static void every_family_is_planned(void **state)
{
    (void)state;
    static const char *const small[] = {
        "\"model_type\": \"opt\", \"hidden_size\": 64, \"word_embed_proj_dim\": 64, \"ffn_dim\": 192, ",
        "\"model_type\": \"opt\", \"hidden_size\": 64, \"word_embed_proj_dim\": 24, \"ffn_dim\": 192, "
        "\"do_layer_norm_before\": false, ",
        "\"model_type\": \"opt\", \"hidden_size\": 64, \"word_embed_proj_dim\": 96, \"ffn_dim\": 192, "
        "\"tie_word_embeddings\": false, ",
        "\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"], \"hidden_size\": 64, "
        "\"intermediate_size\": 192, \"num_labels\": 5, ",
        "\"model_type\": \"gpt_neox\", \"hidden_size\": 64, \"intermediate_size\": 192, ",
        "\"model_type\": \"gptj\", \"n_embd\": 64, \"n_layer\": 4, \"n_head\": 4, \"rotary_dim\": 8, ",
        "\"model_type\": \"phi\", \"hidden_size\": 64, \"intermediate_size\": 192, ",
        "\"model_type\": \"mistral\", \"hidden_size\": 64, \"num_key_value_heads\": 2, \"intermediate_size\": 192, ",
        "\"model_type\": \"gemma\", \"hidden_size\": 64, \"head_dim\": 32, \"num_key_value_heads\": 2, "
        "\"intermediate_size\": 192, ",
        "\"model_type\": \"qwen2\", \"hidden_size\": 64, \"intermediate_size\": 192, ",
        "\"model_type\": \"qwen3\", \"hidden_size\": 64, \"intermediate_size\": 192, ",
        "\"model_type\": \"mixtral\", \"hidden_size\": 64, \"num_key_value_heads\": 2, \"intermediate_size\": 96, ",
        "\"model_type\": \"qwen3_moe\", \"hidden_size\": 64, \"moe_intermediate_size\": 32, \"num_experts\": 16, "
        "\"num_experts_per_tok\": 4, ",
        "\"model_type\": \"qwen2_moe\", \"hidden_size\": 64, \"moe_intermediate_size\": 32, \"num_experts\": 16, "
        "\"num_key_value_heads\": 4, \"shared_expert_intermediate_size\": 48, ",
        "\"model_type\": \"qwen2_moe\", \"hidden_size\": 64, \"moe_intermediate_size\": 32, \"num_experts\": 16, "
        "\"num_key_value_heads\": 4, \"shared_expert_intermediate_size\": 48, \"decoder_sparse_step\": 2, "
        "\"intermediate_size\": 80, \"mlp_only_layers\": [1], ",
        "\"model_type\": \"gpt_neox\", \"hidden_size\": 64, \"intermediate_size\": 192, "
        "\"use_parallel_residual\": false, ",
        "\"model_type\": \"gemma2\", \"hidden_size\": 64, \"head_dim\": 32, \"num_key_value_heads\": 2, "
        "\"intermediate_size\": 192, ",
        "\"model_type\": \"gemma3_text\", \"hidden_size\": 64, \"head_dim\": 32, \"num_key_value_heads\": 2, "
        "\"intermediate_size\": 192, ",
    };
    static const struct {
        const char *policy, *degrees;
    } ways[] = {{"sharded-lrtf", NULL}, {"model-parallel", NULL}, {NULL, "tp=2,pp=2,sp"}, {NULL, "dp=4,v=2,zero=3"}};
    for (size_t i = 0; i < ARRAY_COUNT(small) * ARRAY_COUNT(ways); i++) {
        const struct hardware_options four = {.device_count = 4, .device_memory_bytes = 16 << 20};
        struct hardware machine = {0};
        struct job_set jobs = {0};
        struct plan plan = {0};
        struct error err = {0};
        size_t w = i % ARRAY_COUNT(ways);
        char text[1024];
        snprintf(text, sizeof text,
                 "{\"spillway_jobs\": 1, \"jobs\": [{\"network\": {%s\"vocab_size\": 509, \"num_hidden_layers\": 4, "
                 "\"num_attention_heads\": 4}, \"sequence\": 32, \"microbatches\": 4, \"minibatches\": 3, "
                 "\"precision\": \"bf16\"}]}",
                 small[i / ARRAY_COUNT(ways)]);
        if (hardware_find("dgx-a100-80gb", &machine, &err) || hardware_adjust(&machine, &four, &err) ||
            support_jobs(text, ".", &jobs, &err))
            fail_msg("%s\n%s", text, err.text);
        if (ways[w].degrees && parallel_parse_text(ways[w].degrees, &jobs.jobs[0].parallel, &err))
            fail_msg("%s", err.text);
        const struct planner_options options = {.policy = ways[w].policy, .activations = PLANNER_AUTO,
                                                .optimizer = PLANNER_AUTO};
        if (planner_plan(&machine, &jobs, &options, &plan, &err) || plan_check(&plan, &err))
            fail_msg("%s\n%s", text, err.text);
        plan_release(&plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_models_have_their_parameters),
        cmocka_unit_test(presets_are_their_configurations),
        cmocka_unit_test(experts_that_are_not_chosen_are_not_met),
        cmocka_unit_test(text_models_are_found),
        cmocka_unit_test(networks_survive_writing),
        cmocka_unit_test(tensors_have_their_names),
        cmocka_unit_test(other_spellings_mean_the_same),
        cmocka_unit_test(windows_of_both_spellings_are_the_same),
        cmocka_unit_test(what_would_be_another_network_is_refused),
        cmocka_unit_test(a_block_computes_what_its_matrices_say),
        cmocka_unit_test(narrow_words_and_classes_have_their_products),
        cmocka_unit_test(parallel_blocks_keep_less),
        cmocka_unit_test(every_family_is_planned),
    };
    return cmocka_run_group_tests_name("models/network_traits", tests, NULL, NULL);
}
