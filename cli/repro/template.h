/*
 * Templates: JSON whose strings hold expressions in braces.
 *
 *     "{gpus}"            a string that is nothing else becomes the value itself: a number, a text
 *     "pp={gpus/2}"       text in text; numbers as short as they are exact
 *     "{{"                a brace
 *
 * In an array, {"$repeat": "{models}", "$as": "i", "$item": ...} stands for so many items, in which i (without "$as":
 * index) is 0, 1, 2 and so on.
 */
#ifndef SPILLWAY_REPRO_TEMPLATE_H
#define SPILLWAY_REPRO_TEMPLATE_H

#include <jansson.h>

#include "base/json/json_in.h"
#include "cli/repro/expression.h"

/* Do all its expressions parse, with names of names[0 .. count)? Errors: STATUS_BAD_INPUT with the place in
 * `input`, whose `container` has the template under `key` or (NULL) at `index`. */
struct template_place {
    const struct json_input *input;
    const json_t *container;
    const char *key;
    size_t index;
};
MUST_CHECK enum status template_check(const json_t *value, struct template_place place, const char *const *names,
                                      size_t count, struct error *err);

/* The same with values in place; *out is a new reference for the caller. Numbers that are whole become
 * integers. Errors: also STATUS_BAD_INPUT for a missing value. */
MUST_CHECK enum status template_expand(const json_t *value, struct template_place place,
                                       const struct expression_scope *scope, struct arena *arena, json_t **out,
                                       struct error *err);

#endif
