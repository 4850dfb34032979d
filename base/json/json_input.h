/*
 * For the files of base/json that read JSON only: the input, its missing keys, and errors at a position.
 */
#ifndef SPILLWAY_BASE_JSON_JSON_INPUT_H
#define SPILLWAY_BASE_JSON_JSON_INPUT_H

#include "base/json/json_in.h"

enum { JSON_MISSING_MAX = 24, JSON_LISTED_WORDS_MAX = 12 };

/*
 * The first object that lacks a required key. The reader then continues with stand-ins (the smallest number, an empty
 * text, array or object: values that a file may have too), so that all missing keys are known when the object is
 * closed. From the first missing key on, every error about this input reports the missing keys, since it may only
 * follow from the stand-ins.
 */
struct json_lacking {
    const json_t *object; /* NULL: no key is missing */
    const char *keys[JSON_MISSING_MAX];
    const char *near[JSON_MISSING_MAX]; /* a key of the object that may be a misspelling of it; NULL: none */
    size_t count;
    json_t *empty_array, *empty_object;
};

struct json_input {
    char *name;
    char *text;
    size_t length;
    json_t *root;
    struct json_anchor anchors[JSON_ANCHORS_MAX];
    size_t anchor_count;
    const struct json_input *beside; /* another input to whose values errors may point; NULL: none */
    struct json_rows *rows;          /* long arrays that are empty in the tree (base/json/json_rows.h); NULL: none */
    struct json_lacking *lacking;    /* changes while a reader holds the input as const */
};

/* Reads the text of a JSON file as json_input_read() does. *name stands for the file name in messages; it is `path`
 * or static. The caller frees *text. */
MUST_CHECK enum status json_text_read(const char *path, char **text, size_t *length, const char **name,
                                      struct error *err);

enum json_place_part { JSON_PLACE_VALUE, JSON_PLACE_KEY };

struct json_place {
    const json_t *container;
    size_t index; /* JSON_SELF: the container itself */
    enum json_place_part part;
};

/* Sets the error "name:line:column: message" and returns STATUS_BAD_INPUT. Does not look at the missing keys. */
enum status json_fail_place(const struct json_input *input, struct json_place place, const char *message,
                            struct error *err);

/* Records that `key` is missing. The caller goes on with a stand-in when this is STATUS_OK. */
MUST_CHECK enum status json_miss(const struct json_object *object, const char *key, enum json_need need,
                                 struct error *err);

/* Returns `value` for jansson's iterators, which take a value without const and do not write. */
static inline json_t *json_writable(const json_t *value)
{
    return (json_t *)value;
}

#endif
