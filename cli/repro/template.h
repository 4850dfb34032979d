/*
 * Templates: JSON with expressions in braces.
 *
 *     "{gpus}"            one expression becomes the value itself: a number, a text
 *     "pp={gpus/2}"       numbers in their shortest exact form
 *     "{{"                a brace
 *
 * In an array, {"$repeat": "{models}", "$as": "i", "$item": ...} makes `models` items, where i (default "index") is 0,
 * 1, 2 and so on.
 */
#ifndef SPILLWAY_CLI_REPRO_TEMPLATE_H
#define SPILLWAY_CLI_REPRO_TEMPLATE_H

#include <jansson.h>

#include "base/json/json_in.h"
#include "cli/repro/expression.h"

/* Expressions must parse and use only names[0 .. count). The template is in `container`, under `key` or, if NULL,
 * at `index`. Errors: STATUS_BAD_INPUT with the place in `input`. */
struct template_place {
    const struct json_input *input;
    const json_t *container;
    const char *key;
    size_t index;
};
MUST_CHECK enum status template_check(const json_t *value, struct template_place place, const char *const *names,
                                      size_t count, struct error *err);

/* Expands a template; *out is a new reference. Integral numbers become integers. Errors: also STATUS_BAD_INPUT for
 * a missing value. */
MUST_CHECK enum status template_expand(const json_t *value, struct template_place place,
                                       const struct expression_scope *scope, struct arena *arena, json_t **out,
                                       struct error *err);

#endif
