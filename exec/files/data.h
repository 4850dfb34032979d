/*
 * Training data: tokens from a file (bytes of a text, llm.c's and nanoGPT's .bin), labelled images
 * from one (CIFAR-10's binary batches, or any size), or seeded random ones. Which tokens a minibatch
 * holds, and which of them bert is to guess, depends on the job's seed and the minibatch's number
 * alone: samples are counted over all minibatches, and sample s starts at a position drawn from (seed,
 * s), or consists of tokens drawn from it.
 *
 * Held-out data (models/job/job.h, struct evaluation) are a source of their own, of the job's held-out
 * minibatches: those samples begin at equal distances, whatever the seed, or are random ones that no
 * training has. They are a file of their own or the last tenth of the training's, which the training
 * then does without.
 */
#ifndef SPILLWAY_EXEC_DATA_H
#define SPILLWAY_EXEC_DATA_H

#include "models/job/job.h"

struct data_source; /* opaque; the file is mapped, not read into memory */

/* Errors: STATUS_IO; STATUS_BAD_INPUT for a wrong magic, version or length, a file shorter than a
 * sample (T + 1 tokens, of bert T), a token that is not below the vocabulary (found by a scan of the
 * whole file); for images see exec/files/data_images.h. */
MUST_CHECK enum status data_open(const struct job *job, struct data_source **out,
                                 struct error *err);

/* The same of a file whose tokens were looked through for another job with the same format and vocabulary: they are not looked
 * through again, and what is wrong with one would be told when it is read. */
MUST_CHECK enum status data_open_known(const struct job *job, struct data_source **out, struct error *err);

/* The same from memory, which is borrowed; `name` stands where the file name would in messages, and
 * the job's format is one of a file. */
MUST_CHECK enum status data_parse(const struct job *job, const char *name, const void *data,
                                  uint64_t bytes, struct data_source **out, struct error *err);
/* The job's held-out data; the job must be evaluated. */
MUST_CHECK enum status data_open_held_out(const struct job *job, struct data_source **out,
                                          struct error *err);
MUST_CHECK enum status data_open_held_out_known(const struct job *job, struct data_source **out, struct error *err);
void data_close(struct data_source *source); /* NULL is fine */

/* Tokens that samples are taken from; 0 when they are drawn from the seed, and of images. */
uint64_t data_tokens(const struct data_source *source);

/* out: job_batch_bytes(), laid out as models/job/job.h says; `minibatch` of held-out data is
 * below the evaluation's. May be called from several threads at a
 * time. Errors: STATUS_IO, also when the file has become shorter; STATUS_BAD_INPUT for a token or label
 * that was not there when it was opened. */
MUST_CHECK enum status data_batch(const struct data_source *source, uint64_t minibatch, int32_t *out,
                                  struct error *err);

#endif
