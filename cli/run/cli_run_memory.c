/* The report of `plan` has the planned values under the same names. */
#include "cli/run/cli_run_memory.h"

#include "base/try.h"

static enum status put_lines(const struct json_input *in, struct json_object *device,
                             struct json_out *json, struct error *err)
{
    const json_t *lines;
    TRY(json_take_array(device, "memory", JSON_OPTIONAL, &lines, err));
    json_out_array_begin(json, "memory", false);
    for (size_t i = 0; i < json_array_size(lines); i++) {
        struct json_object line;
        const char *use;
        uint64_t bytes;
        TRY(json_object_open_at(&line, in, lines, i, "a line of memory", err));
        json_object_ignore_others(&line);
        TRY(json_take_string(&line, "for", JSON_REQUIRED, &use, err));
        TRY(json_take_u64(&line, "bytes", JSON_REQUIRED, 0, INT64_MAX, &bytes, err));
        json_out_object_begin(json, NULL, true);
        json_out_string(json, "for", use);
        json_out_u64(json, "bytes", bytes);
        json_out_object_end(json);
    }
    json_out_array_end(json);
    return STATUS_OK;
}

static enum status put_device(const struct json_input *in, const json_t *devices, size_t index,
                              struct json_out *json, struct error *err)
{
    static const char *const taken[] = {"arena_bytes", "workspace_bytes", "driver_bytes"};
    struct json_object device;
    const char *name;
    TRY(json_object_open_at(&device, in, devices, index, "a device", err));
    json_object_ignore_others(&device);
    TRY(json_take_string(&device, "name", JSON_REQUIRED, &name, err));
    json_out_object_begin(json, NULL, true);
    json_out_string(json, "name", name);
    for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
        uint64_t bytes;
        if (!json_has(&device, taken[i])) continue;
        TRY(json_take_u64(&device, taken[i], JSON_REQUIRED, 0, INT64_MAX, &bytes, err));
        json_out_u64(json, taken[i], bytes);
    }
    TRY(put_lines(in, &device, json, err));
    json_out_object_end(json);
    return STATUS_OK;
}

enum status cli_run_memory_json(const struct json_input *in, struct json_out *json,
                                struct error *err)
{
    struct json_object result;
    const json_t *devices;
    uint64_t bytes;
    bool pinned;
    TRY(json_object_open(&result, in, json_input_root(in), "the result of a run", err));
    json_object_ignore_others(&result);
    TRY(json_take_array(&result, "devices", JSON_OPTIONAL, &devices, err));
    json_out_array_begin(json, "devices", false);
    for (size_t i = 0; i < json_array_size(devices); i++)
        TRY(put_device(in, devices, i, json, err));
    json_out_array_end(json);
    if (json_has(&result, "host_bytes")) {
        TRY(json_take_u64(&result, "host_bytes", JSON_REQUIRED, 0, INT64_MAX, &bytes, err));
        json_out_u64(json, "host_bytes", bytes);
    }
    if (json_has(&result, "pinned")) {
        TRY(json_take_bool(&result, "pinned", JSON_REQUIRED, &pinned, err));
        json_out_bool(json, "pinned", pinned);
    }
    return STATUS_OK;
}
