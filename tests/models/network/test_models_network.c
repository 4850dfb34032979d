/*
 * models/network/network.h: names and shapes of gpt2's tensors, both spellings
 * of config.json, refusals with their place, round trips, and the work of a training step against
 * the closed form of the literature.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/random.h"
#include "base/size.h"
#include "models/network/network.h"
#include "tests/support/planner/support_parallel.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

static const struct state_format adamw = {.optimizer = OPTIMIZER_ADAMW};
static const struct state_format sgd = {.optimizer = OPTIMIZER_SGD};

/* --- parameters ----------------------------------------------------------------------------- */

static void layers_add_up_and_presets_say_their_source(void **state)
{
    (void)state;
    for (uint32_t p = 0; network_preset_name(p); p++) {
        struct network n = support_preset(network_preset_name(p));
        assert_string_equal(n.name, network_preset_name(p));
        assert_non_null(network_preset_source(p));
        assert_true(n.graph || n.layer_count == n.blocks + 2);
        uint64_t sum = 0;
        for (uint64_t layer = 0; layer < n.layer_count; layer++) {
            struct tensor_spec tensors[LAYER_TENSORS_MAX];
            uint64_t elements = 0;
            uint32_t count = network_layer_tensors(&n, layer, tensors);
            for (uint32_t i = 0; i < count; i++) {
                uint64_t product = 1;
                for (uint32_t d = 0; d < tensors[i].rank; d++) product *= tensors[i].shape[d];
                assert_int_equal(product, tensors[i].elements);
                assert_true(tensors[i].name[0] != '\0');
                elements += tensors[i].running ? 0 : product;
            }
            assert_int_equal(elements, network_layer_parameters(&n, layer));
            sum += elements;
        }
        assert_int_equal(sum, network_parameters(&n));
        assert_int_equal(network_layer_kind(&n, 0), n.graph ? LAYER_OPAQUE : LAYER_EMBEDDING);
        assert_int_equal(network_layer_kind(&n, 1), n.graph ? LAYER_OPAQUE : LAYER_BLOCK);
        assert_int_equal(network_layer_kind(&n, n.layer_count - 1), n.graph ? LAYER_OPAQUE : LAYER_HEAD);
    }
}

struct expected_tensor {
    const char *name;
    uint64_t rows, columns; /* columns 0: a vector */
    enum tensor_init init;
    bool matrix;
};

static void check_tensors(const struct network *n, uint64_t layer,
                          const struct expected_tensor *expected, uint32_t count)
{
    struct tensor_spec tensors[LAYER_TENSORS_MAX];
    assert_int_equal(network_layer_tensors(n, layer, tensors), count);
    for (uint32_t i = 0; i < count; i++) {
        assert_string_equal(tensors[i].name, expected[i].name);
        assert_int_equal(tensors[i].rank, expected[i].columns ? 2 : 1);
        assert_int_equal(tensors[i].shape[0], expected[i].rows);
        if (expected[i].columns) assert_int_equal(tensors[i].shape[1], expected[i].columns);
        assert_int_equal(tensors[i].init, expected[i].init);
        assert_int_equal(tensors[i].matrix, expected[i].matrix);
    }
}

/* The header of gpt2's model.safetensors, in the order of the module. */
static void gpt2_tensors_have_the_names_and_shapes_of_the_file(void **state)
{
    (void)state;
    static const struct expected_tensor embedding[] = {
        {"wte.weight", 50257, 768, INIT_NORMAL, true},
        {"wpe.weight", 1024, 768, INIT_NORMAL, true},
    };
    static const struct expected_tensor block[] = {
        {"h.3.ln_1.weight", 768, 0, INIT_ONE, false},
        {"h.3.ln_1.bias", 768, 0, INIT_ZERO, false},
        {"h.3.attn.c_attn.weight", 768, 2304, INIT_NORMAL, true},
        {"h.3.attn.c_attn.bias", 2304, 0, INIT_ZERO, false},
        {"h.3.attn.c_proj.weight", 768, 768, INIT_NORMAL_RESIDUAL, true},
        {"h.3.attn.c_proj.bias", 768, 0, INIT_ZERO, false},
        {"h.3.ln_2.weight", 768, 0, INIT_ONE, false},
        {"h.3.ln_2.bias", 768, 0, INIT_ZERO, false},
        {"h.3.mlp.c_fc.weight", 768, 3072, INIT_NORMAL, true},
        {"h.3.mlp.c_fc.bias", 3072, 0, INIT_ZERO, false},
        {"h.3.mlp.c_proj.weight", 3072, 768, INIT_NORMAL_RESIDUAL, true},
        {"h.3.mlp.c_proj.bias", 768, 0, INIT_ZERO, false},
    };
    static const struct expected_tensor head[] = {
        {"ln_f.weight", 768, 0, INIT_ONE, false},
        {"ln_f.bias", 768, 0, INIT_ZERO, false},
        {"lm_head.weight", 50257, 768, INIT_NORMAL, true},
    };
    struct network n = support_preset("gpt2");
    check_tensors(&n, 0, embedding, 2);
    check_tensors(&n, 4, block, 12);
    check_tensors(&n, 13, head, 2);
    n.tied_head = false;
    check_tensors(&n, 13, head, 3);
    assert_int_equal(network_parameters(&n), 124439808 + UINT64_C(50257) * 768);
}

/* The header of meta-llama's Llama-3.2-1B, model.safetensors. */
static void llama_tensors_have_the_names_and_shapes_of_the_file(void **state)
{
    (void)state;
    static const struct expected_tensor embedding[] = {
        {"model.embed_tokens.weight", 128256, 2048, INIT_NORMAL, true}};
    static const struct expected_tensor block[] = {
        {"model.layers.15.self_attn.q_proj.weight", 2048, 2048, INIT_NORMAL, true},
        {"model.layers.15.self_attn.k_proj.weight", 512, 2048, INIT_NORMAL, true},
        {"model.layers.15.self_attn.v_proj.weight", 512, 2048, INIT_NORMAL, true},
        {"model.layers.15.self_attn.o_proj.weight", 2048, 2048, INIT_NORMAL, true},
        {"model.layers.15.mlp.gate_proj.weight", 8192, 2048, INIT_NORMAL, true},
        {"model.layers.15.mlp.up_proj.weight", 8192, 2048, INIT_NORMAL, true},
        {"model.layers.15.mlp.down_proj.weight", 2048, 8192, INIT_NORMAL, true},
        {"model.layers.15.input_layernorm.weight", 2048, 0, INIT_ONE, false},
        {"model.layers.15.post_attention_layernorm.weight", 2048, 0, INIT_ONE, false},
    };
    static const struct expected_tensor head[] = {
        {"model.norm.weight", 2048, 0, INIT_ONE, false},
        {"lm_head.weight", 128256, 2048, INIT_NORMAL, true},
    };
    struct network n = support_preset("llama-3.2-1b");
    check_tensors(&n, 0, embedding, 1);
    check_tensors(&n, 16, block, 9);
    check_tensors(&n, 17, head, 1);
    n.tied_head = false;
    check_tensors(&n, 17, head, 2);
}

/* Heads on an equal width: frequencies of Llama 3.2, D 64, by the formula and beyond its two ends. */
static void rotary_frequencies(void **state)
{
    (void)state;
    struct network_rope rope = support_preset("llama-3.2-1b").rope;
    assert_true(rope_frequency(&rope, 0, 64) == 1);
    /* 8192 * 500000^(-10/64) / 2 pi = 167.8 turns: more than 4, not scaled */
    double f = pow(500000, -10.0 / 64);
    assert_true(fabs(rope_frequency(&rope, 5, 64) - f) <= 1e-15);
    /* pair 16: 8192 / sqrt(500000) / 2 pi = 1.8438 turns, of 1 to 4: 0.28128 of the way */
    f = 1 / sqrt(500000);
    double part = (8192 * f / (2 * M_PI) - 1) / 3;
    assert_true(fabs(part - 0.28128) < 1e-5);
    assert_true(fabs(rope_frequency(&rope, 16, 64) - f * (part + (1 - part) / 32)) <= 1e-12);
    /* pair 31: 0.0039 turns */
    f = pow(500000, -62.0 / 64);
    assert_true(fabs(rope_frequency(&rope, 31, 64) - f / 32) <= 1e-15);
    rope.kind = ROPE_LINEAR;
    assert_true(fabs(rope_frequency(&rope, 31, 64) - f / 32) <= 1e-15);
    rope.kind = ROPE_DEFAULT;
    assert_true(fabs(rope_frequency(&rope, 31, 64) - f) <= 1e-15);
}

static void encoders_have_the_names_of_their_files(void **state)
{
    (void)state;
    struct tensor_spec tensors[LAYER_TENSORS_MAX];
    struct network bert = support_preset("bert-base"), vit = support_preset("vit-base");
    assert_int_equal(network_layer_tensors(&bert, 12, tensors), 16);
    assert_string_equal(tensors[0].name, "bert.encoder.layer.11.attention.self.query.weight");
    assert_string_equal(tensors[15].name, "bert.encoder.layer.11.output.LayerNorm.bias");
    assert_int_equal(network_layer_tensors(&bert, 13, tensors), 5);
    assert_string_equal(tensors[0].name, "cls.predictions.bias");
    assert_int_equal(network_layer_tensors(&vit, 0, tensors), 4);
    assert_string_equal(tensors[2].name, "vit.embeddings.patch_embeddings.projection.weight");
    assert_int_equal(tensors[2].rank, 4);
    assert_int_equal(tensors[1].shape[1], 197);
    assert_int_equal(network_layer_tensors(&vit, 13, tensors), 4);
    assert_string_equal(tensors[3].name, "classifier.bias");
}

static void tokens_per_sample(void **state)
{
    (void)state;
    struct network gpt2 = support_preset("gpt2"), vit = support_preset("vit-huge"),
        hydra = support_preset("hydra-vit-1b");
    assert_int_equal(network_tokens(&gpt2, 77), 77);
    assert_int_equal(network_tokens(&vit, 77), 257); /* (224 / 14)^2 + 1 */
    assert_int_equal(network_tokens(&hydra, 0), 17);
}

/* --- config.json ---------------------------------------------------------------------------- */

static void check_parses(const char *text, uint64_t parameters, struct network *out)
{
    struct arena arena = {0};
    struct error err = {0};
    if (support_network(text, &arena, out, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (out->family != NETWORK_PROFILE) assert_int_equal(network_parameters(out), parameters);
    arena_release(&arena);
}

/* gpt2's own config.json, and what transformers 5 saves for it. */
static void both_spellings_are_read(void **state)
{
    (void)state;
    struct network n;
    check_parses("{\"activation_function\": \"gelu_new\", \"architectures\": [\"GPT2LMHeadModel\"],"
                 "\"attn_pdrop\": 0.1, \"bos_token_id\": 50256, \"embd_pdrop\": 0.1,"
                 "\"initializer_range\": 0.02, \"layer_norm_epsilon\": 1e-05,"
                 "\"model_type\": \"gpt2\", \"n_ctx\": 1024, \"n_embd\": 768, \"n_head\": 12,"
                 "\"n_layer\": 12, \"n_positions\": 1024, \"torch_dtype\": \"float32\","
                 "\"task_specific_params\": {\"text-generation\": {\"max_length\": 50}},"
                 "\"vocab_size\": 50257}",
                 124439808, &n);
    assert_string_equal(n.name, "test");
    assert_true(n.gelu_tanh && n.tied_head && n.causal);
    check_parses("{\"model_type\": \"gpt2\", \"dtype\": \"bfloat16\", \"n_inner\": null,"
                 "\"transformers_version\": \"5.0.0\", \"activation_function\": \"gelu\","
                 "\"tie_word_embeddings\": true, \"add_cross_attention\": false}",
                 124439808, &n);
    assert_false(n.gelu_tanh);
    assert_int_equal(n.ff_width, 3072);
    check_parses("{\"model_type\": \"gpt2\", \"n_inner\": 2000, \"tie_word_embeddings\": false}",
                 /* 12 blocks lose 1072 of 3072 feed-forward units of 768 + 1 + 768 */
                 124439808 - 12 * UINT64_C(1072) * 1537 + UINT64_C(50257) * 768, &n);
}

/* meta-llama's Llama-3.2-1B as transformers 4 and 5 save it, and Llama 2's older names. */
static void both_spellings_of_llama_are_read(void **state)
{
    (void)state;
    struct network four, five, n;
    check_parses("{\"architectures\": [\"LlamaForCausalLM\"], \"attention_bias\": false,"
                 "\"attention_dropout\": 0.0, \"bos_token_id\": 128000, \"head_dim\": 64,"
                 "\"hidden_act\": \"silu\", \"hidden_size\": 2048, \"initializer_range\": 0.02,"
                 "\"intermediate_size\": 8192, \"max_position_embeddings\": 131072,"
                 "\"mlp_bias\": false, \"model_type\": \"llama\", \"num_attention_heads\": 32,"
                 "\"num_hidden_layers\": 16, \"num_key_value_heads\": 8, \"pretraining_tp\": 1,"
                 "\"rms_norm_eps\": 1e-05, \"rope_scaling\": {\"factor\": 32.0,"
                 "\"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0,"
                 "\"original_max_position_embeddings\": 8192, \"rope_type\": \"llama3\"},"
                 "\"rope_theta\": 500000.0, \"tie_word_embeddings\": true,"
                 "\"torch_dtype\": \"bfloat16\", \"vocab_size\": 128256}",
                 1235814400, &four);
    check_parses("{\"dtype\": \"bfloat16\", \"head_dim\": null, \"hidden_size\": 2048,"
                 "\"intermediate_size\": 8192, \"max_position_embeddings\": 131072,"
                 "\"model_type\": \"llama\", \"num_attention_heads\": 32, \"num_hidden_layers\": 16,"
                 "\"num_key_value_heads\": 8, \"rms_norm_eps\": 1e-05, \"rope_parameters\": {"
                 "\"factor\": 32.0, \"high_freq_factor\": 4.0, \"low_freq_factor\": 1.0,"
                 "\"original_max_position_embeddings\": 8192, \"rope_theta\": 500000.0,"
                 "\"rope_type\": \"llama3\"}, \"tie_word_embeddings\": true,"
                 "\"transformers_version\": \"5.0.0\", \"vocab_size\": 128256}",
                 1235814400, &five);
    assert_memory_equal(&four, &five, sizeof four);
    assert_int_equal(four.rope.kind, ROPE_LLAMA3);
    assert_int_equal(four.head_width, 64);
    struct network known = support_preset("llama-3.2-1b");
    memcpy(four.name, known.name, sizeof four.name);
    assert_memory_equal(&four, &known, sizeof known);
    check_parses("{\"model_type\": \"llama\", \"num_key_value_heads\": null, \"rope_scaling\": null}",
                 6738415616, &n);
    assert_true(n.rope.kind == ROPE_DEFAULT && n.rope.theta == 10000 && n.kv_heads == 32);
    assert_false(n.tied_head || n.biases);
    check_parses("{\"model_type\": \"llama\", \"rope_scaling\": {\"type\": \"linear\", \"factor\": 2.5},"
                 "\"tie_word_embeddings\": true, \"head_dim\": 96}",
                 /* heads of 96 on a width of 4096: 4 * 4096 * (4096 - 3072) less a block */
                 6738415616 - 32000 * 4096 - 32 * UINT64_C(16777216), &n);
    assert_true(n.rope.kind == ROPE_LINEAR && n.rope.factor == 2.5);
}

static void bert_heads_follow_the_architecture(void **state)
{
    (void)state;
    struct network n;
    check_parses("{\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"]}", 109514298,
                 &n);
    assert_false(n.pooler || n.gelu_tanh);
    assert_int_equal(n.mask_token, 103);
    check_parses("{\"model_type\": \"bert\"}", 109514298, &n);
    check_parses("{\"model_type\": \"bert\", \"architectures\": [\"BertForPreTraining\"]}",
                 110106428, &n);
    assert_true(n.pooler);
    /* the hub's BertModel has 109 482 240; the head that it is trained with here adds 768 * 769 +
     * 1536 + 30522 for words and 2 * 769 for sentences */
    check_parses("{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"]}",
                 109482240 + 590592 + 1536 + 30522 + 1538, &n);
    /* that and a classifier of two labels in place of words and sentences: 109 482 240 + 2 x 769 */
    check_parses("{\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"]}", 109483778, &n);
    assert_true(n.pooler && n.classes == 2 && !n.tied_head);
    check_parses("{\"model_type\": \"bert\", \"architectures\": [\"BertForSequenceClassification\"], \"id2label\": "
                 "{\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}", 109482240 + 3 * 769, &n);
}

static void the_mask_is_a_token(void **state)
{
    (void)state;
    struct network n;
    check_parses("{\"model_type\": \"bert\", \"mask_token_id\": 4}", 109514298, &n);
    assert_int_equal(n.mask_token, 4);
    /* 30422 words less, of 768 + 1 each */
    check_parses("{\"model_type\": \"bert\", \"vocab_size\": 100}",
                 109514298 - 30422 * UINT64_C(769), &n);
    assert_int_equal(n.mask_token, 99);
}

static void vit_classes_come_from_labels(void **state)
{
    (void)state;
    struct network n;
    check_parses("{\"model_type\": \"vit\", \"num_labels\": 1000, \"encoder_stride\": 16,"
                 "\"pooler_act\": \"tanh\"}",
                 86567656, &n);
    check_parses("{\"model_type\": \"vit\", \"id2label\": {\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}}",
                 86567656 - 997 * 769, &n);
    check_parses("{\"model_type\": \"vit\"}", 86567656 - 998 * 769, &n);
    check_parses("{\"model_type\": \"vit\", \"qkv_bias\": false}", 86567656 - 998 * 769 - 12 * 2304,
                 &n);
}

static void profiles_have_layers(void **state)
{
    (void)state;
    struct arena arena = {0};
    struct network n;
    struct error err = {0};
    assert_int_equal(
        support_network("{\"model_type\": \"profile\", \"name\": \"p\", \"layers\": ["
                        "{\"parameter_bytes\": 12, \"activation_bytes\": 7, \"boundary_bytes\": 5,"
                        " \"forward_ns\": 1100, \"backward\": \"2.5us\"},"
                        "{\"parameter_bytes\": 40, \"activation_bytes\": 9, \"boundary_bytes\": 3,"
                        " \"forward\": \"1.5ms\", \"backward_ns\": 0, \"repeat\": 3}]}",
                        &arena, &n, &err),
        STATUS_OK);
    assert_string_equal(n.name, "p");
    assert_int_equal(n.layer_count, 4);
    assert_int_equal(network_parameters(&n), (12 + 3 * 40) / 4);
    assert_int_equal(network_layer_kind(&n, 0), LAYER_OPAQUE);
    assert_int_equal(network_layer_kind(&n, 3), LAYER_OPAQUE);
    struct work_item items[LAYER_WORK_MAX];
    assert_int_equal(network_layer_work(&n, 0, PASS_BACKWARD, 8, 1, sgd, items), 1);
    assert_int_equal(items[0].kernel, KERNEL_FIXED);
    assert_int_equal(items[0].m, 2500);
    assert_int_equal(items[0].count, 1);
    assert_int_equal(network_layer_work(&n, 2, PASS_FORWARD, 8, 1, sgd, items), 1);
    assert_int_equal(items[0].m, 1500000);
    assert_int_equal(network_layer_work(&n, 2, PASS_BACKWARD, 8, 1, sgd, items), 0);
    assert_int_equal(network_layer_work(&n, 2, PASS_UPDATE, 8, 1, adamw, items), 0);
    arena_release(&arena);
}

static void bad_configs_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"[1]", "test:1:1: found an array (expected a network object, as config.json has it)"},
        {"{}", "test:1:1: missing key 'model_type'"},
        {"{\n  \"model_type\": \"basilisk\"\n}",
         "test:2:17: unknown model_type 'basilisk' (expected gpt2, llama, bert, vit, opt, gpt_neox, gptj, phi, "
         "mistral, gemma, qwen2, qwen3, mixtral, qwen3_moe, qwen2_moe, gemma3_text, gemma2, t5, mt5, umt5, cnn, "
         "resnet or profile)"},
        {"{\"model_type\": \"GPT-NeoX\"}", "test:1:16: unknown model_type 'GPT-NeoX' (did you mean 'gpt_neox'?)"},
        {"{\"model_type\": \"phi3\"}", "test:1:16: unknown model_type 'phi3': nearest is 'llama', but queries, keys "
                                       "and values are one matrix, and so are gate and up"},
        {"{\"model_type\": \"mamba\"}", "test:1:16: unknown model_type 'mamba': none of the supported types is near, "
                                        "because its "
                                      "blocks are state spaces, not attention"},
        {"{\"model_type\": \"glm4\"}", "test:1:16: unknown model_type 'glm4': nearest is 'llama', but half of each "
                                       "head has rotary "
                                     "positions, blocks have two more norms, and gate and up are one matrix"},
        {"{\"model_type\": \"lama\"}",
         "test:1:16: unknown model_type 'lama' (expected gpt2, llama, bert, vit, opt, gpt_neox, gptj, phi, "
         "mistral, gemma, qwen2, qwen3, mixtral, qwen3_moe, qwen2_moe, gemma3_text, gemma2, t5, mt5, umt5, cnn, "
         "resnet or profile)"},
        {"{\"model_type\": \"llama\", \"attention_bias\": true}",
         "test:1:43: 'attention_bias' is true (only false is supported)"},
        {"{\"model_type\": \"llama\", \"mlp_bias\": true}",
         "test:1:37: 'mlp_bias' is true (only false is supported)"},
        {"{\"model_type\": \"llama\", \"hidden_act\": \"gelu\"}",
         "test:1:39: unknown hidden_act 'gelu' (expected silu)"},
        {"{\"model_type\": \"llama\", \"num_attention_heads\": 12, \"hidden_size\": 48,"
         " \"num_key_value_heads\": 5}",
         "test:1:94: 'num_attention_heads' 12 is not a multiple of 'num_key_value_heads' 5"},
        {"{\"model_type\": \"llama\", \"head_dim\": 7}",
         "test:1:37: heads of 7 elements have no rotary positions (expected an even number)"},
        {"{\"model_type\": \"llama\", \"hidden_size\": 96}",
         "test:1:1: heads of 3 elements have no rotary positions (expected an even number)"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"yarn\", \"factor\": 4}}",
         "test:1:55: unknown rope_type 'yarn' (expected default, linear or llama3)"},
        {"{\"model_type\": \"llama\", \"rope_parameters\": {\"rope_type\": \"linear\"}}",
         "test:1:44: missing key 'factor'"},
        {"{\"model_type\": \"llama\", \"rope_parameters\": {\"partial_rotary_factor\": 0.5}}",
         "test:1:70: 'partial_rotary_factor' is 0.5 (only 1 is supported)"},
        {"{\"model_type\": \"llama\", \"rope_scaling\": {\"rope_type\": \"llama3\", \"factor\": 8,"
         "\"low_freq_factor\": 4, \"high_freq_factor\": 4,"
         " \"original_max_position_embeddings\": 64}}",
         "test:1:119: 'high_freq_factor' 4 is not above 'low_freq_factor' 4"},
        {"{\"model_type\": \"gpt2\",\n \"n_embd\": 770, \"n_head\": 12}",
         "test:2:27: 'n_embd' 770 is not a multiple of 'n_head' 12"},
        {"{\"model_type\": \"gpt2\", \"n_head\": 7}",
         "test:1:34: 'n_embd' 768 is not a multiple of 'n_head' 7"},
        {"{\"model_type\": \"gpt2\", \"n_layer\": 0}",
         "test:1:35: 'n_layer' is 0 (expected 1 to 99998)"},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 1048588}",
         "test:1:34: 'n_embd' is 1048588 (expected 1 to 1048576)"},
        {"{\"model_type\": \"gpt2\", \"n_embd\": 768.5}",
         "test:1:34: 'n_embd' is 768.5 (expected a whole number)"},
        {"{\"model_type\": \"gpt2\", \"vocab_size\": -3}",
         "test:1:38: 'vocab_size' is -3 (expected 1 to 16777216)"},
        {"{\"model_type\": \"gpt2\", \"activation_function\": \"relu\"}",
         "test:1:47: unknown activation_function 'relu' (expected gelu_new, gelu_pytorch_tanh, "
         "gelu_fast or gelu)"},
        {"{\"model_type\": \"gpt2\", \"scale_attn_by_inverse_layer_idx\": true}",
         "test:1:59: 'scale_attn_by_inverse_layer_idx' is true (only false is supported)"},
        {"{\"model_type\": \"gpt2\", \"architectures\": [\"GPT2ForTokenClassification\"]}",
         "test:1:42: unsupported architecture 'GPT2ForTokenClassification' (expected one of "
         "GPT2LMHeadModel, GPT2Model)"},
        {"{\"model_type\": \"bert\", \"position_embedding_type\": \"relative_key\"}",
         "test:1:51: unknown position_embedding_type 'relative_key' (expected absolute)"},
        {"{\"model_type\": \"bert\", \"vocab_size\": 100, \"mask_token_id\": 100}",
         "test:1:60: 'mask_token_id' is 100 (expected 0 to 99)"},
        {"{\"model_type\": \"vit\", \"patch_size\": 15}",
         "test:1:37: 'image_size' 224 is not a multiple of 'patch_size' 15"},
        {"{\"model_type\": \"vit\", \"id2label\": {}}",
         "test:1:35: 'id2label' has 0 labels (expected 1 to 16777216)"},
        {"{\"model_type\": \"vit\", \"hidden_size\": 1280, \"num_attention_heads\": 65536, "
         "\"head_dim\": 64}",
         "test:1:86: 65536 heads of 64 are too wide together (limit is 1048576)"},
        {"{\"model_type\": \"profile\", \"layers\": []}",
         "test:1:37: 'layers' is empty (expected at least one layer)"},
        {"{\"model_type\": \"profile\", \"layer\": []}",
         "test:1:1: missing key 'layers' (is 'layer' a misspelling of it?)"},
        {"{\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 7, \"activation_bytes\": 1,"
         "\n\"boundary_bytes\": 2, \"forward_ns\": 3, \"backward_ns\": 4}]}",
         "test:1:58: 'parameter_bytes' 7 is not a multiple of 4 (parameters are fp32)"},
        {"{\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 8, \"activation_bytes\": 1,"
         "\n\"boundary_bytes\": 2, \"forward_ns\": 3, \"forward\": \"3ns\", \"backward_ns\": 4}]}",
         "test:2:50: both 'forward_ns' and 'forward' are given"},
        {"{\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 8, \"activation_bytes\": 1,"
         "\n\"boundary_bytes\": 2, \"forward\": \"3\", \"backward_ns\": 4}]}",
         "test:2:33: 'forward': '3' has no unit (expected a time such as 5us)"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) support_network_refused(rows[i].text, rows[i].message);
}

static void limits_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        enum status status;
    } rows[] = {
        {"{\"model_type\": \"gpt2\", \"n_embd\": 1048576, \"n_head\": 1024, \"n_layer\": 99998}",
         "test:1:1: too many parameters: 1319388981947793408 (limit is 281474976710656)", STATUS_LIMIT},
        {"{\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 8, \"activation_bytes\": 1,"
         "\"boundary_bytes\": 2, \"forward_ns\": 3, \"backward_ns\": 4, \"repeat\": 100000},"
         "{\"parameter_bytes\": 8, \"activation_bytes\": 1,"
         "\"boundary_bytes\": 2, \"forward_ns\": 3, \"backward_ns\": 4}]}",
         "test:1:157: too many layers (limit is 100000)", STATUS_BAD_INPUT},
    };
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
        struct arena arena = {0};
        struct network n;
        struct error err = {0};
        assert_int_equal(support_network(rows[i].text, &arena, &n, &err), rows[i].status);
        assert_string_equal(err.text, rows[i].message);
        arena_release(&arena);
    }
}

/* --- writing -------------------------------------------------------------------------------- */

static void check_round_trip(const struct network *network)
{
    struct arena arena = {0};
    struct network again = {0};
    struct error err = {0};
    char *first = support_network_text(network);
    assert_non_null(first);
    if (support_network(first, &arena, &again, &err) != STATUS_OK)
        fail_msg("%s in %s", err.text, first);
    char *second = support_network_text(&again);
    assert_string_equal(first, second);
    if (network->profile) {
        assert_int_equal(again.layer_count, network->layer_count);
        assert_memory_equal(again.profile, network->profile,
                            network->layer_count * sizeof *network->profile);
        again.profile = network->profile;
    }
    /* every field, through what follows from it */
    assert_string_equal(again.name, network->name);
    assert_int_equal(network_parameters(&again), network_parameters(network));
    assert_true(again.norm_epsilon == network->norm_epsilon);
    assert_true(again.initializer_range == network->initializer_range);
    assert_int_equal(again.gelu_tanh, network->gelu_tanh);
    assert_int_equal(again.causal, network->causal);
    assert_int_equal(again.biases, network->biases);
    assert_int_equal(again.pooler, network->pooler);
    assert_int_equal(again.tied_head, network->tied_head);
    assert_int_equal(again.head_width, network->head_width);
    assert_int_equal(again.heads, network->heads);
    assert_int_equal(again.positions, network->positions);
    assert_int_equal(again.token_types, network->token_types);
    assert_int_equal(again.image, network->image);
    assert_int_equal(again.patch, network->patch);
    assert_int_equal(again.classes, network->classes);
    free(first);
    free(second);
    arena_release(&arena);
}

static void presets_survive_writing(void **state)
{
    (void)state;
    for (uint32_t p = 0; network_preset_name(p); p++) {
        struct network n = support_preset(network_preset_name(p));
        check_round_trip(&n);
    }
    struct network odd = support_preset("gpt2");
    odd.tied_head = odd.gelu_tanh = false;
    odd.ff_width = 1000;
    odd.norm_epsilon = 1.25e-6;
    check_round_trip(&odd);
    struct network pooled = support_preset("bert-base");
    pooled.pooler = true;
    check_round_trip(&pooled);
}

static void random_profiles_survive_writing(void **state)
{
    (void)state;
    uint64_t seed = support_seed("random_profiles_survive_writing");
    for (uint64_t round = 0; round < 50; round++) {
        struct layer_profile layers[40];
        uint64_t count = 1 + random_below(seed, round, ARRAY_COUNT(layers));
        for (uint64_t i = 0; i < count; i++) {
            /* few values, so that neighbours are often equal */
            uint64_t kind = random_below(seed, round * 1000 + i, 3);
            layers[i] = (struct layer_profile){4 * (kind + 2), 7 * kind, 5 + kind, 1000 * kind, 9};
        }
        struct network n = {.name = "p", .family = NETWORK_PROFILE, .layer_count = count,
                            .profile = layers};
        check_round_trip(&n);
    }
}

/* --- finding -------------------------------------------------------------------------------- */

static void check_not_found(const char *name, enum status status, const char *message)
{
    struct arena arena = {0};
    struct network n;
    struct error err = {0};
    assert_int_equal(network_find(name, &arena, &n, &err), status);
    assert_string_equal(err.text, message);
    arena_release(&arena);
}

static void check_found(const char *name, const char *expected)
{
    struct arena arena = {0};
    struct network n;
    struct error err = {0};
    if (network_find(name, &arena, &n, &err)) fail_msg("%s", err.text);
    assert_string_equal(n.name, expected);
    arena_release(&arena);
}

/* Names as papers spell them; no two presets have one spelling. */
static void names_are_read_as_people_spell_them(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {{"ResNet50", "resnet-50"}, {"GPT-3 175B", "gpt3-175b"},
                                           {"gpt-3", "gpt3-175b"},
                                           {"bert_large", "bert-large"}, {"GPT-2 1.5B", "gpt2-xl"},
                                           {"ViT-H", "vit-huge"},
                                           {"OPT-1.3B", "opt-1.3b"},  {"OPT-13B", "opt-13b"},      {"VGG-16", "vgg16"}};
    for (size_t i = 0; i < ARRAY_COUNT(pairs); i++) check_found(pairs[i][0], pairs[i][1]);
    for (uint32_t i = 0; network_preset_name(i); i++) check_found(network_preset_name(i), network_preset_name(i));
}

static void unknown_names_get_a_suggestion(void **state)
{
    (void)state;
    check_not_found("gpt-2-xxl", STATUS_BAD_INPUT,
                    "unknown network 'gpt-2-xxl' (did you mean 'gpt2-xl'?)");
    check_not_found("llama", STATUS_BAD_INPUT,
                    "unknown network 'llama' (did you mean 'llama-2-7b', 'llama-2-13b', 'llama-2-70b', 'llama-3-8b' "
                    "or 5 more?)");
    check_not_found("perceiver", STATUS_BAD_INPUT,
                    "unknown network 'perceiver' (expected a preset such as gpt2-xl, or the path of a config.json)");
    check_not_found("someone/some-model", STATUS_BAD_INPUT,
                    "'someone/some-model' is neither a file nor an ID of the Hugging Face hub that is known here "
                    "(expected a path: save its config.json and name that file)");
    check_not_found("google/flan-t5-smal", STATUS_BAD_INPUT,
                    "there is no network 'google/flan-t5-smal' (did you mean 'google/flan-t5-small'?)");
    struct arena arena = {0};
    struct network n;
    struct error err = {0};
    assert_int_equal(network_find("./no-such.json", &arena, &n, &err), STATUS_BAD_INPUT);
    assert_true(network_is_path("a.json") && network_is_path("./a") && !network_is_path("gpt2"));
}

static void a_folder_means_its_config(void **state)
{
    (void)state;
    char folder[SUPPORT_FOLDER_BYTES], path[64];
    support_folder_make(folder);
    snprintf(path, sizeof path, "%s/config.json", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs("{\"model_type\": \"gpt2\", \"n_layer\": 3}", file);
    fclose(file);
    struct arena arena = {0};
    struct network n;
    struct error err = {0};
    assert_int_equal(network_find(folder, &arena, &n, &err), STATUS_OK);
    assert_int_equal(n.blocks, 3);
    assert_string_equal(n.name, path);
    arena_release(&arena);
    unlink(path);
    support_folder_remove(folder);
}

/* --- names and memory ------------------------------------------------------------------------ */

static void long_names_keep_their_end(void **state)
{
    (void)state;
    char text[400], name[200], expected[128];
    struct arena arena = {0};
    struct network n;
    struct error err = {0};
    memset(name, 'x', sizeof name);
    /* 199 bytes; the last 127 would begin within the two bytes of an e with an accent */
    memcpy(name + 71, "\xc3\xa9", 2);
    name[199] = '\0';
    snprintf(text, sizeof text, "{\"model_type\": \"gpt2\", \"name\": \"%s\"}", name);
    assert_int_equal(support_network(text, &arena, &n, &err), STATUS_OK);
    memset(expected, 'x', 126);
    expected[126] = '\0';
    assert_string_equal(n.name, expected);
    arena_release(&arena);
}

static void memory_may_end_anywhere(void **state)
{
    (void)state;
    const char *text = "{\"model_type\": \"profile\", \"layers\": [{\"parameter_bytes\": 8,"
                       "\"activation_bytes\": 1, \"boundary_bytes\": 2, \"forward_ns\": 3,"
                       "\"backward_ns\": 4, \"repeat\": 9}]}";
    for (uint64_t n = 1;; n++) {
        struct arena arena = {0};
        struct network network = {0};
        struct error err = {0};
        alloc_test_fail_at(n);
        enum status status = support_network(text, &arena, &network, &err);
        uint64_t calls = alloc_test_fail_at(0);
        arena_release(&arena);
        if (status == STATUS_OK && calls < n) break;
        assert_int_equal(status, STATUS_NO_MEMORY);
        assert_null(network.profile);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_add_up_and_presets_say_their_source),
        cmocka_unit_test(gpt2_tensors_have_the_names_and_shapes_of_the_file),
        cmocka_unit_test(llama_tensors_have_the_names_and_shapes_of_the_file),
        cmocka_unit_test(rotary_frequencies),
        cmocka_unit_test(encoders_have_the_names_of_their_files),
        cmocka_unit_test(tokens_per_sample),
        cmocka_unit_test(both_spellings_are_read),
        cmocka_unit_test(both_spellings_of_llama_are_read),
        cmocka_unit_test(bert_heads_follow_the_architecture),
        cmocka_unit_test(the_mask_is_a_token),
        cmocka_unit_test(vit_classes_come_from_labels),
        cmocka_unit_test(profiles_have_layers),
        cmocka_unit_test(bad_configs_are_refused_with_their_place),
        cmocka_unit_test(limits_are_refused),
        cmocka_unit_test(presets_survive_writing),
        cmocka_unit_test(random_profiles_survive_writing),
        cmocka_unit_test(names_are_read_as_people_spell_them),
        cmocka_unit_test(unknown_names_get_a_suggestion),
        cmocka_unit_test(a_folder_means_its_config),
        cmocka_unit_test(long_names_keep_their_end),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests_name("models/network/network.h", tests, NULL, NULL);
}
