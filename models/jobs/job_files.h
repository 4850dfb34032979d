/* Training data, outputs, and names of unfinished weights. */
#ifndef SPILLWAY_MODELS_JOBS_JOB_FILES_H
#define SPILLWAY_MODELS_JOBS_JOB_FILES_H

#include <stdbool.h>

#include "models/job/job.h"

enum { JOB_PATH_BYTES = 4 * 4096 + 32 }; /* four of Linux's longest paths, since "{name}" may occur several times */

/*
 * Returns the path of unfinished weights, which never replace complete ones: "a.partial.safetensors" for
 * "a.safetensors", else ".partial" at the end. A device keeps its name.
 */
const char *job_partial_path(const char *path, char out[JOB_PATH_BYTES]);

/* Removes them after the weights at `path` are complete. */
void job_partial_remove(const char *path);

/*
 * Declares inputs and outputs (base/files/outputs.h). With `probe`, checks that outputs can be written and the disk
 * has room.
 * Errors: as outputs_declare() and outputs_probe().
 */
MUST_CHECK enum status job_files_declare(const struct job *job, bool probe, struct error *err);

MUST_CHECK enum status job_set_files_declare(const struct job_set *jobs, bool probe, struct error *err);

/*
 * Redirects outputs: a file below `from` (absolute) keeps its folders below `to`; others go into `to` itself.
 * Errors: STATUS_BAD_INPUT when two jobs would then write the same file; as path_absolute().
 */
MUST_CHECK enum status job_set_send(struct job_set *jobs, const char *from, const char *to, struct error *err);

/* Declares FOLDER/JOB: checkpoints are made and removed there, and no other output may be in them. Errors: as
 * outputs_declare_folder(). */
MUST_CHECK enum status job_set_checkpoints_declare(const struct job_set *jobs, const char *folder, struct error *err);

#endif
