/*
 * An adapter in PEFT's format: a folder with adapter_config.json and adapter_model.safetensors, whose names are the
 * tensors' (models/network/network_trained.h). Files that Spillway wrote also have the fingerprint of the network's
 * weights, rounded to 16 bits: an adapter of a network in fp32 fits the same network in bf16-weights, and the reverse.
 */
#ifndef SPILLWAY_EXEC_FILES_ADAPTER_H
#define SPILLWAY_EXEC_FILES_ADAPTER_H

#include "exec/files/weights.h"

#define ADAPTER_BASE_KEY "spillway_base_bf16"

/*
 * Fills the shards' adapters from job->adapter.from, and what is rounded of them. `base`: the network's
 * weights_base_fingerprint(), compared with the file's if it has one; NULL: it is not compared.
 * Errors: STATUS_BAD_INPUT with the tensor and its fault, or for an adapter of another network; STATUS_IO.
 */
MUST_CHECK enum status adapter_read(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                    float *const *states, const uint64_t *base, struct error *err);

/* Checks configuration, names and shapes of all of a job's shards, and that the file has no other tensors. Errors:
 * likewise. */
MUST_CHECK enum status adapter_check(const struct job *job, const struct state_tables *tables, uint32_t shard_count,
                                     struct error *err);

/* Writes the configuration beside the file of an adapter's weights, with the folder. Errors: STATUS_IO. */
MUST_CHECK enum status adapter_write_config(const struct job *job, const char *weights, struct error *err);

#endif
