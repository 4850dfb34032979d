/*
 * The commands of spillway-exec, each with its own arguments; argv[0] is its name. *stop becomes true when the command
 * should end early.
 */
#ifndef SPILLWAY_EXEC_COMMAND_H
#define SPILLWAY_EXEC_COMMAND_H

#include <stdbool.h>

#include "base/error.h"
#include "models/hardware/hardware.h"

typedef enum status command_function(int argc, char **argv, const volatile bool *stop, struct error *err);

command_function command_run, command_check, command_checkpoints, command_measure, command_detect, command_devices;
command_function command_gpu_rates; /* with CUDA */

/* Writes a hardware file, whole or not at all; "-" is standard output. */
MUST_CHECK enum status command_write_hardware(const struct hardware *hardware, const char *path, struct error *err);

#endif
