/*
 * The commands of spillway-exec, each with arguments of its own: argv[0] is its name. What they print and write is complete,
 * or they fail. *stop turns true when they should end early.
 */
#ifndef SPILLWAY_EXEC_COMMAND_H
#define SPILLWAY_EXEC_COMMAND_H

#include <stdbool.h>

#include "base/error.h"
#include "models/hardware/hardware.h"

typedef enum status command_function(int argc, char **argv, const volatile bool *stop, struct error *err);

command_function command_run, command_check, command_checkpoints, command_measure, command_detect, command_devices;
command_function command_gpu_rates; /* with CUDA */

/* A hardware file, whole or not at all; "-" is standard output. */
MUST_CHECK enum status command_write_hardware(const struct hardware *hardware, const char *path, struct error *err);

#endif
