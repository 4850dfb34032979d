/*
 * jobs.json on any bytes: refused with a message, or jobs whose sizes stay within 62 bits and which
 * write themselves as a text that reads back to the same text.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_out.h"
#include "models/job.h"
#include "models/memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const struct job *job)
{
    const uint64_t sane = UINT64_C(1) << 62, layers = job->network.layer_count;
    assert(job->name[0] && job->minibatches > 0 && job->microbatch > 0 && job->sequence > 0);
    assert(job->optimizer.learning_rate > 0);
    assert(!job->data == (job->data_format == DATA_NONE));
    assert(memory_activation_bytes(&job->network, 0, layers, job->microbatch, job->sequence) <
           sane);
    for (uint32_t pass = 0; pass < 3; pass++)
        assert(memory_workspace_bytes(&job->network, 0, layers, (enum unit_pass)pass, false,
                                      job->microbatch, job->sequence) < sane);
}

static enum status parse(const char *text, size_t size, struct job_set *out, struct error *err)
{
    struct json_input *in;
    enum status status = json_input_parse("fuzz", text, size, &in, err);
    if (status != STATUS_OK) return status;
    status = job_set_parse(in, json_input_root(in), "/no/such/folder", out, err);
    json_input_destroy(in);
    return status;
}

/* As a text; the caller frees it. */
static char *text_of(const struct job_set *set)
{
    size_t length;
    struct json_out *out = json_out_create(NULL);
    assert(out);
    job_set_write(set->jobs, set->count, out, NULL);
    assert(json_out_complete(out));
    char *copy = strdup(json_out_text(out, &length));
    assert(copy);
    json_out_destroy(out);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job_set set = {0}, again = {0};
    struct error err = {0};
    if (parse((const char *)data, size, &set, &err) == STATUS_OK) {
        assert(set.count > 0 && set.count <= JOBS_MAX);
        for (uint32_t i = 0; i < set.count && i < 8; i++) ask(&set.jobs[i]);
        char *first = text_of(&set);
        enum status status = parse(first, strlen(first), &again, &err);
        assert(status == STATUS_OK);
        char *second = text_of(&again);
        assert(strcmp(first, second) == 0);
        free(first);
        free(second);
    } else {
        assert(err.status != STATUS_OK && err.text[0]);
    }
    job_set_release(&set);
    job_set_release(&again);
    return 0;
}
