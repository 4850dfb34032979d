/*
 * What a figure came to: simulated beside published, the error of each point, claims, and a verdict. Of a real set-up
 * there is a measured value too, and errors are against that.
 */
#ifndef SPILLWAY_REPRO_FIGURE_RESULT_H
#define SPILLWAY_REPRO_FIGURE_RESULT_H

#include "cli/repro/figure.h"
#include "cli/repro/run_set.h"

struct figure_point {
    struct value published; /* a number or missing; missing where the series has none */
    struct value simulated; /* the same */
    struct value measured;  /* the same; missing where nothing is */
    bool compared;          /* simulated, and measured (of real set-ups) or published are there: */
    double error;           /* simulated over that, - 1; of absolute series the difference */
};

struct figure_judged {
    bool known; /* false: something it needs is missing: */
    bool holds;
    const char *why;
};

enum { FIGURE_VERDICT_BYTES = 512 };

struct figure_result {
    const struct figure *figure;
    struct arena arena;
    struct figure_point *points; /* row_count rows of series_count */
    struct figure_judged claims[FIGURE_TEXTS_MAX];
    uint32_t counted;     /* points that count: published, simulated, neither left out */
    uint32_t within;      /* of these, error at most accuracy.within */
    uint32_t missing;     /* published (measured) and not simulated */
    double mean, worst;   /* of |error|; worst has its sign */
    uint32_t worst_row, worst_series;
    uint32_t alike, pairs; /* of real set-ups: pairs of points of a series, and how many simulation and measurement
                              put in the same order */
    uint32_t claims_held;
    bool met; /* marks of accuracy, if any, and all claims */
    double cpu_s; /* of its runs; those it shares with others too */
    char verdict[FIGURE_VERDICT_BYTES];
};

/*
 * Evaluate: `indexes` are those of figure_add_runs() in `set`, which was executed. The caller ends it with
 * figure_result_release(). Errors: STATUS_BAD_INPUT with the place of the expression, STATUS_NO_MEMORY.
 */
MUST_CHECK enum status figure_evaluate(const struct figure *figure, const struct run_set *set,
                                       const uint32_t *indexes, struct figure_result *result, struct error *err);
void figure_result_release(struct figure_result *result);

static inline const struct figure_point *figure_point_at(const struct figure_result *result, uint32_t row,
                                                         uint32_t series)
{
    return &result->points[(size_t)row * result->figure->series_count + series];
}

/* What a point's simulated value is held against. */
static inline const struct value *figure_reference(const struct figure *figure, const struct figure_point *point)
{
    return figure->real.read ? &point->measured : &point->published;
}

/* What a row is called: its parameters, "homogeneous, models 8, gpus 4". */
enum { FIGURE_LABEL_BYTES = 160 };
const char *figure_row_label(const struct figure *figure, uint32_t row, char label[FIGURE_LABEL_BYTES]);

#endif
