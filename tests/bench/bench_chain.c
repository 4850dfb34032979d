/*
 * Keep, swap and recompute: how often the optimum is proven, how far unproven results are from the bound, and the
 * results of published rules. Processor time is that of this process and the solver's; the limit is wall time, so on a
 * busy machine the two together show what an idle machine would prove.
 *
 *     bench_chain [LIMIT SECONDS [INSTANCES [FIRST LAYERS [LAST LAYERS]]]]
 *
 * Limits of 8 to 20 s on two busy cores (about a sixth of wall time was available), 20 chains of each length; number
 * proven with at most a second of processor time; median of that time; worst gap:
 *
 *     layers      12         24         48                  96
 *     identical   20  .00    20  .01    20  .01             20  .21
 *     cnn         20  .00    20  .01    20  .12             19  .28  0.006 %
 *     random      20  .00    20  .05    16  .08  0.09 %     14  .23  0.04 %
 *
 * A limit of 3 s on two cores, one of them idle: the same, except 18 of the 20 cnn chains of 96 (the 19th took 1.09 s).
 * One more random chain of 96 layers is proven later. For six of the nine open chains, the fluid program's bound is
 * within 10 ticks of the makespan.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/text/number.h"
#include "planner/chain/chain_certify.h"
#include "tests/support/solve/support_chain.h"

struct tally {
    uint32_t instances, proven, quickly;
    double gap, gap_max, prices, overhead, rules[CHAIN_RULES];
    uint32_t fits[CHAIN_RULES];
    double seconds[1000], processor[1000];
    uint64_t states;
};

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static double above(int64_t value, int64_t base)
{
    return 100 * (double)(value - base) / (double)base;
}

/* Returns the seconds of this process and its children. */
static double processor_s(void)
{
    double sum = 0;
    for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
        struct rusage used;
        if (getrusage(who, &used) != 0) continue;
        sum += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    }
    return sum;
}

static void bench(const struct test_chain_random *options, double limit_s, struct tally *t)
{
    struct chain chain = {0};
    struct chain_schedule schedule = {0};
    struct chain_certificate c;
    struct error err = {0};
    double before = processor_s();
    if (test_chain_random(options, &chain, &err) ||
        chain_certify(&chain, &(struct chain_certify_options){.limit_s = limit_s}, &schedule, &c, &err)) {
        fprintf(stderr, "bench_chain: %s\n", err.text);
        exit(1);
    }
    t->proven += c.status != CERTIFICATE_GAP;
    double gap = 100 * chain_certificate_gap(&c);
    t->gap += gap;
    if (gap > t->gap_max) t->gap_max = gap;
    t->prices += above(c.value, c.price_bound > 0 ? c.price_bound : c.bound);
    t->overhead += above(c.value, chain.compute);
    for (uint32_t r = 0; r < CHAIN_RULES; r++) {
        if (!c.rule_fits[r]) continue;
        t->fits[r]++;
        t->rules[r] += above(c.rule_values[r], chain.compute);
    }
    t->states += c.states;
    double used_s = processor_s() - before;
    t->quickly += c.status != CERTIFICATE_GAP && used_s <= 1;
    t->processor[t->instances] = used_s;
    t->seconds[t->instances++] = c.seconds;
    chain_schedule_release(&schedule);
    chain_release(&chain);
}

static void print(const struct test_chain_random *o, struct tally *t)
{
    double n = t->instances;
    qsort(t->seconds, t->instances, sizeof *t->seconds, by_value);
    qsort(t->processor, t->instances, sizeof *t->processor, by_value);
    printf("%-9s %4u  %4.2f %4.2f  %3u/%u  %3u  %6.3f %6.3f  %6.3f  %7.2f ", chain_family_names[o->family],
           o->layers, o->memory, o->link, t->proven, t->instances, t->quickly, t->gap / n, t->gap_max, t->prices / n,
           t->overhead / n);
    for (uint32_t r = 0; r < CHAIN_RULES; r++) printf(" %7.2f", t->fits[r] ? t->rules[r] / t->fits[r] : 0);
    printf("  %9.0f  %.3f %.3f %.3f  %.3f %.3f %.3f\n", (double)t->states / n, t->seconds[0],
           t->seconds[t->instances / 2], t->seconds[t->instances - 1], t->processor[0],
           t->processor[t->instances / 2], t->processor[t->instances - 1]);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const double shapes[][2] = {{0.3, 0.3}, {0.1, 0.3}, {0.3, 0.1}, {0.3, 0.6}};
    uint64_t first = 12, last = 96, instances = 5;
    double limit_s = 1;
    const char *end;
    if ((argc > 1 && (!number_read(argv[1], &end, &limit_s) || *end)) ||
        (argc > 2 && !number_read_u64(argv[2], &instances)) ||
        (argc > 3 && !number_read_u64(argv[3], &first)) ||
        (argc > 4 && !number_read_u64(argv[4], &last)) || argc > 5 || instances < 1 || instances > 1000 ||
        first < 1 || last > CHAIN_LAYERS_MAX) {
        fprintf(stderr, "usage: bench_chain [LIMIT SECONDS [INSTANCES [FIRST LAYERS [LAST LAYERS]]]]\n");
        return 2;
    }
    printf("memory: share between least and all kept; link: share of all bytes it carries beside "
           "computation\n1 s: proven with at most a second of processor time\ngap, prices, overheads in %%: above the "
           "bound, above the bound of prices alone, above computation\n\n"
           "family    layers mem link  proven  1 s   gap mean/max    prices  overhead  ");
    for (uint32_t r = 0; r < CHAIN_RULES; r++) printf(" %.7s", chain_rule_names[r]);
    printf("  states   seconds min/median/max  processor seconds\n");
    for (uint32_t family = 0; family < CHAIN_FAMILIES; family++)
        for (uint64_t layers = first; layers <= last; layers *= 2)
            for (uint32_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                struct tally tally = {0};
                struct test_chain_random options = {.family = (enum chain_family)family,
                                               .layers = (uint32_t)layers,
                                               .memory = shapes[s][0],
                                               .link = shapes[s][1]};
                for (options.seed = 1; options.seed <= instances; options.seed++)
                    bench(&options, limit_s, &tally);
                print(&options, &tally);
            }
    return 0;
}
