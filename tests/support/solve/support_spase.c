#include "tests/support/solve/support_spase.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <assert.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "planner/saturn/spase/spase_io.h"
#include "planner/saturn/spase/spase_schedule.h"
#include "tests/support/solve/support_spase_json.h"
#include "tests/support/support_json.h"

void test_spase(const char *text, struct spase *out)
{
    struct error err = {0};
    struct json_input *in;
    *out = (struct spase){0};
    enum status status = test_json_parse(text, &in, &err);
    if (!status) status = spase_parse(in, out, &err);
    json_input_destroy(in);
    if (status) fail_msg("%s", err.text);
}

void test_spase_print(const struct spase *in)
{
    struct json_out *out = json_out_create(NULL);
    if (out) test_spase_write(in, out);
    test_json_print(out);
}

/* Tries all schedules in which steps[0 .. depth) are fixed. */
static void try_all(struct spase_list *list, struct spase_step *steps, uint32_t depth, uint64_t used, int64_t *best)
{
    const struct spase *in = list->in;
    if (depth == in->job_count) {
        int64_t makespan = 0;
        spase_list_clear(list, NULL);
        for (uint32_t i = 0; i < depth; i++) {
            const struct spase_mode *mode = &in->modes[steps[i].mode];
            int64_t end = spase_list_put(list, mode, steps[i].node, NULL) + mode->ticks;
            if (end > makespan) makespan = end;
        }
        if (makespan < *best) *best = makespan;
        return;
    }
    for (uint32_t j = 0; j < in->job_count; j++) {
        if (used >> j & 1) continue;
        for (uint32_t m = in->jobs[j].first_mode; m < in->jobs[j].first_mode + in->jobs[j].mode_count; m++)
            for (uint32_t n = 0; n < in->node_count; n++) {
                const struct spase_mode *mode = &in->modes[m];
                if (in->nodes[n].class != mode->class || in->nodes[n].device_count < mode->devices) continue;
                steps[depth] = (struct spase_step){j, m, n};
                try_all(list, steps, depth + 1, used | UINT64_C(1) << j, best);
            }
    }
}

int64_t test_spase_brute_force(const struct spase *in)
{
    struct spase_list list;
    struct spase_step steps[16];
    struct error err = {0};
    int64_t best = INT64_MAX;
    assert_true(in->job_count <= 16);
    assert_int_equal(spase_list_init(&list, in, &err), STATUS_OK);
    try_all(&list, steps, 0, 0, &best);
    spase_list_release(&list);
    return best;
}

static uint32_t draw(uint64_t seed, uint64_t *counter, uint32_t low, uint32_t high)
{
    return low + (uint32_t)random_below(seed, (*counter)++, high - low + 1u);
}

void test_spase_tiny(uint64_t seed, uint32_t jobs_max, struct spase *out)
{
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct error err = {0};
    uint64_t c = 0;
    uint32_t classes = draw(seed, &c, 1, 3) == 1 ? 2 : 1, nodes = classes + draw(seed, &c, 0, 1);
    uint32_t jobs = draw(seed, &c, 1, jobs_max), configs = 0;
    *out = (struct spase){0};
    assert_true(jobs_max <= 8);
    assert_int_equal(spase_init(out, classes, nodes, jobs, 3 * jobs, &err), STATUS_OK);
    out->name = "tiny";
    for (uint32_t k = 0; k < classes; k++) out->class_names[k] = names[k];
    for (uint32_t n = 0; n < nodes; n++)
        out->nodes[n] = (struct spase_node){.name = names[n], .class = n % classes,
                                            .device_count = draw(seed, &c, 1, 3)};
    for (uint32_t j = 0; j < jobs; j++) {
        uint32_t count = draw(seed, &c, 1, 3);
        out->jobs[j] = (struct spase_job){.name = names[j], .first_config = configs, .config_count = count};
        for (uint32_t i = 0; i < count; i++, configs++) {
            uint32_t devices = i == 0 ? 1 : draw(seed, &c, 1, 3);
            out->configs[configs] = (struct spase_config){.parallelism = names[i], .devices = devices};
            for (uint32_t k = 0; k < classes; k++) /* the first mode runs everywhere */
                out->ticks[configs * classes + k] = i > 0 && draw(seed, &c, 0, 4) == 0
                                                        ? SPASE_NOWHERE : draw(seed, &c, 2, 24) / (i + 1) + 1;
        }
    }
    out->config_count = configs;
    if (spase_finish(out, &err)) fail_msg("%s", err.text);
}

/* --- families ------------------------------------------------------------------------------ */

static const char *const parallelism_names[8] = {"spilled", "ddp",    "fsdp",     "pipeline",
                                                 "tensor",  "hybrid", "sequence", "expert"};

struct draw {
    uint64_t key, counter;
};

static double draw_between(struct draw *draw, double low, double high)
{
    return low + (high - low) * random_unit(draw->key, draw->counter++);
}

static uint32_t next_count(const struct test_spase_random *options, uint32_t devices)
{
    return options->powers ? 2 * devices : devices + 1;
}

static uint32_t widest(const struct test_spase_random *options, uint32_t parallelism)
{
    uint32_t most = options->devices > options->slow_devices ? options->devices : options->slow_devices;
    return options->spans && parallelism + 1 == options->parallelisms ? 2 * most : most;
}

static uint32_t count_configs(const struct test_spase_random *options)
{
    uint32_t count = 0;
    for (uint32_t p = 0; p < options->parallelisms; p++)
        for (uint32_t k = 1; k <= widest(options, p); k = next_count(options, k)) count++;
    return count;
}

static void fill_job(struct spase *in, const struct test_spase_random *options, struct draw *draw,
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

enum status test_spase_random(const struct test_spase_random *options, struct spase *out, struct error *err)
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
