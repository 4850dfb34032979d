/*
 * Keys of a config.json that training ignores here: dropout, and a precision of attention's scores. They are reported
 * and written into plans.
 *
 *   family       keys
 *   gpt2         embd_pdrop, resid_pdrop, attn_pdrop, reorder_and_upcast_attn
 *   llama        attention_dropout
 *   bert         hidden_dropout_prob, attention_probs_dropout_prob, classifier_dropout (of a classifier)
 *   vit          hidden_dropout_prob, attention_probs_dropout_prob
 *
 * Absent keys of a config.json have their class's defaults, such as 0.1 for the dropouts of gpt2 and bert; inside a
 * jobs file or a plan they mean no dropout. Families that cannot be trained here have no such keys.
 */
#ifndef SPILLWAY_MODELS_NETWORK_NETWORK_IGNORED_H
#define SPILLWAY_MODELS_NETWORK_NETWORK_IGNORED_H

#include <stddef.h>

#include "base/json/json_in.h"
#include "base/json/json_out.h"

struct network;

enum { NETWORK_IGNORED_MAX = 4, NETWORK_IGNORED_TEXT_BYTES = 256 };

/* Reads the family's keys. Errors: STATUS_BAD_INPUT for values that are not probabilities or switches. */
MUST_CHECK enum status network_ignored_parse(struct json_object *object, struct network *network, struct error *err);
/* Gives absent keys their defaults. */
void network_ignored_defaults(const json_t *config, struct network *network);
void network_ignored_write(const struct network *network, struct json_out *out);

/* Writes "embd_pdrop 0.1, attn_pdrop 0.1" or "" into `text` and returns it. */
const char *network_ignored_text(const struct network *network, char text[NETWORK_IGNORED_TEXT_BYTES]);

#endif
