#include "exec/run/run_outputs.h"

#include <inttypes.h>
#include <string.h>

#include "base/try.h"
#include "exec/run/run_callbacks.h"
#include "exec/state/run_faults.h"

static enum status put_in_order(struct run *run, uint32_t job, struct error *err)
{
    const struct job *const about = &run->plan->jobs.jobs[job];
    const uint64_t samples = data_samples(run->sources[job]);
    if (samples != about->outputs.samples)
        return error_set(err, STATUS_BAD_INPUT, "'%s' has %" PRIu64 " samples, and the plan %" PRIu64
                         " (the file has changed: plan again)", about->data, samples, about->outputs.samples);
    data_put_in_order(run->sources[job], run->held_out[job]);
    return STATUS_OK;
}

enum status run_outputs_open(struct run *run, struct error *err)
{
    for (uint32_t j = 0; j < run->plan->jobs.count; j++)
        if (job_makes_outputs(&run->plan->jobs.jobs[j]) && run->sources[j] && put_in_order(run, j, err))
            TRY(run_fail_early(run, j, err));
    return STATUS_OK;
}

/* --- making ------------------------------------------------------------------------------------ */

struct note_call {
    struct run *run;
    struct device *device; /* that the outputs come from */
    uint32_t job;
    uint64_t minibatch;
};

static void call_note(void *argument)
{
    const struct note_call *const call = argument;
    struct error lost = {0};
    if (device_failed(call->device, &lost) == STATUS_OK) run_take_loss(call->run, call->job, call->minibatch, 0);
}

void run_outputs_note(struct run *run, const struct plan_walk_op *op)
{
    const struct note_call call = {
        .run = run, .device = run->devices[op->device], .job = op->unit->job, .minibatch = op->minibatch};
    device_call(run->streams[op->stream], call_note, &call, sizeof call, NULL);
}

/* --- taking ------------------------------------------------------------------------------------ */

struct recall_call {
    struct run *run;
    struct run_flight *flight;
    uint64_t batch_index; /* of the data */
    bool held_out;
    const char *outputs;
    char *boundary;
};

/* Returns the row of a sample of the minibatch. */
static uint64_t row_of(const struct recall_call *call, uint64_t i)
{
    const struct job_set *const jobs = &call->run->plan->jobs;
    const struct job *const job = &jobs->jobs[call->flight->unit->job];
    const uint64_t sample = call->batch_index * job_samples(job) + i;
    if (call->held_out) return jobs->jobs[job->outputs.maker].outputs.samples + sample;
    return data_sample(call->run->sources[call->flight->unit->job], sample);
}

static void copy_rows(const struct recall_call *call)
{
    const struct job *const job = &call->run->plan->jobs.jobs[call->flight->unit->job];
    const uint64_t bytes = job_output_bytes(job);
    for (uint64_t i = 0; i < job_samples(job); i++)
        memcpy(call->boundary + i * bytes, call->outputs + row_of(call, i) * bytes, bytes);
}

/* Returns true if all outputs were made. */
static bool are_made(const struct recall_call *call)
{
    struct run *const run = call->run;
    const struct job_set *const jobs = &run->plan->jobs;
    const uint32_t job = call->flight->unit->job, maker = jobs->jobs[job].outputs.maker;
    pthread_mutex_lock(&run->lock);
    const bool made = run->jobs[maker].losses == jobs->jobs[maker].minibatches;
    pthread_mutex_unlock(&run->lock);
    return made;
}

static void call_recall(void *argument)
{
    const struct recall_call *const call = argument;
    const uint32_t job = call->flight->unit->job;
    struct error why = {0};
    if (!run_begin_minibatch(call->run, job, call->flight->minibatch)) {
        call->flight->omitted = true;
    } else if (are_made(call)) {
        copy_rows(call);
    } else {
        error_set(&why, STATUS_CHECK, "the outputs of its first layers were not made");
        memset(call->boundary, 0, job_samples(&call->run->plan->jobs.jobs[job]) *
                                      job_output_bytes(&call->run->plan->jobs.jobs[job]));
        run_fail_job(call->run, job, false, &why);
    }
}

void run_outputs_recall(struct run *run, const struct plan_walk_op *op, const char *outputs, char *boundary,
                        struct run_flight *flight)
{
    const struct recall_call call = {.run = run,
                                     .flight = flight,
                                     .batch_index = run_batch_index(&run->plan->jobs.jobs[op->unit->job], op),
                                     .held_out = op->unit->pass == PLAN_EVALUATE,
                                     .outputs = outputs,
                                     .boundary = boundary};
    device_call(run->streams[op->stream], call_recall, &call, sizeof call, &flight->timing);
}
