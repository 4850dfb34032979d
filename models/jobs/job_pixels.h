/*
 * The key "normalize" of a job (models/job/pixels.h):
 *
 *     "normalize": {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
 *
 * with a number for each channel of the network's images, or one for all: {"mean": 0.5, "std": 0.5}.
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_PIXELS_H
#define SPILLWAY_MODELS_JOBS_JOB_PIXELS_H

#include "models/jobs/job_draft.h"

/* Fills in the job's pixels. Errors: STATUS_BAD_INPUT, also for a job without files of images. */
MUST_CHECK enum status job_pixels_resolve(struct job_draft *draft, struct error *err);

struct json_out;
void job_pixels_write(const struct job *job, struct json_out *out);

#endif
