/*
 * Other tools' names of our options, accepted by every verb with our option and no option of that name. Help and
 * completion show only ours.
 *
 * Source: options of transformers, DeepSpeed, Megatron-LM, EleutherAI's calculators and llm-analysis.
 */
#ifndef SPILLWAY_CLI_COMMON_CLI_SYNONYMS_H
#define SPILLWAY_CLI_COMMON_CLI_SYNONYMS_H

#include "base/process/options.h"

/* Ends with a NULL name. */
extern const struct option_synonym cli_synonyms[];

/* Our names of the last release, accepted likewise, with a warning. */
extern const struct option_synonym cli_former_names[];

#endif
