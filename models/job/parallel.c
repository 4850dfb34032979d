#include "models/job/parallel.h"

#include <assert.h>

#include "base/size.h"
#include "models/hardware/hardware.h"
#include "models/job/evaluation.h"
#include "models/job/job.h"
#include "models/network/network_traits.h"

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

/* --- the layers of a chunk -------------------------------------------------------------------- */

uint64_t parallel_pieces(const struct network *network)
{
    return network_is_listed(network) ? network->layer_count : network->blocks;
}

/* Returns a part; the first ones are longer by one. */
static struct parallel_layers equal_part(struct parallel_layers whole, uint64_t parts, uint64_t at)
{
    uint64_t share = whole.count / parts, longer = whole.count % parts;
    return (struct parallel_layers){whole.first + at * share + (at < longer ? at : longer), share + (at < longer)};
}

/* Returns a piece of `partition` or `cut`. */
static struct parallel_layers cut_piece(const struct job *job, uint32_t piece)
{
    const struct parallel *p = &job->parallel;
    struct parallel_layers all = {0, parallel_pieces(&job->network)}, of = {0};
    if (p->cuts == 0) return equal_part(all, parallel_cut_count(p), piece);
    for (uint32_t r = 0; r < piece; r++) of.first += p->cut_lengths[r];
    of.count = p->cut_lengths[piece];
    return of;
}

struct parallel_layers parallel_layers(const struct job *job, uint32_t chunk)
{
    const struct network *network = &job->network;
    uint32_t buckets = parallel_buckets(&job->parallel);
    struct parallel_layers of = equal_part(cut_piece(job, chunk / buckets), buckets, chunk % buckets);
    if (network_is_listed(network)) return of;
    bool last = chunk + 1 == parallel_chunks(&job->parallel);
    uint64_t begin = chunk == 0 ? 0 : of.first + 1; /* layer 0 is the embedding */
    uint64_t end = last ? network->layer_count : of.first + of.count + 1;
    return (struct parallel_layers){begin, end - begin};
}

bool parallel_crosses(const struct job *job, uint64_t layer)
{
    const struct parallel *p = &job->parallel;
    for (uint32_t chunk = 0; chunk + 1 < parallel_chunks(p); chunk++) {
        struct parallel_layers layers = parallel_layers(job, chunk);
        if (layers.first + layers.count == layer + 1)
            return parallel_place(p, chunk).stage != parallel_place(p, chunk + 1).stage;
    }
    return false;
}

/* Layer 0 is the embedding unless layers are listed: the output of `layer` enters block `layer`. */
bool parallel_compresses(const struct job *job, uint64_t layer)
{
    const struct compression *compression = &job->compression[COMPRESSION_BOUNDARIES];
    uint64_t enters = network_is_listed(&job->network) ? layer + 1 : layer;
    return compression_is_set(compression) && enters >= compression->from && parallel_crosses(job, layer);
}

uint32_t parallel_recompute(const struct job *job, struct parallel_layers layers)
{
    const struct parallel *p = &job->parallel;
    const bool nothing = p->recompute == RECOMPUTE_SELECTIVE && parallel_is_carried_out(p);
    const uint32_t usual = nothing ? RECOMPUTE_NONE : p->recompute;
    for (uint32_t chunk = 0; chunk < p->chosen; chunk++) {
        struct parallel_layers of = parallel_layers(job, chunk);
        if (layers.first < of.first + of.count)
            return p->choices[chunk] == PARALLEL_AGAIN ? RECOMPUTE_FULL : usual;
    }
    return usual;
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

const struct job *parallel_share_in(const struct job *job, struct job *room)
{
    if (!parallel_has_slices(&job->parallel)) return job;
    *room = *job;
    room->network = network_slice(&job->network, job->parallel.tensor, job->parallel.tensor_pieces);
    room->network.slices_rows = job->parallel.sequence;
    return room;
}

static uint64_t sliced_tokens(const struct parallel *p)
{
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < p->slices; i++) tokens += p->slice_tokens[i];
    return tokens;
}

uint64_t parallel_sequence(const struct job *job)
{
    return job->parallel.slice_length > 0 ? sliced_tokens(&job->parallel) : job->sequence;
}

uint64_t parallel_slice_share(const struct parallel *p, uint64_t whole)
{
    uint64_t tokens = sliced_tokens(p), begin = p->slice_begin, end = begin + p->slice_length;
    if (p->slice_length == 0) return whole;
    uint64_t each = whole / tokens, rest = whole % tokens;
    return each * p->slice_length + rest * end / tokens - rest * begin / tokens;
}

/* --- microbatches and updates ---------------------------------------------------------------- */

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

uint64_t parallel_round(const struct parallel *p)
{
    uint64_t round = 1;
    for (uint32_t s = 0; parallel_has_own_pace(p) && s < p->pipeline; s++) {
        uint64_t multiple = round;
        while (multiple % p->replicas[s] != 0) multiple += round;
        round = multiple;
    }
    return round;
}

bool parallel_settle_replicas(struct job *job)
{
    struct parallel *p = &job->parallel;
    const uint32_t replicas = p->replicas[0];
    const bool chosen = p->partition == PARALLEL_RANNC || (p->partition == PARALLEL_PIPEDREAM && p->cuts == 0);
    if (p->replicated == 0 || p->replicated != p->pipeline || p->data != 1 || chosen) return false;
    if (pipeline_is_asynchronous(p->schedule) || job->microbatches % replicas != 0) return false;
    for (uint32_t s = 1; s < p->pipeline; s++)
        if (p->replicas[s] != replicas) return false;
    p->data = replicas;
    p->replicated = 0;
    return true;
}

struct parallel_microbatches parallel_microbatches_of(const struct job *job, uint32_t stage, uint32_t replica)
{
    const struct parallel *p = &job->parallel;
    const uint64_t each = job->microbatches / p->data;
    if (parallel_has_own_pace(p)) return (struct parallel_microbatches){0, 1, 1};
    if (p->replicated == 0) return (struct parallel_microbatches){replica * each, 1, each};
    return (struct parallel_microbatches){replica, p->replicas[stage],
                                          parallel_microbatches_in_turn(job, stage, replica)};
}

uint64_t parallel_microbatches_read(const struct job *job)
{
    const uint64_t first = parallel_microbatches_of(job, 0, 0).count;
    const uint64_t last = parallel_microbatches_of(job, job->parallel.pipeline - 1, 0).count;
    return first > last ? first : last;
}

bool parallel_flushes_after(const struct job *job, uint64_t minibatch)
{
    const struct parallel *p = &job->parallel;
    if (!parallel_is_stale(p) || minibatch + 1 == job->minibatches) return true;
    if (p->flush > 0 && (job->first_minibatch + minibatch + 1) % p->flush == 0) return true;
    return evaluation_follows(job, minibatch);
}

/* Returns the minibatches before the last multiple of `every`, at most `done`. */
static uint64_t multiple_before(const struct job *job, uint64_t every, uint64_t done)
{
    const uint64_t over = every > 0 ? (job->first_minibatch + done) % every : done;
    return over < done ? done - over : 0;
}

uint64_t parallel_flushed_before(const struct job *job, uint64_t done)
{
    if (!parallel_is_stale(&job->parallel) || done == job->minibatches) return done;
    const uint64_t flushed = multiple_before(job, job->parallel.flush, done);
    const uint64_t evaluated = multiple_before(job, job->evaluation.every, done);
    return flushed > evaluated ? flushed : evaluated;
}

/* Returns true if the job compresses something by a factor that the executor has no code for. */
static bool has_other_factor(const struct compression *compression)
{
    return compression_is_set(compression) && compression_code(compression) == COMPRESSION_PLAIN;
}

static bool compresses(const struct job *job)
{
    for (uint32_t i = 0; i < COMPRESSION_COUNT; i++)
        if (compression_is_set(&job->compression[i])) return true;
    return false;
}

/* Returns true when nothing but the cut into stages and the order of passes differs from a job on one device. */
static bool is_plain(const struct job *job)
{
    const struct parallel *p = &job->parallel;
    bool plain = p->offload == OFFLOAD_NOTHING && !p->swap && !p->choose && p->slices == 0 &&
                 p->schedule != PIPELINE_TERAPIPE && !pipeline_is_asynchronous(p->schedule);
    return plain && !p->tree && p->tensor_pieces == 0 && !compresses(job) && p->replicated == 0 &&
           job->gradients == PRECISION_FP32 && !job_clips(job) && !network_is_listed(&job->network);
}

/* Returns true if the ranks of a tensor group can send equal parts of a boundary. */
static bool divides_boundaries(const struct job *job)
{
    return job->microbatch * network_tokens(&job->network, job->sequence) * job->network.width % job->parallel.tensor ==
           0;
}

const char *parallel_only_simulated(const struct hardware *hardware, const struct job *job)
{
    static const bool trained[NETWORK_FAMILY_COUNT] = {
        [NETWORK_GPT2] = true, [NETWORK_LLAMA] = true, [NETWORK_MISTRAL] = true, [NETWORK_GEMMA] = true,
        [NETWORK_QWEN2] = true,
        [NETWORK_MIXTRAL] = true, [NETWORK_QWEN3_MOE] = true, [NETWORK_QWEN2_MOE] = true, [NETWORK_OPT] = true,
        [NETWORK_GEMMA2] = true, [NETWORK_GEMMA3_TEXT] = true,
        [NETWORK_QWEN3] = true, [NETWORK_GPT_NEOX] = true, [NETWORK_GPTJ] = true, [NETWORK_PHI] = true,
        [NETWORK_BERT] = true, [NETWORK_VIT] = true};
    const struct parallel *p = &job->parallel;
    const bool asynchronous = pipeline_is_asynchronous(p->schedule), sliced = p->schedule == PIPELINE_TERAPIPE;
    const bool half = job->precision == PRECISION_BF16;
    const struct compression *const boundaries = &job->compression[COMPRESSION_BOUNDARIES];
    const struct compression *const gradients = &job->compression[COMPRESSION_GRADIENTS];
    const struct compression *const activations = &job->compression[COMPRESSION_ACTIVATIONS];
    const struct {
        bool is;
        const char *why;
    } ways[] = {
        {hardware && hardware->stack != STACK_SPILLWAY, "the software stack of its machine"},
        {p->overlap, "collectives that overlap with parts of products"},
        {p->scatter && !divides_boundaries(job), "scattered boundaries of unequal parts"},
        {asynchronous && p->pipeline > 1 && p->replicated > 0 && job->network.tied_head,
         "a tied table over unequal replicas in an asynchronous schedule"},
        {hardware && job->keep_best && hardware_host_count(hardware) > 1, "best weights to keep on several nodes"},
        {p->storage && job->keep_best, "best weights to keep of states in storage"},
        {sliced && !job->network.causal, "its network"},
        {p->tensor_pieces > 0 && network_drops(&job->network), "tensor pieces with dropout"},
        {job->network.auxiliary_loss, "an auxiliary loss of routers"},
        {has_other_factor(activations),
         "compression of activations by another factor than 2 (bf16) and 3.75 (int8)"},
        {has_other_factor(boundaries), "compression of boundaries by another factor than 2 (bf16) and 3.75 (int8)"},
        {compression_is_set(boundaries) && p->scatter, "compression of scattered boundaries"},
        {compression_is_set(boundaries) && p->sequence, "compression of boundaries with cut rows"},
        {sliced && p->sequence, "slices of tokens with cut rows"},
        {has_other_factor(gradients), "compression of gradients by another factor than 2 (bf16) and 3.75 (int8)"},
        {compression_code(gradients) == COMPRESSION_INT8 && p->zero > ZERO_NOTHING,
         "compression of split states' gradients by 3.75 (int8)"},
        {compression_is_set(gradients) && job->gradients != PRECISION_FP32, "compression of gradients of 16 bits"},
        {asynchronous && p->pipeline > 1 && (job->gradients != PRECISION_FP32 || compression_is_set(gradients)) &&
             (job->network.tied_head || job_clips(job)),
         "encoded gradients of an asynchronous schedule with a tied table or clipping"},
        {job_clips(job) && asynchronous && p->replicated > 0,
         "clipping with unequal replicas in an asynchronous schedule"},
        {job->gradients != PRECISION_FP32 && p->offload == OFFLOAD_WEIGHTS && p->zero == ZERO_NOTHING,
         "gradients of 16 bits that hosts add up"},
        {half && hardware && !hardware_is_host(hardware), "precision bf16 on GPUs"},
        {half && compression_is_set(boundaries), "compression of boundaries of 16 bits"},
        {half && compression_is_set(activations), "compression of activations of 16 bits"},
        {network_is_listed(&job->network) || !trained[job->network.family] || job->network.post_norm ||
             job->network.word_width > 0,
         "its network"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++)
        if (ways[i].is) return ways[i].why;
    return NULL;
}

bool parallel_may_be_carried_out(const struct hardware *hardware, const struct job *job)
{
    const struct parallel *p = &job->parallel;
    return parallel_is_set(p) && p->carrying != PARALLEL_SIMULATED && !parallel_only_simulated(hardware, job);
}

bool parallel_is_alone(const struct hardware *hardware, const struct job *job)
{
    if (hardware->stack != STACK_SPILLWAY) return false; /* a study of other software */
    const struct parallel *p = &job->parallel;
    return parallel_is_set(p) && parallel_devices(p) == 1 && is_plain(job);
}
