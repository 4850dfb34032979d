/* A run's plan, one job with one minibatch, takes 0.2 ms on one node, about 5 ms on 64 nodes and half a second on
 * hundreds: means over plots/papers/data. */
#include "cli/machine/cli_calibrate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json/json_in.h"
#include "base/size.h"
#include "base/try.h"
#include "models/hardware/software_stack.h"
#include "models/job/parallel.h"
#include "models/jobs/jobs_file.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"

/* --- values ---------------------------------------------------------------------------------- */

const char *const calibration_value_names[CALIBRATION_VALUES] = {
    [CALIBRATION_MATMUL_EFFICIENCY] = "matmul efficiency",
    [CALIBRATION_MEMORY_EFFICIENCY] = "memory efficiency",
    [CALIBRATION_COLLECTIVE_LATENCY] = "collective latency",
    [CALIBRATION_MATMUL_DEPTH] = "matmul depth",
    [CALIBRATION_SCORE_BYTES_FORWARD] = "score bytes forward",
    [CALIBRATION_SCORE_BYTES_BACKWARD] = "score bytes backward",
    [CALIBRATION_LOSS_PASSES] = "loss passes",
    [CALIBRATION_ELEMENTWISE_PASSES] = "elementwise passes",
    [CALIBRATION_MATMUL_SUSTAINED] = "matmul sustained",
    [CALIBRATION_MISALIGNED_RATE] = "misaligned rate",
    [CALIBRATION_KERNEL_GAP] = "kernel gap",
    [CALIBRATION_DISPATCH_LATENCY] = "dispatch latency",
    [CALIBRATION_NVLINK_BANDWIDTH] = "nvlink bandwidth",
    [CALIBRATION_NVLINK_LATENCY] = "nvlink latency",
    [CALIBRATION_NIC_BANDWIDTH] = "nic bandwidth",
    [CALIBRATION_NIC_LATENCY] = "nic latency",
};
static_assert(ARRAY_COUNT(calibration_value_names) == CALIBRATION_VALUES, "a name per value");

const enum dimension calibration_value_dimensions[CALIBRATION_VALUES] = {
    [CALIBRATION_MATMUL_EFFICIENCY] = DIMENSION_COUNT_OF,
    [CALIBRATION_MEMORY_EFFICIENCY] = DIMENSION_COUNT_OF,
    [CALIBRATION_COLLECTIVE_LATENCY] = DIMENSION_SECONDS,
    [CALIBRATION_MATMUL_DEPTH] = DIMENSION_COUNT_OF,
    [CALIBRATION_SCORE_BYTES_FORWARD] = DIMENSION_BYTES,
    [CALIBRATION_SCORE_BYTES_BACKWARD] = DIMENSION_BYTES,
    [CALIBRATION_LOSS_PASSES] = DIMENSION_COUNT_OF,
    [CALIBRATION_ELEMENTWISE_PASSES] = DIMENSION_COUNT_OF,
    [CALIBRATION_MATMUL_SUSTAINED] = DIMENSION_COUNT_OF,
    [CALIBRATION_MISALIGNED_RATE] = DIMENSION_COUNT_OF,
    [CALIBRATION_KERNEL_GAP] = DIMENSION_SECONDS,
    [CALIBRATION_DISPATCH_LATENCY] = DIMENSION_SECONDS,
    [CALIBRATION_NVLINK_BANDWIDTH] = DIMENSION_BYTES_PER_S,
    [CALIBRATION_NVLINK_LATENCY] = DIMENSION_SECONDS,
    [CALIBRATION_NIC_BANDWIDTH] = DIMENSION_BYTES_PER_S,
    [CALIBRATION_NIC_LATENCY] = DIMENSION_SECONDS,
};

/* Returns NULL for a link's value. */
static struct sourced_value *type_sourced(struct device_type *type, uint32_t which)
{
    switch (which) {
    case CALIBRATION_MATMUL_EFFICIENCY: return &type->matmul_efficiency;
    case CALIBRATION_MEMORY_EFFICIENCY: return &type->memory_efficiency;
    case CALIBRATION_COLLECTIVE_LATENCY: return &type->collective_latency;
    case CALIBRATION_MATMUL_DEPTH: return &type->kernel_model.matmul_depth;
    case CALIBRATION_SCORE_BYTES_FORWARD: return &type->kernel_model.score_bytes_forward;
    case CALIBRATION_SCORE_BYTES_BACKWARD: return &type->kernel_model.score_bytes_backward;
    case CALIBRATION_LOSS_PASSES: return &type->kernel_model.loss_passes;
    case CALIBRATION_ELEMENTWISE_PASSES: return &type->kernel_model.elementwise_passes;
    case CALIBRATION_MATMUL_SUSTAINED: return &type->kernel_model.matmul_sustained;
    case CALIBRATION_MISALIGNED_RATE: return &type->kernel_model.misaligned_rate;
    case CALIBRATION_KERNEL_GAP: return &type->kernel_model.kernel_gap;
    case CALIBRATION_DISPATCH_LATENCY: return &type->kernel_model.dispatch_latency;
    default: return NULL;
    }
}

static struct sourced_value *link_sourced(struct hardware_link *link, uint32_t which)
{
    bool nic = which == CALIBRATION_NIC_BANDWIDTH || which == CALIBRATION_NIC_LATENCY;
    if (strncmp(link->name, nic ? "nic-" : "nvlink-", nic ? 4 : 7) != 0) return NULL;
    return which == CALIBRATION_NIC_BANDWIDTH || which == CALIBRATION_NVLINK_BANDWIDTH ? &link->bandwidth
                                                                                       : &link->latency;
}

static void read_values(struct hardware *hardware, double out[CALIBRATION_VALUES])
{
    for (uint32_t f = 0; f < CALIBRATION_VALUES; f++) {
        const struct sourced_value *sourced = type_sourced(&hardware->types[0], f);
        for (uint32_t l = 0; l < hardware->link_count && !sourced && f >= CALIBRATION_NVLINK_BANDWIDTH; l++)
            sourced = link_sourced(&hardware->links[l], f);
        out[f] = sourced ? sourced->value : 0;
    }
}

static void put(struct sourced_value *sourced, double value, double spread, const char *source)
{
    if (!sourced || value <= 0) return;
    sourced->value = value;
    if (!source) return;
    *sourced = (struct sourced_value){.value = value, .spread = spread, .kind = SOURCE_FITTED, .source = source,
                                      .as_of = sourced->as_of ? sourced->as_of : "2026-11"};
}

void calibration_put(struct hardware *hardware, const double values[CALIBRATION_VALUES], double spread,
                     const char *source)
{
    for (uint32_t f = 0; f < CALIBRATION_VALUES; f++) {
        for (uint32_t t = 0; t < hardware->type_count; t++)
            put(type_sourced(&hardware->types[t], f), values[f], spread, source);
        for (uint32_t l = 0; l < hardware->link_count && f >= CALIBRATION_NVLINK_BANDWIDTH; l++)
            put(link_sourced(&hardware->links[l], f), values[f], spread, source);
    }
}

/* --- one run ----------------------------------------------------------------------------------- */

enum status calibration_job(const struct measured_run *run, struct job_set *out, struct error *err)
{
    const uint32_t *of = run->of;
    char text[1024];
    const bool pipelined = of[RUN_PIPELINE] > 1, interleaved = pipelined && of[RUN_CHUNKS] > 1;
    const bool scatters = of[RUN_SCATTER] && of[RUN_TENSOR] > 1 && pipelined && !of[RUN_SEQUENCE_PARALLEL];
    int length = snprintf(
        text, sizeof text,
        "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"gpt\", \"network\": {\"model_type\": \"gpt2\", \"n_embd\": "
        "%" PRIu32 ", \"n_head\": %" PRIu32 ", \"n_layer\": %" PRIu32 ", \"n_positions\": %" PRIu32
        ", \"vocab_size\": %" PRIu32 "}, \"sequence\": %" PRIu32 ", \"microbatch\": %" PRIu32
        ", \"microbatches\": %" PRIu32 ", \"minibatches\": 1, "
        "\"precision\": \"bf16\", \"optimizer\": \"adamw\", \"parallel\": {\"tensor\": %" PRIu32
        ", \"pipeline\": %" PRIu32 ", \"data\": %" PRIu32 ", \"chunks\": %" PRIu32
        ", \"schedule\": \"%s\", \"recompute\": \"%s\", \"sequence\": %s, "
        "\"scatter\": %s, \"exposed\": %s, \"overlap\": %s, \"zero\": %" PRIu32 "}}]}",
        of[RUN_WIDTH], of[RUN_HEADS], of[RUN_LAYERS], of[RUN_SEQUENCE], of[RUN_VOCABULARY], of[RUN_SEQUENCE],
        of[RUN_MICROBATCH], of[RUN_BATCH] / of[RUN_MICROBATCH], of[RUN_TENSOR], of[RUN_PIPELINE], of[RUN_DATA],
        of[RUN_CHUNKS], interleaved ? "interleaved" : "1f1b", recompute_names[of[RUN_RECOMPUTE]],
        of[RUN_SEQUENCE_PARALLEL] && of[RUN_TENSOR] > 1 ? "true" : "false", scatters ? "true" : "false",
        of[RUN_EXPOSED] ? "true" : "false", of[RUN_OVERLAP] ? "true" : "false", of[RUN_ZERO]);
    assert(length > 0 && (size_t)length < sizeof text);
    struct json_input *input = NULL;
    enum status status = json_input_parse("measured run", text, (size_t)length, &input, err);
    if (status == STATUS_OK) status = job_set_parse(input, json_input_root(input), ".", out, err);
    json_input_destroy(input);
    return status;
}

/* Gives enough memory: the measured run fitted, whatever the formula says. */
static void lend_memory(struct hardware *hardware)
{
    static const uint64_t enough = UINT64_C(1) << 50;
    for (uint32_t d = 0; d < hardware->device_count; d++) hardware->devices[d].memory_bytes = enough;
}

enum status calibration_machine(const char *name, const struct measured_run *run, struct hardware *out,
                                struct error *err)
{
    char several[160];
    TRY(hardware_find(name, out, err));
    uint32_t nodes = (run->of[RUN_DEVICES] + out->device_count - 1) / out->device_count;
    if (nodes > 1) {
        hardware_release(out);
        *out = (struct hardware){0};
        snprintf(several, sizeof several, "%" PRIu32 "x %s", nodes, name);
        TRY(hardware_find(several, out, err));
    }
    lend_memory(out);
    software_stack_apply(out, (enum hardware_stack)run->of[RUN_STACK]);
    return STATUS_OK;
}

enum status calibration_start(const char *name, const struct measured_runs *sets, uint32_t set_count,
                              double out[CALIBRATION_VALUES], struct error *err)
{
    struct hardware hardware = {0};
    const struct measured_run *first = &sets[0].runs[0], *most = first;
    for (uint32_t s = 0; s < set_count; s++)
        for (uint32_t i = 0; i < sets[s].count; i++) {
            const struct measured_run *run = &sets[s].runs[i];
            if (run->of[RUN_STACK] != first->of[RUN_STACK])
                return error_set(err, STATUS_BAD_INPUT, "%s:%" PRIu32 ": run with the stack '%s' (expected '%s', the "
                                 "stack of the first run)", sets[s].path, run->line,
                                 hardware_stack_names[run->of[RUN_STACK]], hardware_stack_names[first->of[RUN_STACK]]);
            if (run->of[RUN_DEVICES] > most->of[RUN_DEVICES]) most = run;
        }
    enum status status = calibration_machine(name, most, &hardware, err);
    if (status == STATUS_OK) read_values(&hardware, out);
    hardware_release(&hardware);
    return status;
}

/* Simulates this number of the run's minibatches. */
static enum status simulate(const char *name, const double values[CALIBRATION_VALUES], const struct measured_run *run,
                            uint64_t minibatches, double *out_s, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct plan plan = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    const struct planner_options options = {.activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO};
    const struct sim_options how = {.collectives = SIM_COLLECTIVES_CLOSED};
    enum status status = calibration_machine(name, run, &hardware, err);
    if (status == STATUS_OK) status = calibration_job(run, &jobs, err);
    if (status == STATUS_OK) {
        if (values) calibration_put(&hardware, values, 0, NULL);
        jobs.jobs[0].minibatches = minibatches;
        status = planner_plan(&hardware, &jobs, &options, &plan, err);
    }
    if (status == STATUS_OK) status = sim_run(&plan, &how, &result, &trace, err);
    if (status == STATUS_OK) *out_s = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    hardware_release(&hardware);
    job_set_release(&jobs);
    return status;
}

enum status calibration_predict(const char *name, const double values[CALIBRATION_VALUES],
                                const struct measured_run *run, double *out_s, struct error *err)
{
    double all_s;
    TRY(simulate(name, values, run, 1, out_s, err));
    if (!run->of[RUN_OVERLAP]) return STATUS_OK;
    TRY(simulate(name, values, run, 3, &all_s, err)); /* weights are gathered during the next iteration */
    *out_s = (all_s - *out_s) / 2;
    return STATUS_OK;
}
