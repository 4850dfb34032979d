/*
 * How fast is the simulator, and does it stay so? Not a test: prints operations per second.
 *
 * Workload W (support_workload.h) as a plan: a minibatch is S forward passes and S backward passes, one
 * after the other; each is a copy in, a computation and a copy out.
 *
 * Passes are dealt out in time order by a clock without contention: the free GPU slot that comes
 * first takes the ready model with the most work left. Two or three slots per GPU.
 *
 * Usage: bench_sim [REPETITIONS [LARGEST MULTIPLE]]. Prints the median CPU time of sim_run() over the
 * repetitions (5), for 1, 2, 4 ... up to 16 times the minibatches.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/order.h"
#include "planner/walk/plan_build.h"
#include "planner/walk/plan_walk.h"
#include "sim/sim.h"
#include "tests/support/support_workload.h"

enum { SLOTS_LIMIT = 3, REPETITIONS_MAX = 99 };

struct dealing {
    uint32_t gpus, models, shards, minibatches;
    uint32_t slots;
};

static double forward_s(uint32_t m, uint32_t s)
{
    return (double)workload_forward_us(m, s) / 1e6;
}

static void check(enum status status, const struct error *err)
{
    if (status == STATUS_OK) return;
    fprintf(stderr, "bench_sim: %s\n", err->text);
    exit(error_exit_code(status));
}

static void *allocate(struct arena *arena, size_t count, size_t size)
{
    struct error err = {0};
    void *memory = NULL;
    check(arena_array(arena, count, size, &memory, &err), &err);
    return memory;
}

/* --- the jobs ------------------------------------------------------------------------------- */

static void make_jobs(const struct dealing *w, struct job_set *out)
{
    *out = (struct job_set){.count = w->models};
    out->jobs = allocate(&out->arena, w->models, sizeof *out->jobs);
    struct layer_profile *profile = allocate(&out->arena, w->shards, sizeof *profile);
    for (uint32_t m = 0; m < w->models; m++) {
        out->jobs[m] = (struct job){.name = "model", .sequence = 1, .microbatch = 1, .microbatches = 1,
                                    .minibatches = w->minibatches, .data_format = DATA_NONE};
        out->jobs[m].network = (struct network){
            .name = "W", .family = NETWORK_PROFILE, .layer_count = w->shards, .profile = profile};
    }
}

/* --- units ---------------------------------------------------------------------------------- */

/* All shards of a model come from one host buffer: a pass's copy in reads what the copy out of the
 * pass before wrote, so the passes of a model follow each other. */
static uint32_t make_unit(struct plan_builder *builder, uint32_t m, uint32_t s, bool backward)
{
    uint64_t bytes = workload_bytes(m, s);
    struct plan_buffer buffer = {.kind = BUFFER_STATE, .job = m, .bytes = bytes};
    uint32_t host = plan_builder_buffer(builder, &buffer);
    buffer.on_device = true;
    buffer.shard = s;
    uint32_t device = plan_builder_buffer(builder, &buffer);
    struct work_item item = {.kernel = KERNEL_FIXED, .count = backward ? 2 : 1,
                             .m = (uint64_t)llround(forward_s(m, s) * 1e9)};
    struct plan_op in = {.kind = OP_COPY, .stream = STREAM_H2D, .bytes = bytes};
    struct plan_op compute = {.kind = OP_COMPUTE, .stream = STREAM_COMPUTE,
                              .work = plan_builder_work(builder, &item, 1),
                              .pass = backward ? PLAN_BACKWARD : PLAN_FORWARD};
    struct plan_op out = {.kind = OP_COPY, .stream = STREAM_D2H, .bytes = bytes};
    struct plan_access in_accesses[] = {{.buffer = host, .flags = ACCESS_READ},
                                        {.buffer = device, .flags = ACCESS_WRITE | ACCESS_ACQUIRE}};
    struct plan_access compute_access = {.buffer = device, .flags = ACCESS_READ | ACCESS_WRITE};
    struct plan_access out_accesses[] = {{.buffer = device, .flags = ACCESS_READ | ACCESS_RELEASE},
                                         {.buffer = host, .flags = ACCESS_WRITE}};
    plan_builder_unit_begin(builder, m, s, backward ? PLAN_BACKWARD : PLAN_FORWARD,
                            backward && s == 0);
    plan_builder_op(builder, &in, in_accesses, 2, NULL, 0);
    plan_builder_op(builder, &compute, &compute_access, 1, NULL, 0);
    plan_builder_op(builder, &out, out_accesses, 2, NULL, 0);
    return plan_builder_unit_end(builder);
}

/* --- dealing out ---------------------------------------------------------------------------- */

struct model {
    double work_left_s;
    double ends_s;        /* of the pass under way */
    uint32_t done, gpu;   /* passes; gpu of the pass under way */
    bool running;
};

struct gpu {
    double in_s, compute_s, out_s; /* when each stream is free */
    uint32_t free_slots, next_slot;
};

struct dealer {
    const struct dealing *workload;
    struct plan_builder *builder;
    struct model *models;
    struct gpu *gpus;
    uint32_t *units; /* [model][pass of the minibatch] */
    uint32_t slots[SLOTS_LIMIT];
    double now_s;
};

static uint32_t passes(const struct dealing *w)
{
    return w->shards * 2 * w->minibatches;
}

static bool pick_model(const struct dealer *d, uint32_t *out)
{
    double most_s = -1;
    for (uint32_t m = 0; m < d->workload->models; m++) {
        const struct model *model = &d->models[m];
        if (model->running || model->done == passes(d->workload)) continue;
        if (model->work_left_s <= most_s) continue;
        most_s = model->work_left_s;
        *out = m;
    }
    return most_s >= 0;
}

static bool pick_gpu(const struct dealer *d, uint32_t *out)
{
    uint32_t most = 0;
    for (uint32_t g = 0; g < d->workload->gpus; g++)
        if (d->gpus[g].free_slots > most) {
            most = d->gpus[g].free_slots;
            *out = g;
        }
    return most > 0;
}

static void deal(struct dealer *d, uint32_t m, uint32_t g)
{
    struct model *model = &d->models[m];
    struct gpu *gpu = &d->gpus[g];
    uint32_t shards = d->workload->shards, pass = model->done % (2 * shards);
    uint32_t s = pass < shards ? pass : 2 * shards - 1 - pass;
    double copy_s = (double)workload_bytes(m, s) / 12e9, compute_s = forward_s(m, s) * (pass < shards ? 1 : 2);
    uint32_t slot = d->slots[gpu->next_slot];
    gpu->next_slot = (gpu->next_slot + 1) % d->workload->slots;
    gpu->free_slots--;
    gpu->in_s = fmax(gpu->in_s, d->now_s) + copy_s;
    gpu->compute_s = fmax(gpu->compute_s, gpu->in_s) + compute_s;
    gpu->out_s = fmax(gpu->out_s, gpu->compute_s) + copy_s;
    model->work_left_s -= compute_s;
    model->ends_s = gpu->out_s;
    model->gpu = g;
    model->running = true;
    model->done++;
    plan_builder_task(d->builder, d->units[m * 2 * shards + pass], g, &slot, 1);
}

/* The next pass to end; false when none is under way. */
static bool end_first(struct dealer *d)
{
    uint32_t first = UINT32_MAX;
    for (uint32_t m = 0; m < d->workload->models; m++)
        if (d->models[m].running &&
            (first == UINT32_MAX || d->models[m].ends_s < d->models[first].ends_s))
            first = m;
    if (first == UINT32_MAX) return false;
    d->now_s = d->models[first].ends_s;
    d->models[first].running = false;
    d->gpus[d->models[first].gpu].free_slots++;
    return true;
}

static void prepare(struct dealer *d, struct arena *scratch)
{
    const struct dealing *w = d->workload;
    d->models = allocate(scratch, w->models, sizeof *d->models);
    d->gpus = allocate(scratch, w->gpus, sizeof *d->gpus);
    d->units = allocate(scratch, (size_t)w->models * 2 * w->shards, sizeof *d->units);
    for (uint32_t i = 0; i < w->slots; i++)
        d->slots[i] = plan_builder_slot(d->builder, i * UINT64_C(400000000), 400000000);
    for (uint32_t g = 0; g < w->gpus; g++) d->gpus[g].free_slots = w->slots;
    for (uint32_t m = 0; m < w->models; m++) {
        plan_builder_shard(d->builder, m, 0, w->shards, false);
        for (uint32_t s = 0; s < w->shards; s++) {
            uint32_t *units = d->units + (size_t)m * 2 * w->shards;
            units[s] = make_unit(d->builder, m, s, false);
            units[2 * w->shards - 1 - s] = make_unit(d->builder, m, s, true);
            d->models[m].work_left_s += 3 * forward_s(m, s) * w->minibatches;
        }
    }
}

static void make_plan(const struct dealing *w, struct plan *out)
{
    struct error err = {0};
    struct hardware hardware;
    struct job_set jobs;
    struct arena scratch = {0};
    struct dealer d = {.workload = w};
    workload_machine(w->gpus, &hardware);
    make_jobs(w, &jobs);
    check(plan_builder_create(&hardware, &jobs, &d.builder, &err), &err);
    plan_builder_plan(d.builder)->policy = "bench";
    prepare(&d, &scratch);
    do {
        uint32_t m, g;
        while (pick_gpu(&d, &g) && pick_model(&d, &m)) deal(&d, m, g);
    } while (end_first(&d));
    check(plan_builder_finish(d.builder, out, &err), &err);
    plan_builder_destroy(d.builder);
    arena_release(&scratch);
}

/* --- measuring ------------------------------------------------------------------------------ */

/* Returns the CPU time of this process, which excludes other work on the machine. */
static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double walk_s(const struct plan *plan)
{
    struct error err = {0};
    struct plan_walk *walk;
    struct plan_walk_op op;
    check(plan_walk_create(plan, NULL, &walk, &err), &err);
    double begun_s = cpu_s();
    while (plan_walk_next(walk, &op)) {}
    double seconds = cpu_s() - begun_s;
    plan_walk_destroy(walk);
    return seconds;
}

static void measure(const struct dealing *w, uint32_t repetitions)
{
    struct plan plan = {0};
    double seconds[REPETITIONS_MAX], walks[REPETITIONS_MAX];
    struct sim_result last = {0};
    make_plan(w, &plan);
    for (uint32_t i = 0; i < repetitions; i++) {
        struct sim_options options = {0};
        struct error err = {0};
        struct trace trace = {0};
        sim_result_release(&last);
        double begun_s = cpu_s();
        check(sim_run(&plan, &options, &last, &trace, &err), &err);
        seconds[i] = cpu_s() - begun_s;
        trace_release(&trace);
        walks[i] = walk_s(&plan);
    }
    qsort(seconds, repetitions, sizeof *seconds, order_double);
    qsort(walks, repetitions, sizeof *walks, order_double);
    double median_s = seconds[repetitions / 2], count = (double)last.operations;
    printf("%5" PRIu32 " %6" PRIu32 " %5" PRIu32 " %9.0f %6.2f %8.3f %7.2f %7.0f %7.0f %8" PRIu64
           " %8.0f %8.3f %12.6f  %s\n",
           w->gpus, w->models, w->minibatches, count, (double)last.events / count, median_s,
           count / median_s / 1e6, median_s / count * 1e9, walks[repetitions / 2] / count * 1e9,
           last.window_peak, (double)last.memory_bytes / 1e3,
           (double)last.memory_bytes / count, last.makespan_s, last.binds);
    fflush(stdout);
    sim_result_release(&last);
    plan_release(&plan);
}

int main(int argc, char **argv)
{
    static const struct dealing workloads[] = {
        {8, 16, 24, 50, 2}, {8, 16, 24, 50, 3}, {64, 256, 24, 20, 2}, {64, 256, 24, 20, 3}};
    long repetitions = argc > 1 ? strtol(argv[1], NULL, 10) : 5;
    long most = argc > 2 ? strtol(argv[2], NULL, 10) : 16;
    if (repetitions < 1 || repetitions > REPETITIONS_MAX || most < 1 || most > 1024) {
        fprintf(stderr, "usage: bench_sim [REPETITIONS (1 to %d) [LARGEST MULTIPLE]]\n",
                REPETITIONS_MAX);
        return 2;
    }
    printf("median CPU time of %ld; ns are per operation, 'walk' is the plan's walk alone\n", repetitions);
    printf(" gpus models    mb operations ev/op    cpu_s  Mop/s      ns    walk   window  mem_kB "
           "  B/op     makespan_s  binds\n");
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++)
        for (uint32_t times = 1; times <= (uint32_t)most; times *= 2) {
            struct dealing w = workloads[i];
            w.minibatches *= times;
            measure(&w, (uint32_t)repetitions);
        }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("peak RSS of the process, plans included: %ld MB\n", usage.ru_maxrss / 1024);
    return 0;
}
