/*
 * Simulates Table 1 of PipeDream (Narayanan et al., SOSP 2019) for the networks whose layer profiles are published: the
 * reported configuration against data parallelism on the same workers, both as plans. Not a test: prints the table of
 * docs/instances/README.md.
 *
 *     configuration   asynchronous 1F1B. With 15-1, the layers are cut where PipeDream's formula is least for workers
 *                     on one level at the NIC's rate; straight pipelines are cut so that the slowest stage is fastest.
 *                     Replicas exchange the gradients of a stage in up to BUCKETS parts, each during the backward
 *                     passes over earlier parts
 *     data parallel   one stage whose layers are in at most CHUNKS runs: the all-reduce of a run's gradients, by the
 *                     fastest algorithm, runs during the backward passes over earlier runs
 *     speed-up        samples/s of the full pipeline, over samples/s of data parallelism
 *
 * Minibatches per worker are the paper's. Profiles were measured on one GPU with other minibatches, and are scaled.
 * Only AlexNet, ResNet-50, VGG16 and GNMT-8 have profiles here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/extreme.h"
#include "base/size.h"
#include "models/hardware/hardware.h"
#include "planner/parallel/pipeline/stage_cuts.h"
#include "planner/strategy/planner.h"
#include "sim/sim.h"
#include "tests/support/planner/support_planner.h"

enum { CHUNKS = 24, BUCKETS = 6 };

static const struct row {
    const char *network, *machine, *cluster, *configuration;
    uint32_t workers;
    double samples, profiled; /* of a worker's minibatch; of the profile's */
    double nic;               /* bytes/s */
    double published;
} rows[] = {
    {"vgg16", "4x nc24v3", "A 4x4", "15-1", 16, 64, 128, 1.25e9, 5.28},
    {"vgg16", "2x p3.16xlarge", "B 2x8", "15-1", 16, 64, 128, 3.125e9, 2.98},
    {"resnet50", "4x nc24v3", "A 4x4", "16", 16, 128, 128, 1.25e9, 1},
    {"resnet50", "2x p3.16xlarge", "B 2x8", "16", 16, 128, 128, 3.125e9, 1},
    {"alexnet", "4x nc24v3", "A 4x4", "15-1", 16, 256, 256, 1.25e9, 4.92},
    {"alexnet", "2x p3.16xlarge", "B 2x8", "15-1", 16, 256, 256, 3.125e9, 2.04},
    {"gnmt", "1x nc24v3", "A 1x4", "straight", 4, 64, 64, 1.25e9, 1.5},
    {"gnmt", "3x nc24v3", "A 3x4", "straight", 12, 64, 64, 1.25e9, 2.95},
    {"gnmt", "2x p3.16xlarge", "B 2x8", "16", 16, 64, 64, 3.125e9, 1},
};

static void must(enum status status, const struct error *err)
{
    if (status == STATUS_OK) return;
    fprintf(stderr, "%s\n", err->text);
    exit(1);
}

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)job;
    const struct layer_profile *p = &((const struct network *)context)->profile[layer];
    return (struct test_layer){.parameter_bytes = p->parameter_bytes, .boundary_bytes = p->boundary_bytes,
                               .activation_bytes = p->activation_bytes, .forward_ns = p->forward_ns,
                               .backward_ns = p->backward_ns};
}

/* Returns the seconds of these minibatches. Memory is unlimited, because the paper's Table 1 is about time. */
static double makespan_s(const struct row *row, struct network *network, const struct parallel *parallel,
                         uint64_t minibatches)
{
    struct hardware hardware = {0};
    struct job_set jobs;
    struct plan plan = {0};
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    const struct sim_options sim = {.no_fold = false};
    must(hardware_find(row->machine, &hardware, &err), &err);
    for (uint32_t d = 0; d < hardware.device_count; d++) hardware.devices[d].memory_bytes = UINT64_C(1) << 40;
    test_profile_jobs(&jobs, 1, (uint32_t)network->layer_count, minibatches, layer_of, network);
    jobs.jobs[0].parallel = *parallel;
    jobs.jobs[0].microbatch = 1;
    jobs.jobs[0].microbatches = parallel->data;
    must(planner_plan(&hardware, &jobs, &options, &plan, &err), &err);
    must(sim_run(&plan, &sim, &result, &trace, &err), &err);
    double seconds = result.makespan_s;
    sim_result_release(&result);
    trace_release(&trace);
    plan_release(&plan);
    return seconds;
}

/* Returns the seconds per minibatch of a full pipeline: a longer training minus a shorter one. */
static double interval_s(const struct row *row, struct network *network, const struct parallel *parallel, uint64_t few)
{
    return (makespan_s(row, network, parallel, 3 * few) - makespan_s(row, network, parallel, few)) / (2 * (double)few);
}

static void divide(const struct row *row, struct arena *arena, const struct stage_chain *chain, struct parallel *out)
{
    struct stage_partition found;
    struct error err = {0};
    *out = (struct parallel){.tensor = 1, .pipeline = 2, .data = 1, .chunks = 1, .prefetch = 1,
                             .schedule = PIPELINE_PIPEDREAM, .cuts = 2, .replicated = 2};
    const uint32_t replicas[] = {row->workers - 1, 1};
    const struct stage_cuts_request cuts = {.replicas = replicas, .stages = 2, .bytes_per_s = row->nic};
    struct stage_request request = {.method = STAGE_BALANCED, .levels = {{row->workers, 1}}, .level_count = 1,
                                    .microbatches = 1, .stages = row->workers};
    if (strcmp(row->configuration, "straight") != 0) must(stage_cuts_find(arena, chain, &cuts, &found, &err), &err);
    else must(stage_partition_find(arena, chain, &request, &found, &err), &err);
    out->pipeline = out->cuts = out->replicated = found.count;
    out->buckets = BUCKETS;
    for (uint32_t s = 0; s < found.count; s++) {
        out->buckets = min_u32(out->buckets, found.stages[s].count);
        out->cut_lengths[s] = found.stages[s].count;
        out->replicas[s] = found.stages[s].replicas;
    }
}

static void print_row(const char *folder, const struct row *row)
{
    struct arena arena = {0};
    struct error err = {0};
    struct stage_chain chain;
    struct network network;
    char path[256];
    snprintf(path, sizeof path, "%s/%s.txt", folder, row->network);
    must(stage_chain_read(&arena, path, &chain, &err), &err);
    double scale = row->samples / row->profiled, speed_up = 1, pipeline_s = 0;
    for (uint32_t l = 0; l < chain.count; l++) { /* cuts are for the paper's minibatch, too */
        chain.layers[l].forward_s *= scale;
        chain.layers[l].backward_s *= scale;
        chain.layers[l].cut_bytes = (uint64_t)((double)chain.layers[l].cut_bytes * scale);
    }
    must(stage_chain_network(&arena, &chain, 1, &network, &err), &err);
    struct parallel data = {.tensor = 1, .pipeline = 1, .data = row->workers, .prefetch = 1, .schedule = PIPELINE_1F1B,
                            .chunks = chain.count < CHUNKS ? chain.count : CHUNKS}, stages;
    double data_s = interval_s(row, &network, &data, 4) / row->workers;
    if (strcmp(row->configuration, "16") != 0) {
        divide(row, &arena, &chain, &stages);
        pipeline_s = interval_s(row, &network, &stages, 60 * row->workers);
        speed_up = data_s / pipeline_s;
    }
    printf("| %-8s | %s | %-8s | %7.1f | ", row->network, row->cluster, row->configuration, row->samples / data_s);
    if (pipeline_s > 0) printf("%7.1f", row->samples / pipeline_s);
    else printf("      -");
    printf(" | %5.2f | %5.2f | %+4.0f %% |\n", speed_up, row->published, 100 * (speed_up / row->published - 1));
    arena_release(&arena);
}

/* The argument is the folder with the profiles, if this does not run in the source tree. */
int main(int argc, char **argv)
{
    printf("| network | cluster | stages | data parallel, samples/s | pipeline | speed-up | published | error |\n"
           "|---|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; i < ARRAY_COUNT(rows); i++) print_row(argc > 1 ? argv[1] : "docs/instances/pipedream", &rows[i]);
    return 0;
}
