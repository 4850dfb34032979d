/* Machines and jobs made up for tests of the planner. */
#ifndef SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLANNER_H
#define SPILLWAY_TESTS_SUPPORT_PLANNER_SUPPORT_PLANNER_H

#include "models/hardware/hardware.h"
#include "models/job/job.h"

/* Makes `devices` equal devices of `memory_bytes`, each with its own duplex link of `rate` bytes/s without latency;
 * no interference. */
void test_hardware(struct hardware *out, uint32_t devices, uint64_t memory_bytes, double rate);

/* Makes `count` jobs of profile networks with `layers` layers each. Layer l of job j has parameters(j, l) bytes and
 * computes forward(j, l) ns, backward(j, l) ns. */
struct test_layer {
    uint64_t parameter_bytes, boundary_bytes, activation_bytes, forward_ns, backward_ns;
};
typedef struct test_layer (*test_layer_function)(void *context, uint32_t job, uint32_t layer);
void test_profile_jobs(struct job_set *out, uint32_t count, uint32_t layers, uint64_t minibatches,
                       test_layer_function layer, void *context);

/* The context is a layer, which all are like, or an array of all layers. */
struct test_layer test_layer_equal(void *context, uint32_t job, uint32_t layer);
struct test_layer test_layer_listed(void *context, uint32_t job, uint32_t layer);

/* Layers that depend on a key; the context is a struct test_random_layers. */
struct test_random_layers {
    uint64_t key;
    uint64_t copy_weight; /* weight of parameters relative to computation */
};
struct test_layer test_random_layer(void *context, uint32_t job, uint32_t layer);

/* Makes `count` jobs of the network of a config.json: sequence 16 (images have their own), microbatch 2; every other
 * job, from the first, with adamw, the others with sgd. */
void test_network_jobs(struct job_set *out, uint32_t count, const char *config,
                       uint64_t minibatches);

/* Returns the precision that 0, 1 and other numbers stand for: 16 bits of weights, or throughout, and fp32. */
uint32_t test_precision(uint64_t drawn);

/* Makes `count` small byte-level GPT-2 jobs: blocks b, width c, sequence 16, microbatch 2. */
void test_gpt_jobs(struct job_set *out, uint32_t count, uint32_t blocks, uint32_t width,
                   uint64_t vocabulary, uint64_t minibatches);

#endif
