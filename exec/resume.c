/*
 * Looking needs no devices and no shards: a whole network is taken for one shard, in whose layout its
 * tensors are listed. A job's state is read only where its weights are to be written, one job at a
 * time.
 *
 * Data that cannot be opened are no reason to refuse: the job may be complete, and if not, the run will
 * say so.
 */
#include "exec/resume.h"

#include <stdlib.h>

#include "exec/data.h"
#include "exec/weights.h"

/* The weights of a complete job, from its checkpoint. */
static enum status write_complete(const char *folder, struct checkpoint_subject subject,
                                  uint64_t step, struct error *err)
{
    const struct job *const job = subject.job;
    const size_t words = 1 + (size_t)optimizer_state_words(job->optimizer.kind);
    float *const state = malloc(subject.parameters->bytes * words);
    double *const losses = malloc(step * sizeof *losses);
    float *const states[] = {state};
    subject.states = states;
    enum status status = STATUS_OK;
    if (!state || !losses)
        status = error_memory(err, "the state of a job", subject.parameters->bytes * words);
    if (status == STATUS_OK)
        status = checkpoint_read(&disk_real, folder, &subject, step, losses, NULL, err);
    if (status == STATUS_OK)
        status = weights_write(job, NULL, subject.parameters, 1, states, NULL, err);
    free(losses);
    free(state);
    return status;
}

static enum status look_at(const struct job *job, const char *folder, bool write_weights,
                           struct arena *arena, struct resume_job *out, struct error *err)
{
    struct memory_table parameters = {0};
    struct data_source *source = NULL;
    struct error ignored = {0};
    enum status status = memory_parameters(&job->network, 0, job->network.layer_count, arena,
                                           &parameters, err);
    if (status != STATUS_OK) return status;
    const bool data = data_open(job, &source, &ignored) == STATUS_OK;
    const struct checkpoint_subject subject = {
        .job = job,
        .data_tokens = data ? data_tokens(source) : CHECKPOINT_ANY_TOKENS,
        .parameters = &parameters,
        .shard_count = 1,
    };
    data_close(source);
    status = checkpoint_find(&disk_real, folder, &subject, &out->found, err);
    if (status != STATUS_OK) return status;
    const uint64_t end = job->first_minibatch + job->minibatches;
    if (out->found.step > end)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' has a checkpoint after %llu minibatches, and the plan ends after %llu",
                         job->name, (unsigned long long)out->found.step, (unsigned long long)end);
    out->complete = out->found.step == end;
    if (!out->complete || !write_weights || !job->weights_out) return STATUS_OK;
    status = write_complete(folder, subject, out->found.step, err);
    if (status == STATUS_OK) out->weights_path = job->weights_out;
    return status;
}

enum status resume_look(const struct plan *plan, const char *folder, bool write_weights,
                        struct resume_job *jobs, struct error *err)
{
    enum status status = STATUS_OK;
    for (uint32_t j = 0; j < plan->jobs.count && status == STATUS_OK; j++) {
        struct arena arena = {0};
        jobs[j] = (struct resume_job){.complete = false};
        status = look_at(&plan->jobs.jobs[j], folder, write_weights, &arena, &jobs[j], err);
        arena_release(&arena);
    }
    return status;
}
