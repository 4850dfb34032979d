/* Layers that are alike are written once and counted. */
#include "planner/chain/chain_io.h"

#include "base/json/json_out.h"
#include "base/try.h"
#include "planner/chain/chain_schedule.h"

/* Reads an entry of the file: a layer, and the number of such layers. */
static enum status read_entry(const struct json_input *in, const json_t *array, size_t index,
                              struct chain_layer *layer, uint32_t *count, struct error *err)
{
    struct json_object object;
    uint64_t forward, backward, again = 0, most = (uint64_t)CHAIN_TICKS_MAX;
    *layer = (struct chain_layer){0};
    *count = 1;
    TRY(json_object_open_at(&object, in, array, index, "a layer object", err));
    TRY(json_take_u64(&object, "forward", JSON_REQUIRED, 1, most, &forward, err));
    TRY(json_take_u64(&object, "backward", JSON_REQUIRED, 1, most, &backward, err));
    TRY(json_take_u64(&object, "again", JSON_OPTIONAL, 1, most, &again, err));
    TRY(json_take_u64(&object, "saved", JSON_REQUIRED, 0, CHAIN_BYTES_MAX, &layer->saved, err));
    TRY(json_take_u64(&object, "boundary", JSON_OPTIONAL, 0, layer->saved, &layer->boundary, err));
    TRY(json_take_u32(&object, "count", JSON_OPTIONAL, 1, CHAIN_LAYERS_MAX, count, err));
    layer->forward = (int64_t)forward;
    layer->backward = (int64_t)backward;
    layer->again = (int64_t)again;
    return json_object_close(&object, err);
}

static enum status read_layers(const struct json_input *in, const json_t *layers, struct chain *out,
                               struct error *err)
{
    struct chain_layer layer;
    uint32_t total = 0, count;
    if (json_array_size(layers) == 0)
        return json_fail_key(in, json_input_root(in), "layers", err,
                             "an empty chain (expected at least one layer)");
    for (size_t i = 0; i < json_array_size(layers); i++) {
        TRY(read_entry(in, layers, i, &layer, &count, err));
        total += count;
        if (total > CHAIN_LAYERS_MAX)
            return json_fail_index(in, layers, i, err, "too many layers (limit is %d)", CHAIN_LAYERS_MAX);
    }
    TRY(chain_init(out, total, err));
    total = 0;
    for (size_t i = 0; i < json_array_size(layers); i++) {
        TRY(read_entry(in, layers, i, &layer, &count, err));
        while (count-- > 0) out->layers[total++] = layer;
    }
    return STATUS_OK;
}

enum status chain_parse(const struct json_input *in, struct chain *out, struct error *err)
{
    struct json_object object;
    const json_t *layers;
    const char *name = "chain";
    uint64_t version;
    TRY(json_object_open(&object, in, json_input_root(in), "a chain object", err));
    TRY(json_take_u64(&object, "spillway_chain", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(&object, "name", JSON_OPTIONAL, &name, err));
    TRY(json_take_u64(&object, "memory", JSON_REQUIRED, 0, CHAIN_BYTES_MAX, &out->memory, err));
    TRY(json_take_u64(&object, "out_bytes_per_tick", JSON_OPTIONAL, 0, CHAIN_BYTES_MAX,
                      &out->out_bytes_per_tick, err));
    TRY(json_take_u64(&object, "in_bytes_per_tick", JSON_OPTIONAL, 0, CHAIN_BYTES_MAX,
                      &out->in_bytes_per_tick, err));
    TRY(json_take_array(&object, "layers", JSON_REQUIRED, &layers, err));
    TRY(json_object_close(&object, err));
    TRY(read_layers(in, layers, out, err));
    TRY(arena_string(&out->arena, name, &out->name, err));
    if (chain_finish(out, err)) return error_add(err, "%s", json_input_name(in));
    return STATUS_OK;
}

/* --- writing --------------------------------------------------------------------------------- */

static void write_schedule(const struct chain *chain, const struct chain_schedule *s, int64_t bound,
                           const char *proof, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_chain_schedule", 1);
    json_out_string(out, "chain", chain->name);
    json_out_u64(out, "makespan", (uint64_t)s->makespan);
    json_out_u64(out, "bound", (uint64_t)bound);
    json_out_string(out, "proof", proof);
    json_out_u64(out, "turnaround", (uint64_t)s->turnaround);
    json_out_array_begin(out, "layers", false);
    for (uint32_t l = 0; l < s->layer_count; l++) {
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "choice", chain_choice_names[s->choices[l]]);
        json_out_u64(out, "forward", (uint64_t)s->forward[l]);
        if (s->choices[l] == CHAIN_SWAP) json_out_u64(out, "out", (uint64_t)s->out[l]);
        if (s->choices[l] == CHAIN_SWAP) json_out_u64(out, "in", (uint64_t)s->in[l]);
        json_out_u64(out, "backward", (uint64_t)s->backward[l]);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    json_out_object_end(out);
}

enum status chain_schedule_write(const struct chain *chain, const struct chain_schedule *schedule,
                                 int64_t bound, const char *proof, const char *path, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "writing a schedule", err));
    write_schedule(chain, schedule, bound, proof, file.out);
    return json_file_end(&file, err);
}
