/* Passes over the layers of GPT-2; what unit_compute() does for that family. */
#ifndef SPILLWAY_EXEC_GPT2_H
#define SPILLWAY_EXEC_GPT2_H

#include "exec/unit.h"

void gpt2_compute(const struct kernels *kernels, const struct unit_arguments *arguments);

/* As unit_unsupported(), for a job of this family. */
const char *gpt2_unsupported(const struct job *job);

#endif
