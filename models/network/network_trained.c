/*
 * Patterns and targets are compared with the names of all tensors, once for each job: networks have at most a few
 * thousand. Layers with equal masks are found then, too, so that questions about a layer stay constant in time.
 */
#include "models/network/network_trained.h"

#include <assert.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "models/network/network_traits.h"

/* --- names ------------------------------------------------------------------------------------ */

void network_module(const struct network *network, const char *weight, char out[NETWORK_MODULE_BYTES])
{
    static const char ending[] = ".weight";
    size_t length = strlen(weight);
    if (text_ends_in(weight, ending)) length -= strlen(ending);
    snprintf(out, NETWORK_MODULE_BYTES, "%s%.*s", network->family == NETWORK_GPT2 ? "transformer." : "", (int)length,
             weight);
}

static bool is_target(const char *module, const char *target)
{
    const size_t length = strlen(module), end = strlen(target);
    if (length <= end) return strcmp(module, target) == 0;
    return module[length - end - 1] == '.' && strcmp(module + length - end, target) == 0;
}

const char *const *network_default_targets(const struct network *network, uint32_t *count)
{
    static const char *const attention[] = {"q_proj", "v_proj"}, *const fused[] = {"c_attn"},
                             *const neox[] = {"query_key_value"}, *const phi[] = {"q_proj", "v_proj", "fc1", "fc2"};
    switch (network->family) {
    case NETWORK_GPT2: *count = ARRAY_COUNT(fused); return fused;
    case NETWORK_GPT_NEOX: *count = ARRAY_COUNT(neox); return neox;
    case NETWORK_PHI: *count = ARRAY_COUNT(phi); return phi;
    case NETWORK_QWEN2_MOE:
    case NETWORK_QWEN3_MOE: *count = 0; return NULL;
    default: *count = ARRAY_COUNT(attention); return attention;
    }
}

/* --- masks ------------------------------------------------------------------------------------ */

struct trained_masks {
    const struct network *network;
    const struct network_freeze *freeze;
    const struct network_adapters *adapters;
    struct network_layer_trained *layers;
    bool *used; /* patterns, or targets, that matched */
    struct error *err;
};

/* Returns true if the tensor is the weight of a linear layer that adapters know; `index` is its number among the
 * layer's matrices. */
static bool is_linear(const struct network *n, uint64_t layer, const struct tensor_spec *spec, uint32_t index)
{
    const uint32_t attention = network_traits(n)->fused_qkv ? 2 : 4;
    if (network_layer_kind(n, layer) != LAYER_BLOCK || !spec->matrix || spec->rank != 2) return false;
    return n->experts == 0 || index < attention;
}

static enum status adapt_tensor(struct trained_masks *m, uint64_t layer, const struct tensor_spec *spec, uint32_t i,
                                uint32_t matrix)
{
    const struct network_adapters *a = m->adapters;
    char module[NETWORK_MODULE_BYTES];
    bool wanted = !a->targets && network_layer_kind(m->network, layer) == LAYER_BLOCK;
    network_module(m->network, spec->name, module);
    for (uint32_t t = 0; t < a->target_count; t++) {
        if (!is_target(module, a->targets[t])) continue;
        m->used[t] = wanted = true;
    }
    if (!wanted || !spec->matrix) return STATUS_OK;
    if (!is_linear(m->network, layer, spec, matrix))
        return error_set(m->err, STATUS_BAD_INPUT,
                         "an adapter of '%s' is not supported (expected linear layers of blocks%s)", module,
                         m->network->experts > 0 ? ", and of their attention where there are experts" : "");
    m->layers[layer].adapted |= UINT32_C(1) << i;
    return STATUS_OK;
}

static void freeze_tensor(struct trained_masks *m, uint64_t layer, const struct tensor_spec *spec, uint32_t i)
{
    const struct network_freeze *f = m->freeze;
    bool frozen = m->adapters->rank > 0;
    for (uint32_t r = 0; r < f->layer_count; r++) frozen |= layer >= f->layers[r][0] && layer <= f->layers[r][1];
    for (uint32_t t = 0; t < f->tensor_count; t++) {
        if (fnmatch(f->tensors[t], spec->name, 0) != 0) continue;
        m->used[t] = frozen = true;
    }
    if (frozen) m->layers[layer].frozen |= UINT32_C(1) << i;
}

static enum status mark_layer(struct trained_masks *m, uint64_t layer)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    const uint32_t count = network_layer_tensors(m->network, layer, specs);
    const uint32_t all = count == 32 ? UINT32_MAX : (UINT32_C(1) << count) - 1;
    m->layers[layer].tensors = count;
    for (uint32_t i = 0, matrix = 0; i < count; i++) {
        freeze_tensor(m, layer, &specs[i], i);
        if (m->adapters->rank > 0) TRY(adapt_tensor(m, layer, &specs[i], i, matrix));
        matrix += specs[i].matrix;
    }
    const uint32_t frozen = m->layers[layer].frozen;
    if (network_layer_kind(m->network, layer) != LAYER_EMBEDDING || frozen == 0 || frozen == all) return STATUS_OK;
    return error_set(m->err, STATUS_BAD_INPUT,
                     "only a part of the embedding is frozen, and '%s' is not (expected all of it or none)",
                     specs[__builtin_ctz(~frozen)].name);
}

static enum status check_used(const struct trained_masks *m)
{
    const struct network_adapters *a = m->adapters;
    for (uint32_t t = 0; t < m->freeze->tensor_count && a->rank == 0; t++)
        if (!m->used[t])
            return error_set(m->err, STATUS_BAD_INPUT, "'%s' matches no tensor of network '%s'", m->freeze->tensors[t],
                             m->network->name);
    for (uint32_t t = 0; t < a->target_count && a->rank > 0; t++)
        if (!m->used[t])
            return error_set(m->err, STATUS_BAD_INPUT, "target '%s' matches no linear layer of network '%s'",
                             a->targets[t], m->network->name);
    return STATUS_OK;
}

static bool same_masks(const struct network_layer_trained *a, const struct network_layer_trained *b)
{
    return a->frozen == b->frozen && a->adapted == b->adapted;
}

static void find_alike(const struct trained_masks *m)
{
    const uint64_t count = m->network->layer_count;
    for (uint64_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && same_masks(&m->layers[first], &m->layers[end]);) end++;
        for (uint64_t l = first; l < end; l++) {
            m->layers[l].alike_begin = first;
            m->layers[l].alike_end = end;
        }
    }
}

static enum status check_asked(const struct trained_masks *m)
{
    const struct network *n = m->network;
    const bool adapts = m->adapters->rank > 0;
    const bool refused = network_is_listed(n) || n->encoder_blocks > 0 || (adapts && !network_traits(n)->decoder);
    if (refused)
        return error_set(m->err, STATUS_BAD_INPUT,
                         "%s of networks of family '%s' are not supported (expected a decoder%s)",
                         adapts ? "adapters" : "frozen tensors", network_family_names[n->family],
                         adapts ? "" : ", bert or vit");
    for (uint32_t r = 0; r < m->freeze->layer_count; r++)
        if (m->freeze->layers[r][1] >= n->layer_count)
            return error_set(m->err, STATUS_BAD_INPUT,
                             "layer %" PRIu64 " of network '%s' does not exist (expected 0 to %" PRIu64 ")",
                             m->freeze->layers[r][1], n->name, n->layer_count - 1);
    return STATUS_OK;
}

/* Returns true if the layer has no trained tensor. */
static bool layer_is_frozen(const struct network *network, uint64_t layer)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    const uint32_t count = network_layer_shapes(network, layer, specs);
    for (uint32_t i = 0; i < count; i++)
        if (!specs[i].frozen) return false;
    return true;
}

static enum status mark_all(struct trained_masks *m, struct network_trained *trained, const struct network *with)
{
    const struct network *n = m->network;
    TRY(check_asked(m));
    for (uint64_t l = 0; l < n->layer_count; l++) TRY(mark_layer(m, l));
    TRY(check_used(m));
    find_alike(m);
    while (trained->first < n->layer_count && layer_is_frozen(with, trained->first)) trained->first++;
    if (trained->first < n->layer_count) return STATUS_OK;
    return error_set(m->err, STATUS_BAD_INPUT, "all tensors of network '%s' are frozen: nothing is trained", n->name);
}

enum status network_train_only(const struct network *network, const struct network_freeze *freeze,
                               const struct network_adapters *adapters, struct arena *arena,
                               const struct network_trained **out, struct error *err)
{
    struct network plain = *network, with = *network;
    struct network_trained *trained;
    struct trained_masks m = {.network = &plain, .freeze = freeze, .adapters = adapters, .err = err};
    *out = NULL;
    if (freeze->layer_count == 0 && freeze->tensor_count == 0 && adapters->rank == 0) return STATUS_OK;
    plain.trained = NULL;
    TRY(ARENA_NEW(arena, 1, trained, err));
    TRY(ARENA_NEW(arena, network->layer_count, m.layers, err));
    TRY(ARENA_NEW(arena, (size_t)freeze->tensor_count + adapters->target_count + 1, m.used, err));
    *trained = (struct network_trained){.rank = adapters->rank, .scale = adapters->scale, .layers = m.layers};
    with.trained = trained;
    TRY(mark_all(&m, trained, &with));
    *out = trained;
    return STATUS_OK;
}

/* --- questions -------------------------------------------------------------------------------- */

static uint64_t count_parameters(const struct network *network, uint64_t layer, bool frozen)
{
    struct tensor_spec specs[LAYER_TENSORS_MAX];
    const uint32_t count = network_layer_shapes(network, layer, specs);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < count; i++)
        sum += specs[i].frozen == frozen && !specs[i].running ? specs[i].elements : 0;
    return sum;
}

uint64_t network_layer_trained_parameters(const struct network *network, uint64_t layer)
{
    return network->trained ? count_parameters(network, layer, false) : network_layer_parameters(network, layer);
}

uint64_t network_layer_frozen_parameters(const struct network *network, uint64_t layer)
{
    return network->trained ? count_parameters(network, layer, true) : 0;
}

uint64_t network_trained_parameters(const struct network *network)
{
    return network_sum(network, network_layer_trained_parameters);
}

uint64_t network_trained_fingerprint(const struct network *network)
{
    const struct network_trained *t = network->trained;
    uint64_t hash = HASH_BEGIN;
    if (!t) return 0;
    hash = hash_bytes(hash, &t->rank, sizeof t->rank);
    hash = hash_bytes(hash, &t->scale, sizeof t->scale);
    for (uint64_t l = 0; l < network->layer_count; l++) {
        hash = hash_bytes(hash, &t->layers[l].frozen, sizeof t->layers[l].frozen);
        hash = hash_bytes(hash, &t->layers[l].adapted, sizeof t->layers[l].adapted);
    }
    return hash;
}

bool network_trains_alike(const struct network *a, const struct network *b)
{
    if (a->trained == b->trained) return true;
    if (!a->trained || !b->trained || a->trained->rank != b->trained->rank || a->layer_count != b->layer_count)
        return false;
    for (uint64_t l = 0; l < a->layer_count; l++)
        if (!same_masks(&a->trained->layers[l], &b->trained->layers[l])) return false;
    return true;
}
