/* What the tests of sim share: a seed that is printed and can be given back, and closeness. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_H
#define SPILLWAY_TESTS_SUPPORT_SIM_H

#include <stdbool.h>
#include <stdint.h>

/* SPILLWAY_SEED, or a fixed one; printed the first time. */
uint64_t sim_test_seed(void);

/* Draws in order from one stream of base/random.h. */
struct sim_test_random {
    uint64_t key;
    uint64_t drawn;
};
uint32_t sim_test_below(struct sim_test_random *random, uint32_t bound);
double sim_test_between(struct sim_test_random *random, double low, double high);

/* |a - b| <= tolerance * max(|a|, |b|, least) */
bool sim_test_close(double a, double b, double tolerance, double least);

/* Fails the test, with both numbers, unless they agree to a relative 1e-9. */
#define SIM_ASSERT_CLOSE(a, b) sim_test_assert_close(a, b, #a, __FILE__, __LINE__)
void sim_test_assert_close(double a, double b, const char *what, const char *file, int line);

#endif
