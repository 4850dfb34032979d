/* parallel_check() of parallel.h. */
#include <inttypes.h>

#include "base/size.h"
#include "base/try.h"
#include "models/job/job.h"
#include "models/job/parallel_offload.h"

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
    if (parallel_pieces(&job->network) / parallel_buckets(p) < parallel_cut_count(p)) /* the product may be past 32
                                                                                         bits */
        return error_set(err, STATUS_BAD_INPUT,
                         "%" PRIu64 " layers on %" PRIu32 " stages of %" PRIu32
                         " %s%s (expected at least one each)",
                         parallel_pieces(&job->network), p->pipeline, p->chunks * parallel_buckets(p),
                         parallel_buckets(p) > 1 ? "bucket" : "chunk", p->chunks * parallel_buckets(p) == 1 ? "" : "s");
    return STATUS_OK;
}

/* Checks stages that are already cut. */
static enum status check_buckets(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    bool fits = p->schedule <= PIPELINE_1F1B || pipeline_is_asynchronous(p->schedule);
    if (parallel_buckets(p) == 1) return STATUS_OK;
    if (p->pipeline == 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "%" PRIu32 " buckets on one stage (expected 1; 'chunks' are the same there)", p->buckets);
    if (!fits)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with %" PRIu32
                         " buckets (expected 1; 'gpipe', '1f1b', 'pipedream' and '2bw' have "
                         "several)",
                         pipeline_schedule_names[p->schedule], p->buckets);
    for (uint32_t s = 0; s < p->cuts; s++)
        if (p->cut_lengths[s] < p->buckets)
            return error_set(err, STATUS_BAD_INPUT,
                             "%" PRIu32 " layers of stage %" PRIu32 " in %" PRIu32
                             " buckets (expected at least one each)",
                             p->cut_lengths[s], s, p->buckets);
    return STATUS_OK;
}

/* Checks stages whose replicas share a minibatch's microbatches for one update. */
static enum status check_turns(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    if (p->chunks > 1)
        return error_set(err, STATUS_BAD_INPUT, "'replicas' with %" PRIu32 " chunks (expected 1)", p->chunks);
    if (p->zero > ZERO_NOTHING || p->offload != OFFLOAD_NOTHING)
        return error_set(err, STATUS_BAD_INPUT,
                         "'replicas' with %s (expected %s: replicas keep all the state that they update)",
                         p->zero > ZERO_NOTHING ? "'zero' above 0" : "'offload'",
                         p->zero > ZERO_NOTHING ? "0" : "none");
    for (uint32_t s = 0; s < p->pipeline; s++)
        if (p->replicas[s] > job->microbatches)
            return error_set(err, STATUS_BAD_INPUT,
                             "%" PRIu64 " microbatches on %" PRIu32 " replicas of stage %" PRIu32
                             " (expected at least one each)",
                             job->microbatches, p->replicas[s], s);
    return STATUS_OK;
}

/* Stages have their own replicas; comes before other rules of schedules. */
static enum status check_replicas(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    bool dream = p->schedule == PIPELINE_PIPEDREAM;
    uint64_t turns = dream ? job->minibatches : job->microbatches;
    if (p->replicated == 0) return STATUS_OK;
    if (p->schedule > PIPELINE_1F1B && !pipeline_is_asynchronous(p->schedule))
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with 'replicas' (expected none; 'gpipe', '1f1b', "
                         "'pipedream' and '2bw' have them)",
                         pipeline_schedule_names[p->schedule]);
    if (p->replicated != p->pipeline)
        return error_set(err, STATUS_BAD_INPUT, "'replicas' of %" PRIu32 " stages (expected %" PRIu32 ")",
                         p->replicated, p->pipeline);
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
    if (!parallel_is_stale(p) && p->flush > 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with 'flush' (expected 'pipedream', '2bw' or 'delayed': others "
                         "flush after every minibatch)",
                         pipeline_schedule_names[p->schedule]);
    if (!pipeline_is_asynchronous(p->schedule)) return STATUS_OK;
    if (job->packs)
        return error_set(err, STATUS_BAD_INPUT, "schedule '%s' with 'packing' (expected a synchronous one)",
                         pipeline_schedule_names[p->schedule]);
    if (p->replicated > 0 && (p->flush > 0 || job->evaluation.every > 0))
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule '%s' with 'replicas' and %s (expected none: stages update at their "
                         "own pace)",
                         pipeline_schedule_names[p->schedule], p->flush > 0 ? "'flush'" : "'evaluate'");
    bool alike = p->replicated == 0; /* check_replicas() has checked others */
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
    if (job->packs)
        return error_set(err, STATUS_BAD_INPUT,
                         "schedule 'terapipe' with 'packing' (expected rows that are not packed)");
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
    if (job->gradients == PRECISION_BF16 && job->precision == PRECISION_BF16_WEIGHTS) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'gradients' of %s with 'precision' %s (expected %s, the same)",
                     precision_names[job->gradients], precision_names[job->precision],
                     precision_names[job->precision]);
}

static enum status check_compression(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    bool in_two = p->schedule >= PIPELINE_ZB_H1 && p->schedule <= PIPELINE_ZB_V;
    if (compression_is_set(&job->compression[COMPRESSION_BOUNDARIES]) && p->pipeline == 1)
        return error_set(err, STATUS_BAD_INPUT,
                         "'compression' of boundaries on one stage (expected 'pipeline' above 1)");
    uint64_t from = job->compression[COMPRESSION_BOUNDARIES].from;
    if (from >= parallel_pieces(&job->network))
        return error_set(err, STATUS_BAD_INPUT,
                         "'compression' of boundaries from %" PRIu64 " of %" PRIu64
                         " blocks on (expected an existing block)",
                         from, parallel_pieces(&job->network));
    for (uint32_t c = 0; c < COMPRESSION_COUNT && in_two; c++)
        if (c != COMPRESSION_GRADIENTS && compression_is_set(&job->compression[c]))
            return error_set(err, STATUS_BAD_INPUT,
                             "'compression' of %s with schedule '%s' (expected a schedule with undivided backward "
                             "passes)",
                             compression_names[c], pipeline_schedule_names[p->schedule]);
    if (!compression_is_set(&job->compression[COMPRESSION_GRADIENTS])) return STATUS_OK;
    if (p->data == 1)
        return error_set(err, STATUS_BAD_INPUT, "'compression' of gradients on one replica (expected 'data' above 1)");
    if (p->zero > ZERO_STATES)
        return error_set(err, STATUS_BAD_INPUT,
                         "'compression' of gradients with 'zero' %" PRIu32
                         " (expected 0 or 1: their sum is compressed)",
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
        return error_set(err, STATUS_LIMIT, "%" PRIu32 " chunks of layers to balance (limit is %d)",
                         parallel_cut_count(p), PARALLEL_CUTS_MAX);
    if (p->partition == PARALLEL_RANNC && parallel_buckets(p) > 1)
        return error_set(err, STATUS_BAD_INPUT, "'partition' 'rannc' with %" PRIu32 " buckets (expected 1)",
                         p->buckets);
    if (p->partition == PARALLEL_RANNC && (p->schedule != PIPELINE_1F1B || p->chunks > 1))
        return error_set(err, STATUS_BAD_INPUT,
                         "'partition' 'rannc' with schedule '%s' of %" PRIu32 " chunks (expected '1f1b' of 1)",
                         pipeline_schedule_names[p->schedule], p->chunks);
    if (p->partition == PARALLEL_RANNC && p->replicated > 0 && p->cuts == 0)
        return error_set(err, STATUS_BAD_INPUT, "'partition' 'rannc' with 'replicas' (expected none: it chooses them)");
    if (p->cuts == 0) return STATUS_OK;
    if (p->cuts != parallel_cut_count(p))
        return error_set(err, STATUS_BAD_INPUT, "'cut' into %" PRIu32 " chunks of layers (expected %" PRIu32
                         ": stages times chunks)", p->cuts, parallel_cut_count(p));
    for (uint32_t r = 0; r < p->cuts; r++) sum += p->cut_lengths[r];
    if (sum == parallel_pieces(&job->network)) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'cut' of %" PRIu64 " blocks in all (expected %" PRIu64 ")", sum,
                     parallel_pieces(&job->network));
}

static enum status check_division(const struct parallel *p, const char *what, uint64_t value,
                                  struct error *err)
{
    if (value % p->tensor == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT,
                     "tensor parallelism of %" PRIu32 " with %" PRIu64 " %s (expected a multiple of %" PRIu32 ")",
                     p->tensor, value, what, p->tensor);
}

/* Refuses features that parallel jobs lack. */
static enum status check_wishes(const struct job *job, struct error *err)
{
    const bool flushes = job->parallel.flush > 0 && job->parallel.delayed;
    if (job->evaluation.every == 0 && !job_clips(job) && !flushes) return STATUS_OK;
    const char *wish = job_clips(job) ? "'clip'" : job->evaluation.every > 0 ? "'evaluate'" : "'flush'";
    const char *why = parallel_only_simulated(NULL, job);
    if (why) return error_set(err, STATUS_BAD_INPUT, "%s in a parallel job with %s (expected none)", wish, why);
    if (job->parallel.carrying == PARALLEL_SIMULATED)
        return error_set(err, STATUS_BAD_INPUT, "%s in a parallel job that is only simulated (expected none)", wish);
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
        return error_set(err, STATUS_BAD_INPUT,
                         "scattered boundaries %s (expected 'tensor' above 1 without 'sequence')",
                         p->tensor == 1 ? "without tensor parallelism" : "with sequence parallelism");
    if (p->tensor == 1) return STATUS_OK;
    if (network_is_listed(n))
        return error_set(err, STATUS_BAD_INPUT, "tensor parallelism of a network %s (expected 1)",
                         n->graph ? "of operations" : "known only by its profile");
    TRY(check_division(p, "attention heads", n->heads, err));
    TRY(check_division(p, "heads of keys and values", network_kv_heads(n), err));
    TRY(check_division(p, "columns of the feed-forward part", n->ff_width, err));
    TRY(check_division(p, "columns of the part for all tokens", n->shared_width, err));
    TRY(check_division(p, "columns of blocks without experts", n->dense_width, err));
    if (!p->sequence) return STATUS_OK;
    TRY(check_division(p, "tokens", job->sequence, err));
    return check_division(p, "tokens of encoder and decoder", network_tokens(n, job->sequence), err);
}

bool parallel_divides_tokens(const struct job *job, uint32_t tensor)
{
    return tensor > 1 && job->sequence % tensor == 0 && network_tokens(&job->network, job->sequence) % tensor == 0;
}

/* A tree over all microbatches has a replica's as a branch if their number is a power of two. */
static enum status check_tree(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    const uint64_t each = p->replicated > 0 ? 0 : job->microbatches / p->data;
    if (!job_sums_as_tree(job)) return STATUS_OK;
    const char *why = parallel_only_simulated(NULL, job);
    const bool several = each * parallel_slices(p) > 1; /* passes, whose gradients replicas do not keep */
    if (p->replicated > 0) why = "unequal replicas, whose sums are no branches of one tree";
    if (parallel_splits(p, ZERO_GRADIENTS) && several)
        why = "split gradients and several passes of a replica, whose sum none keeps (expected 'zero' 0 or 1, or one "
              "microbatch of each replica)";
    if (pipeline_is_asynchronous(p->schedule)) why = "a schedule without a flush";
    if (job->gradients != PRECISION_FP32 || compression_is_set(&job->compression[COMPRESSION_GRADIENTS]))
        why = "encoded gradients";
    if (why) return error_set(err, STATUS_BAD_INPUT, "'sum' 'tree' with %s", why);
    if (p->carrying == PARALLEL_SIMULATED)
        return error_set(err, STATUS_BAD_INPUT, "'sum' 'tree' of a job that is only simulated");
    if (p->data == 1 || (each & (each - 1)) == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'sum' 'tree' with %" PRIu64 " microbatches on each of %" PRIu32
                     " replicas (expected a power of two)", each, p->data);
}

/* Returns what pieces of products cannot go with, or NULL. */
static const char *without_pieces(const struct job *job)
{
    const struct parallel *p = &job->parallel;
    const bool splits = parallel_splits(p, ZERO_STATES) || p->offload != OFFLOAD_NOTHING;
    const struct {
        bool is;
        const char *what;
    } ways[] = {
        {p->carrying == PARALLEL_SIMULATED, "a job that is only simulated"},
        {network_is_listed(&job->network) || !job->network.causal, "a network that is not a causal decoder"},
        {p->sequence, "sequence parallelism"},
        {p->schedule == PIPELINE_TERAPIPE, "slices of tokens (schedule 'terapipe')"},
        {job->precision != PRECISION_FP32 || job->optimizer.moments != PRECISION_FP32,
         "numbers of 16 bits (expected 'precision' and 'moments' fp32)"},
        {job->gradients != PRECISION_FP32, "encoded gradients"},
        {compression_is_set(&job->compression[COMPRESSION_GRADIENTS]), "encoded gradients"},
        {compression_is_set(&job->compression[COMPRESSION_BOUNDARIES]), "encoded boundaries"},
        {compression_is_set(&job->compression[COMPRESSION_ACTIVATIONS]), "encoded activations"},
        {job_clips(job) && splits, "'clip' of split or offloaded states"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++)
        if (ways[i].is) return ways[i].what;
    return parallel_only_simulated(NULL, job);
}

static enum status check_piece(const struct parallel *p, const char *what, uint64_t value, struct error *err)
{
    if (value % p->tensor_pieces == 0) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'tensor_pieces' %" PRIu32 " with %" PRIu64 " %s (expected a divisor)",
                     p->tensor_pieces, value, what);
}

static enum status check_pieces(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    if (p->tensor_pieces == 0) return STATUS_OK;
    const char *what = without_pieces(job);
    if (what) return error_set(err, STATUS_BAD_INPUT, "'tensor_pieces' with %s", what);
    if (p->tensor_pieces == 1 || (p->tensor_pieces & (p->tensor_pieces - 1)) != 0 || p->tensor_pieces % p->tensor != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'tensor_pieces' %" PRIu32 " on %" PRIu32
                         " device%s of a tensor group (expected a power of two from 2 on that they divide)",
                         p->tensor_pieces, p->tensor, p->tensor > 1 ? "s" : "");
    TRY(check_piece(p, "attention heads", job->network.heads, err));
    TRY(check_piece(p, "heads of keys and values", network_kv_heads(&job->network), err));
    TRY(check_piece(p, "columns of the part for all tokens", job->network.shared_width, err));
    TRY(check_piece(p, "columns of blocks without experts", job->network.dense_width, err));
    return check_piece(p, "columns of the feed-forward part", job->network.ff_width, err);
}

/* Checks a job with frozen tensors or adapters. */
static enum status check_trained(const struct job *job, struct error *err)
{
    const struct parallel *p = &job->parallel;
    const char *const key = job->adapter.rank > 0 ? "adapter" : "freeze";
    const struct {
        bool is;
        const char *what;
    } ways[] = {
        {p->tensor_pieces > 0, "'tensor_pieces'"},
    };
    if (!job->network.trained) return STATUS_OK;
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++)
        if (ways[i].is)
            return error_set(err, STATUS_BAD_INPUT, "'parallel' with %s beside '%s' is not supported (expected none)",
                             ways[i].what, key);
    return STATUS_OK;
}

enum status parallel_check(const struct job *job, struct error *err)
{
    if (!parallel_is_set(&job->parallel)) return STATUS_OK;
    TRY(check_trained(job, err));
    TRY(check_wishes(job, err));
    TRY(check_replicas(job, err));
    TRY(check_schedule(job, err));
    TRY(check_asynchronous(job, err));
    TRY(check_slices(job, err));
    TRY(parallel_offload_check(job, err));
    TRY(check_gradients(job, err));
    TRY(check_compression(job, err));
    TRY(check_cuts(job, err));
    TRY(check_tree(job, err));
    TRY(check_pieces(job, err));
    TRY(check_buckets(job, err));
    return check_tensor(job, err);
}
