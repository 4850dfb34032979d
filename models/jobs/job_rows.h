/*
 * The rows that a job trains on (models/rows/rows_set.h).
 *
 * The length of a job may be given in epochs: samples of all rows over those of a minibatch. A minibatch may have the
 * last samples of an epoch and the first ones of the next.
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_ROWS_H
#define SPILLWAY_MODELS_JOBS_JOB_ROWS_H

#include "models/job/job.h"
#include "models/rows/rows_set.h"

/* Returns how rows become samples. A job that is evaluated on data of their own, or not at all, uses all rows. */
struct rows_choice job_rows_choice(const struct job *job);

/* Returns in *out the minibatches of so many epochs: their samples over those of a minibatch, rounded up. Errors: as
 * rows_file_open() and rows_set_make(); STATUS_BAD_INPUT for more than JOB_MINIBATCHES_MAX. */
MUST_CHECK enum status job_rows_minibatches(const struct job *job, double epochs, uint64_t *out, struct error *err);

/* Counts the samples of an epoch. Errors: as rows_file_open() and rows_set_make(). */
MUST_CHECK enum status job_rows_samples(const struct job *job, uint64_t *out, struct error *err);

/* Writes "96 rows, 10 held out; 3 longer than 64 tokens are cut; 2.33 epochs", or "" if the job has no rows or they
 * cannot be read. Returns `out`. */
enum { JOB_ROWS_TEXT_BYTES = 320 };
const char *job_rows_text(const struct job *job, char out[JOB_ROWS_TEXT_BYTES]);

/* Writes the command that makes rows of JSON lines, for the network's tokenizer. Returns false if `path` does not end
 * as JSON lines do. */
enum { JOB_ROWS_FOLDER_BYTES = 4096, JOB_ROWS_COMMAND_BYTES = 3 * JOB_ROWS_FOLDER_BYTES };
bool job_rows_command(const char *path, const struct network *network, char out[JOB_ROWS_COMMAND_BYTES]);

/* Returns true if the rows were made by another tokenizer than the one in the network's folder, which it writes. */
bool job_rows_other_tokenizer(const char *path, const struct network *network, char folder[JOB_ROWS_FOLDER_BYTES]);

#endif
