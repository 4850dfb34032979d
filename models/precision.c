/* See precision.h. */
#include "models/precision.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"

const char *const precision_names[] = {[PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16"};
static_assert(ARRAY_COUNT(precision_names) == PRECISION_COUNT, "a name per precision");

static const struct {
    const char *theirs;
    enum precision ours;
} spellings[] = {
    {"fp32", PRECISION_FP32},    {"float32", PRECISION_FP32}, {"float", PRECISION_FP32},   {"tf32", PRECISION_FP32},
    {"bf16", PRECISION_BF16},    {"bfloat16", PRECISION_BF16}, {"fp16", PRECISION_BF16},   {"float16", PRECISION_BF16},
    {"half", PRECISION_BF16},
};

const char *precision_spelled(const char *text)
{
    static const char library[] = "torch.";
    if (strncmp(text, library, strlen(library)) == 0) text += strlen(library);
    for (size_t i = 0; i < ARRAY_COUNT(spellings); i++)
        if (strcasecmp(text, spellings[i].theirs) == 0) return precision_names[spellings[i].ours];
    return NULL;
}

enum status precision_take(struct json_object *o, const char *key, uint32_t *out, struct error *err)
{
    const char *spelled = json_is_string(json_object_get(o->value, key))
                              ? precision_spelled(json_string_value(json_object_get(o->value, key)))
                              : NULL;
    size_t choice = *out;
    if (spelled) {
        json_take_any(o, key);
        for (choice = 0; strcmp(precision_names[choice], spelled) != 0;) choice++;
    } else {
        enum status status = json_take_choice(o, key, JSON_OPTIONAL, precision_names, PRECISION_COUNT, &choice, err);
        if (status != STATUS_OK) return status;
    }
    *out = (uint32_t)choice;
    return STATUS_OK;
}
