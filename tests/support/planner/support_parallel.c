#include "tests/support/planner/support_parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

const struct support_gpt support_gpts[] = {
    [SUPPORT_GPT_1700M] = {"1.7B", 24, 2304, 24},   [SUPPORT_GPT_7500M] = {"7.5B", 32, 4096, 36},
    [SUPPORT_GPT_22B] = {"22B", 64, 6144, 48},      [SUPPORT_GPT_39B] = {"39.1B", 64, 8192, 48},
    [SUPPORT_GPT_145B] = {"145.6B", 96, 12288, 80}, [SUPPORT_GPT_175B] = {"175B", 96, 12288, 96},
    [SUPPORT_GPT_530B] = {"530B", 128, 20480, 105}, [SUPPORT_GPT_1T] = {"1T", 160, 25600, 128},
};

struct network support_gpt(struct support_gpt shape)
{
    return (struct network){.family = NETWORK_GPT2, .layer_count = shape.blocks + 2, .width = shape.width,
                            .heads = shape.heads, .head_width = shape.width / shape.heads,
                            .ff_width = 4 * shape.width, .blocks = shape.blocks, .vocabulary = 51200,
                            .positions = 2048, .tied_head = true, .causal = false, .biases = true};
}

struct job support_parallel_job(struct network network, uint64_t microbatch, uint32_t tensor, uint32_t pipeline)
{
    return (struct job){.name = "parallel", .network = network, .microbatch = microbatch, .microbatches = 1,
                        .minibatches = 1, .sequence = network.positions, .precision = PRECISION_BF16,
                        .optimizer = {.kind = OPTIMIZER_ADAMW},
                        .parallel = {.tensor = tensor, .pipeline = pipeline, .data = 1, .chunks = 1,
                                     .schedule = PIPELINE_1F1B}};
}

struct parallel_layers support_all_layers(const struct job *job)
{
    return (struct parallel_layers){0, job->network.layer_count};
}

struct network support_preset(const char *name)
{
    static struct arena arena; /* has the listed layers of all presets that tests ask for */
    struct network network = {0};
    struct error err = {0};
    if (network_find(name, &arena, &network, &err) != STATUS_OK) fail_msg("%s", err.text);
    return network;
}
