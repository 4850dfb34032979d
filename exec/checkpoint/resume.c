/*
 * A whole network counts as one shard here. A state is read only if its weights are to be written, one job at a time.
 * Data that cannot be opened are no reason to refuse: the job may be complete; if not, the run reports the fault.
 */
#include "exec/checkpoint/resume.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/try.h"
#include "exec/files/data.h"
#include "exec/files/weights.h"
#include "models/jobs/job_files.h"

/* Fills what a job freezes, which is not in its checkpoints, and notes its fingerprint. */
static enum status fill_frozen(struct checkpoint_subject *subject, float *state, struct error *err)
{
    float *const states[] = {state};
    if (!subject->job->network.trained) return STATUS_OK;
    if (subject->job->weights_in) TRY(weights_read(subject->job, subject->tables, 1, states, err));
    else weights_init(subject->job, subject->tables, state);
    subject->knows_frozen = true;
    subject->frozen = weights_frozen_fingerprint(subject->job, subject->tables, 1, states);
    return STATUS_OK;
}

/* The network's frozen weights are written, too: its whole state is made. */
static enum status write_complete(const char *folder, struct checkpoint_subject subject,
                                  uint64_t step, const char *path, struct arena *arena, struct error *err)
{
    const struct job *const job = subject.job;
    struct state_tables tables;
    struct state_format format = job_state_format(job);
    format.apart = false;
    if (job->network.trained) {
        TRY(memory_state_tables(&job->network, 0, job->network.layer_count, format, arena, &tables, err));
        subject.tables = &tables;
    }
    const uint64_t bytes = subject.tables->layout.bytes;
    float *const state = alloc_resize(NULL, bytes);
    float *const states[] = {state};
    subject.states = states;
    enum status status = STATUS_OK;
    if (!state) status = error_memory(err, "the weights of a job", bytes);
    if (status == STATUS_OK) status = fill_frozen(&subject, state, err);
    if (status == STATUS_OK)
        status = checkpoint_read(&disk_real, folder, &subject, step, NULL, NULL, err);
    if (status == STATUS_OK)
        status = weights_write(job, subject.tables, 1, states, path, err);
    if (status == STATUS_OK) job_partial_remove(path);
    free(state);
    return status;
}

static uint64_t tokens_of(const struct job *job, bool held_out)
{
    struct data_source *source = NULL;
    struct error ignored = {0};
    const enum status status =
        held_out ? data_open_held_out(job, &source, &ignored) : data_open(job, &source, &ignored);
    const uint64_t tokens = status == STATUS_OK ? data_tokens(source) : CHECKPOINT_ANY_TOKENS;
    data_close(source);
    return tokens;
}

static enum status look_at(const struct job *job, const char *folder, bool write_weights,
                           struct arena *arena, struct resume_job *out, struct error *err)
{
    struct memory_table parameters = {0};
    TRY(memory_parameters(&job->network, 0, job->network.layer_count, arena, &parameters, err));
    const struct state_tables values = state_tables_of_values(parameters);
    const struct checkpoint_subject subject = {
        .job = job,
        .data_tokens = tokens_of(job, false),
        .held_out_tokens = job->evaluation.every > 0 ? tokens_of(job, true) : 0,
        .tables = &values,
        .shard_count = 1,
    };
    TRY(checkpoint_find(&disk_real, folder, &subject, &out->found, err));
    const uint64_t end = job->first_minibatch + job->minibatches;
    if (out->found.step > end)
        return error_set(err, STATUS_BAD_INPUT,
                         "job '%s' has a checkpoint after %llu minibatches, and the plan ends after %llu",
                         job->name, (unsigned long long)out->found.step, (unsigned long long)end);
    out->complete = out->found.step == end;
    if (!out->complete || !write_weights || !job->weights_out) return STATUS_OK;
    TRY(write_complete(folder, subject, out->found.step, job->weights_out, arena, err));
    out->weights_path = job->weights_out;
    if (!job->keep_best || out->found.best_step == 0) return STATUS_OK;
    enum status status = write_complete(folder, subject, out->found.best_step, job->weights_best, arena, err);
    if (status != STATUS_OK) return error_add(err, "the weights of the best evaluation");
    out->best_path = job->weights_best;
    return STATUS_OK;
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
