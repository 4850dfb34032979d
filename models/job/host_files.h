/*
 * Seconds to load a job from its files into host memory, and to write its weights. A job pays them at its start and
 * end when host memory does not hold all jobs at once.
 */
#ifndef SPILLWAY_MODELS_JOB_HOST_FILES_H
#define SPILLWAY_MODELS_JOB_HOST_FILES_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Return the bytes per second at which a host reads or writes large files: the machine's own figure, the rate of its
 * storage, or an assumed value. */
double host_file_read_rate(const struct hardware *hardware);
double host_file_write_rate(const struct hardware *hardware);

/* Returns the seconds to make the state of layers first_layer to first_layer + layer_count - 1 in host memory: from a
 * checkpoint if the job continues from one, from the file of its weights, or from its seed. */
double host_file_open_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                        uint64_t layer_count);

/* Returns the seconds to write the weights of these layers, and the best weights, to the files that the job names. */
double host_file_close_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                         uint64_t layer_count);

#endif
