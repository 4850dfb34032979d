/* Networks are compared by their written form, which is all that plans keep of them. */
#include "models/jobs/job_outputs.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/extreme.h"
#include "base/hash.h"
#include "base/json/json_out.h"
#include "base/random.h"
#include "base/try.h"
#include "models/job/parallel.h"
#include "models/jobs/job_base.h"
#include "models/jobs/job_rows.h"
#include "models/network/network_ignored.h"
#include "models/rows/rows_set.h"

uint64_t job_outputs_most(const struct job *job, const char **why)
{
    const struct network *n = &job->network;
    const uint64_t first = min_u64(network_first_trained(n), n->layer_count - 1);
    const bool embedding = network_layer_kind(n, 0) == LAYER_EMBEDDING;
    *why = first < 2 || !embedding ? "its first blocks are not frozen ('freeze')"
           : job->data_format != DATA_ROWS ? "its samples do not return: 'data' is no file of rows"
           : job->evaluation.every > 0 && job->evaluation.data && job->evaluation.data_format != DATA_ROWS
               ? "its held-out data is no file of rows"
           : network_drops(n) ? "its frozen layers drop numbers ('dropout')"
           : n->experts > 0 ? "a product of its experts has the rows of several samples"
           : parallel_is_set(&job->parallel) ? "it is a parallel job"
           : job->devices ? "it has devices for itself ('devices')"
           : job->shares_base ? "it shares a base" : NULL;
    return *why ? 0 : first;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Returns the network as it is written, to be destroyed; NULL without memory. */
static struct json_out *written(const struct network *network)
{
    struct json_out *out = json_out_create(NULL);
    if (!out) return NULL;
    json_out_object_begin(out, NULL, true);
    network_write(network, out, "network");
    json_out_object_end(out);
    if (json_out_complete(out)) return out;
    json_out_destroy(out);
    return NULL;
}

static bool same_network(const struct network *a, const struct network *b)
{
    struct json_out *one = written(a), *other = written(b);
    const bool same = one && other && strcmp(json_out_text(one, NULL), json_out_text(other, NULL)) == 0;
    json_out_destroy(one);
    json_out_destroy(other);
    return same;
}

/* Counts the held-out samples of an evaluation. */
static uint64_t held_out_of(const struct job *job)
{
    return job->evaluation.every > 0 ? job->evaluation.minibatches * job_samples(job) : 0;
}

static bool same_rows(const struct job *a, const struct job *b)
{
    const struct job_evaluation *x = &a->evaluation, *y = &b->evaluation;
    if (!same_text(a->data, b->data) || a->data_format != b->data_format || a->packs != b->packs ||
        a->skips_long != b->skips_long || (x->every > 0) != (y->every > 0) ||
        (a->packs && x->split_seed != y->split_seed))
        return false;
    if (x->every == 0) return true;
    if (!same_text(x->data, y->data)) return false;
    return x->data || (!(x->share < y->share) && !(y->share < x->share) && x->split_seed == y->split_seed);
}

const char *job_outputs_differ(const struct job *a, const struct job *b, char text[JOB_OUTPUTS_TEXT])
{
    const char *what = a->precision != b->precision ? "they have different precisions"
                       : a->sequence != b->sequence ? "they have different lengths ('sequence')"
                       : held_out_of(a) != held_out_of(b) ? "they have different numbers of held-out samples"
                       : !same_rows(a, b) ? "they have different rows, or hold out others"
                       : !same_text(a->weights_in, b->weights_in) ? "they have different 'weights_in'"
                       : !a->weights_in && job_base_seed(a) != job_base_seed(b)
                           ? "their weights come from different seeds (expected 'weights_in', or one name in 'base')"
                       : !same_network(&a->network, &b->network) ? "they have different networks" : NULL;
    if (!what) return NULL;
    snprintf(text, JOB_OUTPUTS_TEXT, "%s", what);
    return text;
}

static void mix(uint64_t *hash, uint64_t value) { *hash = random_mix(*hash ^ value); }

static void mix_text(uint64_t *hash, const char *text)
{
    mix(hash, text ? hash_bytes(HASH_BEGIN, text, strlen(text)) : 0);
}

enum status job_outputs_fingerprint(const struct job *job, uint64_t *out, struct error *err)
{
    const struct job_evaluation *e = &job->evaluation;
    struct json_out *network = written(&job->network);
    if (!network) return error_memory(err, "comparing networks", 1);
    *out = job->precision;
    mix(out, job->sequence);
    mix_text(out, job->data);
    mix(out, job->data_format << 2 | (job->packs ? 2u : 0u) | (job->skips_long ? 1u : 0u));
    mix(out, job->packs ? e->split_seed : 0);
    mix_text(out, job->weights_in);
    mix(out, job->weights_in ? 0 : job_base_seed(job));
    mix_text(out, json_out_text(network, NULL));
    json_out_destroy(network);
    if (e->every == 0) return STATUS_OK;
    uint64_t share = 0;
    memcpy(&share, &e->share, sizeof share);
    mix(out, held_out_of(job));
    mix_text(out, e->data);
    mix(out, e->data ? 0 : share);
    mix(out, e->data ? 0 : e->split_seed);
    return STATUS_OK;
}

enum status job_outputs_samples(const struct job *job, uint64_t *samples, uint64_t *held_out, struct error *err)
{
    *held_out = held_out_of(job);
    return job_rows_samples(job, samples, err);
}

enum status job_outputs_maker(const struct job *job, const char *name, uint64_t layers, uint64_t samples,
                              uint64_t held_out, struct arena *arena, struct job *out, struct error *err)
{
    uint64_t(*range)[2];
    *out = *job;
    TRY(ARENA_NEW(arena, 1, range, err));
    range[0][0] = 0;
    range[0][1] = layers - 1;
    out->name = name;
    out->freeze = (struct network_freeze){.layers = (const uint64_t(*)[2])range, .layer_count = 1};
    out->adapter = (struct job_adapter){0};
    out->optimizer = (struct job_optimizer){.kind = OPTIMIZER_SGD, .learning_rate = job->optimizer.learning_rate};
    out->microbatches = job_samples(job);
    out->microbatch = 1;
    out->batch = (struct job_batch){0};
    out->tree = false;
    out->seed = job_base_seed(job); /* of the weights, where they are in no file */
    out->base = NULL;
    out->weights_out = out->weights_best = NULL;
    out->keep_best = false;
    out->first_minibatch = 0;
    out->minibatches = (samples + held_out + job_samples(job) - 1) / job_samples(job);
    out->outputs = (struct job_outputs){.layers = layers, .makes = true, .samples = samples, .held_out = held_out};
    const struct network_adapters none = {.rank = 0};
    return network_train_only(&out->network, &out->freeze, &none, arena, &out->network.trained, err);
}
