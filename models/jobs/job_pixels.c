#include "models/jobs/job_pixels.h"

#include <inttypes.h>

#include "base/json/json_out.h"
#include "base/try.h"

static const double MEAN_MAX = 1e6, DEVIATION_MIN = 1e-6, DEVIATION_MAX = 1e6;

/* Takes a number, or one for each channel. Returns their count in *count. */
static enum status read_numbers(struct json_object *object, const char *key, double least, double most,
                                double out[PIXEL_CHANNELS_MAX], uint32_t *count, struct error *err)
{
    const json_t *array = NULL;
    if (!json_is_array(json_object_get(object->value, key))) {
        *count = 1;
        return json_take_double(object, key, JSON_REQUIRED, least, most, &out[0], err);
    }
    TRY(json_take_array(object, key, JSON_REQUIRED, &array, err));
    const size_t size = json_array_size(array);
    if (size == 0 || size > PIXEL_CHANNELS_MAX)
        return json_fail_key(object->input, object->value, key, err, "'%s' has %zu numbers (expected 1 to %d)", key,
                             size, PIXEL_CHANNELS_MAX);
    for (size_t i = 0; i < size; i++) TRY(json_item_double(object->input, array, i, least, most, &out[i], err));
    *count = (uint32_t)size;
    return STATUS_OK;
}

static enum status read_scale(const struct job_draft *draft, struct pixel_scale *out, struct error *err)
{
    struct json_object object;
    uint32_t means = 0, deviations = 0;
    TRY(json_object_open(&object, draft->in, draft->normalize, "a normalization", err));
    TRY(read_numbers(&object, "mean", -MEAN_MAX, MEAN_MAX, out->mean, &means, err));
    TRY(read_numbers(&object, "std", DEVIATION_MIN, DEVIATION_MAX, out->deviation, &deviations, err));
    TRY(json_object_close(&object, err));
    if (means != deviations)
        return json_fail_key(draft->in, draft->normalize, "std", err,
                             "'std' has %" PRIu32 " numbers and 'mean' %" PRIu32 " (expected equally many)", deviations,
                             means);
    out->count = means;
    return STATUS_OK;
}

enum status job_pixels_resolve(struct job_draft *draft, struct error *err)
{
    struct job *const job = &draft->job;
    const struct network *const n = &job->network;
    if (!draft->normalize) return STATUS_OK;
    TRY(read_scale(draft, &job->pixels, err));
    if (!job_draft_reads_images(n) || (job->data_format == DATA_NONE && !job->evaluation.data))
        return json_fail_key(draft->in, job_draft_giver(draft, "normalize"), "normalize", err,
                             "'normalize' is for files of images (found %s)",
                             job_draft_reads_images(n) ? "a job without 'data'" : "a network that reads none");
    if (job->pixels.count == 1 || job->pixels.count == n->channels) return STATUS_OK;
    return json_fail_key(draft->in, draft->normalize, "mean", err,
                         "'mean' has %" PRIu32 " numbers, and the images of network '%s' have %" PRIu64
                         " channels (expected one number, or one for each)", job->pixels.count, n->name, n->channels);
}

static void write_numbers(const double *numbers, uint32_t count, struct json_out *out, const char *key)
{
    if (count == 1) {
        json_out_double(out, key, numbers[0]);
        return;
    }
    json_out_array_begin(out, key, true);
    for (uint32_t i = 0; i < count; i++) json_out_double(out, NULL, numbers[i]);
    json_out_array_end(out);
}

void job_pixels_write(const struct job *job, struct json_out *out)
{
    if (job->pixels.count == 0) return;
    json_out_object_begin(out, "normalize", true);
    write_numbers(job->pixels.mean, job->pixels.count, out, "mean");
    write_numbers(job->pixels.deviation, job->pixels.count, out, "std");
    json_out_object_end(out);
}
