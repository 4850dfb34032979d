/*
 * The shards' tensors in order are the network's, so files and fingerprints do not depend on the cut. Names and shapes
 * come from network_layer_tensors(), positions from the tables of models/job/memory.h, in the same order.
 *
 * The fingerprint uses bits, not values. Each of its eight lanes is multiplied by an odd number after a word is mixed
 * in, so a change of one word always changes its lane. It takes 0.02 s for the 0.5 GB of GPT-2.
 */
#include "exec/files/weights.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/clones.h"
#include "base/extreme.h"
#include "base/random.h"
#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "exec/files/adapter.h"
#include "exec/files/weights_files.h"

/* --- walking over tensors --------------------------------------------------------------------- */

/* Returns NULL if the part does not store the tensor. */
static void *in_part(const struct weights_walk *walk, enum state_part part)
{
    const bool elsewhere = part == STATE_FROZEN && walk->frozen_states;
    const struct state_tables *const tables = &(elsewhere ? walk->frozen_tables : walk->tables)[walk->shard];
    float *const *const states = elsewhere ? walk->frozen_states : walk->states;
    if (!states || !states[walk->shard] || tables->layout.parts[part].bytes == 0) return NULL;
    const struct memory_entry *const entry = &tables->parts[part].entries[walk->entry];
    if (entry->bytes == 0) return NULL;
    return (char *)states[walk->shard] + tables->layout.parts[part].offset_bytes + entry->offset_bytes;
}

bool weights_walk_next(struct weights_walk *walk, struct weights_tensor *out)
{
    while (walk->shard < walk->shard_count &&
           walk->entry == walk->tables[walk->shard].parts[STATE_WEIGHTS].count) {
        walk->shard++;
        walk->entry = 0;
    }
    if (walk->shard == walk->shard_count) return false;
    const struct memory_entry *entry =
        &walk->tables[walk->shard].parts[STATE_WEIGHTS].entries[walk->entry];
    bool new_layer = walk->entry == 0 || entry->layer != walk->layer;
    if (new_layer) {
        walk->layer = entry->layer;
        walk->tensor_count = network_layer_tensors(&walk->job->network, entry->layer, walk->specs);
        walk->index = 0;
    }
    assert(walk->index < walk->tensor_count);
    void *const weights = in_part(walk, STATE_WEIGHTS), *const master = in_part(walk, STATE_MASTER);
    void *const frozen = in_part(walk, STATE_FROZEN);
    const bool halves = frozen && precision_halves_weight(walk->job->precision, walk->specs[walk->index].matrix);
    *out = (struct weights_tensor){
        .spec = &walk->specs[walk->index++],
        .values = master ? master : frozen && !halves ? frozen : weights,
        .rounded = master ? weights : NULL,
        .halves = halves ? frozen : NULL,
        .moments = {in_part(walk, STATE_FIRST), in_part(walk, STATE_SECOND)},
    };
    assert(!walk->states || master || out->spec->frozen || entry->bytes == out->spec->elements * sizeof(float));
    walk->entry++;
    return true;
}

CLONES static void round_values(bf16 *restrict out, const float *restrict x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) out[i] = bf16_nearest(x[i]);
}

static void widen_values(float *out, const bf16 *x, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) out[i] = bf16_widen(x[i]);
}

void weights_round(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                   float *const *states)
{
    struct weights_walk walk = {
        .job = job, .tables = tables, .shard_count = shard_count, .states = states};
    struct weights_tensor tensor;
    while (weights_walk_next(&walk, &tensor))
        if (tensor.rounded) round_values(tensor.rounded, tensor.values, tensor.spec->elements);
}

void weights_copy_values(const struct job *job, const struct state_tables *tables, float *state,
                         const struct memory_table *parameters, float *out)
{
    struct weights_walk walk = {.job = job, .tables = tables, .shard_count = 1, .states = &state};
    struct weights_tensor tensor;
    for (uint32_t i = 0; weights_walk_next(&walk, &tensor); i++)
        if (parameters->entries[i].bytes > 0) memcpy((char *)out + parameters->entries[i].offset_bytes, tensor.values,
               parameters->entries[i].bytes);
}

/* --- frozen tensors of 16 bits ---------------------------------------------------------------- */

/* Returns in *out, for a frozen tensor of 16 bits, values to be filled in; else NULL. settle() rounds and frees
 * them. */
static enum status make_room(const struct weights_tensor *tensor, float **out, struct error *err)
{
    *out = NULL;
    if (!tensor->halves) return STATUS_OK;
    *out = alloc_zeroed(tensor->spec->elements, sizeof **out);
    return *out ? STATUS_OK : error_memory(err, "a tensor", tensor->spec->elements * sizeof **out);
}

static void settle(const struct weights_tensor *tensor, float *room)
{
    if (room) round_values(tensor->halves, room, tensor->spec->elements);
    free(room);
}

/* --- reading ---------------------------------------------------------------------------------- */

enum { FAULTS_BYTES = 400, OTHER_NAME_BYTES = 128 };

/* Writes a tensor's name in a file of the network without its head, or with one; "" if equal. On the hub, files of
 * gpt2 have no head, and files of other families do. */
static void other_name(uint32_t family, const char *name, char other[OTHER_NAME_BYTES])
{
    static const char *const bases[NETWORK_FAMILY_COUNT] = {
        [NETWORK_LLAMA] = "model.", [NETWORK_MISTRAL] = "model.", [NETWORK_GEMMA] = "model.",
        [NETWORK_QWEN2] = "model.",
        [NETWORK_QWEN3] = "model.", [NETWORK_GEMMA2] = "model.", [NETWORK_GEMMA3_TEXT] = "model.",
        [NETWORK_OPT] = "model.",
        [NETWORK_MIXTRAL] = "model.", [NETWORK_QWEN2_MOE] = "model.", [NETWORK_QWEN3_MOE] = "model.",
        [NETWORK_PHI] = "model.", [NETWORK_GPT_NEOX] = "gpt_neox.", [NETWORK_GPTJ] = "transformer.",
        [NETWORK_BERT] = "bert.", [NETWORK_VIT] = "vit."};
    const char *base = bases[family];
    size_t length = base ? strlen(base) : 0;
    other[0] = '\0';
    if (!base)
        snprintf(other, OTHER_NAME_BYTES, "transformer.%s", name);
    else if (strncmp(name, base, length) == 0)
        snprintf(other, OTHER_NAME_BYTES, "%s", name + length);
}

/* Finds also names of BERT's first checkpoints, whose norms have gamma and beta. */
static const struct safetensors_tensor *find(struct weights_files *files, const char *name)
{
    static const char *const old[][2] = {{"LayerNorm.weight", "LayerNorm.gamma"},
                                         {"LayerNorm.bias", "LayerNorm.beta"}};
    const struct safetensors_tensor *tensor = weights_files_find(files, name);
    for (size_t i = 0; !tensor && i < sizeof old / sizeof *old; i++) {
        char other[OTHER_NAME_BYTES];
        size_t length = strlen(name), end = strlen(old[i][0]);
        if (length < end || strcmp(name + length - end, old[i][0]) != 0) continue;
        snprintf(other, sizeof other, "%.*s%s", (int)(length - end), name, old[i][1]);
        tensor = weights_files_find(files, other);
    }
    return tensor;
}

/* What is wrong with the files, in one line: all of it that has room. */
struct faults {
    char text[FAULTS_BYTES];
    size_t used, count, left_out;
    size_t missing, unknown; /* of the faults */
};

static void add_fault(struct faults *faults, const char *format, ...) PRINTF_LIKE(2, 3);
static void add_fault(struct faults *faults, const char *format, ...)
{
    char fault[FAULTS_BYTES];
    va_list arguments;
    va_start(arguments, format);
    const int length = vsnprintf(fault, sizeof fault, format, arguments);
    va_end(arguments);
    const char *const between = faults->count++ > 0 ? "; " : "";
    if (length < 0 || faults->left_out > 0 || faults->used + strlen(between) + (size_t)length >= sizeof faults->text)
        faults->left_out++;
    else
        faults->used += (size_t)snprintf(faults->text + faults->used, sizeof faults->text - faults->used, "%s%s",
                                         between, fault);
}

static enum status set_faults(const struct faults *faults, const char *path, struct error *err)
{
    if (faults->count == 0) return STATUS_OK;
    if (faults->left_out > 0)
        return error_set(err, STATUS_BAD_INPUT, "%s: %s; and %zu more", path, faults->text, faults->left_out);
    return error_set(err, STATUS_BAD_INPUT, "%s: %s", path, faults->text);
}

/* Returns the tensor; NULL after a fault. */
static const struct safetensors_tensor *find_tensor(struct weights_files *files, uint32_t family,
                                                    const struct tensor_spec *spec, struct faults *faults)
{
    char other[OTHER_NAME_BYTES], is[SAFETENSORS_SHAPE_BYTES], expected[SAFETENSORS_SHAPE_BYTES];
    const struct safetensors_tensor *found = find(files, spec->name);
    other_name(family, spec->name, other);
    if (!found && other[0]) found = find(files, other);
    if (!found && faults->missing++ > 0)
        add_fault(faults, "nor '%s'", spec->name);
    else if (!found)
        add_fault(faults, "no tensor '%s'%s%s%s among its %zu", spec->name, other[0] ? " (nor '" : "", other,
                  other[0] ? "')" : "", weights_files_count(files));
    else if (found->rank != spec->rank || memcmp(found->shape, spec->shape, spec->rank * sizeof *spec->shape) != 0)
        add_fault(faults, "tensor '%s' has shape [%s] (expected [%s])", found->name,
                  safetensors_shape_text(found->shape, found->rank, is),
                  safetensors_shape_text(spec->shape, spec->rank, expected));
    else if (found->type == SAFETENSORS_OTHER)
        add_fault(faults, "tensor '%s' has a type that is not read (expected F32, F16 or BF16)", found->name);
    else
        return found;
    return NULL;
}

/* Returns true for buffers of old files, and for heads and poolers of other tasks: training here has no use for
 * them. */
static bool may_be_left(const char *name)
{
    static const char *const ends[] = {".rotary_emb.inv_freq", ".attn.bias", ".attn.masked_bias", ".attention.bias",
                                       ".attention.masked_bias", ".position_ids", ".num_batches_tracked"};
    static const char *const parts[] = {"cls.", "classifier.", "pooler.", "qa_outputs.", "score."};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (text_ends_in(name, ends[i])) return true;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const char *const at = strstr(name, parts[i]);
        if (at && (at == name || at[-1] == '.')) return true;
    }
    return false;
}

/* Returns true if the file's head is the table of words, which it may have twice. */
static bool is_table_again(struct weights_files *files, const struct safetensors_tensor *head)
{
    static const char *const tables[] = {"wte.weight", "transformer.wte.weight", "model.embed_tokens.weight",
                                         "embed_tokens.weight", "model.decoder.embed_tokens.weight",
                                         "decoder.embed_tokens.weight"};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        const struct safetensors_tensor *const table = weights_files_find(files, tables[i]);
        if (table && table->type == head->type && table->bytes == head->bytes)
            return memcmp(table->data, head->data, head->bytes) == 0;
    }
    return false;
}

/* Looks at tensors that the network does not have: what would train another network than the file's is a fault. */
static void look_at_rest(const struct job *job, struct weights_files *files, struct faults *faults)
{
    const struct safetensors_tensor *tensor;
    for (size_t at = 0; (tensor = weights_files_unused(files, &at));) {
        if (may_be_left(tensor->name)) continue;
        if (strcmp(tensor->name, "lm_head.weight") != 0)
            add_fault(faults, faults->unknown++ > 0 ? "nor '%s'" : "the network has no tensor '%s'", tensor->name);
        else if (job->network.tied_head && !is_table_again(files, tensor))
            add_fault(faults, "'lm_head.weight' is not the table of words, which is the network's head (expected "
                      "\"tie_word_embeddings\": false)");
    }
}

/* Puts the rows of q, k and v of heads, which files have head by head, in our order, or back into the files'. `to` may
 * be `from`; tensors with other rows stay as they are. */
enum status weights_order_rows(const struct tensor_spec *spec, float *to, const float *from, bool back,
                               struct error *err)
{
    if (spec->by_heads == 0) return STATUS_OK;
    const uint64_t heads = spec->by_heads, part = spec->elements / (3 * heads); /* a head's q, k or v */
    float *const copy = alloc_zeroed(spec->elements, sizeof *copy);
    if (!copy) return error_memory(err, "a tensor", spec->elements * sizeof *copy);
    memcpy(copy, from, spec->elements * sizeof *copy);
    for (uint64_t head = 0; head < heads; head++)
        for (uint64_t i = 0; i < 3; i++) {
            const uint64_t theirs = (head * 3 + i) * part, ours = (i * heads + head) * part;
            memcpy(to + (back ? theirs : ours), copy + (back ? ours : theirs), part * sizeof *copy);
        }
    free(copy);
    return STATUS_OK;
}

/* --- tensors that files have for each expert ------------------------------------------------------- */

/* Counts the files' matrices of a tensor: 1, or one or two for each expert. */
static uint64_t parts_of(const struct tensor_spec *spec)
{
    return spec->of_expert[0] ? spec->shape[0] * (spec->of_expert[1] ? 2 : 1) : 1;
}

/* Returns the part-th of them, in the order of memory: of "P.experts.gate_up_proj" of three experts
 * "P.experts.0.gate_proj.weight", "P.experts.0.up_proj.weight" and so on. */
static struct tensor_spec part_of(const struct tensor_spec *spec, uint64_t part)
{
    struct tensor_spec out = *spec;
    const uint64_t each = spec->of_expert[1] ? 2 : 1;
    const char *const end = strrchr(spec->name, '.');
    if (!spec->of_expert[0]) return out;
    out.rank = 2;
    out.shape[0] = spec->shape[1] / each;
    out.shape[1] = spec->shape[2];
    out.elements = out.shape[0] * out.shape[1];
    snprintf(out.name, sizeof out.name, "%.*s.%" PRIu64 ".%s.weight", (int)(end - spec->name), spec->name, part / each,
             spec->of_expert[part % each]);
    return out;
}

static void add_to_all(float *x, uint64_t n, float term)
{
    for (uint64_t i = 0; i < n; i++) x[i] += term;
}

/* Reads a matrix of an expert, or a whole tensor. Returns false after a fault. */
static bool read_part(const struct job *job, struct weights_files *files, const struct weights_tensor *wanted,
                      uint64_t part, struct faults *faults)
{
    const struct tensor_spec spec = part_of(wanted->spec, part);
    const struct safetensors_tensor *const found = find_tensor(files, job->network.family, &spec, faults);
    if (found && wanted->values && faults->count == 0 &&
        !safetensors_floats(found, wanted->values + part * spec.elements))
        add_fault(faults, "tensor '%s' has a number that is not finite", found->name);
    return found != NULL;
}

/* Opens the job's files and finds all tensors, or checks them only where *walk has no states. */
static enum status read_tensors(const struct job *job, struct weights_walk *walk, struct weights_files *files,
                                struct error *err)
{
    struct faults faults = {.count = 0};
    struct weights_tensor wanted;
    while (weights_walk_next(walk, &wanted)) {
        float *room;
        bool found = true;
        if (wanted.spec->adapter) continue; /* in files of its own */
        TRY(make_room(&wanted, &room, err));
        float *const values = room ? room : wanted.values;
        const struct weights_tensor read = {.spec = wanted.spec, .values = values};
        for (uint64_t part = 0; part < parts_of(wanted.spec); part++)
            found = read_part(job, files, &read, part, &faults) && found;
        const enum status ordered = found && values ? weights_order_rows(wanted.spec, values, values, false, err)
                                                    : STATUS_OK;
        if (wanted.spec->less_one && values) add_to_all(values, wanted.spec->elements, 1);
        settle(&wanted, room);
        TRY(ordered);
    }
    look_at_rest(job, files, &faults);
    return set_faults(&faults, job->weights_in, err);
}

static enum status open_and_read(const struct job *job, struct weights_walk walk, struct error *err)
{
    struct weights_files *files = NULL;
    enum status status = weights_files_open(job->weights_in, &files, err);
    if (status == STATUS_OK) status = read_tensors(job, &walk, files, err);
    weights_files_close(files);
    if (status != STATUS_OK) error_add(err, "weights of job '%s'", job->name);
    return status;
}

enum status weights_check(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                          struct error *err)
{
    return open_and_read(job, (struct weights_walk){.job = job, .tables = tables, .shard_count = shard_count}, err);
}

enum status weights_read(const struct job *job, const struct state_tables *tables,
                         uint32_t shard_count, float *const *states, struct error *err)
{
    for (uint32_t s = 0; s < shard_count; s++) memset(states[s], 0, tables[s].layout.bytes);
    const struct weights_walk walk = {.job = job, .tables = tables, .shard_count = shard_count, .states = states};
    TRY(open_and_read(job, walk, err));
    weights_init_adapters(job, tables, shard_count, states);
    weights_round(job, tables, shard_count, states);
    return STATUS_OK;
}

/* --- writing ---------------------------------------------------------------------------------- */

struct write_list {
    struct safetensors_tensor *tensors;
    char (*names)[sizeof((struct tensor_spec *)0)->name];
    size_t count, capacity;
    struct arena arena; /* values that files have otherwise */
};

/* Returns the values as files have them. */
static enum status values_of_file(struct write_list *list, const struct weights_tensor *tensor, const float **out,
                                  struct error *err)
{
    float *theirs;
    *out = tensor->values;
    if (!tensor->halves && !tensor->spec->less_one && tensor->spec->by_heads == 0) return STATUS_OK;
    TRY(ARENA_NEW(&list->arena, tensor->spec->elements, theirs, err));
    if (tensor->halves) widen_values(theirs, tensor->halves, tensor->spec->elements);
    else memcpy(theirs, tensor->values, tensor->spec->elements * sizeof *theirs);
    if (tensor->spec->less_one) add_to_all(theirs, tensor->spec->elements, -1);
    *out = theirs;
    return weights_order_rows(tensor->spec, theirs, theirs, true, err);
}

static enum status write_list_fill(struct write_list *list, struct weights_walk *walk, struct error *err)
{
    struct weights_tensor tensor;
    const bool adapter = walk->job->adapter.rank > 0;
    for (size_t i = 0; weights_walk_next(walk, &tensor);) {
        const float *values;
        if (tensor.spec->adapter != adapter) continue;
        TRY(values_of_file(list, &tensor, &values, err));
        for (uint64_t part = 0; part < parts_of(tensor.spec); part++, i++) {
            const struct tensor_spec spec = part_of(tensor.spec, part);
            assert(i < list->capacity);
            memcpy(list->names[i], spec.name, sizeof spec.name);
            list->tensors[i] =
                (struct safetensors_tensor){.name = list->names[i], .type = SAFETENSORS_F32, .rank = spec.rank,
                                            .data = (const unsigned char *)(values + part * spec.elements)};
            memcpy(list->tensors[i].shape, spec.shape, sizeof spec.shape);
        }
        list->count = i;
    }
    return STATUS_OK;
}

/* Writes the list, and beside an adapter what describes it. */
static enum status write_files(struct write_list *list, const struct weights_walk *walk, const char *path,
                               struct error *err)
{
    char base[17];
    if (walk->job->adapter.rank == 0) return safetensors_write(path, list->tensors, list->count, err);
    const bool known = walk->frozen_states || walk->tables[0].layout.parts[STATE_FROZEN].bytes > 0;
    const uint64_t fingerprint = weights_base_fingerprint(walk->job,
                                                          walk->frozen_states ? walk->frozen_tables : walk->tables,
                                                          walk->shard_count,
                                                          walk->frozen_states ? walk->frozen_states : walk->states);
    snprintf(base, sizeof base, "%016" PRIx64, fingerprint);
    const struct safetensors_pair pair = {ADAPTER_BASE_KEY, base};
    TRY(adapter_write_config(walk->job, path, err));
    return safetensors_write_with(path, list->tensors, list->count, known ? &pair : NULL, err);
}

enum status weights_write_walk(struct weights_walk walk, const char *path, struct error *err)
{
    const struct job *const job = walk.job;
    struct write_list list = {0};
    struct weights_walk counted = walk;
    struct weights_tensor tensor;
    while (weights_walk_next(&counted, &tensor)) list.capacity += parts_of(tensor.spec);
    list.tensors = alloc_zeroed(list.capacity, sizeof *list.tensors);
    list.names = alloc_zeroed(list.capacity, sizeof *list.names);
    enum status status;
    if (!list.tensors || !list.names) {
        status = error_memory(err, "a list of tensors",
                              list.capacity * (sizeof *list.tensors + sizeof *list.names));
    } else {
        struct weights_walk all = walk;
        status = write_list_fill(&list, &all, err);
        if (!status) status = write_files(&list, &walk, path ? path : job->weights_out, err);
    }
    free(list.tensors);
    free(list.names);
    arena_release(&list.arena);
    if (status != STATUS_OK) error_add(err, "weights of job '%s'", job->name);
    return status;
}

enum status weights_write(const struct job *job, const struct state_tables *tables,
                          uint32_t shard_count, float *const *states, const char *path,
                          struct error *err)
{
    return weights_write_walk((struct weights_walk){.job = job, .tables = tables, .shard_count = shard_count,
                                                    .states = states},
                              path, err);
}

/* --- finite --------------------------------------------------------------------------------- */

CLONES static bool all_finite(const float *x, uint64_t n)
{
    float sum = 0; /* 0 while every number is finite: infinity times 0 is NaN */
    for (uint64_t i = 0; i < n; i++) sum += x[i] * 0.0f;
    return sum == 0;
}

bool weights_are_finite(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                        float *const *states)
{
    struct weights_walk walk = {.job = job, .tables = tables, .shard_count = shard_count, .states = states};
    struct weights_tensor tensor;
    bool finite = true;
    while (finite && weights_walk_next(&walk, &tensor))
        if (!tensor.spec->frozen) finite = all_finite(tensor.values, tensor.spec->elements);
    return finite;
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

static void mix_halves(uint64_t lanes[LANES], const bf16 *x, uint64_t n)
{
    const uint64_t odd = UINT64_C(0x9e3779b97f4a7c15);
    for (uint64_t i = 0; i < n; i++) {
        uint16_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        lanes[i % LANES] = (lanes[i % LANES] ^ bits) * odd;
    }
}

/* Mixes what mix_halves() does of the same values of 16 bits. */
static void mix_rounded(uint64_t lanes[LANES], const float *x, uint64_t n)
{
    bf16 rounded[64 * LANES];
    for (uint64_t i = 0, count; i < n; i += count) {
        count = min_u64(n - i, ARRAY_COUNT(rounded));
        round_values(rounded, x + i, count);
        mix_halves(lanes, rounded, count);
    }
}

/* Tensors without values, which others have, do not count. `round`: to 16 bits. */
static void mix_tensor(uint64_t *hash, const struct weights_tensor *tensor, bool round)
{
    uint64_t lanes[LANES] = {0}, floats = tensor->spec->elements;
    if (tensor->halves) mix_halves(lanes, tensor->halves, floats);
    else if (tensor->values && round) mix_rounded(lanes, tensor->values, floats);
    else if (tensor->values) mix_words(lanes, tensor->values, floats);
    else return;
    for (int l = 0; l < LANES; l++) *hash = random_mix(*hash ^ lanes[l]);
    *hash = random_mix(*hash ^ floats);
}

uint64_t weights_fingerprint(const struct job *job, const struct state_tables *tables,
                             uint32_t shard_count, float *const *states)
{
    return weights_fingerprint_walk(
        (struct weights_walk){.job = job, .tables = tables, .shard_count = shard_count, .states = states});
}

uint64_t weights_fingerprint_walk(struct weights_walk walk)
{
    struct weights_tensor tensor;
    uint64_t hash = 0;
    while (weights_walk_next(&walk, &tensor)) mix_tensor(&hash, &tensor, false);
    return hash;
}

static uint64_t frozen_sum(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                           float *const *states, bool round)
{
    struct weights_walk walk = {.job = job, .tables = tables, .shard_count = shard_count, .states = states};
    struct weights_tensor tensor;
    uint64_t sum = 0;
    while (weights_walk_next(&walk, &tensor)) {
        uint64_t own = random_u64(walk.layer, walk.index);
        if (!tensor.spec->frozen || (!tensor.values && !tensor.halves)) continue;
        mix_tensor(&own, &tensor, round);
        sum += own;
    }
    return sum;
}

uint64_t weights_frozen_fingerprint(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                    float *const *states)
{
    return frozen_sum(job, tables, shard_count, states, false);
}

uint64_t weights_base_fingerprint(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                  float *const *states)
{
    return frozen_sum(job, tables, shard_count, states, true);
}
