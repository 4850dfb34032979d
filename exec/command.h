/*
 * The commands of spillway-exec, each with its own arguments; argv[0] is its name. *stop becomes true when the command
 * should end early.
 */
#ifndef SPILLWAY_EXEC_COMMAND_H
#define SPILLWAY_EXEC_COMMAND_H

#include <stdbool.h>

#include "base/error.h"
#include "base/process/options.h"

typedef enum status command_function(int argc, char **argv, const volatile bool *stop, struct error *err);

command_function command_run, command_check, command_checkpoints, command_measure, command_detect, command_devices;
command_function command_gpu_rates; /* with CUDA */

/* Parses a command's options. *go_on is false when the command shall end: the help was printed. */
MUST_CHECK enum status command_parse(struct options *options, int argc, char **argv, bool *go_on, struct error *err);

#endif
