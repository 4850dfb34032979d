#include "models/job/job.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"
#include "models/network/network_graph.h"
#include "models/network/network_trained.h"
#include "models/network/network_traits.h"

const char *const data_format_names[] = {
    [DATA_TEXT] = "text",
    [DATA_LLMC] = "llmc",
    [DATA_NANOGPT] = "nanogpt",
    [DATA_NONE] = "none",
    [DATA_CIFAR10] = "cifar10",
    [DATA_IMAGES] = "images",
    [DATA_ROWS] = "rows",
    [DATA_FOLDER] = "folder",
};
static_assert(ARRAY_COUNT(data_format_names) == DATA_FORMAT_COUNT, "a name per format");

const char *const decay_rule_names[] = {[DECAY_MATRICES] = "matrices", [DECAY_ALL] = "all"};
static_assert(ARRAY_COUNT(decay_rule_names) == DECAY_RULE_COUNT, "a name per rule");

const char *const rate_schedule_names[] = {
    [RATE_CONSTANT] = "constant", [RATE_LINEAR] = "linear", [RATE_COSINE] = "cosine"};
static_assert(ARRAY_COUNT(rate_schedule_names) == RATE_SCHEDULE_COUNT, "a name per schedule");

const char *const job_unit_names[] = {[JOB_TOKENS] = "tokens", [JOB_SAMPLES] = "samples", [JOB_IMAGES] = "images"};
static_assert(ARRAY_COUNT(job_unit_names) == JOB_UNIT_COUNT, "a name per unit");

enum job_unit job_unit(const struct job *job)
{
    const struct network *n = &job->network;
    if (n->family == NETWORK_VIT || (n->graph && n->image > 0)) return JOB_IMAGES;
    return n->family == NETWORK_PROFILE ? JOB_SAMPLES : JOB_TOKENS;
}

uint64_t job_sample_words(const struct job *job)
{
    const struct network *n = &job->network;
    const uint64_t tokens = parallel_sequence(job);
    if (n->family == NETWORK_BERT) return 3 * tokens;
    if (!network_traits(n)->decoder) return 0;
    if (job_has_labels(job)) return 2 * tokens;
    return network_tokens(n, tokens) + 1;
}

uint64_t job_image_labels(const struct job *job)
{
    const struct network_graph *const graph = job->network.graph;
    return graph ? graph->ops[graph->op_count - 1].side * graph->ops[graph->op_count - 1].side : 1;
}

uint64_t job_batch_bytes(const struct job *job)
{
    const struct network *n = &job->network;
    const uint64_t words = job_sample_words(job);
    if (words > 0) return job_samples(job) * words * sizeof(int32_t);
    if (job_unit(job) != JOB_IMAGES) return 0;
    return job_samples(job) * (job_image_labels(job) + n->channels * n->image * n->image) * sizeof(float);
}

uint64_t job_replica_batch_bytes(const struct job *job)
{
    if (!parallel_is_set(&job->parallel)) return job_batch_bytes(job);
    return job_batch_bytes(job) / job->microbatches * parallel_microbatches_read(job);
}

size_t optimizer_file_kind(const struct job_optimizer *optimizer)
{
    return optimizer->kind == OPTIMIZER_MOMENTUM ? OPTIMIZER_SGD : optimizer->kind;
}

enum status job_set_share(struct job_set *set, struct job_set *out, struct error *err)
{
    TRY(arena_share(&set->arena, &out->arena, err));
    TRY(ARENA_NEW(&out->arena, set->count, out->jobs, err));
    memcpy(out->jobs, set->jobs, set->count * sizeof *set->jobs);
    out->count = set->count;
    return STATUS_OK;
}

void job_set_release(struct job_set *set)
{
    arena_release(&set->arena);
    *set = (struct job_set){0};
}

double job_adapter_scale(const struct job_adapter *adapter)
{
    if (adapter->rank == 0) return 0;
    return adapter->alpha / (adapter->rslora ? sqrt((double)adapter->rank) : (double)adapter->rank);
}
