#include "tests/support/solve/support_instance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "planner/solve/instance/instance_change.h"
#include "planner/solve/instance/instance_io.h"
#include "planner/solve/instance/instance_random.h"
#include "tests/support/support_json.h"

void test_instance(const char *text, struct instance *out)
{
    struct error err = {0};
    struct json_input *in;
    *out = (struct instance){0};
    enum status status = test_json_parse(text, &in, &err);
    if (!status) status = instance_parse(in, out, &err);
    json_input_destroy(in);
    if (status) fail_msg("%s", err.text);
}

void test_instance_print(const struct instance *in)
{
    struct json_out *out = json_out_create(NULL);
    if (out) instance_write_json(in, out);
    test_json_print(out);
}

/* Tries all dispatches. `depth` states, one per step, so that nothing needs undoing. */
static void try_all(struct dispatch **states, uint32_t depth, int64_t *best)
{
    const struct instance *in = states[depth]->in;
    if (depth == in->task_count) {
        int64_t value = dispatch_value(states[depth]);
        if (value < *best) *best = value;
        return;
    }
    for (uint32_t i = 0; i < in->job_count; i++) {
        const struct dispatch_job *job = &states[depth]->jobs[i];
        if (job->next == instance_length(&in->jobs[i])) continue;
        for (uint32_t g = 0; g < in->device_count; g++) {
            if (!instance_fits(in, job->unit, in->device_class[g])) continue;
            dispatch_copy(states[depth + 1], states[depth]);
            dispatch_put(states[depth + 1], i, g);
            try_all(states, depth + 1, best);
        }
    }
}

int64_t test_brute_force(const struct instance *in)
{
    struct dispatch *states[32] = {0};
    struct error err = {0};
    int64_t best = INT64_MAX;
    assert_true(in->task_count < 32);
    for (uint32_t d = 0; d <= in->task_count; d++)
        assert_int_equal(dispatch_create(in, &states[d], &err), STATUS_OK);
    try_all(states, 0, &best);
    for (uint32_t d = 0; d <= in->task_count; d++) dispatch_destroy(states[d]);
    return best;
}

static uint32_t draw(uint64_t seed, uint64_t *counter, uint32_t low, uint32_t high)
{
    return low + (uint32_t)random_below(seed, (*counter)++, high - low + 1u);
}

void test_instance_tiny(uint64_t seed, uint32_t jobs_max, struct instance *out)
{
    struct error err = {0};
    uint64_t c = 0;
    uint32_t classes = draw(seed, &c, 1, 5) == 1 ? 2 : 1, jobs = draw(seed, &c, 1, jobs_max);
    uint32_t copies = draw(seed, &c, 0, 2) * 6;
    *out = (struct instance){0};
    assert_int_equal(instance_init(out, classes, jobs, 3 * jobs, &err), STATUS_OK);
    out->objective = (enum instance_objective)(draw(seed, &c, 0, 2) == 0 ? draw(seed, &c, 1, 3) : 0);
    out->bridge_bytes_per_tick = draw(seed, &c, 0, 4) == 0 ? 2 : 0;
    for (uint32_t g = 0; g < classes; g++)
        out->classes[g] = (struct instance_class){.name = "device", .device_count = draw(seed, &c, 1, 2),
                                                  .memory = g == 0 ? 10 : 7,
                                                  .slots = draw(seed, &c, 0, 4) == 0 ? 1 : 2};
    out->unit_count = 0;
    for (uint32_t i = 0; i < jobs; i++) {
        uint32_t units = draw(seed, &c, 1, 3), first = out->unit_count;
        out->jobs[i] = (struct instance_job){.name = "job", .first_unit = first, .unit_count = units,
                                             .repeat = units == 1 ? draw(seed, &c, 1, 3) : 1,
                                             .weight = draw(seed, &c, 1, 4),
                                             .deadline = (int64_t)draw(seed, &c, 5, 40)};
        for (uint32_t u = first; u < first + units; u++, out->unit_count++) {
            bool writes = draw(seed, &c, 0, 1);
            out->units[u] = (struct instance_unit){
                .in = draw(seed, &c, 0, copies), .out = writes ? draw(seed, &c, 0, copies) : 0,
                .memory = draw(seed, &c, 1, 9), .in_bytes = draw(seed, &c, 0, 9),
                .out_bytes = draw(seed, &c, 0, 9), .job = i, .shard = draw(seed, &c, 0, 1),
                .writes = writes};
            for (uint32_t g = 0; g < classes; g++)
                out->compute[(size_t)u * classes + g] = draw(seed, &c, 1, 9);
        }
    }
    if (instance_finish(out, &err)) fail_msg("%s", err.text);
}

void test_instance_mixed(uint64_t seed, uint32_t c, struct instance *out)
{
    struct instance_random options = {
        .family = (enum instance_family)(c % (INSTANCE_FAMILY_COPY + 1)), .seed = random_u64(seed, c) >> 8,
        .devices = {1, 5}, .jobs = {1, 9}, .shards = {1, 4}, .minibatches = {1, 3}};
    struct instance plain = {0};
    struct error err = {0};
    assert_int_equal(instance_random(&options, &plain, &err), STATUS_OK);
    if (c % 5 == 0) plain.bridge_bytes_per_tick = 1 + random_u64(seed, c) % 4;
    if (c % 3 > 0) {
        *out = plain;
        return;
    }
    if (instance_mix(&plain, seed, out, &err)) fail_msg("%s", err.text);
    instance_release(&plain);
}

bool test_instance_drawn(const struct instance_random *options, uint32_t tasks, bool mixed, uint64_t seed,
                        struct instance *out)
{
    struct instance plain = {0};
    struct error err = {0};
    *out = (struct instance){0};
    if (instance_random(options, &plain, &err)) fail_msg("%s", err.text);
    bool small = plain.task_count <= tasks;
    if (small && mixed && instance_mix(&plain, seed, out, &err)) fail_msg("%s", err.text);
    if (small && !mixed) *out = plain;
    else instance_release(&plain);
    return small;
}

void test_instance_wrong(const struct instance *in, uint64_t seed, uint32_t c, const char *what, int64_t found,
                         int64_t best)
{
    test_instance_print(in);
    fail_msg("seed %" PRIu64 ", case %u: %s %" PRId64 ", optimum %" PRId64, seed, c, what, found, best);
}
