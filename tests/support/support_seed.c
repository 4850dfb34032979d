/* Each run without SPILLWAY_SEED tries other values: over a year the tests see far more than one fixed seed would show,
 * and the printed line makes every failure repeatable. */
#include "tests/support/support_seed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/random.h"

uint32_t support_rounds(uint32_t few, uint32_t all)
{
    return getenv("SPILLWAY_ROUNDS") ? SUPPORT_ROUNDS(all) : SUPPORT_ROUNDS(few);
}

uint64_t support_seed(const char *test_name)
{
    const char *wanted = getenv("SPILLWAY_SEED");
    uint64_t seed;
    if (wanted) {
        seed = strtoull(wanted, NULL, 10);
    } else {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = random_u64((uint64_t)now.tv_sec, (uint64_t)now.tv_nsec ^ (uint64_t)getpid());
    }
    printf("%s: SPILLWAY_SEED=%" PRIu64 "\n", test_name, seed);
    fflush(stdout);
    return seed;
}
