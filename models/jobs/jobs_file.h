/* Reads and writes jobs files (keys: models/job/job.h). */
#ifndef SPILLWAY_MODELS_JOBS_JOBS_FILE_H
#define SPILLWAY_MODELS_JOBS_JOBS_FILE_H

#include "base/json/json_in.h"
#include "models/job/job.h"

struct json_out;

MUST_CHECK enum status job_set_read(const char *path, struct job_set *out, struct error *err);
MUST_CHECK enum status job_set_parse(const struct json_input *in, const json_t *value,
                                     const char *folder, struct job_set *out, struct error *err);

/* Writes paths relative to `folder` (base/files/path.h), or unchanged if it is NULL. */
void job_set_write(const struct job *jobs, uint32_t count, const char *folder, struct json_out *out, const char *key);

/* Writes keys; the caller may add some. */
void optimizer_write_keys(const struct job_optimizer *optimizer, struct json_out *out);

#endif
