/* The files of a job: training data, outputs, and the names of unfinished weights. */
#ifndef SPILLWAY_MODELS_JOBS_JOB_FILES_H
#define SPILLWAY_MODELS_JOBS_JOB_FILES_H

#include <stdbool.h>

#include "models/job/job.h"

enum { JOB_PATH_BYTES = 4 * 4096 + 32 }; /* four times Linux's longest path, since "{name}" may be replaced several
                                            times */

/*
 * Returns the path for weights of an unfinished training, so that they never replace complete weights:
 * "a.safetensors" becomes "a.partial.safetensors"; other names get ".partial" at their end. A device keeps its name.
 */
const char *job_partial_path(const char *path, char out[JOB_PATH_BYTES]);

/* Removes unfinished weights after the weights at `path` are complete. */
void job_partial_remove(const char *path);

/*
 * Declares the job's inputs and outputs (base/files/outputs.h). With `probe`, also checks that every output can be
 * written and that the disk has room for the weights.
 * Errors: as outputs_declare() and outputs_probe(), with the name of the job.
 */
MUST_CHECK enum status job_files_declare(const struct job *job, bool probe, struct error *err);

/* Declares the files of all jobs. */
MUST_CHECK enum status job_set_files_declare(const struct job_set *jobs, bool probe, struct error *err);

/*
 * Redirects the jobs' outputs into the folder `to`. A file below `from` keeps its folders below `to`; any other file
 * goes into `to` itself. `from` is absolute.
 * Errors: STATUS_BAD_INPUT when two jobs would then write the same file; as path_absolute().
 */
MUST_CHECK enum status job_set_send(struct job_set *jobs, const char *from, const char *to, struct error *err);

/* Declares the folders of the jobs' checkpoints, FOLDER/JOB. The command makes and removes files there; no other
 * output may be in them. Errors: as outputs_declare_folder(). */
MUST_CHECK enum status job_set_checkpoints_declare(const struct job_set *jobs, const char *folder, struct error *err);

#endif
