/*
 * The JSON reader on any bytes. It must refuse them with a place, or accept them. Accepted values are then queried in
 * every way, which must give values, or messages that name a place inside the text.
 */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_in.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* "fuzz:LINE:COLUMN: text" with a place that can be in the text. */
static void check_error(const struct error *err, size_t size)
{
    assert(err->status == STATUS_BAD_INPUT);
    char *end;
    assert(strncmp(err->text, "fuzz:", 5) == 0);
    unsigned long line = strtoul(err->text + 5, &end, 10);
    assert(*end == ':' && line >= 1 && line <= size + 1);
    unsigned long column = strtoul(end + 1, &end, 10);
    assert(*end == ':' && end[1] == ' ' && end[2]);
    assert(column >= 1 && column <= size + 2);
}

static void ask_array(const struct json_input *input, const json_t *array, size_t size);

/* Ask for every key as every type; then open it and leave one key unasked. */
static void ask_object(const struct json_input *input, const json_t *value, size_t size)
{
    static const char *const names[] = {"a", "b"};
    struct json_object object;
    struct error err = {0};
    enum status status = json_object_open(&object, input, value, "an object", &err);
    assert(status == STATUS_OK);
    size_t asked = 0;
    for (void *at = json_object_iter((json_t *)value); at && asked < JSON_KEYS_MAX - 1;
         at = json_object_iter_next((json_t *)value, at), asked++) {
        const char *key = json_object_iter_key(at), *string;
        uint64_t whole;
        double number;
        bool yes;
        size_t choice;
        const json_t *inner;
        for (int kind = 0; kind < 8; kind++) {
            struct error wrong = {0};
            switch (kind) {
            case 0:
                status = json_take_u64(&object, key, JSON_REQUIRED, 3, 99, &whole, &wrong);
                break;
            case 1:
                status = json_take_double(&object, key, JSON_REQUIRED, -1, 1e9, &number, &wrong);
                break;
            case 2: status = json_take_bool(&object, key, JSON_OPTIONAL, &yes, &wrong); break;
            case 3: status = json_take_string(&object, key, JSON_REQUIRED, &string, &wrong); break;
            case 4:
                status = json_take_choice(&object, key, JSON_REQUIRED, names, 2, &choice, &wrong);
                break;
            case 5:
                status = json_take_quantity(&object, key, JSON_REQUIRED, DIMENSION_SECONDS, 0, 1e9,
                                            &number, &wrong);
                if (status == STATUS_OK) assert(isfinite(number) && number >= 0);
                break;
            case 6: status = json_take_array(&object, key, JSON_REQUIRED, &inner, &wrong); break;
            default: status = json_take_object(&object, key, JSON_REQUIRED, &inner, &wrong); break;
            }
            if (status != STATUS_OK) check_error(&wrong, size);
            if (status == STATUS_OK && kind == 6) ask_array(input, inner, size);
            if (status == STATUS_OK && kind == 7) ask_object(input, inner, size);
        }
    }
    struct error unknown = {0};
    if (json_object_close(&object, &unknown) != STATUS_OK) check_error(&unknown, size);
}

static void ask_array(const struct json_input *input, const json_t *array, size_t size)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        struct error err = {0};
        const json_t *inner;
        double number;
        if (json_item_double(input, array, i, 0, DBL_MAX, &number, &err) != STATUS_OK)
            check_error(&err, size);
        else
            assert(isfinite(number));
        if (json_is_object(json_array_get(array, i)))
            ask_object(input, json_array_get(array, i), size);
        err = (struct error){0};
        if (json_item_array(input, array, i, SIZE_MAX, &inner, &err) != STATUS_OK)
            check_error(&err, size);
        else
            ask_array(input, inner, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Every error costs a pass over the text, and every value makes several. */
    if (size > 4096) return 0;
    struct json_input *input;
    struct error err = {0};
    if (json_input_parse("fuzz", (const char *)data, size, &input, &err) != STATUS_OK) {
        check_error(&err, size);
        return 0;
    }
    const json_t *root = json_input_root(input);
    if (json_is_array(root))
        ask_array(input, root, size);
    else
        ask_object(input, root, size);
    json_input_destroy(input);
    return 0;
}
