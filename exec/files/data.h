/*
 * Training data: tokens from a file (bytes of a text, llm.c's and nanoGPT's .bin), labelled images from a file
 * (CIFAR-10's binary batches, or any size), or seeded random ones. The tokens of a minibatch, and the tokens that
 * bert must guess, depend only on the job's seed and the minibatch's number. Samples are counted over all
 * minibatches. Sample s starts at a position drawn from (seed, s), or consists of tokens drawn from it.
 *
 * Held-out data (models/job/job.h, struct job_evaluation) are a separate source of the job's held-out minibatches.
 * These samples begin at equal distances for every seed, or are random samples that no training uses. They come from a
 * separate file, or from the last tenth of the training file, which the training then does not use.
 */
#ifndef SPILLWAY_EXEC_FILES_DATA_H
#define SPILLWAY_EXEC_FILES_DATA_H

#include "models/job/job.h"

struct data_source; /* opaque; the file is mapped, not read */

/* Opens a job's data. Errors: STATUS_IO; STATUS_BAD_INPUT for a wrong magic, version or length, a file shorter than a
 * sample (T + 1 tokens, for bert T), a token that is not below the vocabulary (found by a scan of the whole file);
 * for images see exec/files/data_images.h. */
MUST_CHECK enum status data_open(const struct job *job, struct data_source **out,
                                 struct error *err);

/* Opens a file whose tokens were already scanned for another job with the same format and vocabulary, without another
 * scan. A bad token is then an error when it is read. */
MUST_CHECK enum status data_open_known(const struct job *job, struct data_source **out, struct error *err);

/* Opens data in memory, which is borrowed. `name` stands for the file name in messages; the job's format is a file
 * format. */
MUST_CHECK enum status data_parse(const struct job *job, const char *name, const void *data,
                                  uint64_t bytes, struct data_source **out, struct error *err);
/* Open the job's held-out data; the job must be evaluated. */
MUST_CHECK enum status data_open_held_out(const struct job *job, struct data_source **out,
                                          struct error *err);
MUST_CHECK enum status data_open_held_out_known(const struct job *job, struct data_source **out, struct error *err);
void data_close(struct data_source *source); /* NULL does nothing */

/* Returns the number of tokens from which samples are taken; 0 for random data and images. */
uint64_t data_tokens(const struct data_source *source);

/* Writes a minibatch to `out`: job_batch_bytes() bytes, laid out as in models/job/job.h. `minibatch` of held-out data
 * is below the evaluation's number of minibatches. Thread-safe.
 * Errors: STATUS_IO, also when the file has become shorter; STATUS_BAD_INPUT for an invalid token or label that was
 * written after the file was opened. */
MUST_CHECK enum status data_batch(const struct data_source *source, uint64_t minibatch, int32_t *out,
                                  struct error *err);

#endif
