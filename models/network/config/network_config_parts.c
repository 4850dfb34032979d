#include "models/network/config/network_config_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/try.h"

/* The first `tanh_count` are GELU's tanh form. */
enum { GELU_TANH_COUNT = 3 };
static const char *const activations[] = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu"};

enum status config_activation(struct json_object *object, const char *key, bool *tanh_form,
                                   struct error *err)
{
    size_t index = *tanh_form ? 0 : GELU_TANH_COUNT;
    TRY(json_take_choice(object, key, JSON_OPTIONAL, activations, ARRAY_COUNT(activations), &index,
                         err));
    *tanh_form = index < GELU_TANH_COUNT;
    return STATUS_OK;
}

enum status config_padding(struct json_object *object, struct network *n, struct error *err)
{
    const json_t *value = json_object_get(object->value, "pad_token_id");
    json_int_t words = (json_int_t)n->vocabulary, token = json_integer_value(value);
    json_take_any(object, "pad_token_id");
    if (!value) return STATUS_OK;
    n->has_padding = !json_is_null(value);
    n->padding_token = 0;
    if (!n->has_padding) return STATUS_OK;
    if (!json_is_integer(value) || token < -words || token >= words)
        return json_fail_key(object->input, object->value, "pad_token_id", err,
                             "'pad_token_id' is not a token of the vocabulary (expected -%" PRIu64 " to %" PRIu64
                             ", or null)",
                             n->vocabulary, n->vocabulary - 1);
    n->padding_token = (uint64_t)(token < 0 ? token + words : token);
    return STATUS_OK;
}

enum status config_fixed(struct json_object *object, const char *key, bool expected,
                              struct error *err)
{
    bool found = expected;
    TRY(json_take_bool(object, key, JSON_OPTIONAL, &found, err));
    if (found == expected) return STATUS_OK;
    return json_fail_key(object->input, object->value, key, err,
                         "'%s' is %s (only %s is supported)", key, found ? "true" : "false",
                         expected ? "true" : "false");
}

enum status config_architecture(struct json_object *object, const char *const *names,
                                     size_t count, size_t *out, struct error *err)
{
    const json_t *array = NULL;
    const char *found;
    TRY(json_take_array(object, "architectures", JSON_OPTIONAL, &array, err));
    *out = 0;
    if (!array || json_array_size(array) == 0) return STATUS_OK;
    TRY(json_item_string(object->input, array, 0, &found, err));
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], found) != 0) continue;
        *out = i;
        return STATUS_OK;
    }
    char list[256];
    size_t used = 0;
    for (size_t i = 0; i < count && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    return json_fail_index(object->input, array, 0, err,
                           "unsupported architecture '%.100s' (expected one of %s)", found, list);
}

enum status config_classes(struct json_object *object, uint64_t *out, struct error *err)
{
    const json_t *labels = NULL;
    TRY(json_take_object(object, "id2label", JSON_OPTIONAL, &labels, err));
    if (labels) {
        *out = json_object_size(labels);
        if (*out == 0 || *out > NETWORK_VOCABULARY_MAX)
            return json_fail_key(object->input, object->value, "id2label", err,
                                 "'id2label' has %" PRIu64 " labels (expected 1 to %d)", *out,
                                 NETWORK_VOCABULARY_MAX);
    }
    return json_take_u64(object, "num_labels", JSON_OPTIONAL, 1, NETWORK_VOCABULARY_MAX, out, err);
}

enum status config_head_width(struct json_object *object, const char *heads_key,
                                   const char *width_key, bool may_differ, struct network *n,
                                   struct error *err)
{
    if (may_differ && json_has(object, "head_dim")) {
        TRY(json_take_u64(object, "head_dim", JSON_REQUIRED, 1, NETWORK_WIDTH_MAX, &n->head_width,
                          err));
        if (n->head_width * n->heads <= NETWORK_WIDTH_MAX) return STATUS_OK;
        return json_fail_key(object->input, object->value, "head_dim", err,
                             "%" PRIu64 " heads of %" PRIu64
                             " are too wide together (limit is %d)",
                             n->heads, n->head_width, NETWORK_WIDTH_MAX);
    }
    if (n->width % n->heads != 0)
        return json_fail_key(object->input, object->value, heads_key, err,
                             "'%s' %" PRIu64 " is not a multiple of '%s' %" PRIu64, width_key,
                             n->width, heads_key, n->heads);
    n->head_width = n->width / n->heads;
    return STATUS_OK;
}
