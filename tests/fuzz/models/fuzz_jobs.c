/*
 * jobs.json on any bytes: refused with a message, or jobs whose sizes stay within 62 bits and which
 * write themselves as a text that reads back to the same text.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "models/jobs/jobs_file.h"
#include "models/job/memory.h"
#include "tests/support/fuzz_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask_job(const struct job *job)
{
    const uint64_t sane = UINT64_C(1) << 62, layers = job->network.layer_count;
    assert(job->name[0] && job->minibatches > 0 && job->microbatch > 0 && job->sequence > 0);
    assert(job->optimizer.learning_rate > 0);
    assert(!job->data == (job->data_format == DATA_NONE));
    assert(memory_activation_bytes(&job->network, 0, layers, job->microbatch, job->sequence, PRECISION_FP32) <
           sane);
    for (uint32_t pass = 0; pass < 3; pass++)
        assert(memory_workspace_bytes(&job->network, 0, layers, (enum unit_pass)pass, false,
                                      job->microbatch, job->sequence) < sane);
}

static void ask(const void *what)
{
    const struct job_set *set = what;
    assert(set->count > 0 && set->count <= JOB_COUNT_MAX);
    for (uint32_t i = 0; i < set->count && i < 8; i++) ask_job(&set->jobs[i]);
}

static enum status parse(const struct json_input *in, void *out, struct error *err)
{
    return job_set_parse(in, json_input_root(in), "/no/such/folder", out, err);
}

static void write_what(const void *what, struct json_out *out)
{
    const struct job_set *set = what;
    job_set_write(set->jobs, set->count, NULL, out, NULL);
}

static void release(void *what) { job_set_release(what); }

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct fuzz_reader reader = {sizeof(struct job_set), parse, write_what, ask, release, ""};
    fuzz_reader_run(&reader, data, size);
    return 0;
}
