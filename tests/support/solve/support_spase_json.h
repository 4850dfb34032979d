/* SPASE instances as JSON, for tests that read them again or print them. */
#ifndef SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_SPASE_JSON_H
#define SPILLWAY_TESTS_SUPPORT_SOLVE_SUPPORT_SPASE_JSON_H

#include "base/json/json_out.h"
#include "planner/saturn/spase/spase.h"

static inline void test_spase_write_ticks(const struct spase *in, uint32_t config, struct json_out *out)
{
    bool same = true;
    for (uint32_t c = 1; c < in->class_count; c++)
        same &= spase_ticks(in, config, c) == spase_ticks(in, config, 0);
    if (same && spase_ticks(in, config, 0) != SPASE_NOWHERE) {
        json_out_u64(out, "ticks", (uint64_t)spase_ticks(in, config, 0));
        return;
    }
    json_out_object_begin(out, "ticks", true);
    for (uint32_t c = 0; c < in->class_count; c++)
        if (spase_ticks(in, config, c) != SPASE_NOWHERE)
            json_out_u64(out, in->class_names[c], (uint64_t)spase_ticks(in, config, c));
    json_out_object_end(out);
}

static inline void test_spase_write_job(const struct spase *in, const struct spase_job *job, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_string(out, "name", job->name);
    json_out_array_begin(out, "configurations", false);
    for (uint32_t c = job->first_config; c < job->first_config + job->config_count; c++) {
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "parallelism", in->configs[c].parallelism);
        json_out_u64(out, "devices", in->configs[c].devices);
        test_spase_write_ticks(in, c, out);
        if (in->configs[c].spans) json_out_bool(out, "spans", true);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    json_out_object_end(out);
}

/* Writes an instance that spase_read() reads as the same instance. */
static inline void test_spase_write(const struct spase *in, struct json_out *out)
{
    json_out_object_begin(out, NULL, false);
    json_out_u64(out, "spillway_spase", 1);
    json_out_string(out, "name", in->name ? in->name : "spase");
    json_out_array_begin(out, "nodes", false);
    for (uint32_t n = 0; n < in->node_count; n++) {
        json_out_object_begin(out, NULL, true);
        json_out_string(out, "name", in->nodes[n].name);
        json_out_string(out, "class", in->class_names[in->nodes[n].class]);
        json_out_u64(out, "devices", in->nodes[n].device_count);
        json_out_object_end(out);
    }
    json_out_array_end(out);
    json_out_array_begin(out, "jobs", false);
    for (uint32_t j = 0; j < in->job_count; j++) test_spase_write_job(in, &in->jobs[j], out);
    json_out_array_end(out);
    json_out_object_end(out);
}

#endif
