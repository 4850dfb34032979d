/*
 * Keys of a config.json that are about training alone: rates of dropout, which are carried out, and keys that training
 * ignores here, which are reported. Both are written into plans.
 *
 *   family       dropout                                                  ignored
 *   gpt2         embd_pdrop, resid_pdrop, attn_pdrop                      reorder_and_upcast_attn
 *   opt          dropout, attention_dropout                               layerdrop
 *   gpt_neox     hidden_dropout, attention_dropout
 *   gptj, phi    embd_pdrop, resid_pdrop, attn_pdrop or attention_dropout
 *   llama and families like it   attention_dropout                        router_jitter_noise (mixtral)
 *   bert                                                                  hidden_dropout_prob,
 *                                                                         attention_probs_dropout_prob,
 *                                                                         classifier_dropout (of a classifier)
 *   vit                                                                   hidden_dropout_prob,
 *                                                                         attention_probs_dropout_prob
 *
 * Absent keys of a config.json have their class's defaults, such as 0.1 for the dropouts of gpt2 and bert; inside a
 * jobs file or a plan they mean no dropout.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_IGNORED_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_IGNORED_H

#include <stddef.h>

#include "base/json/json_in.h"
#include "base/json/json_out.h"

struct network;

enum { NETWORK_IGNORED_MAX = 4, NETWORK_IGNORED_TEXT_BYTES = 256 };

/* What a network drops: the embedding's result, attention's weights, the results of attention and of the feed-forward
 * part. */
enum network_dropped { NETWORK_DROPS_EMBEDDING = 1, NETWORK_DROPS_SCORES = 2, NETWORK_DROPS_RESULTS = 4 };

/* Returns the rate; 0: none. */
double network_dropout(const struct network *network, enum network_dropped of);
bool network_drops(const struct network *network);
/* Sets all rates to 0, or the values of all other keys, which are ignored. */
void network_drop_nothing(struct network *network);
void network_forget_ignored(struct network *network);

/* Reads the family's keys. Errors: STATUS_BAD_INPUT for values that are not probabilities or switches. */
MUST_CHECK enum status network_ignored_parse(struct json_object *object, struct network *network, struct error *err);
/* Gives absent keys their defaults. */
void network_ignored_defaults(const json_t *config, struct network *network);
void network_ignored_write(const struct network *network, struct json_out *out);

/* Writes the keys that are ignored, "layerdrop 0.1, reorder_and_upcast_attn" or "", into `text` and returns it. */
const char *network_ignored_text(const struct network *network, char text[NETWORK_IGNORED_TEXT_BYTES]);

#endif
