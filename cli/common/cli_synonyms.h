/*
 * What other tools call our options, so that what their users type is understood.
 *
 * Each is accepted in place of ours by every verb that has ours, and has none of that name itself; help and completion
 * show ours alone.
 *
 * Source: names of options of transformers, DeepSpeed, Megatron-LM, EleutherAI's calculators and llm-analysis.
 */
#ifndef SPILLWAY_CLI_CLI_SYNONYMS_H
#define SPILLWAY_CLI_CLI_SYNONYMS_H

#include "base/process/options.h"

/* Ends with a NULL name. */
extern const struct option_synonym cli_synonyms[];

#endif
