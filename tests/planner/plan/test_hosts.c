/*
 * A host for each node: who uses which, what each has, and that nodes do not feel each other through them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "models/job/parallel_work.h"
#include "planner/check/plan_check.h"
#include "planner/files/plan_io.h"
#include "planner/plan_hosts.h"
#include "plots/plot.h"
#include "plots/plot_view.h"
#include "sim/sim.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/support_models.h"
#include "tests/support/support_seed.h"

enum { TEXT_BYTES = 4096 };

static enum status try_to_plan(const char *machine, const char *jobs_text, double host_bytes, struct plan *out,
                               struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct error why = {0};
    const struct planner_options options = {.policy = NULL, .weight_buffers = 0};
    const struct hardware_options disks = {.storage_bytes = UINT64_C(1) << 44, .storage_bytes_per_s = 3e9};
    support_machine(machine, &hardware);
    if (hardware_adjust(&hardware, &disks, &why)) fail_msg("%s", why.text);
    /* the same capacity and rates for each node, however many there are */
    hardware.storage.capacity_bytes.value *= hardware_host_count(&hardware);
    hardware.storage.read_rate.value *= hardware_host_count(&hardware);
    hardware.storage.write_rate.value *= hardware_host_count(&hardware);
    if (host_bytes > 0) hardware.host_bytes.value = host_bytes;
    if (support_jobs(jobs_text, ".", &jobs, &why)) fail_msg("%s", why.text);
    *out = (struct plan){0};
    return planner_plan(&hardware, &jobs, &options, out, err);
}

static void make_plan(const char *machine, const char *jobs, struct plan *out)
{
    struct error err = {0};
    if (try_to_plan(machine, jobs, 0, out, &err)) fail_msg("%s: %s", machine, err.text);
}

struct outcome {
    struct sim_result result;
    struct trace trace;
};

static void simulate(const struct plan *plan, struct outcome *out)
{
    struct error err = {0};
    const struct sim_options options = {.record_spans = true};
    *out = (struct outcome){0};
    if (sim_run(plan, &options, &out->result, &out->trace, &err)) fail_msg("%s", err.text);
    if (trace_check(&out->trace, &err)) fail_msg("%s", err.text);
}

static void forget(struct outcome *outcome)
{
    sim_result_release(&outcome->result);
    trace_release(&outcome->trace);
}

/* --- who works where ------------------------------------------------------------------------- */

#define JOB_HEAD \
    "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2-tiny-bytes\", \"sequence\": 32, "

/* Returns the seconds in which a node's processor steps for its ranks of the stage, at its own half of the
 * bandwidth. */
static double steps_s(const struct plan *plan, uint32_t stage, uint32_t ranks)
{
    const struct job *job = &plan->jobs.jobs[0];
    struct work_item items[PARALLEL_WORK_MAX];
    double bytes = 0;
    for (uint32_t chunk = 0; chunk < parallel_chunks(&job->parallel); chunk++) {
        if (parallel_place(&job->parallel, chunk).stage != stage) continue;
        uint32_t count = parallel_work(job, parallel_layers(job, chunk), PARALLEL_UPDATE, items);
        for (uint32_t i = 0; i < count; i++) bytes += work_item_bytes(&items[i], 4);
    }
    double rate = plan->hardware.host_bandwidth.value / 2 * hardware_default_memory_efficiency.value;
    return (double)job->minibatches * ranks * bytes / rate;
}

/* A stage on each of two nodes: each host has only the data of its own ranks. */
static void stages(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome done;
    make_plan("2x p3.16xlarge",
              JOB_HEAD "\"microbatch\": 1, \"microbatches\": 8, \"minibatches\": 3, \"parallel\": {\"tensor\": 1, "
                       "\"pipeline\": 2, \"data\": 8, \"zero\": 3, \"offload\": \"states\"}}]}", &plan);
    simulate(&plan, &done);
    assert_int_equal(done.trace.more_hosts, 1);
    for (uint32_t h = 0; h < 2; h++)
        test_parallel_near(done.result.streams[plan_host_stream(&plan, h, STREAM_CPU)].busy_s, steps_s(&plan, h, 8));
    assert_string_equal(done.trace.streams[plan_host_stream(&plan, 1, STREAM_CPU)].name, "host1 cpu");
    assert_string_equal(done.trace.places[trace_host_place(&done.trace, 1)].name, "host1");

    struct plan_host_use uses[2];
    struct error err = {0};
    assert_int_equal(plan_host_uses(&plan, uses, &err), STATUS_OK);
    assert_true(uses[0].memory_bytes > 0 && uses[1].memory_bytes > 0);
    uint64_t batches = 0; /* both nodes read them: the first stage's tokens, and the last one's labels */
    for (uint32_t b = 0; b < plan.buffer_count; b++)
        if (plan.buffers[b].kind == BUFFER_BATCH && !plan.buffers[b].on_device)
            batches += plan.buffers[b].bytes * plan_buffer_ranks(&plan, &plan.buffers[b]);
    assert_true(batches > 0 && uses[0].memory_bytes + uses[1].memory_bytes == plan_host_bytes(&plan) + batches);
    for (uint32_t h = 0; h < 2; h++)
        assert_true(done.trace.places[trace_host_place(&done.trace, h)].peak_bytes == uses[h].memory_bytes);
    forget(&done);
    plan_release(&plan);
}

/* Traces name the host, in files and in pictures. */
static void traced(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome done;
    struct trace again = {0};
    struct error err = {0};
    make_plan("12x p3.16xlarge",
              JOB_HEAD "\"microbatch\": 1, \"microbatches\": 96, \"minibatches\": 1, \"parallel\": {\"tensor\": 1, "
                       "\"pipeline\": 1, \"data\": 96, \"zero\": 2, \"offload\": \"states\"}}]}", &plan);
    simulate(&plan, &done);
    if (trace_write(&done.trace, "test_hosts_trace.json", &err) || trace_read("test_hosts_trace.json", &again, &err))
        fail_msg("%s", err.text);
    remove("test_hosts_trace.json");
    assert_int_equal(again.more_hosts, 11);
    assert_int_equal(trace_device_count(&again), 96);
    for (uint32_t s = 0; s < again.stream_count; s++) {
        assert_int_equal(again.streams[s].host, done.trace.streams[s].host);
        assert_string_equal(again.streams[s].name, done.trace.streams[s].name);
    }
    for (uint32_t h = 0; h < 12; h++)
        assert_true(again.places[trace_host_place(&again, h)].peak_bytes == plan_host_bytes(&plan) / 12);

    struct plot_view view;
    const struct plot_options options = {.width_px = 0};
    char text[256];
    struct trace_reader *predicted, *measured;
    if (trace_reader_of(&again, &predicted, &err)) fail_msg("%s", err.text);
    if (plot_view_init(&view, predicted, NULL, &options, &err)) fail_msg("%s", err.text);
    plot_view_describe(&view, text, sizeof text);
    assert_non_null(strstr(text, "; the first 32 of 96 devices; the first 8 of 12 hosts"));
    assert_string_equal(plot_view_host_name(&view, 7), "host7");
    char little[20]; /* cut, and the length as snprintf() has it */
    assert_true(plot_view_describe(&view, little, sizeof little) >= sizeof little);
    done.trace.more_hosts = 0;
    if (trace_reader_of(&done.trace, &measured, &err)) fail_msg("%s", err.text);
    assert_int_equal(plot_view_init(&view, predicted, measured, &options, &err), STATUS_BAD_INPUT);
    assert_string_equal(err.text, "the traces are of machines with 12 and 1 hosts");
    trace_reader_close(predicted);
    trace_reader_close(measured);
    trace_release(&again);
    forget(&done);
    plan_release(&plan);
}

/* Twelve ranks, eight of them on the first node: its host takes twice as long. */
static void uneven_replicas(void **state)
{
    (void)state;
    struct plan plan;
    struct outcome done;
    make_plan("2x p3.16xlarge",
              JOB_HEAD "\"microbatch\": 1, \"microbatches\": 12, \"minibatches\": 3, \"parallel\": {\"tensor\": 1, "
                       "\"pipeline\": 1, \"data\": 12, \"zero\": 2, \"offload\": \"states\"}}]}", &plan);
    simulate(&plan, &done);
    double first = done.result.streams[plan_host_stream(&plan, 0, STREAM_CPU)].busy_s;
    double second = done.result.streams[plan_host_stream(&plan, 1, STREAM_CPU)].busy_s;
    test_parallel_near(first, steps_s(&plan, 0, 8));
    test_parallel_near(second, steps_s(&plan, 0, 4));
    forget(&done);
    plan_release(&plan);
}

/* --- nodes side by side ---------------------------------------------------------------------- */

static int job_text(char *text, size_t size, uint64_t key, uint32_t name, const char *devices)
{
    static const char *const ways[] = {
        "\"parallel\": {\"pipeline\": 2, \"data\": 4, \"zero\": 2, \"offload\": \"states\"}",
        "\"parallel\": {\"tensor\": 2, \"data\": 4, \"zero\": 3, \"offload\": \"weights\", \"prefetch\": 1}",
        "\"parallel\": {\"pipeline\": 4, \"data\": 2, \"zero\": 3, \"offload\": \"weights\", \"storage\": true}",
        "\"parallel\": {\"tensor\": 2, \"pipeline\": 2, \"data\": 2, \"zero\": 3, \"offload\": \"states\", "
        "\"storage\": true}",
        "\"optimizer\": {\"kind\": \"sgd\"}", /* spilled, or wherever it is best */
    };
    return snprintf(text, size,
                    "%s{\"name\": \"job-%u\", \"network\": \"gpt2-tiny-bytes\", \"sequence\": 32, \"microbatch\": %"
                    PRIu64
                    ", \"microbatches\": 8, \"minibatches\": %" PRIu64 ", %s%s}",
                    name > 0 ? ", " : "", name, 1 + random_below(key, 0, 3), 1 + random_below(key, 1, 3),
                    ways[random_below(key, 2, 5)], devices);
}

/* The same job on each of n nodes takes the time that one takes on a machine that is one such node, and each host
 * has the same memory. */
static void as_alone(void **state)
{
    (void)state;
    uint64_t seed = support_seed("hosts");
    for (uint32_t i = 0; i < 24; i++) {
        uint64_t key = random_u64(seed, i);
        uint32_t nodes = 2 + (uint32_t)random_below(key, 9, 2);
        char machine[64], all[TEXT_BYTES], one[TEXT_BYTES];
        size_t used = (size_t)snprintf(all, sizeof all, "{\"spillway_jobs\": 1, \"jobs\": [");
        int head = snprintf(one, sizeof one, "{\"spillway_jobs\": 1, \"jobs\": [");
        for (uint32_t n = 0; n < nodes; n++) {
            char devices[128];
            int at = snprintf(devices, sizeof devices, ", \"devices\": [");
            for (uint32_t d = 0; d < 8; d++)
                at += snprintf(devices + at, sizeof devices - (size_t)at, "%s%u", d > 0 ? ", " : "", 8 * n + d);
            snprintf(devices + at, sizeof devices - (size_t)at, "]");
            used += (size_t)job_text(all + used, sizeof all - used, key, n, devices);
            if (n == 0) head += job_text(one + head, sizeof one - (size_t)head, key, 0, devices);
        }
        snprintf(all + used, sizeof all - used, "]}");
        snprintf(one + head, sizeof one - (size_t)head, "]}");
        snprintf(machine, sizeof machine, "%ux p3.16xlarge", nodes);

        struct plan many, alone;
        struct outcome together, by_itself;
        make_plan(machine, all, &many);
        make_plan("p3.16xlarge", one, &alone);
        simulate(&many, &together);
        simulate(&alone, &by_itself);
        for (uint32_t n = 0; n < nodes; n++) {
            test_parallel_near(together.trace.jobs[n].end_s, by_itself.result.makespan_s);
            assert_true(together.trace.places[trace_host_place(&together.trace, n)].peak_bytes ==
                        by_itself.trace.places[0].peak_bytes);
        }
        forget(&together);
        forget(&by_itself);
        plan_release(&many);
        plan_release(&alone);
    }
}

/* Every device gets the result of the one device that a folded plan simulates, to the last bit. */
static void folded(void **state)
{
    (void)state;
    static const char *const offloads[] = {"\"offload\": \"states\"", "\"offload\": \"weights\"",
                                           "\"offload\": \"weights\", \"storage\": true", "\"prefetch\": 1"};
    for (size_t i = 0; i < sizeof offloads / sizeof *offloads; i++) {
        char text[TEXT_BYTES];
        struct plan plan;
        snprintf(text, sizeof text,
                 JOB_HEAD "\"microbatch\": 1, \"microbatches\": 16, \"minibatches\": 2, \"parallel\": {\"tensor\": 2, "
                          "\"pipeline\": 2, \"data\": 8, \"zero\": 3, %s}}]}", offloads[i]);
        make_plan("4x p3.16xlarge", text, &plan);
        double all_s = test_parallel_simulate(&plan, true).makespan_s,
            some_s = test_parallel_simulate(&plan, false).makespan_s;
        assert_memory_equal(&all_s, &some_s, sizeof all_s);
        plan_release(&plan);
    }
}

/* --- memory ---------------------------------------------------------------------------------- */

/* One byte less for each than the fullest needs, though both together have room. */
static void too_much_for_one(void **state)
{
    (void)state;
    static const char jobs[] =
        JOB_HEAD "\"microbatch\": 1, \"microbatches\": 12, \"minibatches\": 1, \"parallel\": {\"tensor\": 1, "
                 "\"pipeline\": 1, \"data\": 12, \"zero\": 2, \"offload\": \"states\"}}]}";
    struct plan plan;
    struct error err = {0};
    make_plan("2x p3.16xlarge", jobs, &plan);
    uint64_t most = plan_host_fullest(&plan).memory_bytes, sum = plan_host_bytes(&plan);
    plan_release(&plan);
    assert_true(sum < 2 * (most - 1));
    assert_int_equal(try_to_plan("2x p3.16xlarge", jobs, 2 * (double)most, &plan, &err), STATUS_OK);
    assert_true(plan_host_fullest(&plan).memory_bytes == most);
    plan.hardware.host_bytes.value = 2 * (double)(most - 1);
    assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
    assert_non_null(strstr(err.text, "the host buffers of node 0 are "));
    plan_release(&plan);
    err = (struct error){0};
    assert_int_equal(try_to_plan("2x p3.16xlarge", jobs, 2 * (double)(most - 1), &plan, &err), STATUS_INFEASIBLE);
    assert_non_null(strstr(err.text, " of host memory on node 0; "));
    assert_non_null(strstr(err.text, " was given on each node (--host-memory sets it"));
}

/* Jobs that are spilled without devices of their own stay on a node each: plan_check() says so of each plan, and
 * here of one that does not. */
static void at_home(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    size_t used = (size_t)snprintf(text, sizeof text, "{\"spillway_jobs\": 1, \"jobs\": [");
    for (uint32_t j = 0; j < 5; j++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "%s{\"name\": \"job-%u\", \"network\": \"gpt2-tiny-bytes\", \"sequence\": 32, "
                                 "\"microbatch\": 1, \"minibatches\": %u}", j > 0 ? ", " : "", j, 1 + j % 3);
    snprintf(text + used, sizeof text - used, "]}");
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct plan plan = {0}, again = {0};
    struct error err = {0};
    const struct planner_options options = {.policy = "sharded-lrtf", .live = true};
    const struct hardware_options small = {.device_memory_bytes = 6 << 20};
    support_machine("2x p3.16xlarge", &hardware);
    if (hardware_adjust(&hardware, &small, &err)) fail_msg("%s", err.text);
    if (support_jobs(text, ".", &jobs, &err)) fail_msg("%s", err.text);
    if (planner_plan(&hardware, &jobs, &options, &plan, &err)) fail_msg("%s", err.text);
    bool some[2] = {false, false};
    for (uint32_t i = 0; i < plan_first_choice(&plan); i++)
        some[plan.hardware.devices[plan.tasks[i].device].host] = true;
    assert_true(some[0] && some[1]);
    struct outcome done;
    simulate(&plan, &done);
    forget(&done);

    /* the written plan is the plan read back, hosts too */
    if (plan_write(&plan, "test_hosts.json", &err) || plan_read("test_hosts.json", &again, &err))
        fail_msg("%s", err.text);
    remove("test_hosts.json");
    assert_true(plan_fingerprint(&plan) == plan_fingerprint(&again));
    assert_int_equal(hardware_host_count(&again.hardware), 2);
    for (uint32_t d = 0; d < 16; d++) assert_int_equal(again.hardware.devices[d].host, d / 8);
    plan_release(&again);

    /* of a plan without choices, of which each node would lack some */
    plan.task_count -= plan.choice_count;
    plan.choice_count = 0;
    struct plan_task *const moved = &plan.tasks[plan.task_count / 2];
    moved->device = (moved->device + 8) % 16;
    uint32_t home, device, host;
    assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
    const char *where = strstr(err.text, " is on node ");
    assert_non_null(where);
    assert_int_equal(sscanf(where, " is on node %" SCNu32 ", and device %" SCNu32 " of node %" SCNu32 " uses it", &home,
                            &device, &host), 3);
    assert_true(home < 2 && host == 1 - home && device / 8 == host);
    plan_release(&plan);
}

/* --- spilled as on one node ------------------------------------------------------------------ */

/* A kind of node with this memory, of each device and of the host, and storage unless 0; 0 for both leaves the
 * memory that it has. */
struct node {
    const char *kind;
    uint64_t device_bytes, host_bytes, storage_bytes;
};

static enum status plan_by(const char *policy, uint32_t nodes, const char *jobs_text, struct node node,
                           uint32_t storage, struct plan *out, struct error *err)
{
    struct hardware hardware = {0};
    struct job_set jobs = {0};
    struct error why = {0};
    const struct planner_options options = {.policy = policy, .activations = PLANNER_AUTO, .optimizer = PLANNER_AUTO,
                                            .storage = storage, .cuts = PLANNER_CUTS_BALANCED, .mixed = true};
    const struct hardware_options sizes = {.device_memory_bytes = node.device_bytes,
                                           .host_memory_bytes = nodes * node.host_bytes,
                                           .storage_bytes = nodes * node.storage_bytes,
                                           .storage_bytes_per_s = node.storage_bytes > 0 ? nodes * 3e9 : 0};
    char machine[64];
    snprintf(machine, sizeof machine, "%ux %s", nodes, node.kind);
    support_machine(machine, &hardware);
    if (hardware_adjust(&hardware, &sizes, &why)) fail_msg("%s", why.text);
    if (support_jobs(jobs_text, ".", &jobs, &why)) fail_msg("%s", why.text);
    *out = (struct plan){0};
    return planner_plan(&hardware, &jobs, &options, out, err);
}

/* The job is planned alike on one node and among `nodes`. *stored: its bytes on storage. */
static enum status plan_both(const char *text, struct node node, uint32_t nodes, uint32_t storage, uint64_t *stored)
{
    struct plan alone, among;
    struct error err = {0}, why = {0};
    enum status status = plan_by("sharded-lrtf", 1, text, node, storage, &alone, &err);
    *stored = 0;
    assert_int_equal(plan_by("sharded-lrtf", nodes, text, node, storage, &among, &why), status);
    if (status) return status;
    assert_memory_equal(&alone.estimated_makespan_s, &among.estimated_makespan_s, sizeof alone.estimated_makespan_s);
    const struct plan_host_use one = plan_host_fullest(&alone), of_all = plan_host_fullest(&among);
    assert_true(one.memory_bytes == of_all.memory_bytes && one.stored_bytes == of_all.stored_bytes);
    *stored = one.stored_bytes;
    plan_release(&alone);
    plan_release(&among);
    return status;
}

/* One job is on one node: cut, timed, stored and refused as though there were no other. */
static void one_spilled(void **state)
{
    (void)state;
    uint64_t seed = support_seed("hosts, streamed"), bytes;
    uint32_t made = 0, stored = 0, refused = 0;
    for (uint32_t i = 0; i < 48; i++) {
        uint64_t key = random_u64(seed, i);
        char text[TEXT_BYTES];
        snprintf(text, sizeof text,
                 JOB_HEAD "\"microbatch\": %" PRIu64 ", \"microbatches\": %" PRIu64 ", \"minibatches\": %" PRIu64
                          ", \"optimizer\": {\"kind\": \"%s\"}}]}",
                 1 + random_below(key, 0, 4), 1 + random_below(key, 1, 4), 1 + random_below(key, 2, 3),
                 random_below(key, 3, 2) ? "adamw" : "sgd");
        const struct node node = {.kind = "p3.16xlarge", .device_bytes = (6 + random_below(key, 4, 6)) << 20,
                                           .host_bytes = (8 + random_below(key, 5, 40)) << 18,
                                           .storage_bytes = random_below(key, 6, 2) << 30};
        uint32_t storage = node.storage_bytes > 0 && random_below(key, 8, 2)
                           ? PLANNER_STORAGE_ALL : PLANNER_STORAGE_AUTO;
        enum status status = plan_both(text, node, 2 + (uint32_t)random_below(key, 7, 3), storage, &bytes);
        made += status == STATUS_OK;
        refused += status == STATUS_INFEASIBLE;
        stored += bytes > 0;
    }
    assert_true(made > 0 && stored > 0 && refused > 0);

    /* what nodes have together would do for activations that are sent to a host, or for states without storage */
    static const char large[] = "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": \"gpt2-xl\", "
                                "\"sequence\": 1024, \"microbatch\": 1, \"microbatches\": 8, \"minibatches\": 2}]}";
    const uint64_t gib = UINT64_C(1) << 30;
    const struct node spilling = {"p3.16xlarge", 15 * gib, 40 * gib, 0},
        storing = {"p3.16xlarge", 15 * gib, 20 * gib, 64 * gib};
    assert_int_equal(plan_both(large, spilling, 2, PLANNER_STORAGE_AUTO, &bytes), STATUS_OK);
    assert_int_equal(plan_both(large, storing, 2, PLANNER_STORAGE_AUTO, &bytes), STATUS_OK);
    assert_true(bytes > 0);
    /* and processors of nodes that the job is not on would have optimizers done sooner */
    const struct node splitting = {"dgx-a100-80gb", 8 * gib, 0, 0};
    assert_int_equal(plan_both(large, splitting, 2, PLANNER_STORAGE_AUTO, &bytes), STATUS_OK);
}

/* A job on each of two nodes: data read from storage lies in each node's memory from the start. */
static void staged_on_each(void **state)
{
    (void)state;
    static const char jobs[] =
        JOB_HEAD "\"microbatch\": 1, \"minibatches\": 2}, "
                 "{\"name\": \"b\", \"network\": \"gpt2-tiny-bytes\", \"sequence\": 32, \"microbatch\": 1, "
                 "\"minibatches\": 2}]}";
    struct plan plan;
    struct error err = {0};
    struct plan_host_use uses[2];
    const struct node node = {.kind = "p3.16xlarge", .device_bytes = 6 << 20, .host_bytes = 1 << 30,
                              .storage_bytes = 1 << 30};
    if (plan_by("sharded-lrtf", 2, jobs, node, PLANNER_STORAGE_ALL, &plan, &err)) fail_msg("%s", err.text);
    assert_int_equal(plan_host_uses(&plan, uses, &err), STATUS_OK);
    assert_true(uses[0].stored_bytes > 0 && uses[0].stored_bytes == uses[1].stored_bytes);
    assert_true(uses[0].memory_bytes > 0 && uses[0].memory_bytes == uses[1].memory_bytes);
    plan_release(&plan);
}

/* The judge counts what the planner counts: a host and a storage of as many bytes as the fullest of each has in use are
 * enough, and one byte less is not. */
static void fits_to_the_byte(struct plan *plan)
{
    struct plan_host_use uses[2] = {{0}};
    struct error err = {0};
    const uint32_t hosts = hardware_host_count(&plan->hardware);
    uint64_t memory = 0, stored = 0;
    char text[128];
    assert_in_range(hosts, 1, 2);
    assert_int_equal(plan_host_uses(plan, uses, &err), STATUS_OK);
    for (uint32_t h = 0; h < hosts; h++) {
        if (uses[h].memory_bytes > memory) memory = uses[h].memory_bytes;
        if (uses[h].stored_bytes > stored) stored = uses[h].stored_bytes;
    }
    plan->hardware.host_bytes.value = hosts * (double)memory;
    if (stored > 0) plan->hardware.storage.capacity_bytes.value = hosts * (double)stored;
    if (plan_check(plan, &err)) fail_msg("%s", err.text);
    plan->hardware.host_bytes.value = hosts * (double)(memory - 1);
    assert_int_equal(plan_check(plan, &err), STATUS_CHECK);
    snprintf(text, sizeof text, " are %" PRIu64 " bytes (host memory is %" PRIu64 ")", memory, memory - 1);
    if (!strstr(err.text, text)) fail_msg("%s", err.text);
    plan->hardware.host_bytes.value = hosts * (double)memory;
    if (stored == 0) return;
    plan->hardware.storage.capacity_bytes.value = hosts * (double)(stored - 1);
    err = (struct error){0};
    assert_int_equal(plan_check(plan, &err), STATUS_CHECK);
    snprintf(text, sizeof text, " are %" PRIu64 " bytes (the storage has %" PRIu64 ")", stored, stored - 1);
    if (!strstr(err.text, text)) fail_msg("%s", err.text);
}

/* Parallel jobs with states on hosts or storage, and spilled jobs, which read states from storage. */
static void to_the_byte(void **state)
{
    (void)state;
    static const char *const offloads[] = {
        "\"tensor\": 1, \"data\": 4, \"zero\": 2, \"offload\": \"states\"",
        "\"tensor\": 2, \"pipeline\": 2, \"data\": 2, \"zero\": 3, \"offload\": \"states\", \"storage\": true",
        "\"pipeline\": 4, \"data\": 2, \"zero\": 3, \"offload\": \"weights\", \"storage\": true",
    };
    static const char spilled[] = JOB_HEAD "\"microbatch\": 1, \"minibatches\": 3}, "
                                           "{\"name\": \"b\", \"network\": \"gpt2-tiny-bytes\", \"sequence\": 32, "
                                           "\"microbatch\": 1, \"minibatches\": 2}]}";
    for (uint32_t nodes = 1; nodes <= 2; nodes++) {
        struct plan plan;
        struct error err = {0};
        const char *machine = nodes == 1 ? "p3.16xlarge" : "2x p3.16xlarge";
        const struct node node = {.kind = "p3.16xlarge", .device_bytes = 6 << 20, .host_bytes = 1 << 30,
                                  .storage_bytes = 1 << 30};
        for (size_t i = 0; i < ARRAY_COUNT(offloads); i++) {
            char jobs[TEXT_BYTES];
            snprintf(jobs, sizeof jobs, JOB_HEAD "\"microbatch\": 1, \"microbatches\": 8, \"minibatches\": 2, "
                                                 "\"parallel\": {%s}}]}", offloads[i]);
            make_plan(machine, jobs, &plan);
            fits_to_the_byte(&plan);
            plan_release(&plan);
        }
        if (plan_by("sharded-lrtf", nodes, spilled, node, PLANNER_STORAGE_ALL, &plan, &err)) fail_msg("%s", err.text);
        fits_to_the_byte(&plan);
        plan_release(&plan);
    }
}

/* The second node's host may be the fuller one: the longer job is on the first, the larger one on the second. */
static void fuller_second(void **state)
{
    (void)state;
    static const char jobs[] = JOB_HEAD "\"microbatch\": 1, \"minibatches\": 900}, "
                                        "{\"name\": \"b\", \"network\": \"gpt2-tiny-bytes\", \"sequence\": 64, "
                                        "\"microbatch\": 8, \"minibatches\": 2}]}";
    struct plan plan;
    struct error err = {0};
    struct plan_host_use uses[2];
    const struct node node = {.kind = "p3.16xlarge", .device_bytes = 24 << 20, .host_bytes = 1 << 30,
                              .storage_bytes = 1 << 30};
    if (plan_by("sharded-lrtf", 2, jobs, node, PLANNER_STORAGE_ALL, &plan, &err)) fail_msg("%s", err.text);
    assert_int_equal(plan_host_uses(&plan, uses, &err), STATUS_OK);
    assert_true(uses[1].memory_bytes > uses[0].memory_bytes);
    uint64_t staged = 0;
    for (uint32_t b = 0; b < plan.buffer_count; b++)
        if (plan.buffers[b].kind == BUFFER_STAGED && plan.buffers[b].job == 1) staged += plan.buffers[b].bytes;
    assert_true(staged > 0);
    fits_to_the_byte(&plan);
    plan_release(&plan);
}

/* A range of host memory is of a job that opens its states there, all of which are in memory. */
static void ranges_of_parallel_jobs(void **state)
{
    (void)state;
    static const char *const ways[] = {"", ", \"storage\": true"};
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        char jobs[TEXT_BYTES];
        struct plan plan;
        struct error err = {0};
        snprintf(jobs, sizeof jobs, JOB_HEAD "\"microbatch\": 1, \"microbatches\": 8, \"minibatches\": 2, "
                                             "\"parallel\": {\"data\": 4, \"zero\": 3, \"offload\": \"states\"%s}}]}",
                 ways[i]);
        make_plan("p3.16xlarge", jobs, &plan);
        struct plan_host_range range = {.offset_bytes = 64}; /* empty */
        plan.host_ranges = &range;
        if (plan_check(&plan, &err)) fail_msg("%s", err.text);
        range = (struct plan_host_range){.bytes = UINT64_C(1) << 38};
        assert_int_equal(plan_check(&plan, &err), STATUS_CHECK);
        const char *says = i == 0 ? "a is not in host memory yet (0 of " : ", of a job that has a range of host memory";
        if (!strstr(err.text, says)) fail_msg("%s", err.text);
        plan.host_ranges = NULL;
        plan_release(&plan);
    }
}

/* Stages whose states stay on devices may be on several nodes, except if the first and the last share a table. */
static void tied(void **state)
{
    (void)state;
    struct plan plan;
    struct error err = {0};
    static const struct node node = {.kind = "nc24v3"};
    static const char tied_job[] = JOB_HEAD "\"microbatch\": 1, \"minibatches\": 1}]}",
                      untied_job[] = "{\"spillway_jobs\": 1, \"jobs\": [{\"name\": \"a\", \"network\": "
                                     "\"tinyllama-1.1b\", \"sequence\": 32, \"microbatch\": 1, \"minibatches\": 1}]}";
    assert_int_equal(plan_by("model-parallel", 2, tied_job, node, PLANNER_STORAGE_AUTO, &plan, &err),
                     STATUS_INFEASIBLE);
    assert_string_equal(err.text, "the state of a shard 0 is on node 0, and device 4 of node 1 uses it: no node has "
                                  "the memory of another's host");
    err = (struct error){0};
    if (plan_by("model-parallel", 2, untied_job, node, PLANNER_STORAGE_AUTO, &plan, &err)) fail_msg("%s", err.text);
    struct plan_host_use uses[2];
    assert_int_equal(plan_host_uses(&plan, uses, &err), STATUS_OK);
    assert_true(uses[0].memory_bytes > 0 && uses[1].memory_bytes > 0);
    fits_to_the_byte(&plan); /* each node has its own data, and counts it once */
    plan_release(&plan);
}

/* A part of a machine may have its devices in any order. */
static void counted_in_any_order(void **state)
{
    (void)state;
    struct hardware_device devices[] = {{.host = 0}, {.host = 2}, {.host = 0}, {.host = 2}, {.host = 2}};
    const struct hardware hardware = {.host_nodes = 4, .devices = devices, .device_count = 5};
    assert_int_equal(hardware_most_on_host(&hardware, 0, 5), 3);
    assert_int_equal(hardware_most_on_host(&hardware, 0, 3), 2);
    assert_int_equal(hardware_most_on_host(&hardware, 2, 2), 1);
    assert_int_equal(hardware_hosts_in_use(&hardware), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages),           cmocka_unit_test(uneven_replicas),
        cmocka_unit_test(as_alone),         cmocka_unit_test(folded),
        cmocka_unit_test(too_much_for_one), cmocka_unit_test(at_home),
        cmocka_unit_test(one_spilled),     cmocka_unit_test(staged_on_each),
        cmocka_unit_test(counted_in_any_order), cmocka_unit_test(traced),
        cmocka_unit_test(tied),             cmocka_unit_test(to_the_byte),
        cmocka_unit_test(ranges_of_parallel_jobs), cmocka_unit_test(fuller_second),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
