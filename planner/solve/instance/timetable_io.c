#include "planner/solve/instance/timetable_io.h"

#include <string.h>

#include "base/alloc.h"
#include "base/json/json_in.h"
#include "base/json/json_out.h"
#include "base/try.h"
#include "planner/solve/instance/timetable_check.h"

/* --- writing --------------------------------------------------------------------------------- */

static void write_device(const struct timetable *timetable, uint32_t device, struct json_out *out)
{
    json_out_array_begin(out, NULL, true);
    for (uint32_t t = timetable->device_first[device]; t < timetable->device_first[device + 1]; t++) {
        json_out_array_begin(out, NULL, true);
        json_out_u64(out, NULL, timetable->tasks[t].job);
        json_out_u64(out, NULL, timetable->tasks[t].position);
        json_out_u64(out, NULL, (uint64_t)timetable->tasks[t].start);
        json_out_array_end(out);
    }
    json_out_array_end(out);
}

static void write_timetable(const struct instance *in, const struct timetable *timetable, int64_t bound,
                            const char *proof, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_timetable", 1);
    json_out_string(out, "instance", in->name ? in->name : "instance");
    json_out_string(out, "objective", instance_objective_names[in->objective]);
    json_out_u64(out, "value", (uint64_t)timetable->value);
    json_out_u64(out, "bound", (uint64_t)bound);
    json_out_string(out, "proof", proof);
    json_out_array_begin(out, "devices", false);
    for (uint32_t g = 0; g < timetable->device_count; g++) write_device(timetable, g, out);
    json_out_array_end(out);
    json_out_object_end(out);
}

enum status timetable_write(const struct instance *in, const struct timetable *timetable, int64_t bound,
                            const char *proof, const char *path, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "writing a timetable", err));
    write_timetable(in, timetable, bound, proof, file.out);
    return json_file_end(&file, err);
}

/* --- reading --------------------------------------------------------------------------------- */

static enum status read_task(const struct json_input *input, const json_t *array, size_t index,
                             const struct instance *in, struct timetable_task *out, struct error *err)
{
    const json_t *task;
    uint64_t job, position, start;
    TRY(json_item_array(input, array, index, 3, &task, err));
    TRY(json_item_u64(input, task, 0, 0, in->job_count - 1u, &job, err));
    TRY(json_item_u64(input, task, 1, 0, instance_length(&in->jobs[job]) - 1u, &position, err));
    TRY(json_item_u64(input, task, 2, 0, (uint64_t)INSTANCE_HORIZON_MAX, &start, err));
    *out = (struct timetable_task){(uint32_t)job, (uint32_t)position, (int64_t)start};
    return STATUS_OK;
}

static enum status read_devices(const struct json_input *input, const json_t *devices,
                                const struct instance *in, struct timetable *out, struct error *err)
{
    uint32_t count = 0;
    for (size_t g = 0; g < in->device_count; g++) {
        const json_t *tasks;
        TRY(json_item_array(input, devices, g, SIZE_MAX, &tasks, err));
        if (json_array_size(tasks) > in->task_count - count)
            return json_fail_index(input, devices, g, err, "more tasks than the instance has (%u)",
                                   in->task_count);
        for (size_t t = 0; t < json_array_size(tasks); t++)
            TRY(read_task(input, tasks, t, in, &out->tasks[count++], err));
        out->device_first[g + 1] = count;
    }
    if (count != in->task_count)
        return json_fail_index(input, devices, JSON_SELF, err, "%u tasks (expected %u, as in the instance)",
                               count, in->task_count);
    return STATUS_OK;
}

/* Reports the place in the file where a rule is broken. */
static enum status judge(const struct json_input *input, const json_t *root, const json_t *devices,
                         const struct instance *in, const struct timetable *timetable, struct error *err)
{
    struct error why = {0};
    uint32_t task, device = 0;
    if (timetable_check_task(in, timetable, &task, &why) == STATUS_OK) return STATUS_OK;
    if (why.status != STATUS_CHECK) return error_set(err, why.status, "%s", why.text);
    if (task == TIMETABLE_NONE) return json_fail_key(input, root, "value", err, "%s", why.text);
    while (timetable->device_first[device + 1] <= task) device++;
    return json_fail_index(input, json_array_get(devices, device), task - timetable->device_first[device], err,
                           "%s", why.text);
}

static enum status parse(const struct json_input *input, const struct instance *in, bool checked,
                         struct timetable *out, int64_t *bound, struct error *err)
{
    struct json_object object;
    const json_t *devices;
    const char *name, *proof = NULL;
    uint64_t version, value, proven;
    size_t objective;
    TRY(json_object_open(&object, input, json_input_root(input), "a timetable object", err));
    TRY(json_take_u64(&object, "spillway_timetable", JSON_REQUIRED, 1, 1, &version, err));
    TRY(json_take_string(&object, "instance", JSON_REQUIRED, &name, err));
    TRY(json_take_choice(&object, "objective", JSON_REQUIRED, instance_objective_names, OBJECTIVE_COUNT,
                         &objective, err));
    TRY(json_take_u64(&object, "value", JSON_REQUIRED, 0, INT64_MAX / 4, &value, err));
    TRY(json_take_u64(&object, "bound", JSON_REQUIRED, 0, value, &proven, err));
    TRY(json_take_string(&object, "proof", JSON_OPTIONAL, &proof, err));
    TRY(json_take_array(&object, "devices", JSON_REQUIRED, &devices, err));
    TRY(json_object_close(&object, err));
    if (checked && in->name && strcmp(name, in->name) != 0)
        return json_fail_key(input, object.value, "instance", err, "'%.80s', but the instance is '%.80s'", name,
                             in->name);
    if (objective != in->objective)
        return json_fail_key(input, object.value, "objective", err, "'%s', but the instance's is '%s'",
                             instance_objective_names[objective], instance_objective_names[in->objective]);
    if (json_array_size(devices) != in->device_count)
        return json_fail_key(input, object.value, "devices", err, "%zu devices (expected %u, as in the instance)",
                             json_array_size(devices), in->device_count);
    out->tasks = alloc_zeroed(in->task_count, sizeof *out->tasks);
    out->device_first = alloc_zeroed(in->device_count + 1u, sizeof *out->device_first);
    if (!out->tasks || !out->device_first)
        return error_memory(err, "a timetable", in->task_count * sizeof *out->tasks);
    out->task_count = in->task_count;
    out->device_count = in->device_count;
    out->value = (int64_t)value;
    *bound = (int64_t)proven;
    TRY(read_devices(input, devices, in, out, err));
    return checked ? judge(input, object.value, devices, in, out, err) : STATUS_OK;
}

static enum status read_file(const struct instance *in, const char *path, bool checked, struct timetable *out,
                             int64_t *bound, struct error *err)
{
    struct json_input *input;
    TRY(json_input_read(path, &input, err));
    enum status status = parse(input, in, checked, out, bound, err);
    json_input_destroy(input);
    return status;
}

enum status timetable_read(const struct instance *in, const char *path, struct timetable *out,
                           int64_t *bound, struct error *err)
{
    return read_file(in, path, false, out, bound, err);
}

enum status timetable_read_checked(const struct instance *in, const char *path, struct timetable *out,
                                   int64_t *bound, struct error *err)
{
    return read_file(in, path, true, out, bound, err);
}
