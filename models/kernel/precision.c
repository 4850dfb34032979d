#include "models/kernel/precision.h"

#include <assert.h>
#include <string.h>
#include <strings.h>

#include "base/size.h"
#include "base/try.h"

const char *const precision_names[] = {[PRECISION_FP32] = "fp32", [PRECISION_BF16] = "bf16",
                                       [PRECISION_BF16_WEIGHTS] = "bf16-weights", NULL};
static_assert(ARRAY_COUNT(precision_names) == PRECISION_COUNT + 1, "a name per precision");

static const struct {
    const char *theirs;
    enum precision ours;
} spellings[] = {
    {"fp32", PRECISION_FP32},    {"float32", PRECISION_FP32}, {"float", PRECISION_FP32},   {"tf32", PRECISION_FP32},
    {"bf16", PRECISION_BF16},    {"bfloat16", PRECISION_BF16},
};

static const char *without_library(const char *text)
{
    static const char library[] = "torch.";
    return strncmp(text, library, strlen(library)) == 0 ? text + strlen(library) : text;
}

bool precision_is_fp16(const char *text)
{
    const char *const word = without_library(text);
    return strcasecmp(word, "fp16") == 0 || strcasecmp(word, "float16") == 0 || strcasecmp(word, "half") == 0;
}

bool precision_is_tf32(const char *text)
{
    return strcasecmp(without_library(text), "tf32") == 0;
}

const char *precision_spelled(const char *text)
{
    text = without_library(text);
    for (size_t i = 0; i < ARRAY_COUNT(spellings); i++)
        if (strcasecmp(text, spellings[i].theirs) == 0) return precision_names[spellings[i].ours];
    return NULL;
}

enum status precision_read(struct json_object *o, const char *key, uint32_t count, uint32_t *out, struct error *err)
{
    const char *text = json_string_value(json_object_get(o->value, key));
    const char *spelled = text ? precision_spelled(text) : NULL;
    size_t choice = *out;
    if (text && precision_is_fp16(text))
        return json_fail_key(o->input, o->value, key, err,
                             "'%s' is %s, which is neither trained nor modelled here (expected fp32, or bf16, "
                             "which has the same size)",
                             key, text);
    if (spelled) {
        json_take_any(o, key);
        for (choice = 0; strcmp(precision_names[choice], spelled) != 0;) choice++;
    } else {
        TRY(json_take_choice(o, key, JSON_OPTIONAL, precision_names, count, &choice, err));
    }
    *out = (uint32_t)choice;
    return STATUS_OK;
}
