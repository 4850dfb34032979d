/*
 * Running a kernel of the host three ways: on two threads, on one, and with all arrays shifted by one
 * float. Results must be equal bit by bit. Arrays come from a pool and die with the case.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_CASES_H
#define SPILLWAY_TESTS_SUPPORT_CASES_H

#include "exec/kernels.h"

/* Setup and teardown of a group of tests: the pool and the kernels. */
int test_kernels_setup(void **state);
int test_kernels_teardown(void **state);

/* Two threads, attached to the caller. */
const struct kernels *test_kernels(void);
uint64_t test_kernels_seed(void);

/* `n` floats; in the third run shifted by one float off their alignment. */
float *take(int64_t n);
/* In [-scale, scale), a function of the seed and `key`. */
float *random_array(int64_t n, uint64_t key, double scale);
float *empty_array(int64_t n); /* NaN */

/* |x - expected| <= tolerance (1 + |expected|) for all elements. */
void assert_near(const float *x, const double *expected, int64_t n, double tolerance);

enum { OUTPUTS_MAX = 8 };
struct outputs {
    const float *at[OUTPUTS_MAX];
    int64_t floats[OUTPUTS_MAX];
    int count;
    double loss;
};
void output(struct outputs *out, const float *at, int64_t floats);

/* A case fills `out` with what it computed; with `check` it also compares with its reference. */
typedef void (*case_function)(const struct kernels *k, const int64_t *shape, struct outputs *out,
                              bool check);
void run_case(case_function function, const int64_t *shape);

#endif
