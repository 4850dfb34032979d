/* Serving problems as texts, and simulations of them, for tests. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SERVING_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SERVING_H

#include "sim/serving/serve.h"

/* Without a machine; ' stands for ". */
enum status support_serving_parse(const char *text, struct serving *out, struct error *err);

/* What must be right, formatted; at most 4095 characters. */
void support_serving(struct serving *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* Some models of two kinds on a few devices, by the random numbers of `seed` from `drawn` on, fewer than 100. */
void support_serving_random(struct serving *out, uint64_t seed, uint64_t drawn, bool objectives);

/* Of all shapes that groups may have. */
void support_serving_cuts(struct serving *in, struct serving_cuts *out);

/* One simulation: the requests attained. The caller frees *latency_s with free(). */
uint32_t support_serve(const struct serving_cuts *cuts, const struct serving_placement *placement,
                       const struct traffic *traffic, bool admit_all, double **latency_s);

/* cmocka's own compares as floats. */
void support_serving_near(double a, double b, double tolerance);

#endif
