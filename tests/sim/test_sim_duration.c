/*
 * Seconds of moving the states of parallel jobs to their devices and back: stages and replicas whose devices share
 * links, links of unequal rates, jobs that take turns or continue elsewhere. The expected seconds follow from the bytes
 * that each stage holds, the rates of the links and the devices that the test itself names. Devices that differ in one
 * value, whose operations take what models/cost/cost.h says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/size.h"
#include "models/cost/cost.h"
#include "planner/strategy/planner.h"
#include "sim/duration.h"
#include "tests/support/planner/support_parallel_plan.h"
#include "tests/support/planner/support_planner.h"

enum { LAYERS = 4, DEVICES = 4, JOBS = 3, STAGES = 2, RANKS_MAX = 2 };

/* By job: the devices of each stage. The first two jobs are replicas; the last one takes the first one's devices, and
 * has two chunks on each of its two stages. Devices 2 and 3 share their link. */
static const struct {
    uint32_t stages, ranks, chunks;
    uint32_t devices[STAGES][RANKS_MAX];
} placed[JOBS] = {
    {1, 2, 1, {{0, 1}}},
    {1, 2, 1, {{3, 2}}},
    {2, 1, 2, {{0}, {1}}},
};

/* Bytes that a device holds for a layer: the test's optimizer keeps two moments for each parameter. */
static const double parameter_bytes[LAYERS] = {5e6, 7e6, 11e6, 17e6};
static const double rates[DEVICES] = {3e9, 2e9, 5e9, 0}; /* of the devices' links, bytes/s; the last is not used */
static const double latencies_s[DEVICES] = {1e-3, 2e-3, 3e-3, 0};

static struct test_layer layer_of(void *context, uint32_t job, uint32_t layer)
{
    (void)context;
    (void)job;
    return (struct test_layer){.forward_ns = 3000000, .backward_ns = 6000000, .activation_bytes = 640,
                               .boundary_bytes = 1280, .parameter_bytes = (uint64_t)parameter_bytes[layer]};
}

/* Makes a plan of the first jobs. A job by itself names no devices, and has no reservation. */
static void make(struct plan *plan, enum hardware_stack stack, uint32_t job_count)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    const struct planner_options options = {.weight_buffers = 0};
    test_parallel_machine(&hardware, DEVICES, 1e12, 0);
    hardware.stack = stack;
    test_profile_jobs(&jobs, job_count, LAYERS, 3, layer_of, NULL);
    for (uint32_t j = 0; j < job_count; j++) {
        struct job *job = &jobs.jobs[j];
        uint32_t *named, count = 0;
        job->parallel = (struct parallel){.tensor = 1, .pipeline = placed[j].stages, .data = placed[j].ranks,
                                          .chunks = placed[j].chunks, .prefetch = 1,
                                          .schedule = placed[j].chunks > 1 ? PIPELINE_INTERLEAVED : PIPELINE_1F1B};
        job->microbatches = 4;
        if (job_count == 1) continue;
        job->device_count = placed[j].stages * placed[j].ranks;
        if (ARENA_NEW(&jobs.arena, job->device_count, named, &err)) fail_msg("%s", err.text);
        for (uint32_t s = 0; s < placed[j].stages; s++)
            for (uint32_t r = 0; r < placed[j].ranks; r++) named[count++] = placed[j].devices[s][r];
        job->devices = named;
    }
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, plan, &err)) fail_msg("%s", err.text);
    assert_int_equal(plan->reservation_count, job_count == 1 ? 0 : job_count);
    for (uint32_t d = 0; d < DEVICES; d++) {
        uint32_t link = plan->hardware.devices[d].path[0];
        assert_int_equal(plan->hardware.devices[d].path_count, 1);
        plan->hardware.links[link].bandwidth.value = rates[d] > 0 ? rates[d] : 1;
        plan->hardware.links[link].latency.value = latencies_s[d];
    }
    plan->hardware.devices[3].path[0] = plan->hardware.devices[2].path[0];
}

/* Returns weights and states of a stage's layers: those of both chunks. Chunks alternate between stages. */
static double stage_bytes(uint32_t j, uint32_t stage, double bytes_of_parameter)
{
    double sum = 0;
    for (uint32_t l = 0; l < LAYERS; l++) {
        uint32_t run = l * placed[j].stages * placed[j].chunks / LAYERS;
        if (run % placed[j].stages == stage) sum += parameter_bytes[l] * bytes_of_parameter;
    }
    return sum;
}

/* Returns the seconds until the slowest device of the stage has its states, while all devices of the job copy. */
static double expected_s(uint32_t j, uint32_t stage, double bytes_of_parameter)
{
    double slowest = 0;
    for (uint32_t r = 0; r < placed[j].ranks; r++) {
        uint32_t link = placed[j].devices[stage][r] < 3 ? placed[j].devices[stage][r] : 2;
        double bytes = 0;
        for (uint32_t s = 0; s < placed[j].stages; s++)
            for (uint32_t other = 0; other < placed[j].ranks; other++) {
                uint32_t device = placed[j].devices[s][other];
                if ((device < 3 ? device : 2) == link) bytes += stage_bytes(j, s, bytes_of_parameter);
            }
        slowest = fmax(slowest, latencies_s[link] + bytes / rates[link]);
    }
    return slowest;
}

/* What a LOAD or STORE of a run is to take. */
typedef double (*seconds_of)(const struct plan *plan, uint32_t job, uint32_t run, uint32_t pass,
                             double bytes_of_parameter);

static uint32_t check(struct plan *plan, seconds_of wanted, double bytes_of_parameter)
{
    struct arena arena = {0};
    struct sim_durations *durations;
    struct error err = {0};
    uint32_t found = 0;
    if (sim_durations_create(&arena, plan, &plan->hardware, NULL, &durations, &err)) fail_msg("%s", err.text);
    for (uint32_t i = 0; i < plan->task_count; i++) {
        const struct plan_task *task = &plan->tasks[i];
        const struct plan_unit *unit = &plan->units[task->unit];
        if (unit->pass != PLAN_LOAD && unit->pass != PLAN_STORE) continue;
        const struct plan_gang *gang = &plan->gangs[task->gang];
        uint32_t device = plan->gang_devices[gang->first];
        for (uint32_t o = 0; o < unit->op_count; o++) {
            double seconds = sim_durations_alone_s(durations, device, unit->first_op + o);
            double expected = wanted(plan, unit->job, unit->shard, unit->pass, bytes_of_parameter);
            if (!(fabs(seconds - expected) <= 1e-9 * expected))
                fail_msg("%s of run %u of job %u: %.17g s (expected %.17g s)", plan_pass_names[unit->pass], unit->shard,
                         unit->job, seconds, expected);
            found++;
        }
    }
    arena_release(&arena);
    return found;
}

/* Only the first run of a stage is charged, for all of the stage. */
static double as_copied(const struct plan *plan, uint32_t job, uint32_t run, uint32_t pass, double bytes_of_parameter)
{
    (void)plan;
    (void)pass;
    return run < placed[job].stages ? expected_s(job, run, bytes_of_parameter) : 0;
}

static double bytes_kept(const struct plan *plan)
{
    /* fp32 weights and the optimizer's moments, in bytes of weights */
    return 1 + (double)optimizer_moments(plan->jobs.jobs[0].optimizer.kind);
}

static void devices_share_links(void **state)
{
    (void)state;
    struct plan plan;
    make(&plan, STACK_SPILLWAY, JOBS);
    assert_int_equal(check(&plan, as_copied, bytes_kept(&plan)), 2 * (4 + 1 + 1));
    plan_release(&plan);
}

static void a_job_by_itself(void **state)
{
    (void)state;
    struct plan plan;
    make(&plan, STACK_SPILLWAY, 1);
    assert_int_equal(check(&plan, as_copied, bytes_kept(&plan)), 2);
    plan_release(&plan);
}

static double nothing(const struct plan *plan, uint32_t job, uint32_t run, uint32_t pass, double bytes_of_parameter)
{
    (void)plan, (void)job, (void)run, (void)pass, (void)bytes_of_parameter;
    return 0;
}

static void states_are_in_place(void **state)
{
    (void)state;
    struct plan plan;
    make(&plan, STACK_FRAMEWORKS, JOBS);
    (void)check(&plan, nothing, 1);
    plan_release(&plan);
}

/* Resident jobs copy their states, or have them in place. */
static void resident_states(void **state)
{
    (void)state;
    for (int in_place = 0; in_place < 2; in_place++) {
        struct hardware hardware;
        struct job_set jobs;
        struct plan plan;
        struct arena arena = {0};
        struct sim_durations *durations;
        struct error err = {0};
        const struct planner_options options = {.policy = "shard-parallel", .activations = PLANNER_AUTO,
                                                .optimizer = PLANNER_AUTO};
        uint32_t moved = 0;
        test_hardware(&hardware, 2, 1 << 30, 1e9);
        hardware.stack = in_place ? STACK_FRAMEWORKS : STACK_SPILLWAY;
        test_gpt_jobs(&jobs, 2, 2, 64, 97, 2);
        if (planner_plan(&hardware, &jobs, &options, &plan, &err)) fail_msg("%s", err.text);
        if (sim_durations_create(&arena, &plan, &plan.hardware, NULL, &durations, &err)) fail_msg("%s", err.text);
        for (uint32_t u = 0; u < plan.unit_count; u++) {
            const struct plan_unit *unit = &plan.units[u];
            if (unit->pass != PLAN_LOAD && unit->pass != PLAN_STORE) continue;
            for (uint32_t o = unit->first_op; o < unit->first_op + unit->op_count; o++, moved++) {
                const double seconds = sim_durations_alone_s(durations, 0, o);
                assert_true(in_place ? !(seconds > 0) : plan.ops[o].kind != OP_COPY || seconds > 0);
            }
        }
        assert_true(moved > 0);
        arena_release(&arena);
        plan_release(&plan);
    }
}

/* The last job continues the first one's training elsewhere: what moves in between is its restart. */
static const double restart_s = 0.375;

static double as_continued(const struct plan *plan, uint32_t job, uint32_t run, uint32_t pass,
                           double bytes_of_parameter)
{
    if (job == 0 && pass == PLAN_STORE) return 0;
    if (job == 2 && pass == PLAN_LOAD) return run < placed[job].stages ? restart_s : 0;
    return as_copied(plan, job, run, pass, bytes_of_parameter);
}

static double restarts_only(const struct plan *plan, uint32_t job, uint32_t run, uint32_t pass,
                            double bytes_of_parameter)
{
    (void)plan, (void)bytes_of_parameter;
    return job == 2 && pass == PLAN_LOAD && run < placed[job].stages ? restart_s : 0;
}

static void a_stopped_job_continues(void **state)
{
    (void)state;
    for (int in_place = 0; in_place < 2; in_place++) {
        struct plan plan;
        make(&plan, in_place ? STACK_FRAMEWORKS : STACK_SPILLWAY, JOBS);
        struct plan_reservation *last = &plan.reservations[plan.job_reservation[2]];
        last->follows = plan.job_reservation[0];
        last->restart_s = restart_s;
        check(&plan, in_place ? restarts_only : as_continued, bytes_kept(&plan));
        plan_release(&plan);
    }
}

/* --- classes of devices ------------------------------------------------------------------------- */

/* Each device but the second differs from the first in one value; two are slow. The last has only a link to spare. */
enum { EQUAL = 1, RATE, LESS, LATENCY, TYPE, LONGER, SLOW, SLOWER, ROOM, MACHINE };

static void make_unlike(struct plan *plan, double *slow)
{
    struct hardware hardware;
    struct job_set jobs;
    struct error err = {0};
    struct device_type *types;
    const struct planner_options options = {.weight_buffers = 0};
    test_hardware(&hardware, MACHINE, 1200000, 1e9);
    test_gpt_jobs(&jobs, MACHINE, 2, 64, 97, 2);
    *plan = (struct plan){0};
    if (planner_plan(&hardware, &jobs, &options, plan, &err)) fail_msg("%s", err.text);
    struct hardware *h = &plan->hardware;
    assert_int_equal(ARENA_NEW(&plan->arena, 2, types, &err), STATUS_OK);
    types[0] = types[1] = h->types[0];
    types[1].peak_fp32.value *= 2;
    types[1].memory_bandwidth.value *= 3;
    h->types = types;
    h->type_count = 2;
    h->links[RATE].bandwidth.value = 2e9;
    h->links[LESS].bandwidth.value = 5e8;
    h->links[LATENCY].latency.value = 1e-3;
    h->links[ROOM].latency.value = 2e-3;
    h->devices[TYPE].type = 1;
    h->devices[LONGER].path[h->devices[LONGER].path_count++] = ROOM;
    for (uint32_t d = 0; d < MACHINE; d++) slow[d] = d == SLOW ? 1.5 : d == SLOWER ? 2 : 1;
}

static double cost_of(const struct plan *plan, const double *slow, uint32_t device, const struct plan_op *op)
{
    const struct plan_work *work = op->work == PLAN_NONE ? NULL : &plan->works[op->work];
    if (op->kind == OP_COPY)
        return cost_copy_s(&plan->hardware, device, op->stream == STREAM_H2D ? COPY_H2D : COPY_D2H, op->bytes);
    if (op->pass == PLAN_BATCH || !work) return 0;
    return slow[device] * cost_work_s(&plan->hardware, device, plan->items + work->first_item, work->item_count, NULL);
}

/* The second pass finds what the first one has computed. */
static void devices_of_a_class_are_alike(void **state)
{
    (void)state;
    struct plan plan;
    struct arena arena = {0};
    struct sim_durations *durations;
    struct error err = {0};
    double slow[MACHINE];
    uint32_t copies[STREAM_KIND_COUNT] = {0}, computations = 0;
    make_unlike(&plan, slow);
    if (sim_durations_create(&arena, &plan, &plan.hardware, slow, &durations, &err)) fail_msg("%s", err.text);
    for (uint32_t i = 0; i < 2 * MACHINE * plan.op_count; i++) {
        const uint32_t device = i / plan.op_count % MACHINE, number = i % plan.op_count;
        const struct plan_op *op = &plan.ops[number];
        if (op->kind == OP_COPY && op->stream != STREAM_H2D && op->stream != STREAM_D2H) continue;
        const double seconds = sim_durations_alone_s(durations, device, number);
        const double expected = cost_of(&plan, slow, device, op);
        if (seconds < expected || seconds > expected)
            fail_msg("operation %u of device %u: %.17g s (expected %.17g s)", number, device, seconds, expected);
        copies[op->stream] += op->kind == OP_COPY;
        computations += expected > 0 && op->kind == OP_COMPUTE;
    }
    assert_true(copies[STREAM_H2D] > 0 && copies[STREAM_D2H] > 0 && computations > 0);
    arena_release(&arena);
    plan_release(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(devices_of_a_class_are_alike),
                                       cmocka_unit_test(devices_share_links), cmocka_unit_test(a_job_by_itself),
                                       cmocka_unit_test(states_are_in_place), cmocka_unit_test(resident_states),
                                       cmocka_unit_test(a_stopped_job_continues)};
    return cmocka_run_group_tests_name("sim/duration.h", tests, NULL, NULL);
}
