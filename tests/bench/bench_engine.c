/*
 * Measures the cost of events. Not a test: prints activities per second.
 *
 *     bench_engine [speed [REPETITIONS]]    workload W by sim/live/live.h, in turn with SimGrid if the build found it
 *     bench_engine growth                   memory and time for n, 2 n ... 64 n minibatches; up to 512 devices
 *     bench_engine rates                    a flow's beginning, end and re-rating among 0 to 4095 other flows
 *     bench_engine instructions             of an activity and of a re-rating, counted by valgrind
 *     bench_engine files G M S B            write W and its machine here, for
 *                                           spillway simulate --dispatch live --policy lrtf-emptiest \
 *                                               --hw ./W-machine.json W.json
 *
 * Each run is a process of its own, and times are its CPU time, because other work on the machine must not count. The
 * time of sim/live/live.h includes making and releasing its tables; SimGrid's time is only its loop. SimGrid rounds its
 * sharing to 1e-5, so its makespans differ (tests/support/sim/support_live_workload.c says why).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/json/json_out.h"
#include "base/order.h"
#include "planner/policy/policies.h"
#include "planner/solve/instance/instance_io.h"
#include "sim/live/live.h"
#include "sim/network/flow.h"
#include "sim/sim.h"
#include "tests/support/sim/support_live_reference.h"
#include "tests/support/support_workload.h"
#ifdef SPILLWAY_SIMGRID
#include "tests/bench/bench_engine_simgrid.h"
#endif

enum { REPETITIONS_MAX = 99, RATE_STEPS = 200000 };

struct measured {
    double makespan_s, cpu_s;
    uint64_t memory_bytes, activities;
};

typedef void (*simulate)(const struct workload *w, struct measured *out);

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void check(enum status status, const struct error *err)
{
    if (status == STATUS_OK) return;
    fprintf(stderr, "bench_engine: %s\n", err->text);
    exit(error_exit_code(status));
}

/* --- one run ----------------------------------------------------------------------------------- */

static void simulate_with(const struct workload *w, const struct policy *policy, const double *compute_s,
                          struct measured *out)
{
    struct hardware hw;
    struct instance in;
    struct sim_result result = {0};
    struct trace trace = {0};
    struct error err = {0};
    workload_machine(w->devices, &hw);
    workload_instance(w, &in);
    struct sim_live_options options = {.hardware = &hw, .policy = policy, .compute_s = compute_s};
    double begun_s = cpu_s();
    check(sim_live_run(&in, &options, &result, &trace, &err), &err);
    *out = (struct measured){result.makespan_s, 0, result.memory_bytes, result.operations};
    sim_result_release(&result);
    trace_release(&trace);
    out->cpu_s = cpu_s() - begun_s;
    instance_release(&in);
    hardware_release(&hw);
}

static void simulate_live(const struct workload *w, struct measured *out)
{
    simulate_with(w, policy_find("lrtf-emptiest"), NULL, out);
}

/* Simulates with the rounding of the program whose makespans are published. */
static void simulate_published(const struct workload *w, struct measured *out)
{
    double *compute_s = live_reference_compute_s(w);
    simulate_with(w, live_reference_policy(w), compute_s, out);
    free(compute_s);
}

#ifdef SPILLWAY_SIMGRID
static void simulate_simgrid(const struct workload *w, struct measured *out)
{
    out->makespan_s = bench_engine_simgrid(w, &out->cpu_s);
    out->activities = workload_activities(w);
}
#endif

/* Runs a simulation in a process of its own. */
static struct measured run_apart(simulate run, const struct workload *w)
{
    struct measured out = {0};
    int ends[2], status;
    fflush(stdout);
    if (pipe(ends) != 0) exit(3);
    pid_t child = fork();
    if (child < 0) exit(3);
    if (child == 0) {
        run(w, &out);
        _exit(write(ends[1], &out, sizeof out) == (ssize_t)sizeof out ? 0 : 3);
    }
    close(ends[1]);
    bool all = read(ends[0], &out, sizeof out) == (ssize_t)sizeof out;
    close(ends[0]);
    waitpid(child, &status, 0);
    if (!all || status != 0) {
        fprintf(stderr, "bench_engine: a run has failed\n");
        exit(3);
    }
    return out;
}

/* --- speed ------------------------------------------------------------------------------------- */

static void print_name(const struct workload *w, const char *name)
{
    printf("W(%u,%u,%u,%u)%*s %-9s", w->devices, w->models, w->shards, w->minibatches,
           (int)(20 - snprintf(NULL, 0, "W(%u,%u,%u,%u)", w->devices, w->models, w->shards, w->minibatches)), "", name);
}

static void print_speed(const struct workload *w, const char *name, double makespan_s, double *speeds, uint32_t count)
{
    qsort(speeds, count, sizeof *speeds, order_double);
    print_name(w, name);
    printf(" %12.6f s  %7.3f M/s (%.3f to %.3f)  %7.1f ns\n", makespan_s, speeds[count / 2] / 1e6,
           speeds[0] / 1e6, speeds[count - 1] / 1e6, 1e9 / speeds[count / 2]);
}

static void measure_speed(uint32_t repetitions)
{
    static const struct workload workloads[] = {{8, 16, 24, 50}, {64, 256, 24, 20}, {512, 2048, 24, 2}};
    printf("activities per second of CPU time, median (least to most) of %u\n", repetitions);
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        double live[REPETITIONS_MAX], other[REPETITIONS_MAX], ratios[REPETITIONS_MAX];
        struct measured mine = {0}, theirs = {0};
        for (uint32_t r = 0; r < repetitions; r++) {
            mine = run_apart(simulate_live, &workloads[i]);
            live[r] = (double)mine.activities / mine.cpu_s;
#ifdef SPILLWAY_SIMGRID
            theirs = run_apart(simulate_simgrid, &workloads[i]);
            other[r] = (double)theirs.activities / theirs.cpu_s;
            ratios[r] = live[r] / other[r];
#endif
        }
        print_speed(&workloads[i], "spillway", mine.makespan_s, live, repetitions);
        print_name(&workloads[i], "spillway");
        printf(" %12.6f s with the rounding of the program whose makespans are published\n",
               run_apart(simulate_published, &workloads[i]).makespan_s);
        if (!(theirs.cpu_s > 0)) continue;
        print_speed(&workloads[i], "SimGrid", theirs.makespan_s, other, repetitions);
        qsort(ratios, repetitions, sizeof *ratios, order_double);
        print_name(&workloads[i], "ratio");
        printf(" %.1f (%.1f to %.1f), pair by pair\n", ratios[repetitions / 2], ratios[0], ratios[repetitions - 1]);
    }
}

/* --- growth ------------------------------------------------------------------------------------ */

static void print_growth(const struct workload *w)
{
    double speeds[5];
    struct measured m = {0};
    for (uint32_t r = 0; r < 5; r++) {
        m = run_apart(simulate_live, w);
        speeds[r] = 1e9 * m.cpu_s / (double)m.activities;
    }
    qsort(speeds, 5, sizeof *speeds, order_double);
    print_name(w, "");
    printf(" %10" PRIu64 " activities  %6.1f ns (%.1f to %.1f)  %8.1f kB, %8.3f B/activity\n", m.activities,
           speeds[2], speeds[0], speeds[4], (double)m.memory_bytes / 1e3,
           (double)m.memory_bytes / (double)m.activities);
}

static void measure_growth(void)
{
    printf("CPU time per activity, median (least to most) of 5; memory of the simulation\n");
    for (uint32_t times = 1; times <= 64; times *= 2) print_growth(&(struct workload){8, 16, 24, 5 * times});
    for (uint32_t devices = 8; devices <= 512; devices *= 2)
        print_growth(&(struct workload){devices, 4 * devices, 24, 20});
}

/* --- rates ------------------------------------------------------------------------------------- */

/* The kind of traffic on the link. */
enum mix { ALIKE, UNLIKE, MIX_COUNT };
static const char *const mix_names[MIX_COUNT] = {"alike", "unlike"};

/* `count` paths over one simplex link, each with a flow under way at all times: one ends, another begins,
 * RATE_STEPS times. Their caps are equal, or all different. */
static double change_rates(enum mix mix, uint32_t count, uint32_t steps)
{
    struct arena arena = {0};
    struct error err = {0};
    struct sim_flows *flows;
    struct sim_queue *queue;
    struct sim_link link = {.bytes_per_s = 1e9};
    struct sim_path *paths = calloc(count, sizeof *paths);
    uint32_t *owners = calloc(count + 1u, sizeof *owners);
    const struct sim_rate *changed;
    double now_s = 0;
    uint64_t number = 0;
    for (uint32_t p = 0; p < count; p++)
        paths[p] = (struct sim_path){.hops = {{.link = 0}}, .hop_count = 1, .flow_limit = 1, .group = SIM_NO_GROUP,
                                     .cap_bytes_per_s = 1.5e9 / count * (mix == ALIKE ? 1 : 1 + 1.0 / (2 + p))};
    struct sim_flows_setup setup = {.links = &link, .link_count = 1, .paths = paths, .path_count = count};
    check(sim_flows_create(&arena, &setup, &flows, &err), &err);
    check(sim_queue_create(&arena, sim_flows_bundle_count(flows), &queue, &err), &err);
    for (uint32_t b = 0; b < sim_flows_bundle_count(flows); b++) owners[b] = b;
    sim_flows_attach(flows, queue, owners);
    for (uint32_t p = 0; p < count; p++)
        sim_flows_begin(flows, p, 1e6 * (1 + (double)(p * UINT64_C(7919) % 1000) / 1000), 1, number++, now_s);
    (void)sim_flows_settle(flows, now_s, &changed);
    double begun_s = cpu_s();
    for (uint32_t i = 0; i < steps; i++) {
        struct sim_event event;
        if (!sim_queue_pop(queue, &event)) break;
        now_s = event.time_s;
        uint32_t flow = sim_flows_finish(flows, event.owner, now_s);
        sim_flows_begin(flows, flow, 1e6 * (1 + (double)(number * 104729 % 1000) / 1000), 1, number, now_s);
        number++;
        (void)sim_flows_settle(flows, now_s, &changed);
    }
    double seconds = cpu_s() - begun_s;
    free(paths);
    free(owners);
    arena_release(&arena);
    return seconds;
}

/* So that a line takes about a tenth of a second. */
static uint32_t steps_for(enum mix mix, uint32_t count)
{
    return mix == ALIKE || count <= 64 ? RATE_STEPS : RATE_STEPS / count * 8;
}

static void measure_rates(void)
{
    printf("an end, a beginning and the re-rating beside count - 1 flows; median (least to most) of 5, ns\n");
    for (enum mix mix = ALIKE; mix < MIX_COUNT; mix++)
        for (uint32_t count = 1; count <= 4096; count *= 4) {
            double ns[5];
            uint32_t steps = steps_for(mix, count);
            for (uint32_t r = 0; r < 5; r++) ns[r] = change_rates(mix, count, steps) / steps * 1e9;
            qsort(ns, 5, sizeof *ns, order_double);
            printf("%-6s %5u %9.1f (%.1f to %.1f)\n", mix_names[mix], count, ns[2], ns[0], ns[4]);
        }
}

/* --- instructions ------------------------------------------------------------------------------ */

static uint64_t count_instructions(const char *program, const char *arguments)
{
    char command[4096], line[512];
    uint64_t count = 0;
    snprintf(command, sizeof command,
             "valgrind --tool=callgrind --callgrind-out-file=/dev/null '%s' %s 2>&1", program, arguments);
    FILE *pipe = popen(command, "r");
    if (!pipe) exit(3);
    while (fgets(line, sizeof line, pipe)) {
        const char *found = strstr(line, "Collected :");
        if (found) count = strtoull(found + strlen("Collected :"), NULL, 10);
    }
    if (pclose(pipe) != 0 || count == 0) {
        fprintf(stderr, "bench_engine: valgrind cannot be run\n");
        exit(3);
    }
    return count;
}

/* Counts instructions by the difference of two runs, one with twice the work. */
static void measure_instructions(const char *program)
{
    static const struct workload workloads[] = {{8, 16, 24, 4}, {64, 256, 24, 2}, {512, 2048, 24, 1}};
    printf("instructions (valgrind --tool=callgrind), the difference of two runs of which one does more\n");
    for (size_t i = 0; i < sizeof workloads / sizeof workloads[0]; i++) {
        struct workload w = workloads[i];
        char arguments[128];
        uint64_t counts[2];
        for (uint32_t k = 0; k < 2; k++) {
            snprintf(arguments, sizeof arguments, "once %u %u %u %u", w.devices, w.models, w.shards,
                     w.minibatches * (k + 1));
            counts[k] = count_instructions(program, arguments);
        }
        print_name(&w, "");
        printf(" %8.1f per activity\n", (double)(counts[1] - counts[0]) / (double)workload_activities(&w));
    }
    for (enum mix mix = ALIKE; mix < MIX_COUNT; mix++)
        for (uint32_t count = 1; count <= 4096; count *= 4) {
            uint64_t counts[2];
            uint32_t steps = count <= 64 || mix == ALIKE ? 4000 : 400;
            char arguments[128];
            for (uint32_t k = 0; k < 2; k++) {
                snprintf(arguments, sizeof arguments, "flows %d %u %u", (int)mix, count, steps * (k + 1));
                counts[k] = count_instructions(program, arguments);
            }
            printf("%-6s %5u flows on a link %9.1f per end, beginning and re-rating\n", mix_names[mix], count,
                   (double)(counts[1] - counts[0]) / steps);
        }
}

/* --- files ------------------------------------------------------------------------------------- */

static void write_files(const struct workload *w)
{
    struct hardware hw;
    struct instance in;
    struct error err = {0};
    struct json_file file;
    workload_machine(w->devices, &hw);
    workload_instance(w, &in);
    check(instance_write(&in, "W.json", &err), &err);
    check(json_file_begin(&file, "W-machine.json", "writing a machine", &err), &err);
    hardware_write(&hw, file.out, NULL);
    check(json_file_end(&file, &err), &err);
    instance_release(&in);
    hardware_release(&hw);
}

/* --- the program ------------------------------------------------------------------------------- */

static uint32_t number_at(char **argv, int index)
{
    return (uint32_t)strtoul(argv[index], NULL, 10);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "speed";
    uint32_t repetitions = argc > 2 ? number_at(argv, 2) : 11;
    struct measured once;
    if (strcmp(what, "speed") == 0 && repetitions >= 1 && repetitions <= REPETITIONS_MAX) {
        measure_speed(repetitions);
    } else if (strcmp(what, "growth") == 0) {
        measure_growth();
    } else if (strcmp(what, "rates") == 0) {
        measure_rates();
    } else if (strcmp(what, "instructions") == 0) {
        measure_instructions(argv[0]);
    } else if (strcmp(what, "once") == 0 && argc == 6) {
        simulate_live(&(struct workload){number_at(argv, 2), number_at(argv, 3), number_at(argv, 4),
                                         number_at(argv, 5)}, &once);
        printf("%.9f s, %" PRIu64 " activities, %.1f ns each\n", once.makespan_s, once.activities,
               once.cpu_s / (double)once.activities * 1e9);
    } else if (strcmp(what, "files") == 0 && argc == 6) {
        write_files(&(struct workload){number_at(argv, 2), number_at(argv, 3), number_at(argv, 4),
                                       number_at(argv, 5)});
    } else if (strcmp(what, "flows") == 0 && argc == 5 && number_at(argv, 2) < MIX_COUNT) {
        printf("%g s\n", change_rates((enum mix)number_at(argv, 2), number_at(argv, 3), number_at(argv, 4)));
    } else {
        fprintf(stderr, "usage: bench_engine [speed [REPETITIONS (1 to %d)] | growth | rates | instructions |\n"
                        "                     files G M S B | once G M S B | flows 0|1 FLOWS STEPS]\n",
                        REPETITIONS_MAX);
        return 2;
    }
    return 0;
}
