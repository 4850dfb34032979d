#include "cli/sweep/report_figure.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text/number.h"

enum { KEY_BYTES = 128 };

/* A key, or the contents of brackets. */
struct report_figure_step {
    char key[KEY_BYTES];
    bool bracket;
};

/* Returns the text after the step, or NULL. */
static const char *read_step(const char *path, bool first, struct report_figure_step *step)
{
    step->bracket = *path == '[';
    if (step->bracket ? first : !first && *path != '.') return NULL;
    if (step->bracket || !first) path++;
    size_t length = strcspn(path, step->bracket ? "]" : ".[]");
    if (length == 0 || length >= sizeof step->key) return NULL;
    memcpy(step->key, path, length);
    step->key[length] = '\0';
    path += length;
    if (step->bracket && *path != ']') return NULL;
    return path + step->bracket;
}

enum status sweep_figure_check(const char *path, struct error *err)
{
    struct report_figure_step step;
    const char *at = path;
    bool first = true;
    do at = read_step(at, first, &step), first = false;
    while (at && *at);
    if (at) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--figure' is '%s' (expected a key of the verb's JSON, such as "
                     "makespan_s or places[gpu0].peak_bytes)", path);
}

static const json_t *element(const json_t *array, const char *key)
{
    uint64_t index;
    if (number_read_u64(key, &index)) return json_array_get(array, index);
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *item = json_array_get(array, i);
        const char *name = json_string_value(json_object_get(item, "name"));
        if (name && strcmp(name, key) == 0) return item;
    }
    return NULL;
}

double sweep_figure_read(const json_t *report, const char *path)
{
    const json_t *value = report;
    struct report_figure_step step;
    for (bool first = true; value && path && *path; first = false) {
        path = read_step(path, first, &step);
        if (path) value = step.bracket ? element(value, step.key) : json_object_get(value, step.key);
    }
    if (!value || !path) return NAN;
    if (json_is_boolean(value)) return json_is_true(value) ? 1 : 0;
    return json_is_number(value) ? json_number_value(value) : NAN;
}
