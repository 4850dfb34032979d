/* Networks of transformers that are not computed here: the nearest family that is, and the difference. */
#ifndef SPILLWAY_MODELS_NETWORK_FOREIGN_H
#define SPILLWAY_MODELS_NETWORK_FOREIGN_H

enum { NETWORK_FOREIGN_BYTES = 448 };

/*
 * Writes how a message about an unknown model_type goes on after its name: ": nearest is 'gemma', but scores are capped",
 * " (did you mean 'gpt_neox'?)" where only case or separators differ, or " (expected gpt2, llama, ...)". A family that is
 * computed otherwise is never suggested. Returns `text`.
 */
const char *network_foreign_ending(const char *model_type, char text[NETWORK_FOREIGN_BYTES]);

#endif
