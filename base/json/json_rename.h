/*
 * Accepts other programs' names of keys in our files.
 */
#ifndef SPILLWAY_BASE_JSON_JSON_RENAME_H
#define SPILLWAY_BASE_JSON_JSON_RENAME_H

#include "base/json/json_in.h"

struct json_synonym {
    const char *theirs, *ours;
};

/*
 * Renames keys of `object` by the table synonyms[0 .. count). Errors still give the position of the value in the file.
 * A value that is not an object is left unchanged. Errors: STATUS_BAD_INPUT when a key is present under both names.
 */
MUST_CHECK enum status json_rename_keys(const struct json_input *input, const json_t *object,
                                        const struct json_synonym *synonyms, size_t count, struct error *err);

#endif
