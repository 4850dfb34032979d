/*
 * Megatron-Core. Three values are fitted, with the H100's sustained rate of products, to the five networks of
 * Megatron-LM's README of July 2024 (Megatron-Core 0.8, up to 6144 H100) and to two points of its strong scaling:
 * plots/papers/megatron-core-h100.json, -strong.json. The others are assumed, because seven runs do not identify more.
 * Attention is Transformer Engine's: cuDNN's, or FlashAttention-2 with 0.35 of an H100's peak by its own count (arXiv
 * 2407.08608), in which the backward pass recomputes scores; here the recomputation is counted apart.
 *
 * Frameworks. The A100's values (models/hardware/hardware_catalogue.c) stand in for those of devices to which nothing
 * was fitted, so that no device is without the software that all others have.
 */
#include "models/hardware/software_stack.h"

#include "base/size.h"
#include "models/hardware/hardware_build.h"

const char *const hardware_stack_names[] = {[STACK_SPILLWAY] = "spillway",
                                            [STACK_FRAMEWORKS] = "frameworks",
                                            [STACK_MEGATRON_CORE] = "megatron-core",
                                            NULL};
static_assert(ARRAY_COUNT(hardware_stack_names) == STACK_COUNT + 1, "a name per stack");

struct software_values {
    struct sourced_value collective_latency;
    struct sourced_value score_bytes_forward, score_bytes_backward, loss_passes, elementwise_passes, kernel_gap;
    struct sourced_value dispatch_latency, attention_efficiency;
};

#define README_FITTED(v, spread_)                                                                 \
    {.value = (v), .spread = (spread_), .kind = SOURCE_FITTED, .as_of = HARDWARE_AS_OF,            \
     .source = "iteration times of GPT on H100: Megatron-LM's README of July 2024"}
#define LATER(v, s)                                                                               \
    {.value = (v), .spread = 0.5, .kind = SOURCE_ASSUMED, .as_of = HARDWARE_AS_OF, .source = (s)}
#define AS_ON_A100(v)                                                                             \
    {.value = (v), .spread = 0.3, .kind = SOURCE_ASSUMED, .as_of = HARDWARE_AS_OF,                 \
     .source = "as fitted to the same software on A100"}

static const struct software_values megatron_core = {
    .collective_latency = LATER(20e-6, "NCCL's small collectives take 20 to 50 us"),
    .loss_passes = README_FITTED(6.8, 0.3),
    .elementwise_passes = README_FITTED(3.0, 0.3),
    .kernel_gap = LATER(2e-6, "kernels of Transformer Engine follow each other in a few us"),
    .dispatch_latency = LATER(20e-6, "PyTorch and Transformer Engine dispatch a kernel in 10 to 30 us"),
    .attention_efficiency = LATER(0.45, "FlashAttention-2 reaches 0.35 of an H100's peak (arXiv 2407.08608), cuDNN's "
                                        "attention more"),
};

static const struct software_values frameworks_on_others = {
    .collective_latency = AS_ON_A100(232e-6),
    .score_bytes_forward = AS_ON_A100(17.2),
    .score_bytes_backward = AS_ON_A100(16.8),
    .loss_passes = AS_ON_A100(6.77),
    .elementwise_passes = AS_ON_A100(1.06),
    .kernel_gap = AS_ON_A100(25.4e-6),
    .dispatch_latency = AS_ON_A100(71.1e-6),
};

static bool has_software(const struct device_type *type)
{
    const struct kernel_model *model = &type->kernel_model;
    return type->collective_latency.value > 0 || model->score_bytes_forward.value > 0 || model->loss_passes.value > 0 ||
           model->elementwise_passes.value > 0 || model->kernel_gap.value > 0 || model->dispatch_latency.value > 0;
}

static void put(const struct software_values *values, struct device_type *type)
{
    struct kernel_model *model = &type->kernel_model;
    type->collective_latency = values->collective_latency;
    model->score_bytes_forward = values->score_bytes_forward;
    model->score_bytes_backward = values->score_bytes_backward;
    model->loss_passes = values->loss_passes;
    model->elementwise_passes = values->elementwise_passes;
    model->kernel_gap = values->kernel_gap;
    model->dispatch_latency = values->dispatch_latency;
    model->attention_efficiency = values->attention_efficiency;
}

void software_stack_apply(struct hardware *hardware, enum hardware_stack stack)
{
    hardware->stack = stack;
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        struct device_type *type = &hardware->types[t];
        if (!(type->kernel_model.multiprocessors.value > 0)) continue;
        if (stack == STACK_MEGATRON_CORE) put(&megatron_core, type);
        if (stack == STACK_FRAMEWORKS && !has_software(type)) put(&frameworks_on_others, type);
    }
}
