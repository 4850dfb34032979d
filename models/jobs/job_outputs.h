/*
 * Kept outputs of frozen first layers (struct job_outputs).
 *
 * Where the first layers of a job are frozen, and nothing in them is drawn anew, their output depends only on the
 * sample. Rows are samples that return each epoch, so it is computed once for each and kept. Jobs may differ in what
 * they train and in their batches, and share the outputs of layers that both freeze, if networks, weights and rows are
 * equal.
 *
 * Outputs are made in microbatches of one sample: a product of several samples may round by the place of a row among
 * all. So they depend on nothing but the sample. A job of such microbatches has the same bits as if it computed all
 * itself, others to rounding.
 *
 * Source: Nakandala and Kumar, "Nautilus", SIGMOD 2022, section 4 (materializable layers).
 */
#ifndef SPILLWAY_MODELS_JOBS_JOB_OUTPUTS_H
#define SPILLWAY_MODELS_JOBS_JOB_OUTPUTS_H

#include "models/job/job.h"

enum { JOB_OUTPUTS_TEXT = 200 };

/* Returns the number of first layers whose outputs can be kept. 0: none, and *why says it, in a sentence about the
 * job. */
uint64_t job_outputs_most(const struct job *job, const char **why);

/* Returns why the outputs of first layers that both jobs freeze are not known to be equal, in `text`; NULL: they are.
 * job_outputs_most() is above 0 for both. */
const char *job_outputs_differ(const struct job *a, const struct job *b, char text[JOB_OUTPUTS_TEXT]);

/* Returns a number that is equal for jobs that do not differ in this way, and else, in all likelihood, not. Errors:
 * STATUS_NO_MEMORY. */
MUST_CHECK enum status job_outputs_fingerprint(const struct job *job, uint64_t *out, struct error *err);

/* Counts the samples of a job's training, and its held-out ones in all minibatches of an evaluation. Errors: as
 * rows_file_open() and rows_set_make(). */
MUST_CHECK enum status job_outputs_samples(const struct job *job, uint64_t *samples, uint64_t *held_out,
                                           struct error *err);

/* Makes the job that makes the outputs of the first layers of `job`, with this name (borrowed, like all of `job`). */
MUST_CHECK enum status job_outputs_maker(const struct job *job, const char *name, uint64_t layers, uint64_t samples,
                                         uint64_t held_out, struct arena *arena, struct job *out, struct error *err);

#endif
