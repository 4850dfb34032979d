/* Unsupported networks of transformers: the nearest supported family, and the difference. */
#ifndef SPILLWAY_MODELS_NETWORK_CONFIG_NETWORK_FOREIGN_H
#define SPILLWAY_MODELS_NETWORK_CONFIG_NETWORK_FOREIGN_H

enum { NETWORK_FOREIGN_BYTES = 448 };

/*
 * Ends a message about an unknown model_type: ": nearest is 'gemma', but scores are capped", " (did you mean
 * 'gpt_neox'?)" if only case or separators differ, or " (expected gpt2, llama, ...)". Returns `text`.
 */
const char *network_foreign_ending(const char *model_type, char text[NETWORK_FOREIGN_BYTES]);

#endif
