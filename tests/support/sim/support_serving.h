/* Serving problems as texts, and simulations of them, for tests. */
#ifndef SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SERVING_H
#define SPILLWAY_TESTS_SUPPORT_SIM_SUPPORT_SERVING_H

#include "sim/serving/serve.h"

/* Reads a problem without a machine; ' stands for ". */
enum status support_serving_parse(const char *text, struct serving *out, struct error *err);

/* Reads a correct problem from a formatted text of at most 4095 characters. */
void support_serving(struct serving *out, const char *format, ...) PRINTF_LIKE(2, 3);

/* Makes some models of two kinds on a few devices, with fewer than 100 random numbers of `seed` from number `drawn`
 * on. */
void support_serving_random(struct serving *out, uint64_t seed, uint64_t drawn, bool objectives);

/* Makes the cuts for all shapes that groups may have. */
void support_serving_cuts(struct serving *in, struct serving_cuts *out);

/* Runs one simulation and returns the number of attained requests. The caller frees *latency_s with free(). */
uint32_t support_serve(const struct serving_cuts *cuts, const struct serving_placement *placement,
                       const struct traffic *traffic, bool admit_all, double **latency_s);

/* Compares doubles; cmocka's comparison uses floats. */
void support_serving_near(double a, double b, double tolerance);

#endif
