#include "cli/machine/cli_measured.h"

#include <inttypes.h>

#include "base/try.h"

/* Paths and messages may have control characters: what is shown leaves them out, and no training is lost for a name. */
static enum status read_job(const struct json_input *in, const json_t *array, size_t index,
                            struct cli_measured_job *out, struct error *err)
{
    struct json_object object;
    TRY(json_object_open_at(&object, in, array, index, "a job", err));
    json_object_ignore_others(&object);
    TRY(json_take_u64(&object, "minibatches", JSON_REQUIRED, 0, INT64_MAX, &out->minibatches, err));
    TRY(json_take_double(&object, "tokens_per_s", JSON_REQUIRED, 0, 1e18, &out->tokens_per_s, err));
    TRY(json_take_double(&object, "first_loss", JSON_OPTIONAL, -1e300, 1e300, &out->first_loss, err));
    TRY(json_take_double(&object, "final_loss", JSON_OPTIONAL, -1e300, 1e300, &out->final_loss, err));
    TRY(json_take_double(&object, "time_s", JSON_OPTIONAL, 0, 1e15, &out->seconds, err));
    TRY(json_take_u64(&object, "nonfinite_losses", JSON_OPTIONAL, 0, INT64_MAX, &out->nonfinite_losses, err));
    TRY(json_take_u64(&object, "skipped_steps", JSON_OPTIONAL, 0, INT64_MAX, &out->skipped_steps, err));
    TRY(json_take_text(&object, "weights_path", JSON_OPTIONAL, &out->weights_path, err));
    TRY(json_take_u64(&object, "checkpoint", JSON_OPTIONAL, 0, INT64_MAX, &out->checkpoint, err));
    TRY(json_take_text(&object, "failure", JSON_OPTIONAL, &out->failure, err));
    TRY(json_take_text(&object, "checkpoint_failure", JSON_OPTIONAL, &out->checkpoint_failure, err));
    TRY(cli_evaluation_read(&object, &out->evaluation, err));
    out->has_first_loss = json_has(&object, "first_loss");
    out->has_loss = json_has(&object, "final_loss");
    return STATUS_OK;
}

static enum status read_streams(struct json_object *result, uint32_t count, struct cli_measured *out,
                                struct error *err)
{
    const json_t *streams;
    TRY(json_take_array(result, "streams", JSON_REQUIRED, &streams, err));
    TRY(ARENA_NEW(&out->arena, count, out->busy_s, err));
    if (json_array_size(streams) != count)
        return json_fail_key(out->in, result->value, "streams", err,
                             "the result has %zu streams and the plan %" PRIu32,
                             json_array_size(streams), count);
    for (uint32_t s = 0; s < count; s++) {
        struct json_object stream;
        TRY(json_object_open_at(&stream, out->in, streams, s, "a stream", err));
        json_object_ignore_others(&stream);
        TRY(json_take_double(&stream, "busy_s", JSON_REQUIRED, 0, 1e15, &out->busy_s[s], err));
    }
    return STATUS_OK;
}

static enum status read_load(struct json_object *result, struct load *out, struct error *err)
{
    struct json_object load;
    const json_t *value = NULL;
    TRY(json_take_object(result, "load", JSON_OPTIONAL, &value, err));
    if (!value) return STATUS_OK;
    TRY(json_object_open(&load, result->input, value, "a load object", err));
    json_object_ignore_others(&load);
    TRY(json_take_double(&load, "others", JSON_REQUIRED, 0, 1, &out->others, err));
    TRY(json_take_double(&load, "stolen", JSON_REQUIRED, 0, 1, &out->stolen, err));
    TRY(json_take_double(&load, "own", JSON_OPTIONAL, 0, 1, &out->own, err));
    return json_take_double(&load, "waited", JSON_REQUIRED, 0, 1e9, &out->waited, err);
}

enum status cli_measured_read(const char *path, const struct plan *plan, struct cli_measured *out,
                              struct error *err)
{
    const uint32_t job_count = plan->jobs.count;
    struct json_object object;
    const json_t *jobs;
    uint64_t version;
    TRY(json_input_read(path, &out->in, err));
    TRY(json_object_open(&object, out->in, json_input_root(out->in), "the result of a run", err));
    json_object_ignore_others(&object);
    TRY(json_take_u64(&object, "spillway_run", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_bool(&object, "stopped", JSON_REQUIRED, &out->stopped, err));
    TRY(json_take_double(&object, "makespan_s", JSON_REQUIRED, 0, 1e15, &out->makespan_s, err));
    TRY(json_take_double(&object, "setup_s", JSON_REQUIRED, 0, 1e15, &out->setup_s, err));
    TRY(json_take_double(&object, "tokens_per_s", JSON_REQUIRED, 0, 1e18, &out->tokens_per_s, err));
    TRY(json_take_string(&object, "libraries", JSON_REQUIRED, &out->libraries, err));
    TRY(read_load(&object, &out->load, err));
    TRY(json_take_double(&object, "late", JSON_OPTIONAL, 0, 1, &out->late, err));
    TRY(json_take_text(&object, "trace", JSON_OPTIONAL, &out->trace_path, err));
    TRY(json_take_text(&object, "log", JSON_OPTIONAL, &out->log_path, err));
    TRY(json_take_text(&object, "executed_order", JSON_OPTIONAL, &out->executed_order_path, err));
    TRY(json_take_text(&object, "unwritten", JSON_OPTIONAL, &out->unwritten, err));
    TRY(read_streams(&object, plan_stream_count(plan), out, err));
    TRY(json_take_array(&object, "jobs", JSON_REQUIRED, &jobs, err));
    if (json_array_size(jobs) != job_count)
        return json_fail_key(out->in, object.value, "jobs", err,
                             "the result has %zu jobs and the plan %" PRIu32,
                             json_array_size(jobs), job_count);
    TRY(ARENA_NEW(&out->arena, job_count, out->jobs, err));
    for (uint32_t j = 0; j < job_count; j++)
        if (read_job(out->in, jobs, j, &out->jobs[j], err) != STATUS_OK)
            return err->status;
        else
            out->failed += out->jobs[j].failure != NULL;
    return STATUS_OK;
}

void cli_measured_release(struct cli_measured *measured)
{
    json_input_destroy(measured->in);
    arena_release(&measured->arena);
    *measured = (struct cli_measured){0};
}
