/*
 * A job's weights between its state blobs and a safetensors file, and their fingerprint.
 *
 * The tensors of all shards in order are the tensors of the network in order, whatever the cuts, so
 * files and fingerprints do not show how a network was cut. Names and shapes come from
 * network_layer_tensors(), places from the tables of models/memory.h; both list a layer's tensors in
 * the same order.
 *
 * The fingerprint takes the bits of the numbers, not their values: runs are compared bit by bit. Eight
 * lanes, each multiplied by an odd number after a word is mixed in, hence a change of one word always
 * changes its lane; 0.02 s for the 0.5 GB of GPT-2.
 */
#include "exec/weights.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "exec/clones.h"
#include "exec/safetensors.h"

/* --- walking over tensors --------------------------------------------------------------------- */

bool weights_walk_next(struct weights_walk *walk, struct weights_tensor *out)
{
    while (walk->shard < walk->shard_count && walk->entry == walk->parameters[walk->shard].count) {
        walk->shard++;
        walk->entry = 0;
    }
    if (walk->shard == walk->shard_count) return false;
    const struct memory_entry *entry = &walk->parameters[walk->shard].entries[walk->entry];
    bool new_layer = walk->entry == 0 || entry->layer != walk->layer;
    if (new_layer) {
        walk->layer = entry->layer;
        walk->tensor_count = network_layer_tensors(&walk->job->network, entry->layer, walk->specs);
        walk->index = 0;
    }
    assert(walk->index < walk->tensor_count);
    const struct tensor_spec *spec = &walk->specs[walk->index++];
    assert(entry->bytes == spec->elements * sizeof(float));
    walk->entry++;
    float *const state = walk->states ? walk->states[walk->shard] : NULL;
    *out = (struct weights_tensor){
        .spec = spec,
        .values = state ? state + entry->offset_bytes / sizeof(float) : NULL,
        .part_bytes = walk->parameters[walk->shard].bytes,
    };
    return true;
}

/* --- reading ---------------------------------------------------------------------------------- */

enum { SHAPE_TEXT_BYTES = 96 };

static const char *shape_text(const uint64_t *shape, uint32_t rank, char text[SHAPE_TEXT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < rank && used < SHAPE_TEXT_BYTES; i++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT_BYTES - used, "%s%" PRIu64,
                                 i > 0 ? ", " : "", shape[i]);
    return text;
}

enum { OTHER_NAME_BYTES = 128 };

/* What a tensor is called in a file of the network without its head, or with one; "" when that makes
 * no difference. gpt2's files on the hub are of the former kind, those of the other families of the
 * latter. */
static void other_name(uint32_t family, const char *name, char other[OTHER_NAME_BYTES])
{
    static const char *const bases[NETWORK_FAMILY_COUNT] = {
        [NETWORK_LLAMA] = "model.", [NETWORK_BERT] = "bert.", [NETWORK_VIT] = "vit."};
    const char *base = bases[family];
    size_t length = base ? strlen(base) : 0;
    other[0] = '\0';
    if (!base)
        snprintf(other, OTHER_NAME_BYTES, "transformer.%s", name);
    else if (strncmp(name, base, length) == 0)
        snprintf(other, OTHER_NAME_BYTES, "%s", name + length);
}

/* A tensor under its name, or as BERT's first checkpoints have it: their norms have a gamma and a
 * beta. NULL when there is neither. */
static const struct safetensors_tensor *find(const struct safetensors *file, const char *name)
{
    static const char *const old[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                         {"LayerNorm.bias", "LayerNorm.beta"}};
    const struct safetensors_tensor *tensor = safetensors_find(file, name);
    for (size_t i = 0; !tensor && i < sizeof old / sizeof *old; i++) {
        char other[OTHER_NAME_BYTES];
        size_t length = strlen(name), end = strlen(old[i][0]);
        if (length < end || strcmp(name + length - end, old[i][0]) != 0) continue;
        snprintf(other, sizeof other, "%.*s%s", (int)(length - end), name, old[i][1]);
        tensor = safetensors_find(file, other);
    }
    return tensor;
}

static enum status read_tensor(const char *path, uint32_t family, const struct safetensors *file,
                               const struct weights_tensor *wanted, struct error *err)
{
    const struct tensor_spec *spec = wanted->spec;
    char other[OTHER_NAME_BYTES];
    const struct safetensors_tensor *found = find(file, spec->name);
    other_name(family, spec->name, other);
    if (!found && other[0]) found = find(file, other);
    if (!found)
        return error_set(err, STATUS_BAD_INPUT, "%s: no tensor '%s'%s%s%s among its %zu", path,
                         spec->name, other[0] ? " (nor '" : "", other, other[0] ? "')" : "",
                         safetensors_count(file));
    if (found->rank != spec->rank ||
        memcmp(found->shape, spec->shape, spec->rank * sizeof *spec->shape) != 0) {
        char is[SHAPE_TEXT_BYTES], expected[SHAPE_TEXT_BYTES];
        return error_set(err, STATUS_BAD_INPUT, "%s: tensor '%s' has shape [%s] (expected [%s])",
                         path, found->name, shape_text(found->shape, found->rank, is),
                         shape_text(spec->shape, spec->rank, expected));
    }
    if (found->type == TYPE_OTHER)
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: tensor '%s' has a type that is not read (expected F32, F16 or BF16)",
                         path, found->name);
    if (!safetensors_floats(found, wanted->values))
        return error_set(err, STATUS_BAD_INPUT,
                         "%s: tensor '%s' has a number that is not finite", path, found->name);
    return STATUS_OK;
}

enum status weights_read(const struct job *job, const struct plan_shard *shards,
                         const struct memory_table *parameters, uint32_t shard_count,
                         float *const *states, struct error *err)
{
    (void)shards; /* the tables say which layer an entry belongs to */
    struct safetensors *file = NULL;
    enum status status = safetensors_open(job->weights_in, &file, err);
    if (status == STATUS_OK) {
        size_t words = 1 + optimizer_state_words(job->optimizer.kind);
        for (uint32_t s = 0; s < shard_count; s++) memset(states[s], 0, parameters[s].bytes * words);
        struct weights_walk walk = {.job = job,
                            .parameters = parameters,
                            .shard_count = shard_count,
                            .states = states};
        struct weights_tensor tensor;
        while (status == STATUS_OK && weights_walk_next(&walk, &tensor))
            status = read_tensor(job->weights_in, job->network.family, file, &tensor, err);
    }
    safetensors_close(file);
    if (status != STATUS_OK) error_add(err, "weights of job '%s'", job->name);
    return status;
}

/* --- writing ---------------------------------------------------------------------------------- */

struct write_list {
    struct safetensors_tensor *tensors;
    char (*names)[sizeof((struct tensor_spec *)0)->name];
    size_t count;
};

static void write_list_fill(struct write_list *list, struct weights_walk *walk)
{
    struct weights_tensor tensor;
    for (size_t i = 0; weights_walk_next(walk, &tensor); i++) {
        assert(i < list->count);
        memcpy(list->names[i], tensor.spec->name, sizeof tensor.spec->name);
        struct safetensors_tensor *out = &list->tensors[i];
        *out = (struct safetensors_tensor){.name = list->names[i],
                                           .type = TYPE_F32,
                                           .rank = tensor.spec->rank,
                                           .data = (const unsigned char *)tensor.values};
        memcpy(out->shape, tensor.spec->shape, sizeof tensor.spec->shape);
    }
}

enum status weights_write(const struct job *job, const struct plan_shard *shards,
                          const struct memory_table *parameters, uint32_t shard_count,
                          float *const *states, const char *path, struct error *err)
{
    (void)shards;
    struct write_list list = {0};
    for (uint32_t s = 0; s < shard_count; s++) list.count += parameters[s].count;
    list.tensors = calloc(list.count, sizeof *list.tensors);
    list.names = calloc(list.count, sizeof *list.names);
    enum status status;
    if (!list.tensors || !list.names) {
        status = error_memory(err, "a list of tensors",
                              list.count * (sizeof *list.tensors + sizeof *list.names));
    } else {
        struct weights_walk walk = {.job = job,
                            .parameters = parameters,
                            .shard_count = shard_count,
                            .states = states};
        write_list_fill(&list, &walk);
        status = safetensors_write(path ? path : job->weights_out, list.tensors, list.count, err);
    }
    free(list.tensors);
    free(list.names);
    if (status != STATUS_OK) error_add(err, "weights of job '%s'", job->name);
    return status;
}

/* --- fingerprint ------------------------------------------------------------------------------ */

enum { LANES = 8 };

CLONES static void mix_words(uint64_t lanes[LANES], const float *x, uint64_t n)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t state[LANES];
    memcpy(state, lanes, sizeof state);
    uint64_t whole = n - n % LANES;
    for (uint64_t i = 0; i < whole; i += LANES)
        for (int l = 0; l < LANES; l++) {
            uint32_t bits;
            memcpy(&bits, &x[i + (uint64_t)l], sizeof bits);
            state[l] = (state[l] ^ bits) * odd;
        }
    for (uint64_t i = whole; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        state[i - whole] = (state[i - whole] ^ bits) * odd;
    }
    memcpy(lanes, state, sizeof state);
}

uint64_t weights_fingerprint(const struct plan_shard *shards,
                             const struct memory_table *parameters, uint32_t shard_count,
                             float *const *states)
{
    (void)shards;
    uint64_t hash = 0;
    for (uint32_t s = 0; s < shard_count; s++)
        for (uint32_t i = 0; i < parameters[s].count; i++) {
            const struct memory_entry *entry = &parameters[s].entries[i];
            uint64_t lanes[LANES] = {0}, floats = entry->bytes / sizeof(float);
            mix_words(lanes, states[s] + entry->offset_bytes / sizeof(float), floats);
            for (int l = 0; l < LANES; l++) hash = random_mix(hash ^ lanes[l]);
            hash = random_mix(hash ^ floats);
        }
    return hash;
}
