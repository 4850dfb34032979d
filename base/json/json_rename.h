/*
 * Keys that go by another program's name, in a file that is ours otherwise.
 */
#ifndef SPILLWAY_BASE_JSON_RENAME_H
#define SPILLWAY_BASE_JSON_RENAME_H

#include "base/json/json_in.h"

struct json_synonym {
    const char *theirs, *ours;
};

/*
 * Give the keys of `object` that are somebody else's our names; synonyms[0 .. count) says which. Places of errors stay
 * where the file has the value. What is no object is left alone.
 * Errors: STATUS_BAD_INPUT when a value is there by both names; STATUS_NO_MEMORY.
 */
MUST_CHECK enum status json_rename_keys(const struct json_input *input, const json_t *object,
                                        const struct json_synonym *synonyms, size_t count, struct error *err);

#endif
