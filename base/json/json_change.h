/* Changes JSON by settings of the command line: a key, in which '.' leads into objects, and the text of a value. */
#ifndef SPILLWAY_BASE_JSON_JSON_CHANGE_H
#define SPILLWAY_BASE_JSON_JSON_CHANGE_H

#include <jansson.h>

#include "base/error.h"

/* Returns a new reference to the value of `text`: true, false, an integer, another number, or else the text itself as
 * a string. Returns NULL when no memory is left. */
json_t *json_of_text(const char *text);

/*
 * Sets a key such as "network.n_layer" in `object` and creates missing objects on the way. `what` is the full name of
 * the key in messages ("jobs.network.n_layer"). Errors: STATUS_BAD_INPUT for an empty word in the key, and when a value
 * on the way is not an object.
 */
MUST_CHECK enum status json_change(json_t *object, const char *key, const char *value, const char *what,
                                   struct error *err);

#endif
