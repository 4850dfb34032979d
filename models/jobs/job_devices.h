/* "devices": [2, 3] of a job. */
#ifndef SPILLWAY_MODELS_JOBS_JOB_DEVICES_H
#define SPILLWAY_MODELS_JOBS_JOB_DEVICES_H

#include "base/json/json_in.h"
#include "models/job/job.h"

/*
 * Reads the array under "devices" of `owner`; may be NULL. The job's parallelism must be known. Errors:
 * STATUS_BAD_INPUT for an empty array, a device named twice, or a number that is not the number of ranks.
 */
MUST_CHECK enum status job_devices_read(const struct json_input *in, const json_t *owner, const json_t *array,
                                        struct arena *arena, struct job *job, struct error *err);

/* Writes nothing if the job names none. */
void job_devices_write(const struct job *job, struct json_out *out);

#endif
