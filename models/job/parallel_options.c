/* Options of parallel jobs, in JSON and on the command line. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/json/json_rename.h"
#include "base/size.h"
#include "base/try.h"
#include "models/job/parallel.h"

static const char *const parallel_partition_names[PARALLEL_PARTITION_COUNT] = {
    [PARALLEL_EQUAL] = "equal",
    [PARALLEL_BALANCED] = "balanced",
    [PARALLEL_PIPEDREAM] = "pipedream",
    [PARALLEL_RANNC] = "rannc",
};

#define ALGORITHM_NAME(algorithm, name) [PARALLEL_RING + COLLECTIVE_##algorithm] = name,
static const char *const parallel_algorithm_names[PARALLEL_ALGORITHM_COUNT] = {
    [PARALLEL_FASTEST] = "fastest",
    COLLECTIVE_ALGORITHMS(ALGORITHM_NAME)
};
#undef ALGORITHM_NAME

static const char *const parallel_offload_names[PARALLEL_OFFLOAD_COUNT] = {
    [OFFLOAD_NOTHING] = "nothing",
    [OFFLOAD_STATES] = "states",
    [OFFLOAD_WEIGHTS] = "weights",
};

/* Sets all degrees to 1. */
static void set_out(struct parallel *p)
{
    if (parallel_is_set(p)) return;
    *p = (struct parallel){.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B,
                           .first_device = p->first_device, .prefetch = 1};
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* Parses at most `most` positive numbers. An absent key changes nothing. */
static enum status parse_lengths(struct json_object *o, const char *key, uint32_t most, uint32_t *out, uint32_t *count,
                                 struct error *err)
{
    const json_t *array = NULL;
    uint64_t length;
    TRY(json_take_array(o, key, JSON_OPTIONAL, &array, err));
    if (!array) return STATUS_OK;
    if (json_array_size(array) > most)
        return json_fail_key(o->input, o->value, key, err, "'%s' has %zu elements (limit is %" PRIu32 ")", key,
                             json_array_size(array), most);
    for (uint32_t i = 0; i < json_array_size(array); i++) {
        TRY(json_item_u64(o->input, array, i, 1, UINT32_MAX, &length, err));
        out[i] = (uint32_t)length;
    }
    *count = (uint32_t)json_array_size(array);
    return STATUS_OK;
}

/* Reads one letter per chunk. */
static bool read_letters(const char *letters, size_t length, struct parallel *out)
{
    if (length == 0 || length > PARALLEL_CUTS_MAX) return false;
    for (size_t i = 0; i < length; i++)
        if (letters[i] != PARALLEL_SWAPPED && letters[i] != PARALLEL_AGAIN) return false;
    memcpy(out->choices, letters, length);
    out->chosen = (uint32_t)length;
    return true;
}

static enum status parse_choices(struct json_object *o, struct parallel *out, struct error *err)
{
    const char *letters = NULL;
    TRY(json_take_string(o, "choices", JSON_OPTIONAL, &letters, err));
    if (!letters || read_letters(letters, strlen(letters), out)) return STATUS_OK;
    return json_fail_key(o->input, o->value, "choices", err,
                         "'choices' is '%.64s' (expected a letter for each of at most %d chunks: s, swapped, or r, "
                         "computed again)", letters, PARALLEL_CUTS_MAX);
}

/* Names of the command line, DeepSpeed and Megatron-LM. */
static const struct json_synonym synonyms[] = {
    {"tp", "tensor"},   {"tensor_model_parallel_size", "tensor"},
    {"pp", "pipeline"}, {"pipeline_model_parallel_size", "pipeline"},
    {"dp", "data"},     {"zero_stage", "zero"},
};

const char *const sum_order_names[SUM_ORDER_COUNT] = {[SUM_IN_ORDER] = "order", [SUM_TREE] = "tree"};

enum status parallel_parse(const struct json_input *in, const json_t *value, struct parallel *out,
                           struct error *err)
{
    struct json_object o;
    TRY(json_object_open(&o, in, value, "a parallelism object", err));
    TRY(json_rename_keys(in, value, synonyms, ARRAY_COUNT(synonyms), err));
    set_out(out);
    size_t schedule = out->schedule, recompute = out->recompute, collective = out->collective;
    size_t partition = out->partition, offload = out->offload, sum = out->tree ? SUM_TREE : SUM_IN_ORDER;
    bool carried_out = false;
    TRY(json_take_u32(&o, "tensor", JSON_OPTIONAL, 1, PARALLEL_DEGREE_MAX, &out->tensor, err));
    TRY(json_take_u32(&o, "pipeline", JSON_OPTIONAL, 1, PARALLEL_DEGREE_MAX, &out->pipeline, err));
    TRY(json_take_u32(&o, "data", JSON_OPTIONAL, 1, PARALLEL_DEGREE_MAX, &out->data, err));
    TRY(parse_lengths(&o, "replicas", PARALLEL_REPLICAS_MAX, out->replicas, &out->replicated, err));
    if (out->replicated > 0 && !json_object_get(value, "pipeline")) out->pipeline = out->replicated;
    TRY(json_take_u32(&o, "chunks", JSON_OPTIONAL, 1, PARALLEL_CHUNKS_MAX, &out->chunks, err));
    TRY(json_take_u32(&o, "buckets", JSON_OPTIONAL, 1, PARALLEL_CHUNKS_MAX, &out->buckets, err));
    TRY(json_take_choice(&o, "schedule", JSON_OPTIONAL, pipeline_schedule_names, PIPELINE_SCHEDULE_COUNT,
                         &schedule, err));
    TRY(json_take_choice(&o, "recompute", JSON_OPTIONAL, recompute_names, RECOMPUTE_COUNT, &recompute, err));
    TRY(json_take_choice(&o, "collective", JSON_OPTIONAL, parallel_algorithm_names, PARALLEL_ALGORITHM_COUNT,
                         &collective, err));
    TRY(json_take_bool(&o, "sequence", JSON_OPTIONAL, &out->sequence, err));
    TRY(json_take_bool(&o, "scatter", JSON_OPTIONAL, &out->scatter, err));
    TRY(json_take_bool(&o, "exposed", JSON_OPTIONAL, &out->exposed, err));
    TRY(json_take_bool(&o, "overlap", JSON_OPTIONAL, &out->overlap, err));
    TRY(json_take_bool(&o, "blocking", JSON_OPTIONAL, &out->blocking, err));
    TRY(json_take_u32(&o, "flush", JSON_OPTIONAL, 0, UINT32_MAX, &out->flush, err));
    TRY(json_take_choice(&o, "sum", JSON_OPTIONAL, sum_order_names, SUM_ORDER_COUNT, &sum, err));
    out->tree = sum == SUM_TREE;
    TRY(json_take_u32(&o, "tensor_pieces", JSON_OPTIONAL, 0, PARALLEL_DEGREE_MAX, &out->tensor_pieces, err));
    TRY(json_take_bool(&o, "carried_out", JSON_OPTIONAL, &carried_out, err));
    if (json_object_get(value, "carried_out")) out->carrying = carried_out ? PARALLEL_CARRIED_OUT : PARALLEL_SIMULATED;
    TRY(json_take_u32(&o, "zero", JSON_OPTIONAL, ZERO_NOTHING, ZERO_WEIGHTS, &out->zero, err));
    TRY(json_take_u32(&o, "prefetch", JSON_OPTIONAL, 0, PARALLEL_CHUNKS_MAX, &out->prefetch, err));
    TRY(json_take_choice(&o, "offload", JSON_OPTIONAL, parallel_offload_names, PARALLEL_OFFLOAD_COUNT, &offload, err));
    TRY(json_take_bool(&o, "storage", JSON_OPTIONAL, &out->storage, err));
    TRY(json_take_bool(&o, "delayed", JSON_OPTIONAL, &out->delayed, err));
    TRY(json_take_bool(&o, "swap", JSON_OPTIONAL, &out->swap, err));
    TRY(json_take_bool(&o, "choose", JSON_OPTIONAL, &out->choose, err));
    TRY(parse_choices(&o, out, err));
    TRY(json_take_u32(&o, "first_device", JSON_OPTIONAL, 0, PARALLEL_DEGREE_MAX, &out->first_device, err));
    TRY(json_take_choice(&o, "partition", JSON_OPTIONAL, parallel_partition_names, PARALLEL_PARTITION_COUNT,
                         &partition, err));
    TRY(parse_lengths(&o, "cut", PARALLEL_CUTS_MAX, out->cut_lengths, &out->cuts, err));
    TRY(parse_lengths(&o, "slices", PARALLEL_SLICES_MAX, out->slice_tokens, &out->slices, err));
    out->partition = (uint32_t)partition;
    out->offload = (uint32_t)offload;
    out->schedule = (uint32_t)schedule;
    out->recompute = (uint32_t)recompute;
    out->collective = (uint32_t)collective;
    return json_object_close(&o, err);
}

/* Returns true if `prefetch` has an effect. */
static bool gathers_ahead(const struct parallel *p)
{
    return p->zero == ZERO_WEIGHTS || p->offload == OFFLOAD_WEIGHTS;
}

static void write_lengths(struct json_out *out, const char *key, const uint32_t *lengths, uint32_t count)
{
    if (count == 0) return;
    json_out_array_begin(out, key, true);
    for (uint32_t i = 0; i < count; i++) json_out_u64(out, NULL, lengths[i]);
    json_out_array_end(out);
}

static void write_choices(struct json_out *out, const struct parallel *p)
{
    char letters[PARALLEL_CUTS_MAX + 1] = "";
    if (p->chosen == 0) return;
    memcpy(letters, p->choices, p->chosen);
    json_out_string(out, "choices", letters);
}

void parallel_write(const struct parallel *p, struct json_out *out, const char *key)
{
    if (!parallel_is_set(p)) return;
    json_out_object_begin(out, key, true);
    json_out_u64(out, "tensor", p->tensor);
    json_out_u64(out, "pipeline", p->pipeline);
    json_out_u64(out, "data", p->data);
    write_lengths(out, "replicas", p->replicas, p->replicated);
    if (p->chunks > 1) json_out_u64(out, "chunks", p->chunks);
    if (p->buckets > 1) json_out_u64(out, "buckets", p->buckets);
    json_out_string(out, "schedule", pipeline_schedule_names[p->schedule]);
    json_out_string(out, "recompute", recompute_names[p->recompute]);
    if (p->collective != PARALLEL_FASTEST)
        json_out_string(out, "collective", parallel_algorithm_names[p->collective]);
    if (p->sequence) json_out_bool(out, "sequence", true);
    if (p->scatter) json_out_bool(out, "scatter", true);
    if (p->exposed) json_out_bool(out, "exposed", true);
    if (p->overlap) json_out_bool(out, "overlap", true);
    if (p->blocking) json_out_bool(out, "blocking", true);
    if (p->flush > 0) json_out_u64(out, "flush", p->flush);
    if (p->tree) json_out_string(out, "sum", sum_order_names[SUM_TREE]);
    if (p->tensor_pieces > 0) json_out_u64(out, "tensor_pieces", p->tensor_pieces);
    if (p->carrying != PARALLEL_UNDECIDED) json_out_bool(out, "carried_out", p->carrying == PARALLEL_CARRIED_OUT);
    if (p->zero > 0) json_out_u64(out, "zero", p->zero);
    if (gathers_ahead(p)) json_out_u64(out, "prefetch", p->prefetch);
    if (p->offload != OFFLOAD_NOTHING) json_out_string(out, "offload", parallel_offload_names[p->offload]);
    if (p->storage) json_out_bool(out, "storage", true);
    if (p->delayed) json_out_bool(out, "delayed", true);
    if (p->swap) json_out_bool(out, "swap", true);
    if (p->choose) json_out_bool(out, "choose", true);
    write_choices(out, p);
    if (p->partition != PARALLEL_EQUAL)
        json_out_string(out, "partition", parallel_partition_names[p->partition]);
    write_lengths(out, "cut", p->cut_lengths, p->cuts);
    write_lengths(out, "slices", p->slice_tokens, p->slices);
    if (p->first_device > 0) json_out_u64(out, "first_device", p->first_device);
    json_out_object_end(out);
}

/* --- the command line's form ---------------------------------------------------------------- */

static const char *const offload_words[PARALLEL_OFFLOAD_COUNT] = {
    [OFFLOAD_NOTHING] = "offload=nothing", [OFFLOAD_STATES] = "offload=states", [OFFLOAD_WEIGHTS] = "offload=weights"};

static const char *offload_word(const struct parallel *p)
{
    return p->offload == OFFLOAD_NOTHING ? NULL : offload_words[p->offload];
}

static bool parse_flag(const char *word, struct parallel *out)
{
    const struct {
        const char *name;
        bool *value;
    } flags[] = {{"sp", &out->sequence}, {"scatter", &out->scatter}, {"exposed", &out->exposed},
                 {"overlap", &out->overlap}, {"blocking", &out->blocking},
                 {sum_order_names[SUM_TREE], &out->tree}, {"storage", &out->storage}, {"delayed", &out->delayed},
                 {"swap", &out->swap}, {"choose", &out->choose}};
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++)
        if (strcmp(word, flags[i].name) == 0) return *flags[i].value = true;
    for (uint32_t i = 0; i < PARALLEL_OFFLOAD_COUNT; i++)
        if (strcmp(word, offload_words[i]) == 0) {
            out->offload = i;
            return true;
        }
    return false;
}

const char *parallel_text(const struct parallel *p, char text[PARALLEL_TEXT_BYTES])
{
    const struct {
        const char *name;
        uint32_t value, usual;
    } words[] = {{"tp=", p->tensor, 1}, {"pp=", p->pipeline, p->replicated > 0 ? p->pipeline : 1}, {"dp=", p->data, 1},
                 {"v=", p->chunks, 1},  {"buckets=", parallel_buckets(p), 1}, {"zero=", p->zero, ZERO_NOTHING},
                 {"prefetch=", gathers_ahead(p) ? p->prefetch : 1, 1}, {"flush=", p->flush, 0},
                 {"tensor_pieces=", p->tensor_pieces, 0}};
    const char *const flags[] =
        {p->sequence ? "sp" : NULL,     p->scatter ? "scatter" : NULL,   p->exposed ? "exposed" : NULL,
         p->overlap ? "overlap" : NULL, p->blocking ? "blocking" : NULL, p->tree ? sum_order_names[SUM_TREE] : NULL,
         offload_word(p),               p->storage ? "storage" : NULL,   p->delayed ? "delayed" : NULL,
         p->swap ? "swap" : NULL,       p->choose ? "choose" : NULL};
    const size_t replicas_text = 48; /* room for everything else */
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t s = 0; s < p->replicated && used < replicas_text; s++)
        used += (size_t)snprintf(text + used, PARALLEL_TEXT_BYTES - used, "%s%" PRIu32, s > 0 ? "-" : "replicas=",
                                 p->replicas[s]);
    if (used >= replicas_text) used += (size_t)snprintf(text + used, PARALLEL_TEXT_BYTES - used, "-...");
    for (size_t i = 0; i < ARRAY_COUNT(words); i++)
        if (words[i].value != words[i].usual)
            used += (size_t)snprintf(text + used, PARALLEL_TEXT_BYTES - used, "%s%s%" PRIu32, used > 0 ? "," : "",
                                     words[i].name, words[i].value);
    for (size_t i = 0; i < ARRAY_COUNT(flags); i++)
        if (flags[i])
            used += (size_t)snprintf(text + used, PARALLEL_TEXT_BYTES - used, "%s%s", used > 0 ? "," : "", flags[i]);
    if (used == 0) snprintf(text, PARALLEL_TEXT_BYTES, "one device");
    return text;
}

/* Parses "15-1" of this length. */
static enum status parse_replicas(const char *begin, size_t length, struct parallel *out, struct error *err)
{
    const char *at = begin, *end = begin + length;
    uint32_t count = 0;
    for (bool more = true; more; at++) {
        uint64_t value = 0;
        const char *first = at;
        for (; at < end && *at >= '0' && *at <= '9' && value <= PARALLEL_DEGREE_MAX; at++)
            value = 10 * value + (uint64_t)(*at - '0');
        more = at < end && *at == '-';
        if (at == first || value == 0 || value > PARALLEL_DEGREE_MAX || (!more && at < end) ||
            count == PARALLEL_REPLICAS_MAX)
            return error_set(err, STATUS_BAD_INPUT,
                             "'replicas=%.*s' is not understood (expected such as replicas=15-1, of at most %d stages)",
                             length > 64 ? 64 : (int)length, begin, PARALLEL_REPLICAS_MAX);
        out->replicas[count++] = (uint32_t)value;
    }
    out->replicated = out->pipeline = count;
    out->data = 1;
    return STATUS_OK;
}

static const char replicas_name[] = "replicas=";

static bool is_replicas(const char *word)
{
    return strncmp(word, replicas_name, strlen(replicas_name)) == 0;
}

static enum status parse_word(const char *begin, size_t length, struct parallel *out, struct error *err)
{
    static const char *const names[] = {"tp", "pp", "dp", "v", "buckets", "zero", "prefetch", "flush", "tensor_pieces"};
    const struct {
        uint32_t *value;
        uint64_t min, max;
    } of[] = {
        {&out->tensor, 1, PARALLEL_DEGREE_MAX}, {&out->pipeline, 1, PARALLEL_DEGREE_MAX},
        {&out->data, 1, PARALLEL_DEGREE_MAX},   {&out->chunks, 1, PARALLEL_CHUNKS_MAX},
        {&out->buckets, 1, PARALLEL_CHUNKS_MAX},
        {&out->zero, ZERO_NOTHING, ZERO_WEIGHTS}, {&out->prefetch, 0, PARALLEL_CHUNKS_MAX},
        {&out->flush, 0, UINT32_MAX},
        {&out->tensor_pieces, 0, PARALLEL_DEGREE_MAX},
    };
    static_assert(ARRAY_COUNT(of) == ARRAY_COUNT(names), "a name for each");
    char word[32];
    if (is_replicas(begin))
        return parse_replicas(begin + strlen(replicas_name), length - strlen(replicas_name), out, err);
    if (length >= sizeof word)
        return error_set(err, STATUS_BAD_INPUT, "'%.*s' is not understood (expected such as tp=8,pp=4,dp=2)",
                         (int)length, begin);
    memcpy(word, begin, length);
    word[length] = '\0';
    if (parse_flag(word, out)) return STATUS_OK;
    char *equals = strchr(word, '='), *end;
    if (equals) *equals = '\0';
    for (size_t i = 0; i < ARRAY_COUNT(of); i++) {
        if (strcmp(word, names[i]) != 0) continue;
        uint64_t value = equals ? strtoull(equals + 1, &end, 10) : 0;
        if (!equals || equals[1] < '0' || equals[1] > '9' || *end || value < of[i].min || value > of[i].max)
            return error_set(err, STATUS_BAD_INPUT,
                             "'%.*s' is not understood (expected %s=N with N %" PRIu64 " to %" PRIu64 ")",
                             (int)length, begin, names[i], of[i].min, of[i].max);
        *of[i].value = (uint32_t)value;
        return STATUS_OK;
    }
    return error_set(err, STATUS_BAD_INPUT,
                     "'%.*s' is not understood (expected tp=, pp=, dp=, replicas=, v=, buckets=, zero=, prefetch=, "
                     "flush=, tensor_pieces=, sp, scatter, exposed, overlap, blocking, tree, offload=states, "
                     "offload=weights, storage, delayed, swap or choose)",
                     (int)length, begin);
}

/* Refuses even equal values: they are a slip. */
static enum status check_once(const char *all, const char *word, struct error *err)
{
    const size_t length = strcspn(word, "=,");
    for (const char *at = all; at < word; at += strcspn(at, ",") + 1)
        if (strcspn(at, "=,") == length && strncmp(at, word, length) == 0)
            return error_set(err, STATUS_BAD_INPUT, "'%.*s' is given twice in '%s'", (int)length, word, all);
    return STATUS_OK;
}

enum status parallel_parse_text(const char *text, struct parallel *out, struct error *err)
{
    set_out(out);
    /* "replicas" sets degrees too: "pp" and "dp" are applied after it, for parallel_check(). */
    for (int round = 0; round < 2; round++) {
        for (const char *at = text;;) {
            const size_t length = strcspn(at, ",");
            if (is_replicas(at) == (round == 0)) TRY(parse_word(at, length, out, err));
            if (round == 1) TRY(check_once(text, at, err));
            if (at[length] == '\0') break;
            at += length + 1;
        }
    }
    return STATUS_OK;
}
