/* Presets (models/network/network_presets.c): published parameter counts, and that each is held to one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <math.h>

#include "base/size.h"
#include "models/network/network.h"
#include "tests/support/planner/support_parallel.h"

/* 12 L C^2 + 13 L C + (V + P) C + 2 C: arXiv 2104.04473, section 5.1, and a last norm. */
#define GPT2_LIKE(l, c, v, p) \
    (UINT64_C(12) * (l) * (c) * (c) + UINT64_C(13) * (l) * (c) + UINT64_C(1) * ((v) + (p)) * (c) + UINT64_C(2) * (c))

/* An encoder of E blocks and a decoder of D: attentions of C x I, `w` matrices of C x F, norms; two tables of
 * positions of H heads, two norms, and words once or twice. tests/models/network/test_models_t5.c says which counts
 * are published. */
#define T5_LIKE(e, d, c, i, f, w, h, v, tables) \
    (UINT64_C(e) * (4 * UINT64_C(c) * (i) + UINT64_C(w) * (c) * (f) + 2 * UINT64_C(c)) + \
     UINT64_C(d) * (8 * UINT64_C(c) * (i) + UINT64_C(w) * (c) * (f) + 3 * UINT64_C(c)) + \
     2 * (32 * UINT64_C(h) + (c)) + \
     UINT64_C(tables) * (v) * (c))
/* 256384 words, and a table of positions in each of L blocks on either side, of which T5_LIKE has the first two. */
#define UMT5_LIKE(l, c, i, f, h) (T5_LIKE(l, l, c, i, f, 3, h, 256384, 2) + 2 * ((l) - 1) * 32 * UINT64_C(h))

static const struct {
    const char *name;
    uint64_t parameters;
} counts[] = {
    /* as transformers' num_parameters() counts them */
    {"gpt2", 124439808},
    {"gpt2-medium", 354823168},
    {"gpt2-large", 774030080},
    {"gpt2-xl", 1557611200},
    {"distilgpt2", 81912576},
    {"bert-base", 109514298},
    {"bert-large", 335174458},
    {"vit-base", 86567656},
    {"vit-large", 304326632},
    {"vit-huge", 632045800},
    /* gpt2-xl with 512 positions of 1600 fewer */
    {"hydra-gpt2-xl", 1557611200 - 512 * 1600},
    /* V 28783, P 5000, 2 types and a norm: (28783 + 5000 + 2 + 2) * 1024 = 34 597 888;
     * 136 blocks of 6 * 1024 * 1025 + 4 * 1024 = 6 301 696: 857 030 656;
     * head 1024 * 1025 + 2048 + 28783 * 1025 = 30 554 223 */
    {"hydra-bert-1b", 34597888 + 857030656 + 30554223},
    /* width 1024: patches 192 -> 1024 with bias, 17 positions, a class token = 216 064;
     * 24 blocks of 3 * 1024^2 + 1024 * 1025 + 1024 * 4096 * 2 + 4096 + 1024 + 4096;
     * head 2048 + 10250 */
    {"hydra-vit-300m", 216064 + 24 * 12593152 + 12298},
    /* width 1280, heads 16 of 64: 3 * 1280 * 1024 + 1025 * 1280 - the bias is 1280: in all
     * 3932160 + 1310720 + 1280 + 2 * 1280 * 5120 + 5120 + 1280 + 5120 = 18 362 880 a block;
     * 193 * 1280 + 18 * 1280 = 270 080; 2560 + 12810 = 15 370 */
    {"hydra-vit-600m", 270080 + 32 * UINT64_C(18362880) + 15370},
    {"hydra-vit-800m", 270080 + 38 * UINT64_C(18362880) + 15370},
    {"hydra-vit-1b", 270080 + 54 * UINT64_C(18362880) + 15370},
    {"hydra-vit-1.5b", 270080 + 80 * UINT64_C(18362880) + 15370},
    {"hydra-vit-2b", 270080 + 110 * UINT64_C(18362880) + 15370},
    /* 512 * 128 + (256 + 256 - 256) ...: V P = 256 each: 65 536; 4 blocks of
     * 12 * 128^2 + 13 * 128 = 198 272; ln_f 256 */
    {"gpt2-tiny-bytes", 65536 + 4 * 198272 + 256},
    {"tinyllama-1.1b", 1100048384},
    {"llama-2-7b", 6738415616},
    {"llama-3.2-1b", 1235814400},
    {"llama-3.1-8b", 8030261248},
    /* C 128, heads of 32, two of keys, F 384: 256 * 128; a block 128 * (2 * 128 + 2 * 64) +
     * 3 * 128 * 384 + 256 = 196 864; a norm */
    {"llama-tiny-bytes", 32768 + 4 * 196864 + 128},
    /* V C twice (llama-3.2-3b: once), C, and L blocks of 2 C^2 + 2 C D K + 3 C F + 2 C for K heads of keys */
    {"llama-2-13b", 13015864320},
    {"llama-2-70b", 68976648192},
    {"llama-3-8b", 8030261248},
    {"llama-3.2-3b", 3212749824},
    {"llama-3.1-70b", 70553706496},
    {"mistral-7b", 7241732096},
    {"mixtral-8x7b", 46702792704},
    {"gemma-2b", 2506172416},
    {"gemma-7b", 8537680896},
    {"qwen2-0.5b", 494032768},
    /* 2 * 152064 * 3584; 28 blocks of 2 * 3584^2 + 3584 + 2 * 512 * 3585 + 3 * 3584 * 18944 + 7168; 3584 */
    {"qwen2-7b", 7615616512},
    {"qwen3-0.6b", 596049920},
    {"qwen3-8b", 8190735360},
    {"qwen3-30b-a3b", 30532122624},
    /* 2 * 151936 * 2048; 24 blocks of 4 * 2048^2 + 3 * 2048, a router and 60 experts of 3 * 2048 * 1408, 3 * 2048 *
     * 5632 for all and their gate, 2 * 2048; 2048 */
    {"qwen1.5-moe-a2.7b", 14315784192},
    /* the Hub's safetensors metadata */
    {"gemma-2-2b", UINT64_C(2614341888)},
    {"gemma-2-9b", UINT64_C(9241705984)},
    {"gemma-2-27b", UINT64_C(27227128320)},
    {"gemma-3-1b", 999885952},
    /* GPT2_LIKE() with OPT's two positions that no token has */
    {"opt-125m", GPT2_LIKE(12, 768, 50272, 2050)},
    /* words of 512, no last norm; two projections */
    {"opt-350m", GPT2_LIKE(24, 1024, 50272, 2050) - UINT64_C(512) * 50272 - 2048 + 2 * 512 * 1024},
    {"opt-1.3b", GPT2_LIKE(24, 2048, 50272, 2050)},
    {"opt-6.7b", GPT2_LIKE(32, 4096, 50272, 2050)},
    {"opt-13b", GPT2_LIKE(40, 5120, 50272, 2050)},
    {"opt-30b", GPT2_LIKE(48, 7168, 50272, 2050)},
    {"opt-66b", GPT2_LIKE(64, 9216, 50272, 2050)},
    /* rotary, and a table of the head's own: tests/models/network/test_models_families.c says where they are from */
    {"pythia-160m", 162322944},
    {"pythia-1.4b", 1414647808},
    {"gpt-neox-20b", GPT2_LIKE(44, 6144, 50432, 50432)}, /* two tables, and no positions */
    {"gpt-j-6b", 6050882784},
    {"phi-2", 2779683840},
    {"t5-small", T5_LIKE(6, 6, 512, 512, 2048, 2, 8, 32128, 1)},
    {"t5-base", T5_LIKE(12, 12, 768, 768, 3072, 2, 12, 32128, 1)},
    {"t5-large", T5_LIKE(24, 24, 1024, 1024, 4096, 2, 16, 32128, 1)},
    {"t5-3b", T5_LIKE(24, 24, 1024, 4096, 16384, 2, 32, 32128, 1)},
    {"t5-11b", T5_LIKE(24, 24, 1024, 16384, 65536, 2, 128, 32128, 1)},
    {"t5-v1.1-small", T5_LIKE(8, 8, 512, 384, 1024, 3, 6, 32128, 2)},
    {"t5-v1.1-base", T5_LIKE(12, 12, 768, 768, 2048, 3, 12, 32128, 2)},
    {"t5-v1.1-large", T5_LIKE(24, 24, 1024, 1024, 2816, 3, 16, 32128, 2)},
    {"t5-v1.1-xl", T5_LIKE(24, 24, 2048, 2048, 5120, 3, 32, 32128, 2)},
    {"t5-v1.1-xxl", T5_LIKE(24, 24, 4096, 4096, 10240, 3, 64, 32128, 2)},
    {"flan-t5-small", T5_LIKE(8, 8, 512, 384, 1024, 3, 6, 32128, 2)},
    {"flan-t5-base", T5_LIKE(12, 12, 768, 768, 2048, 3, 12, 32128, 2)},
    {"flan-t5-large", T5_LIKE(24, 24, 1024, 1024, 2816, 3, 16, 32128, 2)},
    {"flan-t5-xl", T5_LIKE(24, 24, 2048, 2048, 5120, 3, 32, 32128, 2)},
    {"flan-t5-xxl", T5_LIKE(24, 24, 4096, 4096, 10240, 3, 64, 32128, 2)},
    {"mt5-small", T5_LIKE(8, 8, 512, 384, 1024, 3, 6, 250112, 2)},
    {"mt5-base", T5_LIKE(12, 12, 768, 768, 2048, 3, 12, 250112, 2)},
    {"mt5-large", T5_LIKE(24, 24, 1024, 1024, 2816, 3, 16, 250112, 2)},
    {"mt5-xl", T5_LIKE(24, 24, 2048, 2048, 5120, 3, 32, 250112, 2)},
    {"mt5-xxl", T5_LIKE(24, 24, 4096, 4096, 10240, 3, 64, 250112, 2)},
    {"umt5-small", UMT5_LIKE(8, 512, 384, 1024, 6)},
    {"umt5-base", UMT5_LIKE(12, 768, 768, 2048, 12)},
    {"umt5-xl", UMT5_LIKE(24, 2048, 2048, 5120, 32)},
    {"umt5-xxl", UMT5_LIKE(24, 4096, 4096, 10240, 64)},
    {"byt5-small", T5_LIKE(12, 4, 1472, 384, 3584, 3, 6, 384, 2)},
    {"byt5-base", T5_LIKE(18, 6, 1536, 768, 3968, 3, 12, 384, 2)},
    {"byt5-large", T5_LIKE(36, 12, 1536, 1024, 3840, 3, 16, 384, 2)},
    {"gpt3-175b", GPT2_LIKE(96, 12288, 50257, 2048)},
    {"megatron-1.2b", GPT2_LIKE(40, 1536, 51200, 1024)},
    {"megatron-2.5b", GPT2_LIKE(54, 1920, 51200, 1024)},
    {"megatron-4.2b", GPT2_LIKE(64, 2304, 51200, 1024)},
    {"megatron-8.3b", GPT2_LIKE(72, 3072, 51200, 1024)},
    {"megatron-1.7b", GPT2_LIKE(24, 2304, 51200, 2048)},
    {"megatron-7.5b", GPT2_LIKE(36, 4096, 51200, 2048)},
    {"megatron-39.1b", GPT2_LIKE(48, 8192, 51200, 2048)},
    {"megatron-145.6b", GPT2_LIKE(80, 12288, 51200, 2048)},
    {"megatron-22b", GPT2_LIKE(48, 6144, 51200, 2048)},
    {"megatron-175b", GPT2_LIKE(96, 12288, 51200, 2048)},
    {"megatron-530b", GPT2_LIKE(105, 20480, 51200, 2048)},
    {"megatron-1t", GPT2_LIKE(128, 25600, 51200, 2048)},
    /* 16 patches a side and a class token: (3 * 14^2 + 1 + 257 + 1) * 1664; 48 blocks of 4 * 1664 * 1665 +
     * 2 * 1664 * 8192 + 8192 + 5 * 1664; 2 * 1664 + 1000 * 1665 */
    {"vit-gigantic", UINT64_C(847) * 1664 + 48 * UINT64_C(38361728) + 3328 + 1665000},
    /* torchvision's documentation of its weights, num_params */
    {"alexnet", 61100840},
    {"vgg16", 138357544},
    {"resnet-18", 11689512},
    {"resnet-34", 21797672},
    {"resnet-50", 25557032},
    {"resnet-101", 44549160},
    {"resnet-152", 60192808},
    /* the stages' blocks by hand, in tests/models/network/test_models_network_graph.c */
    {"resnet-200", 64673832},
    {"resnet-1001", 10327706},
    {"wrn-28-10", 36479194},
    {"u-net", 31030658},
};

static void parameter_counts_are_the_published_ones(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
        struct network network = support_preset(counts[i].name);
        uint64_t found = network_parameters(&network);
        if (found != counts[i].parameters)
            fail_msg("%s has %" PRIu64 " and not %" PRIu64, counts[i].name, found, counts[i].parameters);
    }
    assert_null(network_preset_name((uint32_t)ARRAY_COUNT(counts)));
}

/* Sizes as tables of papers print them, rounded. */
static void sizes_are_those_that_papers_print(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double billions, unit; /* of the last digit that is printed */
    } printed[] = {
        /* arXiv 1909.08053, table 1; 2104.04473, tables 1 and 2; 2205.05198, table 3; 2401.04088; 2106.04560 */
        {"megatron-1.2b", 1.2, 0.1},     {"megatron-2.5b", 2.5, 0.1},     {"megatron-4.2b", 4.2, 0.1},
        {"megatron-8.3b", 8.3, 0.1},     {"megatron-1.7b", 1.7, 0.1},     {"megatron-7.5b", 7.5, 0.1},
        {"megatron-39.1b", 39.1, 0.1},   {"megatron-145.6b", 145.6, 0.1}, {"megatron-530b", 529.6, 0.1},
        {"megatron-175b", 174.6, 0.1},   {"megatron-22b", 22, 1},         {"megatron-1t", 1008, 1},
        {"gpt3-175b", 175, 1},           {"mixtral-8x7b", 46.7, 0.1},     {"vit-gigantic", 1.8, 0.1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(printed); i++) {
        struct network network = support_preset(printed[i].name);
        double found = (double)network_parameters(&network) / 1e9;
        if (fabs(found - printed[i].billions) > 0.5 * printed[i].unit)
            fail_msg("%s has %.4f billion, printed are %g", printed[i].name, found, printed[i].billions);
    }
}

/* Ids of the hub are presets, in any case; a path next to them is still a path. */
static void ids_of_the_hub_are_presets(void **state)
{
    (void)state;
    static const char *const ids[][2] = {
        {"meta-llama/Llama-3.1-8B", "llama-3.1-8b"},   {"openai-community/gpt2-xl", "gpt2-xl"},
        {"google-bert/bert-large-uncased", "bert-large"}, {"EleutherAI/gpt-j-6B", "gpt-j-6b"},
        {"facebook/opt-13b", "opt-13b"},               {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
        {"Qwen/Qwen3-8B", "qwen3-8b"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        assert_false(network_is_path(ids[i][0]));
        assert_string_equal(support_preset(ids[i][0]).name, ids[i][1]);
    }
    assert_true(network_is_path("./Qwen/Qwen3-8B"));
    assert_true(network_is_path("Qwen/Qwen3-8"));
    assert_true(network_is_path("gpt2.json"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameter_counts_are_the_published_ones),
        cmocka_unit_test(sizes_are_those_that_papers_print),
        cmocka_unit_test(ids_of_the_hub_are_presets),
    };
    return cmocka_run_group_tests_name("models/network_presets", tests, NULL, NULL);
}
