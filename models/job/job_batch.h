/*
 * Minibatches as other programs tell of them: a part of models/job/job.c.
 *
 * Our "microbatches" are those of all replicas together. Others say how many each replica adds up
 * (transformers, Accelerate, DeepSpeed: gradient_accumulation_steps), or how many samples all of a
 * minibatch has (DeepSpeed: train_batch_size, Megatron-LM: global-batch-size), and
 *
 *     train_batch_size = microbatch * gradient_accumulation_steps * replicas
 *
 * where the replicas are the data-parallel degree, 1 of a job that is not spread. Of the three the one
 * that is not said follows; of "train_batch_size" alone DeepSpeed accumulates once, and so is it here.
 * Source: DeepSpeed's runtime/config.py, _set_batch_related_parameters.
 */
#ifndef SPILLWAY_MODELS_JOB_BATCH_H
#define SPILLWAY_MODELS_JOB_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct job;
struct json_object;
struct json_out;

/* What was said of a job's minibatch; zeroed: nothing. */
struct job_batch {
    uint64_t steps;    /* microbatches that each replica adds up; 0: not said */
    uint64_t samples;  /* of all replicas; 0: not said */
    bool microbatch;   /* its samples were said, */
    bool microbatches; /* and so were those of all replicas together */
};

/* The keys about it, but for the numbers "microbatch" and "microbatches", which the caller takes: what `o`
 * says takes the place of what "defaults" said. */
MUST_CHECK enum status job_batch_take(struct json_object *o, struct job_batch *out, struct error *err);

/* Make `microbatch` and `microbatches` what was said, for as many replicas as the job has now: again when
 * its degrees have changed. Nothing where no other program's words were used. STATUS_BAD_INPUT (without a
 * place) where they contradict each other. */
MUST_CHECK enum status job_batch_settle(struct job *job, struct error *err);

/* The key that an error of job_batch_settle() is about. */
const char *job_batch_key(const struct job_batch *batch);

/* What was said, as far as it is still so. */
void job_batch_write(const struct job *job, struct json_out *out);

/* "4 samples x 8 accumulated x 2 replicas = 64 a minibatch, in 16 microbatches"; "" where only our own
 * words were used, or where the degrees are others by now. */
enum { JOB_BATCH_TEXT_BYTES = 160 };
const char *job_batch_text(const struct job *job, char out[JOB_BATCH_TEXT_BYTES]);

#endif
