/*
 * Training data: tokens from a file (text, llm.c's and nanoGPT's .bin), rows of tokens, labelled images (CIFAR-10's
 * batches, or any size), or seeded random ones. A minibatch, and the tokens that bert must guess, depend only on the
 * job's seed and the minibatch's number: sample s, counted over all minibatches, starts at a position drawn from
 * (seed, s), or consists of tokens drawn from it. Rows return each epoch (exec/files/data_rows.h).
 *
 * Held-out data (struct job_evaluation) are a separate source: samples at equal distances for every seed, or random
 * samples that no training uses. They come from a separate file, or from the last tenth of the training file, which
 * the training then does not use; of rows a share is drawn (models/rows/rows_set.h).
 */
#ifndef SPILLWAY_EXEC_FILES_DATA_H
#define SPILLWAY_EXEC_FILES_DATA_H

#include "models/job/job.h"

struct data_source; /* the file is mapped */

/* Opens a job's data. Errors: STATUS_IO; STATUS_BAD_INPUT for a wrong magic, version or length, a file shorter than
 * a sample (T + 1 tokens, for bert T), a token outside the vocabulary (the whole file is scanned); for images see
 * exec/files/data_images.h. */
MUST_CHECK enum status data_open(const struct job *job, struct data_source **out,
                                 struct error *err);

/* Skips the scan, which another job with the same format and vocabulary has done. A bad token is an error when it is
 * read. */
MUST_CHECK enum status data_open_known(const struct job *job, struct data_source **out, struct error *err);

/* Reads data in memory, which it borrows; `name` is for messages. */
MUST_CHECK enum status data_parse(const struct job *job, const char *name, const void *data,
                                  uint64_t bytes, struct data_source **out, struct error *err);
/* Opens held-out data of a job that is evaluated. */
MUST_CHECK enum status data_open_held_out(const struct job *job, struct data_source **out,
                                          struct error *err);
MUST_CHECK enum status data_open_held_out_known(const struct job *job, struct data_source **out, struct error *err);
void data_close(struct data_source *source); /* NULL does nothing */

/* Counts the tokens that samples are taken from (all of a file of rows); 0 for random data and images. */
uint64_t data_tokens(const struct data_source *source);

/* Writes job_batch_bytes() bytes, laid out as in models/job/job.h. `minibatch` of held-out data is below the
 * evaluation's number. Thread-safe.
 * Errors: STATUS_IO, also when the file has become shorter; STATUS_BAD_INPUT for an invalid token or label. */
MUST_CHECK enum status data_batch(const struct data_source *source, uint64_t minibatch, int32_t *out,
                                  struct error *err);

/* Does the same for some microbatches of the minibatch: their part of the bytes, one after the other, with the same
 * layout. */
MUST_CHECK enum status data_batch_part(const struct data_source *source, uint64_t minibatch,
                                       const struct parallel_microbatches *part, int32_t *out, struct error *err);

/* Writes the place, in its sample, of the first token of each token's own row: int32 (samples of the microbatches, T).
 * Only of packed rows. Thread-safe. */
void data_begins(const struct data_source *source, uint64_t minibatch, const struct parallel_microbatches *part,
                 int32_t *out);

/* Of rows: counts the samples; returns the number of sample `s` of the training, counted over all minibatches; makes
 * the samples come in the order of their numbers, and then those of held-out data (borrowed; NULL: none), in theirs.
 * What follows repeats the first sample. */
uint64_t data_samples(const struct data_source *source);
uint64_t data_sample(const struct data_source *source, uint64_t s);
void data_put_in_order(struct data_source *source, const struct data_source *held_out);

/* Counts the targets of a minibatch of rows (1 if there is none) or of a masked language model; 0 for other data, of
 * which all microbatches have equally many. Thread-safe. */
uint64_t data_targets(const struct data_source *source, uint64_t minibatch);

#endif
