/*
 * A preset is a shape that a source states: the networks of Hydra's sensitivity study (figures 9 and 10) have no
 * published widths and depths.
 *
 * Hydra's ViTs have heads of 64 for every width, no biases on q, k and v, and 32-pixel images in patches of 8: 17
 * tokens. Its BERT has a feed-forward part as wide as the network, 5000 positions, and a separate output table. Its
 * "800 M" ViT of 38 blocks has 698 million parameters; the names are the authors'.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/files/file_kind.h"
#include "base/files/path.h"
#include "base/size.h"
#include "base/text.h"
#include "base/text/suggest.h"
#include "base/try.h"
#include "models/network/network.h"
#include "models/network/network_cnn.h"
#include "models/network/network_traits.h"
#include "models/network/profile_text.h"

struct preset {
    const char *name, *source;
    struct network shape; /* without name, layer count and a family's common values */
};

#define GPT2_SOURCE "openai-community config.json; Radford et al., 2019"
#define LLAMA2_SOURCE "meta-llama config.json; Touvron et al., arXiv 2307.09288"
#define LLAMA3_SOURCE "meta-llama config.json; arXiv 2407.21783"
#define BERT_SOURCE "google-bert config.json; Devlin et al., arXiv 1810.04805"
#define VIT_SOURCE "google config.json; Dosovitskiy et al., arXiv 2010.11929, table 1"
#define MEGATRON1_SOURCE "Shoeybi et al., arXiv 1909.08053, table 1"
#define MEGATRON2_SOURCE "Narayanan et al., arXiv 2104.04473, table 1"
#define MEGATRON3_SOURCE "Korthikanti et al., arXiv 2205.05198, table 3"
#define OPT_SOURCE "facebook config.json; Zhang et al., arXiv 2205.01068, table 1"
#define PYTHIA_SOURCE "EleutherAI config.json; Biderman et al., arXiv 2304.01373"
#define GEMMA_SOURCE "google config.json; arXiv 2403.08295, table 1"
#define GEMMA2_SOURCE "google config.json; arXiv 2408.00118, table 1"
#define QWEN2_SOURCE "Qwen config.json; arXiv 2407.10671"
#define QWEN3_SOURCE "Qwen config.json; arXiv 2505.09388"
#define T5_SOURCE "google-t5 config.json; Raffel et al., arXiv 1910.10683, section 3.7"
#define T5_1_1_SOURCE "google config.json of version 1.1; Shazeer, arXiv 2002.05202, for the gate"
#define FLAN_T5_SOURCE "google config.json; Chung et al., arXiv 2210.11416"
#define MT5_SOURCE "google config.json; Xue et al., arXiv 2010.11934"
#define BYT5_SOURCE "google config.json; Xue et al., arXiv 2105.13626"
#define UMT5_SOURCE "recalled: google config.json; Chung et al., arXiv 2304.09151"
#define HYDRA_SOURCE "Hydra technical report of 2022, table 2; shapes from its released code"

#define GPT2(c, h, l, p) \
    {.family = NETWORK_GPT2, .width = c, .heads = h, .blocks = l, .positions = p, \
     .vocabulary = 50257, .tied_head = true}
#define MEGATRON(c, h, l, p) \
    {.family = NETWORK_GPT2, .width = c, .heads = h, .blocks = l, .positions = p, \
     .vocabulary = 51200, .tied_head = true}
#define OPT(c, h, l) \
    {.family = NETWORK_OPT, .width = c, .heads = h, .blocks = l, .positions = 2048, \
     .vocabulary = 50272, .tied_head = true}
#define NEOX(c, h, l, v, tanh) /* rotates a quarter of each head */ \
    {.family = NETWORK_GPT_NEOX, .gelu_tanh = tanh, .width = c, .heads = h, .blocks = l, .positions = 2048, \
     .vocabulary = v, .rotary_width = c / h / 4}
#define GATED(family_, c, h, kv, l, f, v, p) \
    .family = family_, .width = c, .heads = h, .kv_heads = kv, .blocks = l, .ff_width = f, \
    .vocabulary = v, .positions = p
#define LLAMA(c, h, kv, l, f, v, p) GATED(NETWORK_LLAMA, c, h, kv, l, f, v, p)
#define GEMMA2_BLOCKS \
    .tied_head = true, .window = 4096, .window_every = 2, .score_cap = 50, .logit_cap = 30
#define LLAMA3_ROPE(f) \
    .rope = {.kind = ROPE_LLAMA3, .theta = 500000, .factor = f, .low_factor = 1, \
             .high_factor = 4, .original_positions = 8192}
#define BERT(c, h, l, f) \
    {.family = NETWORK_BERT, .width = c, .heads = h, .blocks = l, .ff_width = f, \
     .positions = 512, .vocabulary = 30522, .token_types = 2, .tied_head = true}
#define VIT(c, h, l, f, p) \
    {.family = NETWORK_VIT, .width = c, .heads = h, .blocks = l, .ff_width = f, .image = 224, \
     .patch = p, .classes = 1000, .biases = true}
#define HYDRA_VIT(c, l, f) \
    {.family = NETWORK_VIT, .width = c, .heads = 16, .head_width = 64, .blocks = l, \
     .ff_width = f, .image = 32, .patch = 8, .classes = 10}

#define STACKS(family_, c, h, d, e, l, f, v) \
    .family = family_, .width = c, .heads = h, .head_width = d, .encoder_blocks = e, .blocks = l, .ff_width = f, \
    .vocabulary = v, .positions = 512, .relative_buckets = 32
#define T5(c, h, d, l, f) {STACKS(NETWORK_T5, c, h, d, l, 2 * l, f, 32128), .tied_head = true}
#define GATED_T5(family_, c, h, e, l, f, v) \
    {STACKS(family_, c, h, 64, e, l, f, v), .gated = true, .gelu_tanh = true}
#define T5_1_1(c, h, l, f) GATED_T5(NETWORK_T5, c, h, l, 2 * l, f, 32128)
#define MT5(c, h, l, f) GATED_T5(NETWORK_MT5, c, h, l, 2 * l, f, 250112)
#define UMT5(c, h, l, f) GATED_T5(NETWORK_UMT5, c, h, l, 2 * l, f, 256384)
#define BYT5(c, h, e, d, f) GATED_T5(NETWORK_T5, c, h, e, e + d, f, 384)

static const struct preset presets[] = {
    {"gpt2", GPT2_SOURCE, GPT2(768, 12, 12, 1024)},
    {"gpt2-medium", GPT2_SOURCE, GPT2(1024, 16, 24, 1024)},
    {"gpt2-large", GPT2_SOURCE, GPT2(1280, 20, 36, 1024)},
    {"gpt2-xl", GPT2_SOURCE, GPT2(1600, 25, 48, 1024)},
    {"distilgpt2", "distilbert config.json; six of gpt2's blocks", GPT2(768, 12, 6, 1024)},
    {"gpt2-tiny-bytes", "Spillway's own, for demonstrations: text as bytes",
     {.family = NETWORK_GPT2, .width = 128, .heads = 4, .blocks = 4, .positions = 256,
      .vocabulary = 256, .tied_head = true}},
    {"tinyllama-1.1b", "TinyLlama config.json; Zhang et al., arXiv 2401.02385",
     {LLAMA(2048, 32, 4, 22, 5632, 32000, 2048)}},
    {"llama-2-7b", LLAMA2_SOURCE, {LLAMA(4096, 32, 32, 32, 11008, 32000, 4096)}},
    {"llama-2-13b", LLAMA2_SOURCE, {LLAMA(5120, 40, 40, 40, 13824, 32000, 4096)}},
    {"llama-2-70b", LLAMA2_SOURCE, {LLAMA(8192, 64, 8, 80, 28672, 32000, 4096)}},
    {"llama-3-8b", LLAMA3_SOURCE,
     {LLAMA(4096, 32, 8, 32, 14336, 128256, 8192), .rope = {.theta = 500000}, .in_bf16 = true}},
    {"llama-3.2-1b", LLAMA3_SOURCE,
     {LLAMA(2048, 32, 8, 16, 8192, 128256, 131072), LLAMA3_ROPE(32), .tied_head = true, .in_bf16 = true}},
    {"llama-3.2-3b", LLAMA3_SOURCE,
     {LLAMA(3072, 24, 8, 28, 8192, 128256, 131072), LLAMA3_ROPE(32), .tied_head = true, .in_bf16 = true}},
    {"llama-3.1-8b", LLAMA3_SOURCE,
     {LLAMA(4096, 32, 8, 32, 14336, 128256, 131072), LLAMA3_ROPE(8), .in_bf16 = true}},
    {"llama-3.1-70b", LLAMA3_SOURCE,
     {LLAMA(8192, 64, 8, 80, 28672, 128256, 131072), LLAMA3_ROPE(8), .in_bf16 = true}},
    {"llama-tiny-bytes", "Spillway's own, for demonstrations: text as bytes",
     {LLAMA(128, 4, 2, 4, 384, 256, 256), .tied_head = true}},
    {"mistral-7b", "mistralai config.json (v0.1); Jiang et al., arXiv 2310.06825",
     {GATED(NETWORK_MISTRAL, 4096, 32, 8, 32, 14336, 32000, 32768), .in_bf16 = true}},
    {"mixtral-8x7b", "mistralai config.json (v0.1); Jiang et al., arXiv 2401.04088",
     {GATED(NETWORK_MIXTRAL, 4096, 32, 8, 32, 14336, 32000, 32768), .experts = 8,
      .experts_chosen = 2, .experts_normalized = true, .in_bf16 = true}},
    {"gemma-2b", GEMMA_SOURCE,
     {GATED(NETWORK_GEMMA, 2048, 8, 1, 18, 16384, 256000, 8192), .head_width = 256,
      .tied_head = true, .in_bf16 = true}},
    {"gemma-7b", GEMMA_SOURCE,
     {GATED(NETWORK_GEMMA, 3072, 16, 16, 28, 24576, 256000, 8192), .head_width = 256,
      .tied_head = true, .in_bf16 = true}},
    {"gemma-2-2b", GEMMA2_SOURCE,
     {GATED(NETWORK_GEMMA2, 2304, 8, 4, 26, 9216, 256000, 8192), .head_width = 256, GEMMA2_BLOCKS}},
    {"gemma-2-9b", GEMMA2_SOURCE,
     {GATED(NETWORK_GEMMA2, 3584, 16, 8, 42, 14336, 256000, 8192), .head_width = 256, GEMMA2_BLOCKS}},
    {"gemma-2-27b", GEMMA2_SOURCE,
     {GATED(NETWORK_GEMMA2, 4608, 32, 16, 46, 36864, 256000, 8192), .head_width = 128, .score_scalar = 144,
      GEMMA2_BLOCKS}},
    {"gemma-3-1b", "google config.json; arXiv 2503.19786, table 1",
     {GATED(NETWORK_GEMMA3_TEXT, 1152, 4, 1, 26, 6912, 262144, 32768), .head_width = 256, .tied_head = true,
      .window = 512, .window_every = 6, .window_theta = 10000, .in_bf16 = true}},
    {"qwen2-0.5b", QWEN2_SOURCE,
     {GATED(NETWORK_QWEN2, 896, 14, 2, 24, 4864, 151936, 131072), .tied_head = true, .in_bf16 = true}},
    {"qwen2-7b", QWEN2_SOURCE, {GATED(NETWORK_QWEN2, 3584, 28, 4, 28, 18944, 152064, 131072), .in_bf16 = true}},
    {"qwen3-0.6b", QWEN3_SOURCE,
     {GATED(NETWORK_QWEN3, 1024, 16, 8, 28, 3072, 151936, 40960), .head_width = 128,
      .tied_head = true, .in_bf16 = true}},
    {"qwen3-8b", QWEN3_SOURCE,
     {GATED(NETWORK_QWEN3, 4096, 32, 8, 36, 12288, 151936, 40960), .head_width = 128, .in_bf16 = true}},
    {"qwen1.5-moe-a2.7b", "Qwen config.json; arXiv 2407.10671",
     {GATED(NETWORK_QWEN2_MOE, 2048, 16, 16, 24, 1408, 151936, 8192), .experts = 60, .experts_chosen = 4,
      .shared_width = 5632, .in_bf16 = true}},
    {"qwen3-30b-a3b", QWEN3_SOURCE,
     {GATED(NETWORK_QWEN3_MOE, 2048, 32, 4, 48, 768, 151936, 40960), .head_width = 128,
      .experts = 128, .experts_chosen = 8, .experts_normalized = true, .in_bf16 = true}},
    {"opt-125m", OPT_SOURCE, OPT(768, 12, 12)},
    {"opt-350m", OPT_SOURCE,
     {.family = NETWORK_OPT, .width = 1024, .heads = 16, .blocks = 24, .positions = 2048, .vocabulary = 50272,
      .tied_head = true, .word_width = 512, .post_norm = true}},
    {"opt-1.3b", OPT_SOURCE, OPT(2048, 32, 24)},
    {"opt-6.7b", OPT_SOURCE, OPT(4096, 32, 32)},
    {"opt-13b", OPT_SOURCE, OPT(5120, 40, 40)},
    {"opt-30b", OPT_SOURCE, OPT(7168, 56, 48)},
    {"opt-66b", OPT_SOURCE, OPT(9216, 72, 64)},
    {"pythia-160m", PYTHIA_SOURCE, NEOX(768, 12, 12, 50304, false)},
    {"pythia-1.4b", PYTHIA_SOURCE, NEOX(2048, 16, 24, 50304, false)},
    {"gpt-neox-20b", "EleutherAI config.json; Black et al., arXiv 2204.06745",
     NEOX(6144, 64, 44, 50432, true)},
    {"gpt-j-6b", "EleutherAI config.json; Wang and Komatsuzaki, 2021",
     {.family = NETWORK_GPTJ, .width = 4096, .heads = 16, .blocks = 28, .positions = 2048,
      .vocabulary = 50400, .rotary_width = 64}},
    {"phi-2", "microsoft config.json",
     {.family = NETWORK_PHI, .width = 2560, .heads = 32, .kv_heads = 32, .blocks = 32,
      .positions = 2048, .vocabulary = 51200, .rotary_width = 32}},
    {"t5-small", T5_SOURCE, T5(512, 8, 64, 6, 2048)},
    {"t5-base", T5_SOURCE, T5(768, 12, 64, 12, 3072)},
    {"t5-large", T5_SOURCE, T5(1024, 16, 64, 24, 4096)},
    {"t5-3b", T5_SOURCE, T5(1024, 32, 128, 24, 16384)},
    {"t5-11b", T5_SOURCE, T5(1024, 128, 128, 24, 65536)},
    {"t5-v1.1-small", T5_1_1_SOURCE, T5_1_1(512, 6, 8, 1024)},
    {"t5-v1.1-base", T5_1_1_SOURCE, T5_1_1(768, 12, 12, 2048)},
    {"t5-v1.1-large", T5_1_1_SOURCE, T5_1_1(1024, 16, 24, 2816)},
    {"t5-v1.1-xl", T5_1_1_SOURCE, T5_1_1(2048, 32, 24, 5120)},
    {"t5-v1.1-xxl", T5_1_1_SOURCE, T5_1_1(4096, 64, 24, 10240)},
    {"flan-t5-small", FLAN_T5_SOURCE, T5_1_1(512, 6, 8, 1024)},
    {"flan-t5-base", FLAN_T5_SOURCE, T5_1_1(768, 12, 12, 2048)},
    {"flan-t5-large", FLAN_T5_SOURCE, T5_1_1(1024, 16, 24, 2816)},
    {"flan-t5-xl", FLAN_T5_SOURCE, T5_1_1(2048, 32, 24, 5120)},
    {"flan-t5-xxl", FLAN_T5_SOURCE, T5_1_1(4096, 64, 24, 10240)},
    {"mt5-small", MT5_SOURCE, MT5(512, 6, 8, 1024)},
    {"mt5-base", MT5_SOURCE, MT5(768, 12, 12, 2048)},
    {"mt5-large", MT5_SOURCE, MT5(1024, 16, 24, 2816)},
    {"mt5-xl", MT5_SOURCE, MT5(2048, 32, 24, 5120)},
    {"mt5-xxl", "recalled: " MT5_SOURCE, MT5(4096, 64, 24, 10240)},
    {"umt5-small", UMT5_SOURCE, UMT5(512, 6, 8, 1024)},
    {"umt5-base", UMT5_SOURCE, UMT5(768, 12, 12, 2048)},
    {"umt5-xl", UMT5_SOURCE, UMT5(2048, 32, 24, 5120)},
    {"umt5-xxl", UMT5_SOURCE, UMT5(4096, 64, 24, 10240)},
    {"byt5-small", BYT5_SOURCE, BYT5(1472, 6, 12, 4, 3584)},
    {"byt5-base", BYT5_SOURCE, BYT5(1536, 12, 18, 6, 3968)},
    {"byt5-large", "recalled: " BYT5_SOURCE, BYT5(1536, 16, 36, 12, 3840)},
    {"gpt3-175b", "Brown et al., arXiv 2005.14165, table 2.1",
     {.family = NETWORK_GPT2, .width = 12288, .heads = 96, .blocks = 96, .positions = 2048,
      .vocabulary = 50257, .tied_head = true}},
    {"megatron-1.2b", MEGATRON1_SOURCE, MEGATRON(1536, 16, 40, 1024)},
    {"megatron-2.5b", MEGATRON1_SOURCE, MEGATRON(1920, 20, 54, 1024)},
    {"megatron-4.2b", MEGATRON1_SOURCE, MEGATRON(2304, 24, 64, 1024)},
    {"megatron-8.3b", MEGATRON1_SOURCE, MEGATRON(3072, 32, 72, 1024)},
    {"megatron-1.7b", MEGATRON2_SOURCE, MEGATRON(2304, 24, 24, 2048)},
    {"megatron-7.5b", MEGATRON2_SOURCE, MEGATRON(4096, 32, 36, 2048)},
    {"megatron-39.1b", MEGATRON2_SOURCE, MEGATRON(8192, 64, 48, 2048)},
    {"megatron-145.6b", MEGATRON2_SOURCE, MEGATRON(12288, 96, 80, 2048)},
    {"megatron-22b", MEGATRON3_SOURCE, MEGATRON(6144, 64, 48, 2048)},
    {"megatron-175b", MEGATRON3_SOURCE, MEGATRON(12288, 96, 96, 2048)},
    {"megatron-530b", MEGATRON3_SOURCE, MEGATRON(20480, 128, 105, 2048)},
    {"megatron-1t", MEGATRON3_SOURCE, MEGATRON(25600, 160, 128, 2048)},
    {"bert-base", BERT_SOURCE, BERT(768, 12, 12, 3072)},
    {"bert-large", BERT_SOURCE, BERT(1024, 16, 24, 4096)},
    {"vit-base", VIT_SOURCE, VIT(768, 12, 12, 3072, 16)},
    {"vit-large", VIT_SOURCE, VIT(1024, 16, 24, 4096, 16)},
    {"vit-huge", VIT_SOURCE, VIT(1280, 16, 32, 5120, 14)},
    {"vit-gigantic", "Zhai et al., arXiv 2106.04560, table 2", VIT(1664, 16, 48, 8192, 14)},
    {"hydra-bert-1b", HYDRA_SOURCE,
     {.family = NETWORK_BERT, .width = 1024, .heads = 16, .blocks = 136, .ff_width = 1024,
      .positions = 5000, .vocabulary = 28783, .token_types = 2}},
    {"hydra-vit-300m", HYDRA_SOURCE, HYDRA_VIT(1024, 24, 4096)},
    {"hydra-vit-600m", HYDRA_SOURCE, HYDRA_VIT(1280, 32, 5120)},
    {"hydra-vit-800m", HYDRA_SOURCE, HYDRA_VIT(1280, 38, 5120)},
    {"hydra-vit-1b", HYDRA_SOURCE, HYDRA_VIT(1280, 54, 5120)},
    {"hydra-vit-1.5b", HYDRA_SOURCE, HYDRA_VIT(1280, 80, 5120)},
    {"hydra-vit-2b", HYDRA_SOURCE, HYDRA_VIT(1280, 110, 5120)},
    {"hydra-gpt2-xl", "Hydra's scripts of 2022: GPT-2 XL fine-tuned at context 512",
     GPT2(1600, 25, 48, 512)},
};

/* Ids on the hub with a config.json. */
static const struct {
    const char *id, *preset;
} hub[] = {
    {"openai-community/gpt2", "gpt2"},
    {"openai-community/gpt2-medium", "gpt2-medium"},
    {"openai-community/gpt2-large", "gpt2-large"},
    {"openai-community/gpt2-xl", "gpt2-xl"},
    {"distilbert/distilgpt2", "distilgpt2"},
    {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"},
    {"meta-llama/Llama-2-7b-hf", "llama-2-7b"},
    {"meta-llama/Llama-2-13b-hf", "llama-2-13b"},
    {"meta-llama/Llama-2-70b-hf", "llama-2-70b"},
    {"meta-llama/Meta-Llama-3-8B", "llama-3-8b"},
    {"meta-llama/Llama-3.1-8B", "llama-3.1-8b"},
    {"meta-llama/Llama-3.1-70B", "llama-3.1-70b"},
    {"meta-llama/Llama-3.2-1B", "llama-3.2-1b"},
    {"meta-llama/Llama-3.2-3B", "llama-3.2-3b"},
    {"mistralai/Mistral-7B-v0.1", "mistral-7b"},
    {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
    {"google/gemma-2b", "gemma-2b"},
    {"google/gemma-7b", "gemma-7b"},
    {"google/gemma-2-2b", "gemma-2-2b"},
    {"google/gemma-2-9b", "gemma-2-9b"},
    {"google/gemma-2-27b", "gemma-2-27b"},
    {"google/gemma-3-1b-pt", "gemma-3-1b"},
    {"google/gemma-3-1b-it", "gemma-3-1b"},
    {"Qwen/Qwen1.5-MoE-A2.7B", "qwen1.5-moe-a2.7b"},
    {"Qwen/Qwen2-0.5B", "qwen2-0.5b"},
    {"Qwen/Qwen2-7B", "qwen2-7b"},
    {"Qwen/Qwen3-0.6B", "qwen3-0.6b"},
    {"Qwen/Qwen3-8B", "qwen3-8b"},
    {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"},
    {"facebook/opt-125m", "opt-125m"},
    {"facebook/opt-350m", "opt-350m"},
    {"facebook/opt-1.3b", "opt-1.3b"},
    {"facebook/opt-6.7b", "opt-6.7b"},
    {"facebook/opt-13b", "opt-13b"},
    {"facebook/opt-30b", "opt-30b"},
    {"facebook/opt-66b", "opt-66b"},
    {"EleutherAI/pythia-160m", "pythia-160m"},
    {"EleutherAI/pythia-1.4b", "pythia-1.4b"},
    {"EleutherAI/gpt-neox-20b", "gpt-neox-20b"},
    {"EleutherAI/gpt-j-6b", "gpt-j-6b"},
    {"microsoft/phi-2", "phi-2"},
    {"google-t5/t5-small", "t5-small"},
    {"google-t5/t5-base", "t5-base"},
    {"google-t5/t5-large", "t5-large"},
    {"google-t5/t5-3b", "t5-3b"},
    {"google-t5/t5-11b", "t5-11b"},
    {"google/t5-v1_1-small", "t5-v1.1-small"},
    {"google/t5-v1_1-base", "t5-v1.1-base"},
    {"google/t5-v1_1-large", "t5-v1.1-large"},
    {"google/t5-v1_1-xl", "t5-v1.1-xl"},
    {"google/t5-v1_1-xxl", "t5-v1.1-xxl"},
    {"google/flan-t5-small", "flan-t5-small"},
    {"google/flan-t5-base", "flan-t5-base"},
    {"google/flan-t5-large", "flan-t5-large"},
    {"google/flan-t5-xl", "flan-t5-xl"},
    {"google/flan-t5-xxl", "flan-t5-xxl"},
    {"google/mt5-small", "mt5-small"},
    {"google/mt5-base", "mt5-base"},
    {"google/mt5-large", "mt5-large"},
    {"google/mt5-xl", "mt5-xl"},
    {"google/mt5-xxl", "mt5-xxl"},
    {"google/umt5-small", "umt5-small"},
    {"google/umt5-base", "umt5-base"},
    {"google/umt5-xl", "umt5-xl"},
    {"google/umt5-xxl", "umt5-xxl"},
    {"google/byt5-small", "byt5-small"},
    {"google/byt5-base", "byt5-base"},
    {"google/byt5-large", "byt5-large"},
    {"google-bert/bert-base-uncased", "bert-base"},
    {"google-bert/bert-large-uncased", "bert-large"},
    {"google/vit-base-patch16-224", "vit-base"},
    {"google/vit-large-patch16-224", "vit-large"},
    {"microsoft/resnet-18", "resnet-18"},
    {"microsoft/resnet-34", "resnet-34"},
    {"microsoft/resnet-50", "resnet-50"},
    {"microsoft/resnet-101", "resnet-101"},
    {"microsoft/resnet-152", "resnet-152"},
};

/* Names in papers, spelled for is_spelt(). */
static const struct {
    const char *word, *preset;
} papers[] = {
    {"gpt3", "gpt3-175b"},  {"gpt2small", "gpt2"},      {"gpt21.5b", "gpt2-xl"}, {"vitb", "vit-base"},
    {"vitb16", "vit-base"}, {"vitl", "vit-large"},      {"vitl16", "vit-large"}, {"vith", "vit-huge"},
    {"vith14", "vit-huge"}, {"vitg14", "vit-gigantic"},
};

/* Compares letters, digits and full stops in any case: "ResNet50", "GPT-3 175B", "bert_large". */
static bool is_spelt(const char *name, const char *word)
{
    static const char between[] = "-_ ";
    for (;; name++, word++) {
        name += strspn(name, between);
        word += strspn(word, between);
        if (tolower((unsigned char)*name) != tolower((unsigned char)*word)) return false;
        if (!*name) return true;
    }
}

/* Returns the preset's name, or `name`. Ids are compared in any case, as on the hub. */
static const char *preset_name_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(hub); i++)
        if (strcasecmp(hub[i].id, name) == 0) return hub[i].preset;
    if (strchr(name, '/')) return name;
    for (uint32_t i = 0; network_preset_name(i); i++)
        if (is_spelt(name, network_preset_name(i))) return network_preset_name(i);
    for (size_t i = 0; i < ARRAY_COUNT(papers); i++)
        if (is_spelt(name, papers[i].word)) return papers[i].preset;
    return name;
}

/* NULL: none. */
static const struct preset *find_preset(const char *name)
{
    for (size_t i = 0; i < ARRAY_COUNT(presets); i++)
        if (strcmp(presets[i].name, name) == 0) return &presets[i];
    return NULL;
}

static bool is_known(const char *name)
{
    const char *preset = preset_name_of(name);
    return find_preset(preset) || cnn_preset_find(preset);
}

const char *network_preset_name(uint32_t index)
{
    if (index < ARRAY_COUNT(presets)) return presets[index].name;
    const struct cnn_preset *cnn = cnn_preset(index - (uint32_t)ARRAY_COUNT(presets));
    return cnn ? cnn->name : NULL;
}

const char *network_preset_source(uint32_t index)
{
    if (index < ARRAY_COUNT(presets)) return presets[index].source;
    return cnn_preset(index - (uint32_t)ARRAY_COUNT(presets))->source;
}

/* Values of a family's config.json, perhaps not the class's defaults. */
static const struct {
    double norm_epsilon, rope_theta;
    bool biases, gelu_tanh;
} common[NETWORK_FAMILY_COUNT] = {
    [NETWORK_GPT2] = {.norm_epsilon = 1e-5, .biases = true, .gelu_tanh = true},
    [NETWORK_LLAMA] = {.norm_epsilon = 1e-5, .rope_theta = 10000},
    [NETWORK_BERT] = {.norm_epsilon = 1e-12, .biases = true},
    [NETWORK_VIT] = {.norm_epsilon = 1e-12}, /* biases: see the row */
    [NETWORK_OPT] = {.norm_epsilon = 1e-5, .biases = true},
    [NETWORK_GPT_NEOX] = {.norm_epsilon = 1e-5, .rope_theta = 10000, .biases = true},
    [NETWORK_GPTJ] = {.norm_epsilon = 1e-5, .rope_theta = 10000, .gelu_tanh = true},
    [NETWORK_PHI] = {.norm_epsilon = 1e-5, .rope_theta = 10000, .biases = true, .gelu_tanh = true},
    [NETWORK_T5] = {.norm_epsilon = 1e-6},
    [NETWORK_MT5] = {.norm_epsilon = 1e-6},
    [NETWORK_UMT5] = {.norm_epsilon = 1e-6},
    [NETWORK_MISTRAL] = {.norm_epsilon = 1e-5, .rope_theta = 10000},
    [NETWORK_GEMMA] = {.norm_epsilon = 1e-6, .rope_theta = 10000},
    [NETWORK_QWEN2] = {.norm_epsilon = 1e-6, .rope_theta = 1e6, .biases = true},
    [NETWORK_QWEN3] = {.norm_epsilon = 1e-6, .rope_theta = 1e6},
    [NETWORK_MIXTRAL] = {.norm_epsilon = 1e-5, .rope_theta = 1e6},
    [NETWORK_QWEN3_MOE] = {.norm_epsilon = 1e-6, .rope_theta = 1e6},
    [NETWORK_QWEN2_MOE] = {.norm_epsilon = 1e-6, .rope_theta = 1e6, .biases = true},
    [NETWORK_GEMMA2] = {.norm_epsilon = 1e-6, .rope_theta = 10000},
    [NETWORK_GEMMA3_TEXT] = {.norm_epsilon = 1e-6, .rope_theta = 1e6},
};

/* Adds the values that the table row leaves out. */
static struct network complete(const struct preset *preset)
{
    struct network n = preset->shape;
    snprintf(n.name, sizeof n.name, "%s", preset->name);
    n.layer_count = n.blocks + 2;
    if (n.head_width == 0) n.head_width = n.width / n.heads;
    if (n.ff_width == 0) n.ff_width = 4 * n.width;
    if (n.encoder_blocks == 0) n.initializer_range = 0.02; /* t5's are known by their shapes */
    n.causal = network_traits(&n)->decoder;
    n.norm_epsilon = common[n.family].norm_epsilon;
    if (common[n.family].gelu_tanh) n.gelu_tanh = true;
    if (common[n.family].biases) n.biases = true;
    if (n.rope.theta == 0) n.rope.theta = common[n.family].rope_theta;
    if (n.family == NETWORK_VIT) n.channels = 3;
    if (network_traits(&n)->less_one || n.family == NETWORK_OPT) n.has_padding = true;
    if (n.family == NETWORK_OPT) n.padding_token = 1; /* gemma's is 0 */
    if (n.family == NETWORK_BERT) n.mask_token = NETWORK_BERT_MASK;
    return n;
}

bool network_is_path(const char *name_or_path)
{
    static const char *const endings[] = {".json", ".json.gz", ".txt"};
    if (strchr(name_or_path, '/')) return preset_name_of(name_or_path) == name_or_path;
    for (size_t i = 0; i < ARRAY_COUNT(endings); i++)
        if (text_ends_in(name_or_path, endings[i])) return true;
    return false;
}

/* Reads a profile, which holds for a microbatch. */
static enum status read_text(const char *path, struct arena *arena, struct network *out, struct error *err)
{
    struct profile_text text;
    struct network n = {0};
    size_t length = strlen(path), most = sizeof n.name - 1;
    snprintf(n.name, sizeof n.name, "%s", length > most ? path + (length - most) : path);
    TRY(profile_text_read(arena, path, &text, err));
    TRY(profile_text_network(arena, &text, &n, err));
    *out = n;
    return STATUS_OK;
}

/* Returns the nearest id to a missing path, or NULL. */
static const char *near_id(const char *path)
{
    const char *ids[ARRAY_COUNT(hub)];
    for (size_t i = 0; i < ARRAY_COUNT(hub); i++) ids[i] = hub[i].id;
    return suggest(path, ids, ARRAY_COUNT(hub));
}

/* Returns true for "owner/name": one slash, no ending. */
static bool is_hub_id(const char *text)
{
    const char *slash = strchr(text, '/');
    return slash && slash > text && slash[1] && !strchr(slash + 1, '/') && text[0] != '.' && text[0] != '~' &&
           !text_ends_in(text, ".json") && !text_ends_in(text, ".json.gz") && !text_ends_in(text, ".txt");
}

/* Sets an error when nothing is at `path` and the text is an id or close to a known one. */
static bool is_unknown_id(const char *text, const char *path, struct error *err)
{
    struct stat info;
    if (stat(path, &info) == 0) return false;
    const char *near = near_id(text);
    if (near)
        error_set(err, STATUS_BAD_INPUT, "there is no network '%.100s' (did you mean '%s'?)", text, near);
    else if (is_hub_id(text))
        error_set(err, STATUS_BAD_INPUT,
                  "'%.100s' is neither a file nor an ID of the Hugging Face hub that is known here (expected a path: "
                  "save "
                  "its config.json and name that file)", text);
    return err->status != STATUS_OK;
}

/* Returns false when the path is too long. */
static bool config_inside(const char *folder, char inside[PATH_MAX])
{
    bool slash = text_ends_in(folder, "/");
    int length = snprintf(inside, PATH_MAX, "%s%sconfig.json", folder, slash ? "" : "/");
    return length > 0 && length < PATH_MAX;
}

static bool has_config(const char *folder)
{
    char inside[PATH_MAX];
    struct stat info;
    return config_inside(folder, inside) && stat(inside, &info) == 0 && S_ISREG(info.st_mode);
}

/* Reports a name that is no network. `path`: where the name leads as a path. */
static enum status fail_unknown(const char *name, const char *path, struct error *err)
{
    enum { NAMES_MAX = 256 };
    char found[FILE_READING_BYTES];
    if (file_reading_refusal_at(path, "a network: a preset such as gpt2-xl, a config.json or a folder with one", found))
        return error_set(err, STATUS_BAD_INPUT, "'%.100s' is %s", name, found);
    const char *names[NAMES_MAX];
    uint32_t count = 0;
    while (count < NAMES_MAX && (names[count] = network_preset_name(count))) count++;
    char ending[SUGGEST_BYTES];
    return error_set(err, STATUS_BAD_INPUT, "unknown network '%.100s'%s", name,
                     suggest_ending_or(name, names, count,
                                       " (expected a preset such as gpt2-xl, or the path of a config.json)", ending));
}

/* Reads a path; a folder means its config.json. */
static enum status read_path(const char *path, struct arena *arena, struct network *out,
                             struct error *err)
{
    char inside[PATH_MAX];
    struct stat info;
    bool exists = stat(path, &info) == 0;
    if (is_unknown_id(path, path, err)) return err->status;
    if (!exists || !S_ISDIR(info.st_mode)) return network_read_config(path, arena, out, err);
    if (!config_inside(path, inside))
        return error_set(err, STATUS_BAD_INPUT, "the path '%.200s...' is too long", path);
    if (!has_config(path)) return fail_unknown(path, path, err);
    return network_read_config(inside, arena, out, err);
}

enum status network_find(const char *name_or_path, struct arena *arena, struct network *out,
                         struct error *err)
{
    if (network_is_path(name_or_path) && text_ends_in(name_or_path, ".txt"))
        return read_text(name_or_path, arena, out, err);
    if (network_is_path(name_or_path)) return read_path(name_or_path, arena, out, err);
    const char *name = preset_name_of(name_or_path);
    const struct cnn_preset *cnn = cnn_preset_find(name);
    if (cnn) return cnn_preset_make(cnn, 0, 0, arena, out, err);
    const struct preset *preset = find_preset(name);
    if (!preset && has_config(name_or_path)) return read_path(name_or_path, arena, out, err);
    if (!preset) return fail_unknown(name_or_path, name_or_path, err);
    *out = complete(preset);
    return STATUS_OK;
}

bool network_is_file(const char *text, const char *path)
{
    return network_is_path(text) || (!is_known(text) && has_config(path));
}

enum status network_read_text(const struct json_input *in, const json_t *owner, const char *text, const char *path,
                              struct arena *arena, struct network *out, struct error *err)
{
    struct error reason = {0};
    if (!network_is_file(text, path)) {
        if (is_known(text)) return network_find(text, arena, out, err);
        fail_unknown(text, path, &reason);
    } else if (!network_is_path(text) || !is_unknown_id(text, path, &reason)) {
        return network_find(path, arena, out, err);
    }
    return json_fail_key(in, owner, "network", err, "%s", reason.text);
}

enum status network_read_key(struct json_object *object, struct arena *arena, struct network *out, struct error *err)
{
    const struct json_input *in = object->input;
    const char *path;
    json_take_any(object, "network");
    const json_t *value = json_object_get(object->value, "network");
    const char *text = json_string_value(value);
    if (json_is_object(value)) return network_parse(in, value, "network", arena, out, err);
    if (!text)
        return json_fail_key(in, object->value, "network", err, "'network' is neither a name or path nor an object");
    TRY(path_beside(json_input_name(in), text, arena, &path, err));
    return network_read_text(in, object->value, text, path, arena, out, err);
}
