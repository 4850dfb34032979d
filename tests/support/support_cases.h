/*
 * Running a kernel three ways: on one table, on another, and with all arrays shifted. Results must be
 * equal bit by bit. Arrays come from one pool and die with the case, so that a back end whose memory
 * is elsewhere can copy the pool there and back around each call.
 */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_CASES_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_CASES_H

#include "exec/kernels/kernels.h"

/* What is tested: both tables must give the same bits. */
struct kernel_cases {
    const struct kernels *first, *second;
    void (*attach)(const struct kernels *kernels); /* before a table is used; may be NULL */
    int64_t shift; /* floats by which arrays may lie off a boundary of 64 bytes */
    double slack;  /* of the tolerances that the host's kernels are held to */
};

/* Setup returns 0, as a cmocka setup does. */
int kernel_cases_setup(const struct kernel_cases *cases);
void kernel_cases_teardown(void);

/* The first table, attached to the caller; all arrays are forgotten. */
const struct kernels *test_kernels(void);
uint64_t test_kernels_seed(void);
double test_kernels_slack(void);

/* The pool, and how much of it is in use. */
float *test_kernels_pool(uint64_t *bytes);

/* `n` floats; in the third run shifted off their alignment. */
float *support_floats(int64_t n);
/* Not shifted: for numbers of 8 bytes. */
float *support_floats_aligned(int64_t n);
/* In [-scale, scale), a function of the seed and `key`. */
float *random_array(int64_t n, uint64_t key, double scale);
float *empty_array(int64_t n); /* NaN */
int32_t *support_tokens(int64_t n);
int32_t *random_tokens(int64_t n, uint64_t key, int64_t words);
double *support_loss(void);

/* |x - expected| <= slack tolerance (1 + |expected|) for all elements. */
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
