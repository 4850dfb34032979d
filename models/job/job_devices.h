/* The devices that a job names, "devices": [2, 3], in files: a part of models/job/job.c. */
#ifndef SPILLWAY_MODELS_JOB_DEVICES_H
#define SPILLWAY_MODELS_JOB_DEVICES_H

#include "base/json/json_in.h"
#include "models/job/job.h"

/*
 * From the array under "devices" of `owner`; NULL: it names none. When the job's parallelism is known.
 * Errors: STATUS_BAD_INPUT for no devices, one twice, others than as many as ranks; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status job_devices_read(const struct json_input *in, const json_t *owner, const json_t *array,
                                        struct arena *arena, struct job *job, struct error *err);

/* Nothing where it names none. */
void job_devices_write(const struct job *job, struct json_out *out);

#endif
