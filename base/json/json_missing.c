/*
 * Keys that are missing and keys that are unknown: one message names all of an object. It is told when the object is
 * closed, or with the first error after a missing key, which may only follow from a stand-in. Every error that a
 * caller sets therefore passes here.
 */
#include <stdio.h>
#include <string.h>

#include "base/json/json_input.h"
#include "base/text/suggest.h"
#include "base/try.h"

/* --- messages ---------------------------------------------------------------------------------- */

/* A growing message; text that does not fit is cut. */
struct message {
    char text[1024];
    size_t used;
};

static void PRINTF_LIKE(2, 3) message_add(struct message *message, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(message->text + message->used, sizeof message->text - message->used, format, arguments);
    va_end(arguments);
    size_t room = sizeof message->text - message->used - 1;
    if (length > 0) message->used += (size_t)length < room ? (size_t)length : room;
}

static const char *separator(size_t index, size_t count)
{
    return index == 0 ? "" : index + 1 == count ? " and " : ", ";
}

/* Lists keys that the reader found missing, then keys that the caller names. `with_near`: names similar keys that may
 * be meant. */
static void tell_missing(const struct json_lacking *lacking, bool with_near, const struct json_missing *missing,
                         size_t count, struct message *message)
{
    const size_t total = lacking->count + count;
    if (total == 0) return;
    message_add(message, "missing key%s ", total == 1 ? "" : "s");
    for (size_t i = 0; i < lacking->count; i++) {
        message_add(message, "%s'%s'", separator(i, total), lacking->keys[i]);
        if (with_near && lacking->near[i])
            message_add(message, " (is '%.100s' a misspelling of it?)", lacking->near[i]);
    }
    for (size_t i = 0; i < count; i++) {
        message_add(message, "%s'%s'", separator(lacking->count + i, total), missing[i].key);
        if (missing[i].hint) message_add(message, " (%s)", missing[i].hint);
    }
}

/* Tells the message about the object once: another reader may try the input after this one. */
static enum status tell_lacking(const struct json_input *input, struct json_place place, const struct message *message,
                                struct error *err)
{
    input->lacking->object = NULL;
    input->lacking->count = 0;
    return json_fail_place(input, place, message->text, err);
}

/* The object is not closed yet, so which of its other keys are unknown is not known. */
static enum status fail_missing(const struct json_input *input, struct error *err)
{
    const struct json_place place = {input->lacking->object, JSON_SELF, JSON_PLACE_VALUE};
    struct message message = {.used = 0};
    tell_missing(input->lacking, true, NULL, 0, &message);
    return tell_lacking(input, place, &message, err);
}

/* --- errors of callers ------------------------------------------------------------------------ */

static enum status fail_place(const struct json_input *input, struct json_place place,
                              const char *message, struct error *err)
{
    for (const struct json_input *in = input; in; in = in->beside)
        if (in->lacking->object) return fail_missing(in, err);
    return json_fail_place(input, place, message, err);
}

/* Returns the key's index, or JSON_SELF if there is no such key. */
static size_t key_index(const json_t *object, const char *key)
{
    size_t index = 0;
    void *iterator = json_object_iter(json_writable(object));
    for (; iterator; iterator = json_object_iter_next(json_writable(object), iterator), index++)
        if (strcmp(json_object_iter_key(iterator), key) == 0) return index;
    return JSON_SELF;
}

enum status json_fail_key(const struct json_input *input, const json_t *container, const char *key,
                          struct error *err, const char *format, ...)
{
    char message[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return json_fail_index(input, container, key ? key_index(container, key) : JSON_SELF, err, "%s", message);
}

enum status json_fail_index(const struct json_input *input, const json_t *container, size_t index,
                            struct error *err, const char *format, ...)
{
    char message[sizeof err->text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    return fail_place(input, (struct json_place){container, index, JSON_PLACE_VALUE}, message, err);
}

/* --- a key is missing --------------------------------------------------------------------------- */

/* Makes the stand-ins. */
static enum status begin_lacking(struct json_lacking *lacking, struct error *err)
{
    if (!lacking->empty_array) lacking->empty_array = json_array();
    if (!lacking->empty_object) lacking->empty_object = json_object();
    return lacking->empty_array && lacking->empty_object ? STATUS_OK : error_memory(err, "JSON input", 0);
}

/* Returns true when a reader asked for the key, or every object may have it. */
static bool was_asked(const struct json_object *object, const char *key)
{
    for (size_t i = 0; i < object->asked_count; i++)
        if (strcmp(object->asked[i], key) == 0) return true;
    return strcmp(key, "_comment") == 0;
}

/* Finds a key of the object that was not asked for and may be a misspelling of the missing one. */
static const char *find_near(const struct json_object *object, const char *key)
{
    void *iterator = json_object_iter(json_writable(object->value));
    for (; iterator; iterator = json_object_iter_next(json_writable(object->value), iterator)) {
        const char *other = json_object_iter_key(iterator);
        if (!was_asked(object, other) && suggest(other, &key, 1)) return other;
    }
    return NULL;
}

/* Fails at once where nothing would tell the key later. */
enum status json_miss(const struct json_object *object, const char *key, enum json_need need, struct error *err)
{
    const struct json_input *input = object->input;
    struct json_lacking *lacking = input->lacking;
    TRY(begin_lacking(lacking, err));
    if (!lacking->object) lacking->object = object->value;
    if (lacking->object == object->value && lacking->count < JSON_MISSING_MAX) {
        lacking->near[lacking->count] = find_near(object, key);
        lacking->keys[lacking->count++] = key;
    }
    return object->open_ended || need == JSON_DECIDES ? fail_missing(input, err) : STATUS_OK;
}

bool json_is_stand_in(const struct json_input *input, const json_t *value)
{
    return value && (value == input->lacking->empty_array || value == input->lacking->empty_object);
}

/* --- closing ---------------------------------------------------------------------------------- */

enum { UNKNOWN_NAMED_MAX = 8 };

/* Sets the first UNKNOWN_NAMED_MAX keys that were not asked for. Returns the number of such keys. */
static size_t find_unknown(const struct json_object *object, const char *unknown[UNKNOWN_NAMED_MAX], size_t *first)
{
    size_t count = 0, index = 0;
    void *iterator = json_object_iter(json_writable(object->value));
    for (; iterator; iterator = json_object_iter_next(json_writable(object->value), iterator), index++) {
        const char *key = json_object_iter_key(iterator);
        if (was_asked(object, key)) continue;
        if (count == 0) *first = index;
        if (count < UNKNOWN_NAMED_MAX) unknown[count] = key;
        count++;
    }
    return count;
}

static void tell_unknown(const struct json_object *object, const char *const *unknown, size_t count,
                         struct message *message)
{
    const size_t named = count < UNKNOWN_NAMED_MAX ? count : UNKNOWN_NAMED_MAX;
    bool all_near = true;
    char text[SUGGEST_BYTES];
    message_add(message, "unknown key%s ", count == 1 ? "" : "s");
    for (size_t i = 0; i < named; i++) {
        suggest_ending_or(unknown[i], object->asked, object->asked_count, "", text);
        all_near = all_near && text[0];
        message_add(message, "%s'%.100s'%s", separator(i, count), unknown[i], text);
    }
    if (count > named) message_add(message, " and %zu more", count - named);
    if (!all_near && object->asked_count > 0 && object->asked_count <= JSON_LISTED_WORDS_MAX)
        message_add(message, " (expected %s)", suggest_list(object->asked, object->asked_count, text, sizeof text));
}

enum status json_object_close_missing(struct json_object *object, const struct json_missing *missing, size_t count,
                                      struct error *err)
{
    const struct json_lacking *lacking = object->input->lacking;
    const bool complete = object->found_count == json_object_size(object->value);
    const char *unknown[UNKNOWN_NAMED_MAX];
    size_t first = 0, unknown_count = complete ? 0 : find_unknown(object, unknown, &first);
    struct message message = {.used = 0};
    if (lacking->object && lacking->object != object->value) {
        if (unknown_count > 0) return fail_missing(object->input, err);
        return STATUS_OK; /* the object around it is closed later */
    }
    if (lacking->count + count + unknown_count == 0) return STATUS_OK;
    tell_missing(lacking, false, missing, count, &message);
    const bool misses = message.used > 0;
    if (unknown_count > 0) {
        message_add(&message, "%s", misses ? "; " : "");
        tell_unknown(object, unknown, unknown_count, &message);
    }
    const struct json_place place = {object->value, misses ? JSON_SELF : first,
                                     misses ? JSON_PLACE_VALUE : JSON_PLACE_KEY};
    return tell_lacking(object->input, place, &message, err);
}

enum status json_object_close(struct json_object *object, struct error *err)
{
    return json_object_close_missing(object, NULL, 0, err);
}
