/* Chooses the family (exec/network/transformer.h) and makes its tables. */
#include "exec/network/unit.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/try.h"
#include "exec/network/transformer.h"
#include "models/network/network_traits.h"

static const struct transformer *const implementations[NETWORK_FAMILY_COUNT] = {
    [NETWORK_GPT2] = &transformer_gpt2,
    [NETWORK_LLAMA] = &transformer_llama,
    [NETWORK_MISTRAL] = &transformer_llama,
    [NETWORK_QWEN2] = &transformer_llama,
    [NETWORK_QWEN3] = &transformer_llama,
    [NETWORK_MIXTRAL] = &transformer_experts,
    [NETWORK_QWEN2_MOE] = &transformer_experts,
    [NETWORK_QWEN3_MOE] = &transformer_experts,
    [NETWORK_GEMMA] = &transformer_gemma,
    [NETWORK_GEMMA2] = &transformer_gemma2,
    [NETWORK_GEMMA3_TEXT] = &transformer_gemma2,
    [NETWORK_GPT_NEOX] = &transformer_turned,
    [NETWORK_GPTJ] = &transformer_turned,
    [NETWORK_PHI] = &transformer_turned,
    [NETWORK_OPT] = &transformer_opt,
    [NETWORK_BERT] = &transformer_bert,
    [NETWORK_VIT] = &transformer_vit,
    [NETWORK_CNN] = &transformer_graph,
};

static enum status init_tables(const struct job *job, const struct plan_shard *shard, uint64_t samples, uint32_t way,
                               struct arena *arena, struct unit_tables *out, struct error *err)
{
    const struct network *network = &job->network;
    struct unit_tables tables = {0};
    TRY(memory_parameters(network, shard->first_layer, shard->layer_count, arena,
                                           &tables.parameters, err));
    TRY(memory_state_tables(network, shard->first_layer, shard->layer_count,
                                 job_state_format(job), arena, &tables.state, err));
    TRY(memory_activations(network, shard->first_layer, shard->layer_count, job->microbatch,
                                job->sequence, job->precision, arena, &tables.activations, err));
    TRY(memory_inputs(network, shard->first_layer, shard->layer_count, job->microbatch,
                           job->sequence, job->precision, arena, &tables.inputs, err));
    for (uint32_t pass = UNIT_FORWARD; pass <= UNIT_LOSS; pass++)
        for (uint32_t how = 0; how < UNIT_WAYS; how++) {
            TRY(memory_workspace(network, shard->first_layer, shard->layer_count, (enum unit_pass)pass, how | way,
                                 samples, job->sequence, arena, &tables.workspace[pass][how], err));
        }
    *out = tables;
    return STATUS_OK;
}

enum status unit_tables_init(const struct job *job, const struct plan_shard *shard,
                             struct arena *arena, struct unit_tables *out, struct error *err)
{
    return init_tables(job, shard, job_pass_samples(job, shard->first_layer), job_pass_way(job, shard->first_layer),
                       arena, out, err);
}

enum status unit_tables_init_alone(const struct job *job, const struct plan_shard *shard,
                                   struct arena *arena, struct unit_tables *out, struct error *err)
{
    return init_tables(job, shard, job->microbatch, job_microbatch_way(job), arena, out, err);
}

void unit_compute(const struct kernels *kernels, const struct unit_arguments *arguments)
{
    const struct transformer *transformer = implementations[arguments->job->network.family];
    assert(transformer);
    transformer_compute(transformer, kernels_of(kernels, arguments->job), arguments);
}

static const struct transformer_need bf16_needs[] = {
    TRANSFORMER_NEED(round), TRANSFORMER_NEED(linear_forward_bf16), TRANSFORMER_NEED(linear_input_bf16),
    TRANSFORMER_NEED(linear_weight_bf16), TRANSFORMER_NEED(embed_forward_bf16)};

static const struct transformer_need label_needs[] = {TRANSFORMER_NEED(loss_labels)};

static const char *find_missing(const struct kernels *kernels, const struct transformer_need *needs,
                                uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        void (*function)(void);
        memcpy(&function, (const char *)kernels + needs[i].offset, sizeof function);
        if (!function) return needs[i].name;
    }
    return NULL;
}

const char *unit_missing_kernel(const struct kernels *all, const struct job *job)
{
    const struct kernels *const kernels = kernels_of(all, job);
    if (!kernels) return "numbers of 16 bits";
    const struct transformer *transformer = implementations[job->network.family];
    const char *missing = transformer ? find_missing(kernels, transformer->needs, transformer->need_count) : NULL;
    const bool windows = job->network.window > 0 && job->sequence > job->network.window;
    const struct network *const network = &job->network;
    const bool parts = network->rotary_width > 0;
    if (!missing && network->graph && !kernels->images) missing = "convolutions";
    if (!missing && job_has_labels(job))
        missing = find_missing(kernels, label_needs, sizeof label_needs / sizeof *label_needs);
    if (!missing && parts && !kernels->turns_parts) missing = "rotary positions of parts of heads";
    const bool caps = network->score_cap > 0 || network->logit_cap > 0 || network->score_scalar > 0;
    if (!missing && network_drops(network) && !kernels->dropout)
        missing = "dropout (\"dropout\": false trains without it)";
    if (!missing && caps && !kernels->caps) missing = "caps and a scale of scores";
    if (!missing && job->packs && !kernels->attends_in_rows) missing = "attention within packed rows";
    if (!missing && windows && !kernels->attends_in_windows) missing = "attention over a window";
    if (!missing && network->trained && !kernels->freezes) missing = "products without gradients of frozen weights";
    if (!missing && job->precision == PRECISION_BF16_WEIGHTS)
        missing = find_missing(kernels, bf16_needs, sizeof bf16_needs / sizeof *bf16_needs);
    return missing;
}

const char *unit_unsupported(const struct job *job)
{
    const struct transformer *transformer = implementations[job->network.family];
    if (transformer && network_traits(&job->network)->less_one && job->optimizer.decay == DECAY_ALL &&
        job->optimizer.weight_decay > 0)
        return "decay of all tensors is not for norms whose weights files have less 1 (expected \"decay\": "
               "\"matrices\")";
    if (job->packs && network_drops(&job->network))
        return "packed rows train without dropout (expected \"dropout\": false)";
    if (job->packs && job->network.family == NETWORK_OPT)
        return "packed rows of 'opt' can be planned and simulated only";
    if (transformer) return transformer->unsupported ? transformer->unsupported(job) : NULL;
    static _Thread_local char text[96];
    snprintf(text, sizeof text, "networks of family '%s' can be planned and simulated only",
             network_family_names[job->network.family]);
    return text;
}
