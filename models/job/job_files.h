/* The files of a job: what its training reads, what it writes, and the names of unfinished weights. */
#ifndef SPILLWAY_MODELS_JOB_FILES_H
#define SPILLWAY_MODELS_JOB_FILES_H

#include <stdbool.h>

#include "models/job/job.h"

enum { JOB_PATH_BYTES = 4 * 4096 + 32 }; /* four times the longest path of Linux, as names in it may be filled in */

/*
 * The path for weights of a training that has not come to its end, which never replace complete ones: "a.safetensors"
 * becomes "a.partial.safetensors", other names get ".partial" at their end. A device keeps its name.
 */
const char *job_partial_path(const char *path, char out[JOB_PATH_BYTES]);

/* Remove unfinished weights when those at `path` are complete. */
void job_partial_remove(const char *path);

/*
 * Declare what the job reads and writes (base/files/outputs.h). With `probe`, also check that everything can be written: the
 * disk has room for the weights, too.
 * Errors: those of outputs_declare() and outputs_probe(), with the name of the job.
 */
MUST_CHECK enum status job_files_declare(const struct job *job, bool probe, struct error *err);

/* The same of all jobs. */
MUST_CHECK enum status job_set_files_declare(const struct job_set *jobs, bool probe, struct error *err);

/*
 * Redirect what the jobs write into the folder `to`: a file below `from` keeps its folders below `to`, a file of another
 * place goes into `to` itself. `from` is absolute. Errors: STATUS_BAD_INPUT when two jobs would then write one file, and those
 * of path_absolute().
 */
MUST_CHECK enum status job_set_send(struct job_set *jobs, const char *from, const char *to, struct error *err);

/* Declare the folders of the jobs' checkpoints, FOLDER/JOB: files are made and removed there, and nothing else is written
 * into them. Errors: those of outputs_declare_folder(). */
MUST_CHECK enum status job_set_checkpoints_declare(const struct job_set *jobs, const char *folder, struct error *err);

#endif
