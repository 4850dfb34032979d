#include "base/json/json_change.h"

#include <stdint.h>
#include <string.h>

#include "base/text/number.h"

json_t *json_of_text(const char *text)
{
    const char *end;
    double number;
    uint64_t whole;
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) return json_boolean(text[0] == 't');
    if (!number_read(text, &end, &number) || *end) return json_string(text);
    return number_read_u64(text, &whole) && whole <= INT64_MAX ? json_integer((json_int_t)whole) : json_real(number);
}

enum status json_change(json_t *object, const char *key, const char *value, const char *what, struct error *err)
{
    char word[128];
    for (;;) {
        size_t length = strcspn(key, ".");
        if (length == 0 || length >= sizeof word)
            return error_set(err, STATUS_BAD_INPUT, "'%s' is not a key (expected names with '.' between them)", what);
        memcpy(word, key, length);
        word[length] = '\0';
        if (key[length] == '\0') break;
        json_t *inner = json_object_get(object, word);
        if (!inner && json_object_set_new(object, word, json_object()) == 0) inner = json_object_get(object, word);
        if (!json_is_object(inner))
            return error_set(err, STATUS_BAD_INPUT, "'%s' of '%s' is not an object", word, what);
        object = inner;
        key += length + 1;
    }
    return json_object_set_new(object, word, json_of_text(value)) == 0 ? STATUS_OK
                                                                       : error_memory(err, "a changed value", 0);
}
