/* Each rate goes through the runs once; its predictions and their errors are stored. */
#include "sim/uncertainty/prediction_interval.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/try.h"

/* A kind's offset is the mean of its runs and of this number of further runs with offset 0. */
static const double strangers = 2;
/* Change of a width's logarithm per run outside, and the limits of the logarithm. */
static const double following = 0.4, narrowest = -1, widest = 1.5;
/* Share of runs outside per side. Less than a twentieth, because more runs fall outside after a sudden change. */
static const double share_outside = 0.04;

static const double rates[] = {0.05, 0.1, 0.2, 0.3, 0.5};
enum { RATES = sizeof rates / sizeof *rates };

struct offset {
    double count, sum;
};

struct prediction {
    const struct prediction_run *runs;
    size_t count;
    size_t *kinds;           /* (count + 1) the first run of the same kind, or itself; the last entry is the next run */
    struct offset *offsets;  /* (count + 1) indexed by `kinds` */
    double *centres[RATES];  /* (count + 1) predictions of each run, and of the next one */
    double *scores;          /* (count) scratch */
};

static bool same_kind(const char *a, const char *b)
{
    return a && b && strcmp(a, b) == 0;
}

static void find_kinds(struct prediction *d, const char *next)
{
    for (size_t i = 0; i <= d->count; i++) {
        const char *kind = i < d->count ? d->runs[i].kind : next;
        d->kinds[i] = 0;
        while (d->kinds[i] < i && !same_kind(d->runs[d->kinds[i]].kind, kind)) d->kinds[i]++;
    }
}

static void foretell(struct prediction *d, uint32_t r)
{
    double level = log(d->runs[0].ratio);
    memset(d->offsets, 0, (d->count + 1) * sizeof *d->offsets);
    for (size_t i = 0; i <= d->count; i++) {
        struct offset *offset = &d->offsets[d->kinds[i]];
        d->centres[r][i] = level + offset->sum / (offset->count + strangers);
        if (i == 0 || i == d->count) continue; /* the first one is the level */
        double value = log(d->runs[i].ratio), off = value - level;
        level += rates[r] * (value - d->centres[r][i]);
        offset->count++;
        offset->sum += off;
    }
}

static double score(const struct prediction *d, uint32_t r, size_t run)
{
    return log(d->runs[run].ratio) - d->centres[r][run];
}

/* Returns the rate that predicted the runs before `end` best. */
static uint32_t best_rate(const struct prediction *d, size_t end)
{
    double least = HUGE_VAL;
    uint32_t best = 0;
    for (uint32_t r = 0; r < RATES; r++) {
        double sum = 0;
        for (size_t i = 1; i < end; i++) sum += fabs(score(d, r, i));
        if (sum < least) least = sum, best = r;
    }
    return best;
}

/* Returns quantiles around the centre of run `end`, from the scores before it; the factors widen both sides. */
static struct quantiles around(const struct prediction *d, uint32_t r, size_t end, double low_wider, double high_wider)
{
    for (size_t i = 1; i < end; i++) d->scores[i - 1] = score(d, r, i);
    struct quantiles q = quantiles_of_next(d->scores, end - 1);
    q.low = fmin(q.low, 0) * exp(low_wider);
    q.high = fmax(q.high, 0) * exp(high_wider);
    q.median = fmin(fmax(q.median, q.low), q.high);
    return q;
}

static double follow(double wider, bool outside)
{
    return fmin(fmax(wider + following * ((outside ? 1 : 0) - share_outside), narrowest), widest);
}

static struct quantiles interval(const struct prediction *d)
{
    double low_wider = 0, high_wider = 0;
    for (size_t i = PREDICTION_RUNS_MIN; i < d->count; i++) {
        uint32_t r = best_rate(d, i);
        struct quantiles q = around(d, r, i, low_wider, high_wider);
        low_wider = follow(low_wider, score(d, r, i) < q.low);
        high_wider = follow(high_wider, score(d, r, i) > q.high);
    }
    uint32_t r = best_rate(d, d->count);
    struct quantiles q = around(d, r, d->count, low_wider, high_wider);
    double centre = d->centres[r][d->count];
    return (struct quantiles){exp(centre + q.low), exp(centre + q.median), exp(centre + q.high)};
}

enum status prediction_interval_next(const struct prediction_run *runs, size_t count, const char *kind,
                                     struct arena *arena, struct quantiles *out, struct error *err)
{
    struct prediction prediction = {.runs = runs, .count = count};
    assert(count >= PREDICTION_RUNS_MIN);
    TRY(ARENA_NEW(arena, count + 1, prediction.kinds, err));
    TRY(ARENA_NEW(arena, count + 1, prediction.offsets, err));
    TRY(ARENA_NEW(arena, count, prediction.scores, err));
    find_kinds(&prediction, kind);
    for (uint32_t r = 0; r < RATES; r++) {
        TRY(ARENA_NEW(arena, count + 1, prediction.centres[r], err));
        foretell(&prediction, r);
    }
    *out = interval(&prediction);
    return STATUS_OK;
}
