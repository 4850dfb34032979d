/* Equal neighbours are folded into "repeat". */
#include "models/network/config/network_config_parts.h"

#include <inttypes.h>

#include "base/files/path.h"
#include "base/json/json_out.h"
#include "base/json/json_rows.h"
#include "base/try.h"
#include "models/network/profile_text.h"

/* Reads "forward_ns": 1500000 or "forward": "1.5ms": units are never guessed. */
static enum status read_time(struct json_object *o, const char *ns_key, const char *key,
                             uint64_t *out, struct error *err)
{
    if (!json_has(o, key))
        return json_take_u64(o, ns_key, JSON_REQUIRED, 0, NETWORK_PROFILE_NS_MAX, out, err);
    double seconds = 0;
    if (json_has(o, ns_key))
        return json_fail_key(o->input, o->value, key, err, "both '%s' and '%s' are given", ns_key,
                             key);
    TRY(json_take_quantity(o, key, JSON_REQUIRED, DIMENSION_SECONDS, 0,
                           (double)NETWORK_PROFILE_NS_MAX * 1e-9, &seconds, err));
    *out = (uint64_t)(seconds * 1e9 + 0.5);
    return STATUS_OK;
}

static enum status parse_layer(const struct json_row *row, struct layer_profile *out, uint64_t *repeat,
                               struct error *err)
{
    struct json_object o;
    TRY(json_row_open(&o, row, "a layer object", err));
    *out = (struct layer_profile){0};
    *repeat = 1;
    const uint64_t bytes_max = NETWORK_PROFILE_BYTES_MAX;
    TRY(json_take_u64(&o, "parameter_bytes", JSON_REQUIRED, 0, bytes_max, &out->parameter_bytes,
                      err));
    TRY(json_take_u64(&o, "activation_bytes", JSON_REQUIRED, 0, bytes_max, &out->activation_bytes,
                      err));
    TRY(json_take_u64(&o, "boundary_bytes", JSON_REQUIRED, 0, bytes_max, &out->boundary_bytes,
                      err));
    TRY(read_time(&o, "forward_ns", "forward", &out->forward_ns, err));
    TRY(read_time(&o, "backward_ns", "backward", &out->backward_ns, err));
    TRY(json_take_u64(&o, "repeat", JSON_OPTIONAL, 1, NETWORK_LAYERS_MAX, repeat, err));
    TRY(json_object_close(&o, err));
    if (out->parameter_bytes % sizeof(float) != 0)
        return json_fail_key(row->in, o.value, "parameter_bytes", err,
                             "'parameter_bytes' %" PRIu64
                             " is not a multiple of 4 (parameters are fp32)",
                             out->parameter_bytes);
    return STATUS_OK;
}

static enum status read_text(struct json_object *o, const char *text, struct arena *arena, struct network *n,
                             struct error *err)
{
    const char *path;
    struct profile_text profile;
    TRY(json_object_close(o, err));
    TRY(path_beside(json_input_name(o->input), text, arena, &path, err));
    TRY(profile_text_read(arena, path, &profile, err));
    return profile_text_network(arena, &profile, n, err);
}

static enum status count_layer(const struct json_row *row, void *context, struct error *err)
{
    struct network *n = context;
    struct layer_profile layer;
    uint64_t repeat;
    TRY(parse_layer(row, &layer, &repeat, err));
    n->layer_count += repeat;
    if (n->layer_count <= NETWORK_LAYERS_MAX) return STATUS_OK;
    return json_fail_key(row->in, json_row_value(row), NULL, err, "too many layers (limit is %d)", NETWORK_LAYERS_MAX);
}

/* `context` points to the place of the next layer. */
static enum status add_layer(const struct json_row *row, void *context, struct error *err)
{
    struct layer_profile **next = context, layer;
    uint64_t repeat;
    TRY(parse_layer(row, &layer, &repeat, err));
    while (repeat-- > 0) *(*next)++ = layer;
    return STATUS_OK;
}

enum status config_parse_profile(struct json_object *o, struct arena *arena, struct network *n,
                                 struct error *err)
{
    const char *text = NULL, *device;
    const json_t *layers;
    json_take_any(o, "name");
    TRY(json_take_u64(o, "samples", JSON_OPTIONAL, 1, NETWORK_PROFILE_SAMPLES_MAX, &n->profile_samples, err));
    TRY(json_take_string(o, "measured_on", JSON_OPTIONAL, &device, err)); /* for readers of the file */
    TRY(json_take_string(o, "text", JSON_OPTIONAL, &text, err));
    if (text) return read_text(o, text, arena, n, err);
    TRY(json_take_array(o, "layers", JSON_REQUIRED, &layers, err));
    TRY(json_object_close(o, err));
    TRY(json_rows_each(o->input, layers, count_layer, n, err));
    if (n->layer_count == 0)
        return json_fail_key(o->input, o->value, "layers", err,
                             "'layers' is empty (expected at least one layer)");

    struct layer_profile *profile;
    TRY(ARENA_NEW(arena, (size_t)n->layer_count, profile, err));
    n->profile = profile;
    return json_rows_each(o->input, layers, add_layer, &profile, err);
}

static bool same_layer(const struct layer_profile *a, const struct layer_profile *b)
{
    return a->parameter_bytes == b->parameter_bytes && a->activation_bytes == b->activation_bytes &&
           a->boundary_bytes == b->boundary_bytes && a->forward_ns == b->forward_ns &&
           a->backward_ns == b->backward_ns;
}

void config_write_profile(const struct network *n, struct json_out *out)
{
    if (n->profile_samples > 0) json_out_u64(out, "samples", n->profile_samples);
    json_out_array_begin(out, "layers", false);
    for (uint64_t i = 0, next; i < n->layer_count; i = next) {
        const struct layer_profile *layer = &n->profile[i];
        for (next = i + 1; next < n->layer_count && same_layer(layer, &n->profile[next]);) next++;
        json_out_object_begin(out, NULL, true);
        json_out_u64(out, "parameter_bytes", layer->parameter_bytes);
        json_out_u64(out, "activation_bytes", layer->activation_bytes);
        json_out_u64(out, "boundary_bytes", layer->boundary_bytes);
        json_out_u64(out, "forward_ns", layer->forward_ns);
        json_out_u64(out, "backward_ns", layer->backward_ns);
        if (next - i > 1) json_out_u64(out, "repeat", next - i);
        json_out_object_end(out);
    }
    json_out_array_end(out);
}
