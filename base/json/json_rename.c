/*
 * jansson keeps keys in the order of the file, and positions are found by that order. An object with a key to rename
 * is therefore rebuilt key by key. Removing a key and inserting another would move the value to the end.
 */
#include "base/json/json_rename.h"

#include <string.h>

static const struct json_synonym *find(const struct json_synonym *synonyms, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(synonyms[i].theirs, key) == 0) return &synonyms[i];
    return NULL;
}

/* Finds out whether any key must be renamed, and whether that is possible. */
static enum status look(const struct json_input *input, json_t *object, const struct json_synonym *synonyms,
                        size_t count, bool *any, struct error *err)
{
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const struct json_synonym *found = find(synonyms, count, json_object_iter_key(at));
        if (!found) continue;
        *any = true;
        if (json_object_get(object, found->ours))
            return json_fail_key(input, object, found->theirs, err,
                                 "'%s' is another name of '%s', which is given as well", found->theirs, found->ours);
        for (size_t i = 0; i < count; i++)
            if (&synonyms[i] != found && strcmp(synonyms[i].ours, found->ours) == 0 &&
                json_object_get(object, synonyms[i].theirs))
                return json_fail_key(input, object, found->theirs, err,
                                     "'%s' and '%s' both mean '%s' (expected one of them)", found->theirs,
                                     synonyms[i].theirs, found->ours);
    }
    return STATUS_OK;
}

enum status json_rename_keys(const struct json_input *input, const json_t *const_object,
                             const struct json_synonym *synonyms, size_t count, struct error *err)
{
    json_t *object = (json_t *)(uintptr_t)const_object; /* jansson's iterators need a non-const value, and the tree
                                                           is the input's own */
    bool any = false;
    if (!json_is_object(object)) return STATUS_OK;
    enum status status = look(input, object, synonyms, count, &any, err);
    if (status != STATUS_OK || !any) return status;

    json_t *renamed = json_object();
    bool kept = renamed != NULL;
    for (void *at = json_object_iter(object); at && kept; at = json_object_iter_next(object, at)) {
        const char *key = json_object_iter_key(at);
        const struct json_synonym *found = find(synonyms, count, key);
        kept = json_object_set(renamed, found ? found->ours : key, json_object_iter_value(at)) == 0;
    }
    if (kept) kept = json_object_clear(object) == 0 && json_object_update(object, renamed) == 0;
    json_decref(renamed);
    return kept ? STATUS_OK : error_memory(err, "an object's keys", json_object_size(object));
}
