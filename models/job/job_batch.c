#include "models/job/job_batch.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json/json_out.h"
#include "base/try.h"
#include "models/job/job.h"

static const char steps_key[] = "gradient_accumulation_steps", samples_key[] = "train_batch_size";

enum status job_batch_read(struct json_object *o, struct job_batch *out, struct error *err)
{
    bool steps = json_has(o, steps_key), samples = json_has(o, samples_key);
    if (json_has(o, "microbatch")) out->microbatch = true;
    if (json_has(o, "microbatches")) *out = (struct job_batch){.microbatch = out->microbatch, .microbatches = true};
    else if (steps || samples) out->microbatches = false;
    TRY(json_take_u64(o, steps_key, JSON_OPTIONAL, 1, JOB_MICROBATCH_MAX, &out->steps, err));
    return json_take_u64(o, samples_key, JSON_OPTIONAL, 1, JOB_ROWS_MAX, &out->samples, err);
}

const char *job_batch_key(const struct job_batch *batch)
{
    return batch->samples > 0 ? samples_key : steps_key;
}

static uint64_t replicas_of(const struct job *job)
{
    return parallel_is_set(&job->parallel) ? job->parallel.data : 1;
}

/* Writes " x 4 replicas", or nothing for one. */
static const char *of_replicas(uint64_t replicas, char out[48])
{
    out[0] = '\0';
    if (replicas > 1) snprintf(out, 48, " x %" PRIu64 " replicas", replicas);
    return out;
}

/* Computes samples from two or all three values. */
static enum status settle_samples(struct job *job, uint64_t replicas, struct error *err)
{
    const struct job_batch *b = &job->batch;
    uint64_t steps = b->steps > 0 ? b->steps : 1, parts = replicas * steps;
    char each[48];
    if (b->microbatch && b->steps > 0 && job->microbatch * parts != b->samples)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' is %" PRIu64 " but microbatches of %" PRIu64 " x %" PRIu64 " accumulated%s are %" PRIu64
                         " samples",
                         samples_key, b->samples, job->microbatch, steps, of_replicas(replicas, each),
                         job->microbatch * parts);
    if (b->microbatch) parts = replicas * job->microbatch;
    if (b->samples % parts != 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' is %" PRIu64 " (expected a multiple of %" PRIu64 ": %s%" PRIu64 "%s)",
                         samples_key, b->samples, parts, b->microbatch ? "microbatches of " : "accumulated ",
                         b->microbatch ? job->microbatch : steps, of_replicas(replicas, each));
    if (!b->microbatch) job->microbatch = b->samples / parts;
    job->microbatches = b->samples / job->microbatch;
    return STATUS_OK;
}

static enum status check_count(const struct job *job, uint64_t said, uint64_t replicas, struct error *err)
{
    char each[48];
    if (job->batch.microbatches && job->microbatches != said)
        return error_set(err, STATUS_BAD_INPUT,
                         "'microbatches' is %" PRIu64 " for all replicas together, but '%s' %" PRIu64
                         "%s makes %" PRIu64,
                         said, job_batch_key(&job->batch),
                         job->batch.samples > 0 ? job->batch.samples : job->batch.steps, of_replicas(replicas, each),
                         job->microbatches);
    uint64_t samples = job_samples(job), tokens = network_tokens(&job->network, job->sequence);
    if (job->microbatch <= JOB_MICROBATCH_MAX && job->microbatches <= JOB_MICROBATCH_MAX &&
        samples <= JOB_ROWS_MAX && samples * tokens <= JOB_ROWS_MAX)
        return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "'%s': %" PRIu64 " microbatches of %" PRIu64 " x %" PRIu64
                     " tokens are too many for one minibatch (limit is %" PRIu64 " microbatches, %" PRIu64 " tokens)",
                     job_batch_key(&job->batch), job->microbatches, job->microbatch, tokens,
                     JOB_MICROBATCH_MAX, JOB_ROWS_MAX);
}

enum status job_batch_settle(struct job *job, struct error *err)
{
    const struct job_batch *b = &job->batch;
    struct job settled = *job;
    if (b->steps == 0 && b->samples == 0) return STATUS_OK;
    if (b->steps > 0 && job->parallel.replicated > 0)
        return error_set(err, STATUS_BAD_INPUT,
                         "'%s' counts for each replica, and 'replicas' gives stages different numbers of "
                         "replicas (expected 'microbatches', which counts for all of them)", steps_key);
    uint64_t replicas = replicas_of(job);
    settled.microbatches = b->steps * replicas;
    if (b->samples > 0) TRY(settle_samples(&settled, replicas, err));
    TRY(check_count(&settled, job->microbatches, replicas, err));
    *job = settled;
    return STATUS_OK;
}

/* Returns a replica's microbatches, if given in other terms and still true. */
static uint64_t steps_of(const struct job *job)
{
    const struct job_batch *b = &job->batch;
    uint64_t replicas = replicas_of(job);
    if ((b->steps == 0 && b->samples == 0) || job->microbatches % replicas != 0) return 0;
    uint64_t steps = job->microbatches / replicas;
    if ((b->steps > 0 && b->steps != steps) || (b->samples > 0 && b->samples != job_samples(job))) return 0;
    return steps;
}

void job_batch_write(const struct job *job, struct json_out *out)
{
    if (steps_of(job) == 0) return;
    if (job->batch.steps > 0) json_out_u64(out, steps_key, job->batch.steps);
    if (job->batch.samples > 0) json_out_u64(out, samples_key, job->batch.samples);
}

const char *job_batch_text(const struct job *job, char out[JOB_BATCH_TEXT_BYTES])
{
    uint64_t steps = steps_of(job);
    char each[48];
    out[0] = '\0';
    if (steps > 0)
        snprintf(out, JOB_BATCH_TEXT_BYTES,
                 "%" PRIu64 " sample%s x %" PRIu64 " accumulated%s = %" PRIu64 " a minibatch, in %" PRIu64
                 " microbatch%s",
                 job->microbatch, job->microbatch == 1 ? "" : "s", steps, of_replicas(replicas_of(job), each),
                 job_samples(job), job->microbatches, job->microbatches == 1 ? "" : "es");
    return out;
}
