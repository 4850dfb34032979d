/*
 * Seconds of bringing a job from its files to host memory, and of writing its weights: what a job costs at its start and
 * at its end where host memory does not hold all jobs at once.
 */
#ifndef SPILLWAY_MODELS_HOST_FILES_H
#define SPILLWAY_MODELS_HOST_FILES_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Bytes per second at which a host reads large files, or writes them: the machine's own figure, or that of its storage, or
 * an assumed one. */
double host_file_read_rate(const struct hardware *hardware);
double host_file_write_rate(const struct hardware *hardware);

/* Seconds of making the state of layers first_layer to first_layer + layer_count - 1 in host memory: from a checkpoint
 * where the job goes on from one, from the file of its weights, or from its seed. */
double host_file_open_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                        uint64_t layer_count);

/* Seconds of writing the weights of these layers, and the best ones, to the files that the job names. */
double host_file_close_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                         uint64_t layer_count);

#endif
