#include "tests/support/planner/support_planner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"

static void *allocate(struct arena *arena, size_t count, size_t size)
{
    struct error err = {0};
    void *out = NULL;
    if (arena_array(arena, count, size, &out, &err)) abort();
    return out;
}

static const char *name_of(struct arena *arena, const char *prefix, uint32_t number)
{
    char *name = allocate(arena, 32, 1);
    snprintf(name, 32, "%s-%u", prefix, number);
    return name;
}

static struct sourced_value figure_of(double value)
{
    return (struct sourced_value){
        .value = value, .kind = SOURCE_ASSUMED, .source = "made up", .as_of = "2026-11"};
}

void test_hardware(struct hardware *out, uint32_t devices, uint64_t memory_bytes, double rate)
{
    *out = (struct hardware){.name = "made-up", .backend = "cuda", .host_cores = 8};
    out->host_bytes = figure_of(1e12);
    out->types = allocate(&out->arena, 1, sizeof *out->types);
    out->type_count = 1;
    out->types[0] = (struct device_type){.name = "made-up-device",
                                         .memory_bytes = figure_of((double)memory_bytes),
                                         .usable_bytes = figure_of((double)memory_bytes),
                                         .peak_fp32 = figure_of(1e12),
                                         .memory_bandwidth = figure_of(1e11),
                                         .matmul_efficiency = figure_of(0.5),
                                         .memory_efficiency = figure_of(0.8),
                                         .launch_latency = figure_of(0)};
    out->devices = allocate(&out->arena, devices, sizeof *out->devices);
    out->links = allocate(&out->arena, devices, sizeof *out->links);
    out->device_count = out->link_count = devices;
    for (uint32_t d = 0; d < devices; d++) {
        out->devices[d] = (struct hardware_device){
            .memory_bytes = memory_bytes, .path = {d}, .path_count = 1};
        out->links[d] = (struct hardware_link){.name = name_of(&out->arena, "pcie", d),
                                               .bandwidth = figure_of(rate),
                                               .latency = figure_of(0),
                                               .duplex = true};
    }
}

static void common(struct job_set *set, struct job *job, uint32_t number, uint64_t minibatches)
{
    *job = (struct job){.name = name_of(&set->arena, "job", number),
                        .sequence = 16,
                        .microbatch = 2, .microbatches = 1,
                        .minibatches = minibatches,
                        .seed = 11 + number,
                        .data_format = DATA_NONE};
    job->optimizer.kind = OPTIMIZER_SGD;
    job->optimizer.learning_rate = 0.01;
}

struct test_layer test_layer_equal(void *context, uint32_t job, uint32_t layer)
{
    (void)job, (void)layer;
    return *(const struct test_layer *)context;
}

struct test_layer test_layer_listed(void *context, uint32_t job, uint32_t layer)
{
    (void)job;
    return ((const struct test_layer *)context)[layer];
}

void test_profile_jobs(struct job_set *out, uint32_t count, uint32_t layers, uint64_t minibatches,
                       test_layer_function layer, void *context)
{
    *out = (struct job_set){0};
    out->jobs = allocate(&out->arena, count, sizeof *out->jobs);
    out->count = count;
    for (uint32_t j = 0; j < count; j++) {
        struct layer_profile *profile = allocate(&out->arena, layers, sizeof *profile);
        for (uint32_t l = 0; l < layers; l++) {
            struct test_layer t = layer(context, j, l);
            profile[l] = (struct layer_profile){.parameter_bytes = t.parameter_bytes,
                                                .activation_bytes = t.activation_bytes,
                                                .boundary_bytes = t.boundary_bytes,
                                                .forward_ns = t.forward_ns,
                                                .backward_ns = t.backward_ns};
        }
        common(out, &out->jobs[j], j, minibatches);
        out->jobs[j].network = (struct network){
            .family = NETWORK_PROFILE, .layer_count = layers, .profile = profile};
        snprintf(out->jobs[j].network.name, sizeof out->jobs[j].network.name, "profile-%u", j);
    }
}

void test_network_jobs(struct job_set *out, uint32_t count, const char *config,
                       uint64_t minibatches)
{
    *out = (struct job_set){0};
    out->jobs = allocate(&out->arena, count, sizeof *out->jobs);
    out->count = count;
    for (uint32_t j = 0; j < count; j++) {
        struct error err = {0};
        struct json_input *in;
        common(out, &out->jobs[j], j, minibatches);
        static const uint32_t kinds[] = {OPTIMIZER_ADAMW, OPTIMIZER_SGD, OPTIMIZER_MOMENTUM};
        out->jobs[j].optimizer = (struct job_optimizer){.kind = kinds[j % ARRAY_COUNT(kinds)],
                                                        .learning_rate = 1e-3,
                                                        .weight_decay = 0.1,
                                                        .beta1 = 0.9,
                                                        .beta2 = 0.95,
                                                         .epsilon = 1e-8,
                                                         .schedule = {.kind = j % RATE_SCHEDULE_COUNT,
                                                                      .warmup = j % minibatches}};
        if (out->jobs[j].optimizer.kind == OPTIMIZER_MOMENTUM) out->jobs[j].optimizer.momentum = 0.9;
        if (json_input_parse("config", config, strlen(config), &in, &err) ||
            network_parse(in, json_input_root(in), "config", &out->arena, &out->jobs[j].network,
                          &err)) {
            fprintf(stderr, "%s\n", err.text);
            abort();
        }
        json_input_destroy(in);
        out->jobs[j].sequence = network_tokens(&out->jobs[j].network, out->jobs[j].sequence);
    }
}

uint32_t test_precision(uint64_t drawn)
{
    return drawn == 0 ? PRECISION_BF16_WEIGHTS : drawn == 1 ? PRECISION_BF16 : PRECISION_FP32;
}

void test_gpt_jobs(struct job_set *out, uint32_t count, uint32_t blocks, uint32_t width,
                   uint64_t vocabulary, uint64_t minibatches)
{
    char text[512];
    snprintf(text, sizeof text,
             "{\"model_type\": \"gpt2\", \"n_layer\": %u, \"n_embd\": %u, \"n_head\": 4, "
             "\"n_positions\": 32, \"vocab_size\": %llu}",
             blocks, width, (unsigned long long)vocabulary);
    test_network_jobs(out, count, text, minibatches);
}

struct test_layer test_random_layer(void *context, uint32_t job, uint32_t layer)
{
    const struct test_random_layers *r = context;
    uint64_t at = (uint64_t)job * 1000 + layer;
    return (struct test_layer){
        .parameter_bytes = 64 * (1 + random_below(r->key, at, 1000) * r->copy_weight),
        .boundary_bytes = 64 * (1 + random_below(r->key + 1, at, 50)),
        .activation_bytes = 64 * (1 + random_below(r->key + 2, at, 200)),
        .forward_ns = 1000 + random_below(r->key + 3, at, 50000),
        .backward_ns = 1000 + random_below(r->key + 4, at, 100000)};
}
