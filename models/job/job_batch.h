/*
 * Sizes of minibatches in other programs' terms, gradient accumulation among them.
 *
 * Our "microbatches" count all replicas together. Others give each replica's number (transformers, Accelerate,
 * DeepSpeed: gradient_accumulation_steps) or a minibatch's samples (DeepSpeed: train_batch_size, Megatron-LM:
 * global-batch-size):
 *
 *     train_batch_size = microbatch * gradient_accumulation_steps * replicas
 *
 * where replicas is the data-parallel degree, or 1. The missing value is computed. With "train_batch_size" only,
 * DeepSpeed accumulates once, and so does this code. Source: DeepSpeed's runtime/config.py,
 * _set_batch_related_parameters.
 */
#ifndef SPILLWAY_MODELS_JOB_JOB_BATCH_H
#define SPILLWAY_MODELS_JOB_JOB_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct job;
struct json_object;
struct json_out;

/* The values given; zeroed: none. */
struct job_batch {
    uint64_t steps;    /* per replica; 0: not given */
    uint64_t samples;  /* of all replicas; 0: not given */
    bool microbatch;   /* "microbatch" was given */
    bool microbatches; /* "microbatches" was given */
};

/* Takes all keys but the numbers "microbatch" and "microbatches". Values in `o` replace values of "defaults". */
MUST_CHECK enum status job_batch_read(struct json_object *o, struct job_batch *out, struct error *err);

/* Computes `microbatch` and `microbatches` from the given values and the replicas; call it again after a change of
 * degrees. Does nothing without other programs' terms.
 * Errors: STATUS_BAD_INPUT, without a position, when values contradict each other. */
MUST_CHECK enum status job_batch_settle(struct job *job, struct error *err);

/* Returns the key of job_batch_settle()'s error. */
const char *job_batch_key(const struct job_batch *batch);

/* Writes the given values that still hold. */
void job_batch_write(const struct job *job, struct json_out *out);

/* Writes "4 samples x 8 accumulated x 2 replicas = 64 a minibatch, in 16 microbatches", or "" if only our own keys
 * were used or the degrees have changed. Returns `out`. */
enum { JOB_BATCH_TEXT_BYTES = 160 };
const char *job_batch_text(const struct job *job, char out[JOB_BATCH_TEXT_BYTES]);

#endif
