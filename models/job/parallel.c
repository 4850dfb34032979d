/* See parallel.h. */
#include "models/job/parallel.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_out.h"
#include "base/json/json_rename.h"
#include "base/size.h"
#include "base/try.h"
#include "models/hardware/hardware.h"
#include "models/job/job.h"
#include "models/job/parallel_offload.h"

const char *const pipeline_schedule_names[PIPELINE_SCHEDULE_COUNT] = {
    [PIPELINE_GPIPE] = "gpipe",   [PIPELINE_1F1B] = "1f1b",   [PIPELINE_INTERLEAVED] = "interleaved",
    [PIPELINE_ZB_H1] = "zb-h1",   [PIPELINE_ZB_H2] = "zb-h2", [PIPELINE_ZB_V] = "zb-v",
    [PIPELINE_PIPEDREAM] = "pipedream", [PIPELINE_2BW] = "2bw", [PIPELINE_TERAPIPE] = "terapipe",
};

const char *const recompute_names[RECOMPUTE_COUNT] = {
    [RECOMPUTE_NONE] = "none",
    [RECOMPUTE_SELECTIVE] = "selective",
    [RECOMPUTE_FULL] = "full",
    [RECOMPUTE_STAGE] = "stage",
};

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

/* Starts the parallelism of a job that was not parallel: all degrees 1. */
static void set_out(struct parallel *p)
{
    if (parallel_is_set(p)) return;
    *p = (struct parallel){.tensor = 1, .pipeline = 1, .data = 1, .chunks = 1, .schedule = PIPELINE_1F1B,
                           .first_device = p->first_device, .prefetch = 1};
}

/* --- the layers of a run -------------------------------------------------------------------- */

/* Returns the number of layers that can be cut: blocks, or listed layers. */
static uint64_t pieces(const struct network *network)
{
    return network_is_listed(network) ? network->layer_count : network->blocks;
}

/* Returns part `at` of `parts` equal parts, the first ones longer by one. */
static struct parallel_layers equal_part(struct parallel_layers whole, uint64_t parts, uint64_t at)
{
    uint64_t share = whole.count / parts, longer = whole.count % parts;
    return (struct parallel_layers){whole.first + at * share + (at < longer ? at : longer), share + (at < longer)};
}

/* Returns the layers of a piece of `partition` or `cut`. */
static struct parallel_layers cut_piece(const struct job *job, uint32_t piece)
{
    const struct parallel *p = &job->parallel;
    struct parallel_layers all = {0, pieces(&job->network)}, of = {0};
    if (p->cuts == 0) return equal_part(all, parallel_cut_count(p), piece);
    for (uint32_t r = 0; r < piece; r++) of.first += p->cut_lengths[r];
    of.count = p->cut_lengths[piece];
    return of;
}

struct parallel_layers parallel_layers(const struct job *job, uint32_t run)
{
    const struct network *network = &job->network;
    uint32_t buckets = parallel_buckets(&job->parallel);
    struct parallel_layers of = equal_part(cut_piece(job, run / buckets), buckets, run % buckets);
    if (network_is_listed(network)) return of;
    bool last = run + 1 == parallel_runs(&job->parallel);
    uint64_t begin = run == 0 ? 0 : of.first + 1; /* layer 0 is the embedding */
    uint64_t end = last ? network->layer_count : of.first + of.count + 1;
    return (struct parallel_layers){begin, end - begin};
}

bool parallel_crosses(const struct job *job, uint64_t layer)
{
    const struct parallel *p = &job->parallel;
    for (uint32_t run = 0; run + 1 < parallel_runs(p); run++) {
        struct parallel_layers layers = parallel_layers(job, run);
        if (layers.first + layers.count == layer + 1)
            return parallel_place(p, run).stage != parallel_place(p, run + 1).stage;
    }
    return false;
}

/* Unless layers are listed, layer 0 is the embedding: the output of `layer` enters block `layer`. */
bool parallel_compresses(const struct job *job, uint64_t layer)
{
    const struct compression *compression = &job->compression[COMPRESSED_BOUNDARIES];
    uint64_t enters = network_is_listed(&job->network) ? layer + 1 : layer;
    return compression_is_set(compression) && enters >= compression->from && parallel_crosses(job, layer);
}

uint32_t parallel_recompute(const struct job *job, struct parallel_layers layers)
{
    const struct parallel *p = &job->parallel;
    for (uint32_t run = 0; run < p->chosen; run++) {
        struct parallel_layers of = parallel_layers(job, run);
        if (layers.first < of.first + of.count)
            return p->choices[run] == PARALLEL_AGAIN ? RECOMPUTE_FULL : p->recompute;
    }
    return p->recompute;
}

/* --- slices --------------------------------------------------------------------------------- */

struct job parallel_slice(const struct job *job, uint32_t slice)
{
    struct job out = *job;
    struct parallel *p = &out.parallel;
    assert(slice < parallel_slices(p));
    if (p->slices <= 1) return out;
    for (uint32_t i = 0; i < slice; i++) p->slice_begin += p->slice_tokens[i];
    p->slice_length = p->slice_tokens[slice];
    out.sequence = p->slice_length;
    return out;
}

const struct job *parallel_slice_in(const struct job *job, uint32_t slice, struct job *room)
{
    assert(slice < parallel_slices(&job->parallel));
    if (job->parallel.slices <= 1) return job;
    *room = parallel_slice(job, slice);
    return room;
}

uint64_t parallel_slice_share(const struct parallel *p, uint64_t whole)
{
    uint64_t tokens = 0, begin = p->slice_begin, end = begin + p->slice_length;
    if (p->slice_length == 0) return whole;
    for (uint32_t i = 0; i < p->slices; i++) tokens += p->slice_tokens[i];
    uint64_t each = whole / tokens, rest = whole % tokens;
    return each * p->slice_length + rest * end / tokens - rest * begin / tokens;
}

/* --- what fits together --------------------------------------------------------------------- */

static enum status check_schedule(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    const char *name = pipeline_schedule_names[p->schedule];
    bool interleaved = p->schedule == PIPELINE_INTERLEAVED, v = p->schedule == PIPELINE_ZB_V;
    bool several = interleaved || v || (p->pipeline == 1 && p->schedule < PIPELINE_ZB_H1);
    if (interleaved && p->chunks < 2)
        return error_set(err, STATUS_BAD_INPUT, "schedule 'interleaved' with 1 chunk (expected at least 2)");
    if (v && p->chunks != 2)
        return error_set(err, STATUS_BAD_INPUT, "schedule 'zb-v' with %" PRIu32 " chunk%s (expected 2)",
                         p->chunks, p->chunks == 1 ? "" : "s");
    if (!several && p->chunks > 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with %" PRIu32 " chunks (expected 1; 'interleaved' has several)",
                         name, p->chunks);
    if (job->microbatches % p->data != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "%" PRIu64 " microbatch%s on %" PRIu32 " data-parallel replicas (expected a multiple)",
                         job->microbatches, job->microbatches == 1 ? "" : "es", p->data);
    if (interleaved && job->microbatches / p->data % p->pipeline != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule 'interleaved' with %" PRIu64 " microbatches of a replica on %" PRIu32
                         " stages (expected a multiple)",
                         job->microbatches / p->data, p->pipeline);
    if (pieces(&job->network) / parallel_buckets(p) < parallel_cut_count(p)) /* their product may be past 32 bits */
        return error_set(err, STATUS_BAD_INPUT,
                         "%" PRIu64 " layers on %" PRIu32 " stages of %" PRIu32
                         " %s%s (expected at least one each)",
                         pieces(&job->network), p->pipeline, p->chunks * parallel_buckets(p),
                         parallel_buckets(p) > 1 ? "bucket" : "chunk", p->chunks * parallel_buckets(p) == 1 ? "" : "s");
    return STATUS_OK;
}

/* Checks buckets of stages that are already cut. */
static enum status check_buckets(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    bool fits = p->schedule <= PIPELINE_1F1B || pipeline_is_asynchronous(p->schedule);
    if (parallel_buckets(p) == 1) return STATUS_OK;
    if (p->pipeline == 1)
        return error_set(err, STATUS_BAD_INPUT, "%" PRIu32 " buckets on one stage (expected 1; 'chunks' are the same there)",
                         p->buckets);
    if (!fits)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with %" PRIu32 " buckets (expected 1; 'gpipe', '1f1b', 'pipedream' and '2bw' have "
                         "several)",
                         pipeline_schedule_names[p->schedule], p->buckets);
    for (uint32_t s = 0; s < p->cuts; s++)
        if (p->cut_lengths[s] < p->buckets)
            return error_set(err, STATUS_BAD_INPUT,
                             "%" PRIu32 " layers of stage %" PRIu32 " in %" PRIu32 " buckets (expected at least one each)",
                             p->cut_lengths[s], s, p->buckets);
    return STATUS_OK;
}

uint64_t parallel_microbatches_in_turn(const struct job *job, uint32_t stage, uint32_t turn)
{
    const struct parallel *p = &job->parallel;
    uint32_t turns = parallel_turns(p, stage);
    assert(turn < turns);
    if (parallel_has_own_pace(p)) return 1;
    return (job->microbatches / p->data + turns - 1 - turn) / turns;
}

uint64_t parallel_microbatches(const struct job *job, uint32_t stage)
{
    return parallel_microbatches_in_turn(job, stage, 0);
}

uint64_t parallel_updates(const struct job *job, uint32_t stage)
{
    const struct parallel *p = &job->parallel;
    return parallel_has_own_pace(p) ? job->minibatches / p->replicas[stage] : job->minibatches;
}

/* Checks stages with given replicas that share a minibatch's microbatches for one update of all stages. */
static enum status check_turns(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    if (p->chunks > 1)
        return error_set(err, STATUS_BAD_INPUT, "'replicas' with %" PRIu32 " chunks (expected 1)", p->chunks);
    if (p->zero > ZERO_NOTHING || p->offload != OFFLOAD_NOTHING)
        return error_set(err, STATUS_BAD_INPUT,
                         "'replicas' with %s (expected %s: replicas keep all the state that they update)",
                         p->zero > ZERO_NOTHING ? "'zero' above 0" : "'offload'", p->zero > ZERO_NOTHING ? "0" : "none");
    for (uint32_t s = 0; s < p->pipeline; s++)
        if (p->replicas[s] > job->microbatches)
            return error_set(err, STATUS_BAD_INPUT,
                             "%" PRIu64 " microbatches on %" PRIu32 " replicas of stage %" PRIu32
                             " (expected at least one each)",
                             job->microbatches, p->replicas[s], s);
    return STATUS_OK;
}

/* Checks stages with their own replicas, before the other rules of schedules. */
static enum status check_replicas(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    bool dream = p->schedule == PIPELINE_PIPEDREAM;
    uint64_t turns = dream ? job->minibatches : job->microbatches;
    if (p->replicated == 0) return STATUS_OK;
    if (p->schedule > PIPELINE_1F1B && !pipeline_is_asynchronous(p->schedule))
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with 'replicas' (expected none; 'gpipe', '1f1b', 'pipedream' and '2bw' have them)",
                         pipeline_schedule_names[p->schedule]);
    if (p->replicated != p->pipeline)
        return error_set(err, STATUS_BAD_INPUT, "'replicas' of %" PRIu32 " stages (expected %" PRIu32 ")", p->replicated,
                         p->pipeline);
    if (p->data != 1)
        return error_set(err, STATUS_BAD_INPUT, "'replicas' with 'data' %" PRIu32 " (expected 1: they take its place)",
                         p->data);
    if (!pipeline_is_asynchronous(p->schedule)) return check_turns(job, err);
    if (dream && job->microbatches != 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule 'pipedream' with 'replicas' and %" PRIu64
                         " microbatches (expected 1: a stage with r replicas updates after r minibatches)",
                         job->microbatches);
    for (uint32_t s = 0; s < p->pipeline; s++)
        if (turns % p->replicas[s] != 0)
            return error_set(err, STATUS_BAD_INPUT,
                             "%" PRIu64 " %s on %" PRIu32 " replicas of stage %" PRIu32 " (expected a multiple)", turns,
                             dream ? "minibatches" : "microbatches", p->replicas[s], s);
    uint64_t under_way = (uint64_t)(parallel_depth(p, 0) - 1) * p->replicas[0] + 1;
    if (dream || job->microbatches >= under_way) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "schedule '2bw' with %" PRIu64 " microbatches on these 'replicas' (expected at least %" PRIu64
                     ", the number in flight)",
                     job->microbatches, under_way);
}

static enum status check_asynchronous(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    uint64_t microbatches = job->microbatches / p->data;
    if (!pipeline_is_asynchronous(p->schedule)) return STATUS_OK;
    bool alike = p->replicated == 0; /* otherwise check_replicas() has checked these */
    if (alike && p->schedule == PIPELINE_PIPEDREAM && microbatches != 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule 'pipedream' with %" PRIu64
                         " microbatches of a replica (expected 1: it updates after each)",
                         microbatches);
    if (alike && p->schedule == PIPELINE_2BW && microbatches < p->pipeline)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '2bw' with %" PRIu64 " microbatches of a replica on %" PRIu32
                         " stages (expected at least one for each stage)",
                         microbatches, p->pipeline);
    if (p->zero > ZERO_NOTHING)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with 'zero' %" PRIu32 " (expected 0: every rank has several versions)",
                         pipeline_schedule_names[p->schedule], p->zero);
    return STATUS_OK;
}

static enum status check_slices(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    uint64_t tokens = 0;
    if (p->schedule != PIPELINE_TERAPIPE) {
        if (p->slices == 0) return STATUS_OK;
        return error_set(err, STATUS_BAD_INPUT, "schedule '%s' with 'slices' (expected none; 'terapipe' has them)",
                         pipeline_schedule_names[p->schedule]);
    }
    if ((!job->network.causal || job->network.encoder_blocks > 0) && job->network.family != NETWORK_PROFILE)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule 'terapipe' for a network whose tokens see later tokens (expected gpt2 or llama)");
    if (p->sequence)
        return error_set(err, STATUS_BAD_INPUT, "schedule 'terapipe' with sequence parallelism (expected none)");
    for (uint32_t i = 0; i < p->slices; i++) tokens += p->slice_tokens[i];
    if (p->slices == 0 || tokens == job->sequence) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "slices of %" PRIu64 " tokens in all (expected %" PRIu64 ", the sequence)",
                     tokens, job->sequence);
}

static enum status check_gradients(const struct job *job, struct error *err)
{
    if (job->gradients == PRECISION_FP32 || job->precision == job->gradients) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'gradients' of %s with 'precision' %s (expected %s, the same)",
                     precision_names[job->gradients], precision_names[job->precision],
                     precision_names[job->precision]);
}

static enum status check_compression(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    bool in_two = p->schedule >= PIPELINE_ZB_H1 && p->schedule <= PIPELINE_ZB_V;
    if (compression_is_set(&job->compression[COMPRESSED_BOUNDARIES]) && p->pipeline == 1)
        return error_set(err, STATUS_BAD_INPUT, "'compression' of boundaries on one stage (expected 'pipeline' above 1)");
    uint64_t from = job->compression[COMPRESSED_BOUNDARIES].from;
    if (from >= pieces(&job->network))
        return error_set(err, STATUS_BAD_INPUT,
                         "'compression' of boundaries from %" PRIu64 " of %" PRIu64 " blocks on (expected an existing block)", from,
                         pieces(&job->network));
    for (uint32_t c = 0; c < COMPRESSED_COUNT && in_two; c++)
        if (c != COMPRESSED_GRADIENTS && compression_is_set(&job->compression[c]))
            return error_set(err, STATUS_BAD_INPUT,
                             "'compression' of %s with schedule '%s' (expected a schedule with undivided backward passes)",
                             compressed_names[c], pipeline_schedule_names[p->schedule]);
    if (!compression_is_set(&job->compression[COMPRESSED_GRADIENTS])) return STATUS_OK;
    if (p->data == 1)
        return error_set(err, STATUS_BAD_INPUT, "'compression' of gradients on one replica (expected 'data' above 1)");
    if (p->zero > ZERO_STATES)
        return error_set(err, STATUS_BAD_INPUT,
                         "'compression' of gradients with 'zero' %" PRIu32 " (expected 0 or 1: their sum is compressed)",
                         p->zero);
    return STATUS_OK;
}

static enum status check_cuts(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    uint64_t sum = 0;
    if (p->partition == PARALLEL_PIPEDREAM && p->replicated == 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'partition' 'pipedream' without 'replicas' (expected their total number, such as [16])");
    if (p->partition == PARALLEL_BALANCED && p->cuts == 0 && parallel_cut_count(p) > PARALLEL_CUTS_MAX)
        return error_set(err, STATUS_LIMIT, "%" PRIu32 " runs of layers to balance (limit is %d)", parallel_cut_count(p),
                         PARALLEL_CUTS_MAX);
    if (p->partition == PARALLEL_RANNC && parallel_buckets(p) > 1)
        return error_set(err, STATUS_BAD_INPUT, "'partition' 'rannc' with %" PRIu32 " buckets (expected 1)", p->buckets);
    if (p->partition == PARALLEL_RANNC && (p->schedule != PIPELINE_1F1B || p->chunks > 1))
        return error_set(err, STATUS_BAD_INPUT,
                         "'partition' 'rannc' with schedule '%s' of %" PRIu32 " chunks (expected '1f1b' of 1)",
                         pipeline_schedule_names[p->schedule], p->chunks);
    if (p->partition == PARALLEL_RANNC && p->replicated > 0 && p->cuts == 0)
        return error_set(err, STATUS_BAD_INPUT, "'partition' 'rannc' with 'replicas' (expected none: it chooses them)");
    if (p->cuts == 0) return STATUS_OK;
    if (p->cuts != parallel_cut_count(p))
        return error_set(err, STATUS_BAD_INPUT, "'cut' into %" PRIu32 " runs of layers (expected %" PRIu32
                         ": stages times chunks)", p->cuts, parallel_cut_count(p));
    for (uint32_t r = 0; r < p->cuts; r++) sum += p->cut_lengths[r];
    if (sum == pieces(&job->network)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'cut' of %" PRIu64 " blocks in all (expected %" PRIu64 ")", sum,
                     pieces(&job->network));
}

static enum status check_division(const struct parallel *p, const char *what, uint64_t value,
                                  struct error *err)
{
    if (value % p->tensor == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "tensor parallelism of %" PRIu32 " with %" PRIu64 " %s (expected a multiple)", p->tensor,
                     value, what);
}

/* Checks the features that a parallel job cannot have. */
static enum status check_wishes(const struct job *job, struct error *err)
{
    if (job_clips(job))
        return error_set(err, STATUS_BAD_INPUT, "a parallel job does not clip its gradients");
    if (job->evaluation.every > 0)
        return error_set(err, STATUS_BAD_INPUT, "a parallel job has no evaluations");
    return STATUS_OK;
}

static enum status check_tensor(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    const struct network *n = &job->network;
    if (p->sequence && p->tensor == 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "sequence parallelism without tensor parallelism (expected 'tensor' above 1)");
    if (p->scatter && (p->tensor == 1 || p->sequence))
        return error_set(err, STATUS_BAD_INPUT, "scattered boundaries %s (expected 'tensor' above 1 without 'sequence')",
                         p->tensor == 1 ? "without tensor parallelism" : "with sequence parallelism");
    if (p->tensor == 1) return STATUS_OK;
    if (network_is_listed(n))
        return error_set(err, STATUS_BAD_INPUT, "tensor parallelism of a network %s (expected 1)",
                         n->graph ? "of operations" : "known only by its profile");
    TRY(check_division(p, "attention heads", n->heads, err));
    TRY(check_division(p, "heads of keys and values", network_kv_heads(n), err));
    TRY(check_division(p, "columns of the feed-forward part", n->ff_width, err));
    TRY(check_division(p, "columns of the part for all tokens", n->shared_width, err));
    if (!p->sequence) return STATUS_OK;
    TRY(check_division(p, "tokens", job->sequence, err));
    return check_division(p, "tokens of encoder and decoder", network_tokens(n, job->sequence), err);
}

bool parallel_divides_tokens(const struct job *job, uint32_t tensor)
{
    return tensor > 1 && job->sequence % tensor == 0 && network_tokens(&job->network, job->sequence) % tensor == 0;
}

enum status parallel_check(const struct job *job, struct error *err)
{
    if (!parallel_is_set(&job->parallel)) return STATUS_OK;
    TRY(check_wishes(job, err));
    TRY(check_replicas(job, err));
    TRY(check_schedule(job, err));
    TRY(check_asynchronous(job, err));
    TRY(check_slices(job, err));
    TRY(parallel_offload_check(job, err));
    TRY(check_gradients(job, err));
    TRY(check_compression(job, err));
    TRY(check_cuts(job, err));
    TRY(check_buckets(job, err));
    return check_tensor(job, err);
}

bool parallel_is_alone(const struct hardware *hardware, const struct job *job)
{
    if (hardware->stack != STACK_SPILLWAY) return false; /* a study of other software, which does what the job says */
    const struct parallel *p = &job->parallel;
    bool single = parallel_is_set(p) && parallel_devices(p) == 1 && p->replicated == 0;
    bool plain = p->offload == OFFLOAD_NOTHING && !p->swap && !p->choose && p->slices == 0 &&
                 p->schedule != PIPELINE_TERAPIPE && !pipeline_is_asynchronous(p->schedule);
    for (uint32_t i = 0; i < COMPRESSED_COUNT; i++) plain &= !compression_is_set(&job->compression[i]);
    return single && plain && job->gradients == PRECISION_FP32 && !job_clips(job) && !network_is_listed(&job->network);
}

/* --- JSON ----------------------------------------------------------------------------------- */

/* Parses an array of at most `most` positive numbers. An absent key leaves *out and *count untouched. */
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

/* Takes one letter per run. */
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
                         "'choices' is '%.64s' (expected a letter for each of at most %d runs: s, swapped, or r, "
                         "computed again)", letters, PARALLEL_CUTS_MAX);
}

/* Names as on the command line, and as in DeepSpeed and Megatron-LM. */
static const struct json_synonym synonyms[] = {
    {"tp", "tensor"}, {"tensor_model_parallel_size", "tensor"}, {"pp", "pipeline"}, {"pipeline_model_parallel_size", "pipeline"},
    {"dp", "data"},   {"zero_stage", "zero"},
};

enum status parallel_parse(const struct json_input *in, const json_t *value, struct parallel *out,
                           struct error *err)
{
    struct json_object o;
    TRY(json_object_open(&o, in, value, "a parallelism object", err));
    TRY(json_rename_keys(in, value, synonyms, ARRAY_COUNT(synonyms), err));
    set_out(out);
    size_t schedule = out->schedule, recompute = out->recompute, collective = out->collective;
    size_t partition = out->partition, offload = out->offload;
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
    TRY(json_take_bool(&o, "blocking", JSON_OPTIONAL, &out->blocking, err));
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

/* Returns true when `prefetch` has an effect. */
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
    if (p->blocking) json_out_bool(out, "blocking", true);
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

/* Words that are there or not. */
static bool parse_flag(const char *word, struct parallel *out)
{
    const struct {
        const char *name;
        bool *value;
    } flags[] = {{"sp", &out->sequence}, {"scatter", &out->scatter}, {"exposed", &out->exposed}, {"blocking", &out->blocking},
                 {"storage", &out->storage}, {"delayed", &out->delayed}, {"swap", &out->swap}, {"choose", &out->choose}};
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
                 {"prefetch=", gathers_ahead(p) ? p->prefetch : 1, 1}};
    const char *const flags[] = {p->sequence ? "sp" : NULL, p->scatter ? "scatter" : NULL, p->exposed ? "exposed" : NULL,
                                 p->blocking ? "blocking" : NULL, offload_word(p),
                                 p->storage ? "storage" : NULL, p->delayed ? "delayed" : NULL,
                                 p->swap ? "swap" : NULL, p->choose ? "choose" : NULL};
    const size_t replicas_text = 48; /* leaves room for everything else */
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

/* "15-1", which is as long as `length` says. */
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
    static const char *const names[] = {"tp", "pp", "dp", "v", "buckets", "zero", "prefetch"};
    const struct {
        uint32_t *value;
        uint64_t min, max;
    } of[] = {
        {&out->tensor, 1, PARALLEL_DEGREE_MAX}, {&out->pipeline, 1, PARALLEL_DEGREE_MAX},
        {&out->data, 1, PARALLEL_DEGREE_MAX},   {&out->chunks, 1, PARALLEL_CHUNKS_MAX},
        {&out->buckets, 1, PARALLEL_CHUNKS_MAX},
        {&out->zero, ZERO_NOTHING, ZERO_WEIGHTS}, {&out->prefetch, 0, PARALLEL_CHUNKS_MAX},
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
                     "'%.*s' is not understood (expected tp=, pp=, dp=, replicas=, v=, buckets=, zero=, prefetch=, sp, scatter, "
                     "exposed, blocking, offload=states, offload=weights, storage, delayed, swap or choose)",
                     (int)length, begin);
}

/* Refuses a degree that is given twice, even with equal values: it is a slip. */
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
    /* "replicas" also sets degrees. "pp" and "dp" must be applied after it in any text, so that parallel_check() sees
     * them. */
    for (int turn = 0; turn < 2; turn++) {
        for (const char *at = text;;) {
            const size_t length = strcspn(at, ",");
            if (is_replicas(at) == (turn == 0)) TRY(parse_word(at, length, out, err));
            if (turn == 1) TRY(check_once(text, at, err));
            if (at[length] == '\0') break;
            at += length + 1;
        }
    }
    return STATUS_OK;
}
