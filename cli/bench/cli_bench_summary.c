#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/order.h"
#include "cli/bench/cli_bench.h"
#include "cli/common/cli_statistics.h"

static size_t case_count(const struct bench *bench)
{
    return bench->workload_count * bench->seeds;
}

static const struct bench_result *result_of(const struct bench *bench, size_t number, uint32_t policy)
{
    return &bench->results[number * bench->policy_count + policy];
}

/* --- means ----------------------------------------------------------------------------------- */

enum measure { MEASURE_PLANNED, MEASURE_KEPT, MEASURE_LIVE };

/* Divides a value by its bound; false if there is none. */
static bool ratio_of(const struct bench_result *r, enum measure which, double *out)
{
    if (r->outcome != BENCH_DONE) return false;
    if (which == MEASURE_PLANNED) {
        *out = r->value / r->bound;
        return true;
    }
    *out = (which == MEASURE_KEPT ? r->kept : r->live) / r->actual_bound;
    return which == MEASURE_KEPT ? r->kept > 0 : r->has_live;
}

/* Returns the cases of one sample: one for a family, all for a file. */
static uint32_t sample_size(const struct bench *bench, size_t number)
{
    bool family = bench->workloads[number / bench->seeds].kind == BENCH_FAMILY;
    return family ? 1 : bench->seeds;
}

static struct bench_figure figure_of(const struct bench *bench, uint32_t policy, enum measure which,
                                     double *samples)
{
    struct bench_figure figure = {0};
    for (size_t c = 0; c < case_count(bench); c += sample_size(bench, c)) {
        double sum = 0, ratio;
        uint32_t count = 0;
        for (size_t i = c; i < c + sample_size(bench, c); i++) {
            if (!ratio_of(result_of(bench, i, policy), which, &ratio)) continue;
            figure.worst = fmax(figure.worst, ratio);
            sum += ratio;
            count++;
        }
        if (count > 0) samples[figure.samples++] = sum / count;
    }
    if (figure.samples == 0) return figure;
    struct statistics_mean mean = statistics_mean(samples, figure.samples);
    figure.mean = mean.mean;
    figure.half = mean.half;
    return figure;
}

/* --- pairs ----------------------------------------------------------------------------------- */

/* Compares logarithms of ratios, so that 2 % has equal weight for short and long makespans. */
static enum status pair_up(const struct bench *bench, uint32_t policy, enum measure mine, uint32_t other,
                           enum measure others, double *samples, struct bench_pair *out, struct error *err)
{
    size_t pairs = 0;
    for (size_t c = 0; c < case_count(bench); c += sample_size(bench, c)) {
        double sum = 0, a, b;
        uint32_t count = 0;
        for (size_t i = c; i < c + sample_size(bench, c); i++) {
            if (!ratio_of(result_of(bench, i, policy), mine, &a) ||
                !ratio_of(result_of(bench, i, other), others, &b))
                continue;
            sum += log(a / b);
            count++;
        }
        if (count == 0) continue;
        samples[pairs++] = sum / count;
        out->better += sum < 0;
        out->worse += sum > 0;
        out->equal += !(sum < 0) && !(sum > 0);
    }
    return statistics_wilcoxon(samples, pairs, &out->p, err);
}

/* Counts cases without a better policy. */
static uint32_t wins_of(const struct bench *bench, uint32_t policy)
{
    uint32_t wins = 0;
    for (size_t c = 0; c < case_count(bench); c++) {
        const struct bench_result *r = result_of(bench, c, policy);
        bool best = r->outcome == BENCH_DONE;
        for (uint32_t p = 0; p < bench->policy_count && best; p++) {
            const struct bench_result *other = result_of(bench, c, p);
            best = other->outcome != BENCH_DONE || !(other->value < r->value);
        }
        wins += best;
    }
    return wins;
}

/* Returns the median: a case on a busy machine is an outlier. */
static double decision_time(const struct bench *bench, uint32_t policy, double *samples)
{
    size_t count = 0;
    for (size_t c = 0; c < case_count(bench); c++) {
        const struct bench_result *r = result_of(bench, c, policy);
        if (r->decisions > 0) samples[count++] = r->deciding_s / (double)r->decisions;
    }
    if (count == 0) return 0;
    qsort(samples, count, sizeof *samples, order_double);
    return samples[count / 2];
}

enum status bench_summarize(const struct bench *bench, struct bench_summary *summaries, struct error *err)
{
    double *samples = alloc_zeroed(case_count(bench) + 1, sizeof *samples);
    if (!samples) return error_memory(err, "a summary", case_count(bench) * sizeof *samples);
    for (uint32_t p = 0; p < bench->policy_count && !err->status; p++) {
        struct bench_summary *s = &summaries[p];
        *s = (struct bench_summary){.planned = figure_of(bench, p, MEASURE_PLANNED, samples),
                                    .kept = figure_of(bench, p, MEASURE_KEPT, samples),
                                    .live = figure_of(bench, p, MEASURE_LIVE, samples),
                                    .wins = wins_of(bench, p)};
        for (size_t c = 0; c < case_count(bench); c++) {
            const struct bench_result *r = result_of(bench, c, p);
            s->done += r->outcome == BENCH_DONE;
            s->failed += r->outcome == BENCH_FAILED;
        }
        s->decision_s = decision_time(bench, p, samples);
        if (pair_up(bench, p, MEASURE_PLANNED, 0, MEASURE_PLANNED, samples, &s->against, err) == STATUS_OK &&
            s->live.samples > 0 &&
            pair_up(bench, p, MEASURE_LIVE, p, MEASURE_KEPT, samples, &s->deciding, err)) {}
    }
    free(samples);
    return err->status;
}

bool bench_agreement(const struct bench *bench, size_t workload, double *tau)
{
    double simulated[BENCH_POLICIES_MAX], measured[BENCH_POLICIES_MAX];
    size_t count = 0;
    for (uint32_t p = 0; p < bench->policy_count; p++) {
        const struct bench_result *r = bench_at(bench, workload, 0, p);
        if (!(r->measured_s > 0)) continue;
        simulated[count] = r->value;
        measured[count++] = r->measured_s;
    }
    return statistics_kendall(simulated, measured, count, tau);
}
