/* GSL's random numbers, with a generator per model, so that a model's requests do not depend on the number of
 * models. */
#include "sim/serving/traffic.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <stdlib.h>

#include "base/random.h"

struct maker {
    const struct serving *in;
    double rate_scale;
    gsl_rng *random;
    struct traffic *out;
    size_t capacity;
    struct error *err;
};

static enum status add(struct maker *m, uint32_t model, double at_s)
{
    if (array_reserve(&m->out->requests, &m->capacity, m->out->count, sizeof *m->out->requests,
                      SERVING_REQUESTS_MAX, "requests", m->err))
        return m->err->status;
    m->out->requests[m->out->count++] = (struct traffic_request){at_s, model};
    return STATUS_OK;
}

/* Returns the seconds to the next request. A gamma distribution of shape k has a coefficient of variation of 1 /
 * sqrt(k). */
static double gap_s(const struct maker *m, const struct serving_traffic *traffic)
{
    double rate = traffic->rate * m->rate_scale, square = traffic->cv * traffic->cv;
    switch ((enum traffic_process)traffic->process) {
    case TRAFFIC_POISSON: return gsl_ran_exponential(m->random, 1 / rate);
    case TRAFFIC_GAMMA: return gsl_ran_gamma(m->random, 1 / square, square / rate);
    default: return 1 / rate;
    }
}

static enum status add_model(struct maker *m, uint32_t model)
{
    const struct serving_traffic *traffic = &m->in->models[model].traffic;
    if (traffic->process == TRAFFIC_TIMES) {
        for (uint32_t i = 0; i < traffic->time_count; i++) {
            double at_s = traffic->times[i] / m->rate_scale;
            if (at_s < m->in->horizon_s && add(m, model, at_s)) return m->err->status;
        }
        return STATUS_OK;
    }
    if (traffic->rate <= 0) return STATUS_OK;
    /* a count times a gap accumulates no rounding, so even requests come at even times */
    bool even = traffic->process == TRAFFIC_EVEN;
    double at_s = even ? 0 : gap_s(m, traffic);
    for (uint64_t i = 1; at_s < m->in->horizon_s; i++) {
        if (add(m, model, at_s)) return m->err->status;
        at_s = even ? (double)i * gap_s(m, traffic) : at_s + gap_s(m, traffic);
    }
    return STATUS_OK;
}

static int by_time(const void *a, const void *b)
{
    const struct traffic_request *x = a, *y = b;
    if (x->at_s != y->at_s) return x->at_s < y->at_s ? -1 : 1;
    return (x->model > y->model) - (x->model < y->model);
}

enum status traffic_make(const struct serving *in, uint64_t seed, double rate_scale, struct traffic *out,
                         struct error *err)
{
    struct maker m = {in, rate_scale, gsl_rng_alloc(gsl_rng_mt19937), out, 0, err};
    *out = (struct traffic){0};
    if (!m.random) return error_memory(err, "a generator of random numbers", 0);
    for (uint32_t model = 0; model < in->model_count; model++) {
        gsl_rng_set(m.random, (unsigned long)(random_u64(seed, model) & UINT32_MAX));
        if (add_model(&m, model)) break;
    }
    gsl_rng_free(m.random);
    if (err->status) return err->status;
    if (out->count > 0) qsort(out->requests, out->count, sizeof *out->requests, by_time);
    return STATUS_OK;
}

void traffic_release(struct traffic *traffic)
{
    free(traffic->requests);
    *traffic = (struct traffic){0};
}
