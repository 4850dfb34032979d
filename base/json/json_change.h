/* Changing JSON by what was typed: a key in which '.' leads into objects, and a value as it stands on a command line. */
#ifndef SPILLWAY_BASE_JSON_CHANGE_H
#define SPILLWAY_BASE_JSON_CHANGE_H

#include <jansson.h>

#include "base/error.h"

/* A new reference: true, false, a whole number, another number, or else the text itself. NULL: no memory. */
json_t *json_of_text(const char *text);

/*
 * Set "network.n_layer" in `object`; objects on the way that are missing are made. `what` is the key's name in
 * messages, with what stands in front of it ("jobs.network.n_layer").
 * Errors: STATUS_BAD_INPUT for an empty word of the key, and where something on the way is no object; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status json_change(json_t *object, const char *key, const char *value, const char *what,
                                   struct error *err);

#endif
