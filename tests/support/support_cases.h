/*
 * Runs a kernel three times: on one table, on another, and with all arrays shifted. Results must be equal bit by bit.
 * Arrays come from one pool and die with the case, so that a back end with its own memory can copy the pool there and
 * back around each call.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_CASES_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_CASES_H

#include "exec/kernels/kernels.h"

/* The tables under test, which must give the same bits. */
struct kernel_cases {
    const struct kernels *first, *second;
    void (*attach)(const struct kernels *kernels); /* before a table is used; may be NULL */
    int64_t shift; /* largest distance of arrays from a boundary of 64 bytes, in floats */
    double slack;  /* factor on the tolerances of the host's kernels */
};

/* Setup returns 0, as a cmocka setup does. */
int kernel_cases_setup(const struct kernel_cases *cases);
void kernel_cases_teardown(void);

/* Returns the first table, attached to the caller. All arrays are forgotten. */
const struct kernels *test_kernels(void);
uint64_t test_kernels_seed(void);
double test_kernels_slack(void);

/* Returns the pool; *bytes: the part in use. */
float *test_kernels_pool(uint64_t *bytes);

/* Returns `n` floats; in the third run shifted off their alignment. */
float *support_floats(int64_t n);
/* The same without the shift, for numbers of 8 bytes. */
float *support_floats_aligned(int64_t n);
/* Returns numbers in [-scale, scale), a function of the seed and `key`. */
float *random_array(int64_t n, uint64_t key, double scale);
float *empty_array(int64_t n); /* NaN */
int32_t *support_tokens(int64_t n);
int32_t *random_tokens(int64_t n, uint64_t key, int64_t words);
double *support_loss(void);

/* Checks |x - expected| <= slack tolerance (1 + |expected|) for all elements. */
void assert_near(const float *x, const double *expected, int64_t n, double tolerance);

enum { OUTPUTS_MAX = 8 };
struct outputs {
    const float *at[OUTPUTS_MAX];
    int64_t floats[OUTPUTS_MAX];
    int count;
    double loss;
};
void output(struct outputs *out, const float *at, int64_t floats);

/* Runs a case and fills `out` with the results; with `check` also compares them with the reference. */
typedef void (*case_function)(const struct kernels *k, const int64_t *shape, struct outputs *out,
                              bool check);
void run_case(case_function function, const int64_t *shape);

#endif
