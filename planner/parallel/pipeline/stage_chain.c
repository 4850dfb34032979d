#include "planner/parallel/pipeline/stage_chain.h"

#include <math.h>
#include <stdio.h>

#include "base/try.h"
#include "models/job/parallel_memory.h"
#include "models/job/parallel_work.h"
#include "models/network/profile_text.h"
#include "planner/pass_seconds.h"

/* --- a text --------------------------------------------------------------------------------- */

static enum status chain_of_text(struct arena *arena, const struct profile_text *text, struct stage_chain *out,
                                 struct error *err)
{
    struct stage_layer *layers;
    TRY(ARENA_NEW(arena, text->count, layers, err));
    *out = (struct stage_chain){.name = text->name, .layers = layers, .count = text->count};
    for (uint32_t l = 0; l < text->count; l++) {
        const struct profile_text_layer *from = &text->layers[l];
        out->layers[l] = (struct stage_layer){.name = from->name,
                                              .forward_s = from->forward_s,
                                              .backward_s = from->backward_s,
                                              .cut_bytes = from->cut_bytes,
                                              .weight_bytes = from->weight_bytes,
                                              .held_bytes = 2 * from->weight_bytes,
                                              .kept_bytes = from->output_bytes};
    }
    return STATUS_OK;
}

enum status stage_chain_parse(struct arena *arena, const char *name, const char *text, struct stage_chain *out,
                              struct error *err)
{
    struct profile_text profile;
    TRY(profile_text_parse(arena, name, text, &profile, err));
    return chain_of_text(arena, &profile, out, err);
}

enum status stage_chain_read(struct arena *arena, const char *path, struct stage_chain *out, struct error *err)
{
    struct profile_text profile;
    TRY(profile_text_read(arena, path, &profile, err));
    return chain_of_text(arena, &profile, out, err);
}

/* --- a network ------------------------------------------------------------------------------ */

static uint64_t scaled(double value, double scale)
{
    return (uint64_t)llround(value * scale);
}

enum status stage_chain_network(struct arena *arena, const struct stage_chain *chain, double scale,
                                struct network *out, struct error *err)
{
    struct layer_profile *profile;
    TRY(ARENA_NEW(arena, chain->count, profile, err));
    for (uint32_t l = 0; l < chain->count; l++) {
        const struct stage_layer *layer = &chain->layers[l];
        profile[l] = (struct layer_profile){.parameter_bytes = layer->weight_bytes / sizeof(float) * sizeof(float),
                                            .activation_bytes = scaled((double)layer->kept_bytes, scale),
                                            .boundary_bytes = scaled((double)layer->cut_bytes, scale),
                                            .forward_ns = scaled(layer->forward_s, 1e9 * scale),
                                            .backward_ns = scaled(layer->backward_s, 1e9 * scale)};
    }
    *out = (struct network){.family = NETWORK_PROFILE, .layer_count = chain->count, .profile = profile};
    snprintf(out->name, sizeof out->name, "%.*s", (int)sizeof out->name - 1, chain->name);
    return STATUS_OK;
}

/* --- a job ---------------------------------------------------------------------------------- */

enum status stage_chain_of_job(struct arena *arena, const struct job *job, const struct hardware *hardware,
                               uint32_t device, struct stage_chain *out, struct error *err)
{
    static const char *const kinds[] = {[LAYER_EMBEDDING] = "embedding", [LAYER_BLOCK] = "block", [LAYER_HEAD] = "head",
                                        [LAYER_OPAQUE] = "layer"};
    struct job alone = *job;
    struct stage_layer *layers;
    uint64_t count = job->network.layer_count;
    if (count > STAGE_LAYERS_MAX)
        return error_set(err, STATUS_LIMIT, "job '%s' has too many layers to cut (limit is %d)", job->name,
                         STAGE_LAYERS_MAX);
    const struct parallel *p = &job->parallel;
    alone.parallel = (struct parallel){.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B};
    if (parallel_is_set(p)) {
        alone.parallel.tensor = p->tensor;
        alone.parallel.data = p->data;
        alone.parallel.zero = p->zero;
        alone.parallel.sequence = p->sequence;
        alone.parallel.recompute = p->recompute;
    }
    struct job offloading = alone;
    offloading.parallel.offload = p->offload;
    TRY(ARENA_NEW(arena, count, layers, err));
    struct stage_chain chain = {.layers = layers, .count = (uint32_t)count};
    TRY(arena_string(arena, job->name, &chain.name, err));
    for (uint64_t l = 0; l < count; l++) {
        struct parallel_layers one = {l, 1};
        struct rank_state state = parallel_state(&alone, one), held = parallel_state(&offloading, one);
        uint64_t input = l > 0 ? parallel_boundary_bytes(&alone, l - 1) : 0;
        chain.layers[l] = (struct stage_layer){
            .name = network_crosses(&job->network, l) ? "decoder" : kinds[network_layer_kind(&job->network, l)],
            .forward_s = pass_seconds_parallel(hardware, device, &alone, one, PARALLEL_FORWARD),
            .backward_s = pass_seconds_parallel(hardware, device, &alone, one, PARALLEL_BACKWARD),
            .cut_bytes = l + 1 < count ? parallel_boundary_bytes(&alone, l) : 0,
            .weight_bytes = state.weight_bytes,
            .held_bytes = held.weight_bytes + held.gradient_bytes + held.state_bytes,
            .kept_bytes = input + parallel_kept_bytes(&alone, one, false)};
    }
    *out = chain;
    return STATUS_OK;
}
