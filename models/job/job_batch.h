/*
 * Sizes of minibatches in other programs' terms, gradient accumulation among them: a part of models/jobs/job_read.c.
 *
 * Our "microbatches" count all replicas together. Other programs give the number that each replica adds up
 * (transformers, Accelerate, DeepSpeed: gradient_accumulation_steps) or the samples of a whole minibatch (DeepSpeed:
 * train_batch_size, Megatron-LM: global-batch-size). They are related by
 *
 *     train_batch_size = microbatch * gradient_accumulation_steps * replicas
 *
 * where replicas is the data-parallel degree, 1 for a job that is not parallel. The value that is not given is
 * computed from the others. If only "train_batch_size" is given, DeepSpeed accumulates once, and so does this code.
 * Source: DeepSpeed's runtime/config.py, _set_batch_related_parameters.
 */
#ifndef SPILLWAY_MODELS_JOB_JOB_BATCH_H
#define SPILLWAY_MODELS_JOB_JOB_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct job;
struct json_object;
struct json_out;

/* The values given for a job's minibatch; zeroed: none. */
struct job_batch {
    uint64_t steps;    /* microbatches that each replica adds up; 0: not given */
    uint64_t samples;  /* samples of all replicas; 0: not given */
    bool microbatch;   /* "microbatch" was given */
    bool microbatches; /* "microbatches" was given */
};

/* Takes the keys of the minibatch, except the numbers "microbatch" and "microbatches", which the caller takes. Values
 * in `o` replace values from "defaults". */
MUST_CHECK enum status job_batch_read(struct json_object *o, struct job_batch *out, struct error *err);

/* Computes `microbatch` and `microbatches` from the given values and the job's present number of replicas. Call it
 * again after a change of the job's degrees. Does nothing if no other program's terms were used.
 * Errors: STATUS_BAD_INPUT, without a position, when values contradict each other. */
MUST_CHECK enum status job_batch_settle(struct job *job, struct error *err);

/* Returns the key that an error of job_batch_settle() is about. */
const char *job_batch_key(const struct job_batch *batch);

/* Writes the given values that still hold. */
void job_batch_write(const struct job *job, struct json_out *out);

/* Writes "4 samples x 8 accumulated x 2 replicas = 64 a minibatch, in 16 microbatches", or "" if only our own keys
 * were used or if the degrees have changed since. Returns `out`. */
enum { JOB_BATCH_TEXT_BYTES = 160 };
const char *job_batch_text(const struct job *job, char out[JOB_BATCH_TEXT_BYTES]);

#endif
