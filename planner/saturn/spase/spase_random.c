/* See spase_random.h. One stream of numbers per instance, drawn in the order of the jobs. */
#include "planner/saturn/spase/spase_random.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>

#include "base/random.h"

static const char *const parallelism_names[8] = {"spilled", "ddp",    "fsdp",     "pipeline",
                                                 "tensor",  "hybrid", "sequence", "expert"};

struct draw {
    uint64_t key, counter;
};

static double draw_between(struct draw *draw, double low, double high)
{
    return low + (high - low) * random_unit(draw->key, draw->counter++);
}

static uint32_t next_count(const struct spase_random *options, uint32_t devices)
{
    return options->powers ? 2 * devices : devices + 1;
}

static uint32_t widest(const struct spase_random *options, uint32_t parallelism)
{
    uint32_t most = options->devices > options->slow_devices ? options->devices : options->slow_devices;
    return options->spans && parallelism + 1 == options->parallelisms ? 2 * most : most;
}

static uint32_t count_configs(const struct spase_random *options)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < options->parallelisms; p++)
        for (uint32_t k = 1; k <= widest(options, p); k = next_count(options, k)) count++;
    return count;
}

static void fill_job(struct spase *in, const struct spase_random *options, struct draw *draw,
                     struct spase_job *job)
{
    double work = draw_between(draw, 1000, 4000), slower = draw_between(draw, 0.4, 0.7);
    for (uint32_t p = 0; p < options->parallelisms; p++) {
        double factor = draw_between(draw, 0.85, 1.3), efficiency = draw_between(draw, 0.55, 0.95);
        uint32_t least = p == 0 ? 1 : 1u << (uint32_t)draw_between(draw, 0, 2.999);
        for (uint32_t k = 1; k <= widest(options, p); k = next_count(options, k)) {
            uint32_t config = job->first_config + job->config_count++;
            double ticks = ceil(work * factor / pow(k, efficiency));
            bool runs = k >= least;
            in->configs[config] = (struct spase_config){
                parallelism_names[p], k, options->spans && p + 1 == options->parallelisms};
            in->ticks[(size_t)config * in->class_count] = runs ? (int64_t)ticks : SPASE_NOWHERE;
            if (in->class_count > 1)
                in->ticks[(size_t)config * 2 + 1] = runs ? (int64_t)ceil(ticks / slower) : SPASE_NOWHERE;
        }
    }
}

enum status spase_random(const struct spase_random *options, struct spase *out, struct error *err)
{
    struct spase in = {0};
    struct draw draw = {options->seed, 0};
    uint32_t each = count_configs(options), nodes = options->nodes + options->slow_nodes;
    char name[64];
    assert(options->parallelisms >= 1 && options->parallelisms <= 8);
    if (spase_init(&in, options->slow_nodes ? 2 : 1, nodes, options->jobs, options->jobs * each, err)) goto fail;
    snprintf(name, sizeof name, "random-%llu", (unsigned long long)options->seed);
    if (arena_string(&in.arena, name, &in.name, err)) goto fail;
    in.class_names[0] = "fast";
    if (in.class_count > 1) in.class_names[1] = "slow";
    for (uint32_t n = 0; n < nodes; n++) {
        bool slow = n >= options->nodes;
        in.nodes[n] = (struct spase_node){.class = slow,
                                          .device_count = slow ? options->slow_devices : options->devices};
        snprintf(name, sizeof name, "node-%u", n);
        if (arena_string(&in.arena, name, &in.nodes[n].name, err)) goto fail;
    }
    for (uint32_t j = 0; j < options->jobs; j++) {
        in.jobs[j].first_config = j * each;
        fill_job(&in, options, &draw, &in.jobs[j]);
        snprintf(name, sizeof name, "job-%u", j);
        if (arena_string(&in.arena, name, &in.jobs[j].name, err)) goto fail;
    }
    if (spase_finish(&in, err)) goto fail;
    *out = in;
    return STATUS_OK;
fail:
    spase_release(&in);
    return err->status;
}
