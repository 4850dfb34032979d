/*
 * The quality of shard schedules, and how much of it is proven.
 *
 *   1  small: 300 instances of each of four copy regimes, 2 to 4 devices, 3 to 6 jobs, 2 to 4 shards (chains of 2 S - 1
 *      units, 9 to 42 tasks): the number proven optimal; how often and by how much the search without proof misses the
 *      optimum. `core`: the same number of instances of at most 16 tasks with copies, 28 without (the sizes that exact
 *      methods were known to solve).
 *   2  large: 100 instances of each regime, 8 devices, 12 to 24 jobs, 4 to 8 shards, 2 to 8 minibatches: gap between
 *      one second's search on two cores (two searches) and the bound, next to Hydra's LRTF. The name of a regime
 *      selects that regime.
 *   3  huge: 64 devices, 256 jobs of 24 shards, one second.
 *      Mean gaps of 2, measured in seconds of cpu time of each search (two cores shared with many others, which costs
 *      some tenths; AMD EPYC, Zen 4): tight 2.51 (100 instances), median 1.86, nine in ten below 4.8, at most 9.5 %;
 *      the 35 instances with fewer than two jobs per device 3.4 %. A second of wall time with both cores idle: 2.42 %,
 *      at most 9.4. In 15 s of one search the two worst gaps fall from 9.5 and 8.6 to 6.9 and 4.0 %: there the search
 *      is far from the optimum. With an earlier local search: compute 0.06, hidden 0.19 (10 instances), copy 1.63 %
 *      (30); of 3, two instances of tight and copy: 2.5 and 0.7 %.
 *   4  Hydra's Fig. 7: 8 and 64 jobs on 4 and 8 devices, 3 instances each.
 *   5  solvers: small instances of growing size; the same integer program (MPS) for GLPK and, if installed, CBC,
 *      next to branch and bound. All start with the search's value; a solver is stopped after EXACT SECONDS.
 *
 * Small, CPU seconds, 300 instances of each regime, 60 s of proof (two shared cores; search, bounds and proof):
 *
 *     regime    proven   seconds: median, most   search optimal   its mean gap
 *     compute   300      0.000,  0.14            99.7 %           0.002 %
 *     hidden    300      0.011,  2.1             100              0.000
 *     tight     300      0.30,  41               100              0.000
 *     copy      299      0.62,  66               99.3             0.071, nearly all of it from the one open instance
 *                                                                 (seed 126), against its bound
 *
 * Durations of forward passes are 4 to 20 ticks, 40 to 200 in 3.
 *
 * usage: bench_exact [small|core|large|compute|hidden|tight|copy|huge|fig7|solvers|all]
 *                    [INSTANCES [EXACT SECONDS]]
 * Prints one line per regime. Times depend on the machine. The rest depends on the seed (the instance's number) and, if
 * the search is limited to a second, a little on the machine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/size.h"
#include "base/text/number.h"
#include "planner/solve/certify/certify.h"
#include "planner/solve/exact/formulation.h"
#include "planner/solve/instance/instance_random.h"
#include "planner/solve/search/list_baseline.h"

static void check(enum status status, const struct error *err)
{
    if (status) {
        fprintf(stderr, "%s\n", err->text);
        exit(error_exit_code(status));
    }
}

struct figures {
    uint32_t count, proven, by_bound, search_optimal;
    double gap_sum, gap_max;       /* of the search, to the optimum (small) or bound */
    double lrtf_sum;               /* of Hydra's LRTF, to the same */
    double *seconds;               /* bounds, search and proof */
};

/* Skips instances of more than *tasks tasks. *tasks becomes the number of tasks of this instance. */
static struct certificate solve(const struct instance_random *options,
                                const struct certify_options *limits, uint32_t *tasks, int64_t *lrtf)
{
    struct instance in = {0};
    struct timetable timetable = {0};
    struct certificate certificate = {0};
    struct error err = {0};
    check(instance_random(options, &in, &err), &err);
    bool wanted = in.task_count <= *tasks;
    *tasks = in.task_count;
    if (!wanted) {
        instance_release(&in);
        return certificate;
    }
    struct dispatch_step *steps = calloc(in.task_count, sizeof *steps);
    if (!steps) exit(3);
    check(list_baseline_hydra(&in, HUGE_VAL, steps, lrtf, &err), &err);
    check(certify(&in, limits, &timetable, &certificate, &err), &err);
    free(steps);
    timetable_release(&timetable);
    instance_release(&in);
    return certificate;
}

static void count(struct figures *f, const struct certificate *c, int64_t lrtf)
{
    double gap = (double)(c->searched_value - c->bound) / (double)c->bound;
    f->seconds[f->count++] = c->bound_s + c->search_s + c->exact_s;
    f->proven += c->status != CERTIFICATE_GAP;
    f->by_bound += c->status == CERTIFICATE_BOUND;
    f->search_optimal += c->status != CERTIFICATE_GAP && c->searched_value == c->value;
    f->gap_sum += gap;
    if (gap > f->gap_max) f->gap_max = gap;
    f->lrtf_sum += (double)(lrtf - c->bound) / (double)c->bound;
}

static void print(const char *name, struct figures *f)
{
    if (f->count == 0) return;
    double n = f->count;
    qsort(f->seconds, f->count, sizeof *f->seconds, order_double);
    printf("%-22s %4u instances: %u proven (%u by a bound), search optimal %.1f %%, gap mean %.3f %% "
           "max %.2f %%, LRTF %.2f %%, %.3f s (max %.2f)\n",
           name, f->count, f->proven, f->by_bound, 100 * f->search_optimal / n, 100 * f->gap_sum / n,
           100 * f->gap_max, 100 * f->lrtf_sum / n, f->seconds[f->count / 2], f->seconds[f->count - 1]);
    fflush(stdout);
}

static void figures_init(struct figures *f, uint32_t most)
{
    *f = (struct figures){.seconds = calloc(most, sizeof *f->seconds)};
    if (!f->seconds) exit(3);
}

static void bench_small(uint32_t instances, double exact_s, bool core_only)
{
    printf("small: 2-4 devices, 3-6 jobs, 2-4 shards; 2000 iterations of the search, then %.0f s of proof\n",
           exact_s);
    for (uint32_t f = INSTANCE_FAMILY_COMPUTE; f <= INSTANCE_FAMILY_COPY; f++) {
        struct figures all, core;
        figures_init(&all, instances);
        figures_init(&core, instances);
        uint32_t core_tasks = f == INSTANCE_FAMILY_COMPUTE ? 28 : 16;
        for (uint32_t n = 1; n <= instances || (core.count < instances && n < 50 * instances); n++) {
            struct instance_random options = {.family = f, .seed = n, .devices = {2, 4}, .jobs = {3, 6},
                                              .shards = {2, 4}, .minibatches = {1, 1}};
            struct certify_options limits = {.seed = n, .iterations = 2000, .search_limit_s = HUGE_VAL,
                                             .exact_limit_s = exact_s};
            uint32_t most = n <= instances && !core_only ? UINT32_MAX : core_tasks, tasks = most;
            int64_t lrtf;
            struct certificate c = solve(&options, &limits, &tasks, &lrtf);
            if (tasks > most) continue;
            if (n <= instances && !core_only) count(&all, &c, lrtf);
            if (tasks <= core_tasks && core.count < instances) count(&core, &c, lrtf);
        }
        char name[64];
        print(instance_family_names[f], &all);
        snprintf(name, sizeof name, "%s, core", instance_family_names[f]);
        print(name, &core);
        free(all.seconds);
        free(core.seconds);
    }
}

static void bench_search(const struct instance_random *shape, uint32_t instances, const char *name)
{
    struct figures all;
    figures_init(&all, instances);
    for (uint32_t n = 1; n <= instances; n++) {
        struct instance_random options = *shape;
        struct certify_options limits = {.seed = n, .iterations = UINT32_MAX, .search_limit_s = 1, .searches = 2};
        uint32_t tasks = UINT32_MAX;
        int64_t lrtf;
        options.seed = n;
        struct certificate c = solve(&options, &limits, &tasks, &lrtf);
        count(&all, &c, lrtf);
    }
    print(name, &all);
    free(all.seconds);
}

/* `only`: the regime; INSTANCE_FAMILY_COUNT: all. */
static void bench_large(uint32_t instances, uint32_t only)
{
    printf("large: 8 devices, 12-24 jobs, 4-8 shards, 2-8 minibatches; 1 s on two cores\n");
    for (uint32_t f = INSTANCE_FAMILY_COMPUTE; f <= INSTANCE_FAMILY_COPY; f++) {
        if (only != INSTANCE_FAMILY_COUNT && only != f) continue;
        struct instance_random shape = {.family = f, .devices = {8, 8}, .jobs = {12, 24},
                                        .shards = {4, 8}, .minibatches = {2, 8}};
        bench_search(&shape, instances, instance_family_names[f]);
    }
}

static void bench_huge(uint32_t instances)
{
    printf("huge: 64 devices, 256 jobs, 24 shards; 1 s\n");
    for (uint32_t f = INSTANCE_FAMILY_COMPUTE; f <= INSTANCE_FAMILY_COPY; f++) {
        struct instance_random shape = {.family = f, .devices = {64, 64}, .jobs = {256, 256},
                                        .shards = {24, 24}, .minibatches = {1, 1}, .forward = {40, 200}};
        bench_search(&shape, instances, instance_family_names[f]);
    }
}

static void bench_fig7(void)
{
    static const uint32_t shapes[][2] = {{4, 8}, {8, 8}, {4, 64}, {8, 64}};
    printf("Hydra, Fig. 7: milliseconds of an epoch; 1 s\n");
    for (uint32_t f = INSTANCE_FAMILY_HOMOGENEOUS; f <= INSTANCE_FAMILY_HETEROGENEOUS; f++)
        for (uint32_t s = 0; s < ARRAY_COUNT(shapes); s++) {
            struct instance_random shape = {.family = f, .devices = {shapes[s][0], shapes[s][0]},
                                            .jobs = {shapes[s][1], shapes[s][1]}};
            char name[64];
            snprintf(name, sizeof name, "%s %ux%u", f == INSTANCE_FAMILY_HOMOGENEOUS ? "homogeneous" : "heterogen.",
                     shapes[s][1], shapes[s][0]);
            bench_search(&shape, 3, name);
        }
}

/* --- solvers --------------------------------------------------------------------------------- */

static void print_solver(const struct instance *in, const struct instance_bounds *bounds, int64_t value,
                         const char *solver, double limit_s)
{
    struct formulation *f = NULL;
    struct milp_result result;
    struct milp_options options = {.solver = solver, .limit_s = limit_s};
    struct error err = {0};
    check(formulation_create(in, bounds, formulation_suitable(in, value), value, &f, &err), &err);
    if (milp_solve(formulation_milp(f), &options, &result, &err)) {
        printf("  %s: %.60s", solver, err.text);
    } else {
        double bound = result.bounded && result.bound > 0 ? ceil(result.bound - 1e-6) : 0;
        printf("  %s %-8s %6.2f s", solver, result.status == MILP_OPTIMAL ? "optimal" : "stopped", result.seconds);
        if (result.found) printf(" value %.0f", result.value);
        if (bound > 0) printf(" gap %.1f %%", 100 * ((double)value - bound) / bound);
    }
    free(result.x);
    formulation_destroy(f);
}

static void bench_solvers(uint32_t instances, double limit_s)
{
    printf("solvers: the same program, known values; up to %.0f s\n", limit_s);
    for (uint32_t f = INSTANCE_FAMILY_HIDDEN; f <= INSTANCE_FAMILY_COPY; f++)
        for (uint32_t n = 1; n <= instances; n++) {
            struct instance_random options = {.family = f, .seed = n, .devices = {2, 3}, .minibatches = {1, 1},
                                              .jobs = {2 + n, 2 + n}, .shards = {2, 2}};
            struct certify_options limits = {.seed = n, .iterations = 2000, .search_limit_s = HUGE_VAL,
                                             .exact_limit_s = limit_s};
            struct instance in = {0};
            struct instance_bounds bounds = {0};
            struct timetable timetable = {0};
            struct certificate c;
            struct error err = {0};
            check(instance_random(&options, &in, &err), &err);
            check(instance_bounds_make(&in, &bounds, &err), &err);
            check(certify(&in, &limits, &timetable, &c, &err), &err);
            printf("%-8s %2u tasks, %u devices: value %lld, own %-7s %.3f s gap %.1f %%", instance_family_names[f],
                   in.task_count, in.device_count, (long long)c.value,
                   c.status == CERTIFICATE_GAP ? "stopped" : "optimal", c.bound_s + c.search_s + c.exact_s,
                   100 * certificate_gap(&c));
            print_solver(&in, &bounds, c.value, "glpk", limit_s);
            print_solver(&in, &bounds, c.value, "cbc", limit_s);
            printf("\n");
            fflush(stdout);
            timetable_release(&timetable);
            instance_bounds_release(&bounds);
            instance_release(&in);
        }
}

int main(int argc, char **argv)
{
    const char *which = argc > 1 ? argv[1] : "all";
    uint64_t instances = 0, exact_s = 10;
    bool all = strcmp(which, "all") == 0;
    if (argc > 4 || (argc > 2 && !number_read_u64(argv[2], &instances)) ||
        (argc > 3 && !number_read_u64(argv[3], &exact_s)) || instances > 1000000) {
        fprintf(stderr, "usage: bench_exact [small|core|large|compute|hidden|tight|copy|huge|fig7|solvers|all] "
                        "[INSTANCES [EXACT SECONDS]]\n");
        return 2;
    }
    if (all || strcmp(which, "small") == 0)
        bench_small(instances ? (uint32_t)instances : 300, (double)exact_s, false);
    if (strcmp(which, "core") == 0)
        bench_small(instances ? (uint32_t)instances : 300, (double)exact_s, true);
    if (all || strcmp(which, "large") == 0) bench_large(instances ? (uint32_t)instances : 100, INSTANCE_FAMILY_COUNT);
    for (uint32_t f = INSTANCE_FAMILY_COMPUTE; f <= INSTANCE_FAMILY_COPY; f++)
        if (strcmp(which, instance_family_names[f]) == 0) bench_large(instances ? (uint32_t)instances : 100, f);
    if (all || strcmp(which, "huge") == 0) bench_huge(instances ? (uint32_t)instances : 3);
    if (all || strcmp(which, "fig7") == 0) bench_fig7();
    if (all || strcmp(which, "solvers") == 0) bench_solvers(instances ? (uint32_t)instances : 4, (double)exact_s);
    return 0;
}
