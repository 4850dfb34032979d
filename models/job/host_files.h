/* Seconds to load a job from its files, and to write its weights, when host memory does not hold all jobs at once. */
#ifndef SPILLWAY_MODELS_JOB_HOST_FILES_H
#define SPILLWAY_MODELS_JOB_HOST_FILES_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Return bytes per second of large files: the machine's own value, the rate of its storage, or an assumed value. */
double host_file_read_rate(const struct hardware *hardware);
double host_file_write_rate(const struct hardware *hardware);

/* Returns the seconds to make these layers' state from a checkpoint, the file of weights, or the seed. */
double host_file_open_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                        uint64_t layer_count);

/* Returns the seconds to write these layers' weights, and the best weights. */
double host_file_close_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                         uint64_t layer_count);

/* Returns the seconds to write these layers' state to a file, where it waits for the job to go on elsewhere. */
double host_file_wait_s(const struct hardware *hardware, const struct job *job, uint64_t first_layer,
                        uint64_t layer_count);

#endif
