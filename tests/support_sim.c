#include "support_sim.h"

#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"

uint64_t sim_test_seed(void)
{
    static bool printed;
    static uint64_t seed = 20261107;
    if (!printed) {
        const char *text = getenv("SPILLWAY_SEED");
        if (text) seed = strtoull(text, NULL, 10);
        print_message("SPILLWAY_SEED=%" PRIu64 "\n", seed);
        printed = true;
    }
    return seed;
}

uint32_t sim_test_below(struct sim_test_random *random, uint32_t bound)
{
    return (uint32_t)random_below(random->key, random->drawn++, bound);
}

double sim_test_between(struct sim_test_random *random, double low, double high)
{
    return low + (high - low) * random_unit(random->key, random->drawn++);
}

bool sim_test_close(double a, double b, double tolerance, double least)
{
    return fabs(a - b) <= tolerance * fmax(fmax(fabs(a), fabs(b)), least);
}

void sim_test_assert_close(double a, double b, const char *what, const char *file, int line)
{
    if (sim_test_close(a, b, 1e-9, 0)) return;
    print_error("%s is %.17g, expected %.17g\n", what, a, b);
    _fail(file, line);
}
