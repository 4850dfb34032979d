#include "tests/support/sim/support_sim.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/extreme.h"
#include "base/random.h"

/* --- numbers -------------------------------------------------------------------------------- */

uint32_t sim_test_below(struct sim_test_random *random, uint32_t bound)
{
    return (uint32_t)random_below(random->key, random->drawn++, bound);
}

double sim_test_between(struct sim_test_random *random, double low, double high)
{
    return low + (high - low) * random_unit(random->key, random->drawn++);
}

void sim_test_assert_close(double a, double b, double scale, const char *what, const char *file,
                           int line)
{
    if (fabs(a - b) <= 1e-9 * fmax(fmax(fabs(a), fabs(b)), scale)) return;
    print_error("%s is %.17g, expected %.17g\n", what, a, b);
    _fail(file, line);
}

/* --- the slow solver ------------------------------------------------------------------------ */

double sim_test_weight(const struct sim_link *links, const struct sim_path *path, uint32_t link_dir)
{
    double weight = 0;
    for (uint32_t h = 0; h < path->hop_count; h++) {
        const struct sim_hop *hop = path->crossings ? &path->crossings[h].hop : &path->hops[h];
        if (sim_link_dir(links, hop) == link_dir) weight += path->crossings ? path->crossings[h].weight : 1;
    }
    return weight;
}

bool sim_test_crosses(const struct sim_link *links, const struct sim_path *path, uint32_t link_dir)
{
    return sim_test_weight(links, path, link_dir) > 0;
}

double sim_test_load(const struct sim_link *links, const struct sim_test_flow *flows,
                     uint32_t count, uint32_t link_dir)
{
    double load = 0;
    for (uint32_t f = 0; f < count; f++)
        load += flows[f].rate * sim_test_weight(links, flows[f].path, link_dir);
    return load;
}

static double largest_step(const struct sim_link *links, uint32_t link_count,
                           const struct sim_test_flow *flows, uint32_t count)
{
    double step = INFINITY;
    for (uint32_t f = 0; f < count; f++)
        if (!flows[f].frozen) step = fmin(step, flows[f].cap - flows[f].rate);
    for (uint32_t link_dir = 0; link_dir < 2 * link_count; link_dir++) {
        double rising = 0;
        for (uint32_t f = 0; f < count; f++)
            if (!flows[f].frozen) rising += sim_test_weight(links, flows[f].path, link_dir);
        if (!(rising > 0)) continue;
        double left = links[link_dir / 2].bytes_per_s - sim_test_load(links, flows, count, link_dir);
        step = fmin(step, left / rising);
    }
    return fmax(step, 0);
}

static bool can_rise(const struct sim_link *links, uint32_t link_count,
                     const struct sim_test_flow *flows, uint32_t count,
                     const struct sim_test_flow *flow)
{
    if (flow->rate >= flow->cap * (1 - 1e-12)) return false;
    for (uint32_t link_dir = 0; link_dir < 2 * link_count; link_dir++)
        if (sim_test_crosses(links, flow->path, link_dir) &&
            sim_test_load(links, flows, count, link_dir) >= links[link_dir / 2].bytes_per_s * (1 - 1e-12))
            return false;
    return true;
}

void sim_test_slow_share(const struct sim_link *links, uint32_t link_count,
                         struct sim_test_flow *flows, uint32_t count)
{
    for (uint32_t f = 0; f < count; f++) {
        flows[f].rate = 0;
        flows[f].frozen = true;
    }
    for (uint32_t priority = 0;;) {
        bool rising = false;
        for (uint32_t f = 0; f < count; f++) rising |= !flows[f].frozen;
        if (!rising) {
            if (priority == SIM_PRIORITIES_MAX) return;
            for (uint32_t f = 0; f < count; f++) flows[f].frozen = flows[f].path->priority != priority;
            priority++;
            continue;
        }
        double step = largest_step(links, link_count, flows, count);
        for (uint32_t f = 0; f < count; f++)
            if (!flows[f].frozen) flows[f].rate += step;
        for (uint32_t f = 0; f < count; f++)
            if (!flows[f].frozen && !can_rise(links, link_count, flows, count, &flows[f]))
                flows[f].frozen = true;
    }
}

/* --- machines ------------------------------------------------------------------------------- */

static void *allocate(struct arena *arena, size_t count, size_t size)
{
    struct error err = {0};
    void *out = NULL;
    assert_int_equal(arena_array(arena, count, size, &out, &err), STATUS_OK);
    return out;
}

static const char *name_of(struct arena *arena, const char *prefix, uint32_t number)
{
    char *name = allocate(arena, 32, 1);
    snprintf(name, 32, "%s%u", prefix, number);
    return name;
}

static struct sourced_value figure_of(double value)
{
    return (struct sourced_value){
        .value = value, .kind = SOURCE_ASSUMED, .source = "made up", .as_of = "2026-11"};
}

void sim_test_machine(struct hardware *out, const char *backend, uint32_t devices)
{
    *out = (struct hardware){.name = "made-up", .backend = backend, .host_cores = 8};
    out->threads = backend[0] == 'h' ? 2 : 0;
    out->host_bytes = figure_of(1e15);
    out->types = allocate(&out->arena, SIM_TEST_TYPES_MAX, sizeof *out->types);
    out->type_count = SIM_TEST_TYPES_MAX;
    for (uint32_t t = 0; t < SIM_TEST_TYPES_MAX; t++)
        out->types[t] = (struct device_type){.name = name_of(&out->arena, "type-", t),
                                             .memory_bytes = figure_of(1e12),
                                             .usable_bytes = figure_of(1e12),
                                             .peak_fp32 = figure_of(1e12),
                                             .memory_bandwidth = figure_of(1e11),
                                             .matmul_efficiency = figure_of(0.5),
                                             .memory_efficiency = figure_of(0.8),
                                             .launch_latency = figure_of(0)};
    out->devices = allocate(&out->arena, devices, sizeof *out->devices);
    out->device_count = devices;
    for (uint32_t d = 0; d < devices; d++) out->devices[d].memory_bytes = 1000000000000;
    out->links = allocate(&out->arena, SIM_TEST_LINKS_MAX, sizeof *out->links);
}

uint32_t sim_test_link(struct hardware *hardware, double bytes_per_s, double latency_s, bool duplex)
{
    uint32_t link = hardware->link_count++;
    assert_true(link < SIM_TEST_LINKS_MAX);
    hardware->links[link] = (struct hardware_link){.name = name_of(&hardware->arena, "link-", link),
                                                   .bandwidth = figure_of(bytes_per_s),
                                                   .latency = figure_of(latency_s),
                                                   .duplex = duplex};
    return link;
}

void sim_test_connect(struct hardware *hardware, uint32_t device, uint32_t link)
{
    struct hardware_device *d = &hardware->devices[device];
    assert_true(d->path_count < HARDWARE_PATH_LINKS_MAX);
    d->path[d->path_count++] = link;
}

void sim_test_interfere(struct hardware *hardware, uint32_t type, struct sim_test_law law)
{
    struct compute_profile *profile = allocate(&hardware->arena, 1, sizeof *profile);
    profile->threads = hardware->threads;
    profile->interference = (struct hardware_interference){
        .compute_by_compute = figure_of(law.compute_by_compute),
        .compute_by_copy = figure_of(law.compute_by_copy),
        .copy_by_compute = figure_of(law.copy_by_compute),
        .copy_by_copy = figure_of(law.copy_by_copy),
        .copy_reference_rate = figure_of(law.reference),
        .compute_by_collective = figure_of(law.compute_by_collective)};
    hardware->types[type].profiles = profile;
    hardware->types[type].profile_count = 1;
}

/* --- plans ---------------------------------------------------------------------------------- */

struct plan_builder *sim_test_builder(struct hardware *hardware, uint32_t jobs)
{
    struct error err = {0};
    struct job_set set = {0};
    struct plan_builder *builder;
    set.count = jobs;
    set.jobs = allocate(&set.arena, jobs, sizeof *set.jobs);
    for (uint32_t j = 0; j < jobs; j++) {
        struct layer_profile *profile = allocate(&set.arena, 1, sizeof *profile);
        *profile = (struct layer_profile){.parameter_bytes = 4000, .forward_ns = 1000};
        set.jobs[j] = (struct job){.name = name_of(&set.arena, "job-", j),
                                   .sequence = 3,
                                   .microbatch = 2, .microbatches = 1,
                                   .minibatches = 5,
                                   .data_format = DATA_NONE};
        set.jobs[j].network = (struct network){
            .name = "opaque", .family = NETWORK_PROFILE, .layer_count = 1, .profile = profile};
    }
    assert_int_equal(plan_builder_create(hardware, &set, &builder, &err), STATUS_OK);
    plan_builder_plan(builder)->policy = "made-up";
    for (uint32_t j = 0; j < jobs; j++) plan_builder_shard(builder, j, 0, 1, false);
    return builder;
}

uint32_t sim_test_work(struct plan_builder *builder, uint64_t ns)
{
    struct work_item item = {.kernel = KERNEL_FIXED, .count = 1, .m = ns};
    return plan_builder_work(builder, &item, 1);
}

uint32_t sim_test_unit(struct plan_builder *builder, const struct sim_test_unit *unit)
{
    uint64_t bytes = max_u64(max_u64(unit->in_bytes, unit->out_bytes), 1);
    struct plan_buffer buffer = {
        .kind = BUFFER_STATE, .job = unit->job, .shard = unit->number, .bytes = bytes};
    uint32_t host = plan_builder_buffer(builder, &buffer);
    buffer.on_device = true;
    uint32_t device = plan_builder_buffer(builder, &buffer);
    uint32_t release_in = unit->compute_ns == 0 && unit->out_bytes == 0 ? ACCESS_RELEASE : 0;
    uint32_t begin_compute = unit->in_bytes == 0 ? ACCESS_ACQUIRE : ACCESS_READ;
    uint32_t release_compute = unit->out_bytes == 0 ? ACCESS_RELEASE : 0;

    plan_builder_unit_begin(builder, unit->job, unit->number, PLAN_FORWARD, false);
    if (unit->in_bytes > 0) {
        struct plan_op op = {.kind = OP_COPY, .stream = STREAM_H2D, .bytes = unit->in_bytes};
        struct plan_access accesses[] = {{.buffer = host, .flags = ACCESS_READ},
                                         {.buffer = device,
                                          .flags = ACCESS_WRITE | ACCESS_ACQUIRE | release_in}};
        plan_builder_op(builder, &op, accesses, 2, NULL, 0);
    }
    if (unit->compute_ns > 0 || unit->in_bytes == 0) {
        struct plan_op op = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE, .pass = PLAN_FORWARD};
        op.work = unit->compute_ns > 0 ? sim_test_work(builder, unit->compute_ns) : PLAN_NONE;
        struct plan_access access = {.buffer = device,
                                     .flags = ACCESS_WRITE | begin_compute | release_compute};
        plan_builder_op(builder, &op, &access, 1, NULL, 0);
    }
    if (unit->out_bytes > 0) {
        struct plan_op op = {.kind = OP_COPY, .stream = STREAM_D2H, .bytes = unit->out_bytes};
        struct plan_access accesses[] = {{.buffer = device, .flags = ACCESS_READ | ACCESS_RELEASE},
                                         {.buffer = host, .flags = ACCESS_WRITE}};
        plan_builder_op(builder, &op, accesses, 2, NULL, 0);
    }
    return plan_builder_unit_end(builder);
}

void sim_test_run_on(struct plan_builder *builder, uint32_t unit, uint32_t device, uint32_t slot)
{
    uint32_t range = plan_builder_slot(builder, slot * UINT64_C(1000000000), 1000000000);
    plan_builder_task(builder, unit, device, &range, 1);
}

void sim_test_finish(struct plan_builder *builder, struct plan *out)
{
    struct error err = {0};
    if (plan_builder_finish(builder, out, &err) != STATUS_OK) fail_msg("%s", err.text);
    plan_builder_destroy(builder);
}

static void simulate(const struct plan *plan, struct sim_test_outcome *out)
{
    struct error err = {0};
    struct sim_options options = {.record_spans = true};
    if (sim_run(plan, &options, &out->result, &out->trace, &err) != STATUS_OK) fail_msg("%s", err.text);
    if (trace_check(&out->trace, &err) != STATUS_OK) fail_msg("%s", err.text);
}

void sim_test_simulate(const struct plan *plan, struct sim_test_outcome *out)
{
    *out = (struct sim_test_outcome){0};
    simulate(plan, out);
}

void sim_test_run(struct plan_builder *builder, struct sim_test_outcome *out)
{
    *out = (struct sim_test_outcome){0};
    sim_test_finish(builder, &out->plan);
    simulate(&out->plan, out);
}

void sim_test_release(struct sim_test_outcome *outcome)
{
    sim_result_release(&outcome->result);
    trace_release(&outcome->trace);
    plan_release(&outcome->plan);
}

double sim_test_makespan(struct plan_builder *builder)
{
    struct sim_test_outcome outcome;
    sim_test_run(builder, &outcome);
    double makespan_s = outcome.result.makespan_s;
    sim_test_release(&outcome);
    return makespan_s;
}
