#include "planner/saturn/spase/spase_schedule_io.h"

#include "base/json/json_out.h"
#include "base/try.h"

void spase_schedule_write_jobs(const struct spase *in, const struct spase_schedule *schedule, struct json_out *out)
{
    json_out_array_begin(out, "jobs", false);
    for (uint32_t j = 0; j < in->job_count; j++) {
        const struct spase_task *task = &schedule->tasks[j];
        const uint32_t *first = schedule->devices + schedule->device_first[j];
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", in->jobs[j].name);
        json_out_string(out, "parallelism", in->configs[task->config].parallelism);
        json_out_string(out, "node", in->nodes[spase_node_of(in, *first)].name);
        json_out_array_begin(out, "devices", true);
        for (uint32_t i = 0; i < in->configs[task->config].devices; i++) json_out_u64(out, NULL, first[i]);
        json_out_array_end(out);
        json_out_u64(out, "start", (uint64_t)task->start);
        json_out_u64(out, "end", (uint64_t)(task->start + task->ticks));
        json_out_object_end(out);
    }
    json_out_array_end(out);
}

enum status spase_schedule_write(const struct spase *in, const struct spase_schedule *schedule, int64_t bound,
                                 const char *proof, const char *path, struct error *err)
{
    struct json_file file;
    TRY(json_file_begin(&file, path, "writing a schedule", err));
    struct json_out *out = file.out;
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_spase_schedule", 1);
    json_out_string(out, "instance", in->name);
    json_out_u64(out, "makespan", (uint64_t)schedule->makespan);
    json_out_u64(out, "bound", (uint64_t)bound);
    json_out_string(out, "proof", proof);
    spase_schedule_write_jobs(in, schedule, out);
    json_out_object_end(out);
    return json_file_end(&file, err);
}
