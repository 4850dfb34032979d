/*
 * Simulated and published values, errors, claims, and a verdict. In a real set-up errors are relative to measured
 * values.
 */
#ifndef SPILLWAY_CLI_REPRO_FIGURE_RESULT_H
#define SPILLWAY_CLI_REPRO_FIGURE_RESULT_H

#include "cli/repro/figure.h"
#include "cli/repro/run_set.h"

struct figure_point {
    struct expression_value published; /* or missing */
    struct expression_value simulated; /* the same */
    struct expression_value measured; /* or missing */
    bool compared;          /* the reference is the measured value of a real set-up, else the published one */
    double error;           /* simulated / reference - 1; of absolute series the difference */
};

struct figure_judged {
    bool known; /* false: a value is missing */
    bool holds;
    const char *why;
};

enum { FIGURE_VERDICT_BYTES = 512 };

struct figure_result {
    const struct figure *figure;
    struct arena arena;
    struct figure_point *points; /* row_count rows of series_count */
    struct figure_judged claims[FIGURE_TEXTS_MAX];
    uint32_t counted;     /* published, simulated and not left out */
    uint32_t within;      /* with an error of at most accuracy.within */
    uint32_t missing;     /* with a reference, without simulated value */
    double mean, worst;   /* of |error|; worst has its sign */
    uint32_t worst_row, worst_series;
    uint32_t alike, pairs; /* of real set-ups: pairs of points, and those in the same order */
    uint32_t claims_held;
    bool met; /* all limits and claims */
    double cpu_s; /* of its runs, also shared ones */
    char verdict[FIGURE_VERDICT_BYTES];
};

/*
 * Evaluates a figure; `indexes` come from figure_add_runs() for `set`, which was executed. The caller ends it with
 * figure_result_release(). Errors: STATUS_BAD_INPUT with the place of the expression.
 */
MUST_CHECK enum status figure_evaluate(const struct figure *figure, const struct run_set *set,
                                       const uint32_t *indexes, struct figure_result *result, struct error *err);
void figure_result_release(struct figure_result *result);

static inline const struct figure_point *figure_point_at(const struct figure_result *result, uint32_t row,
                                                         uint32_t series)
{
    return &result->points[(size_t)row * result->figure->series_count + series];
}

/* Returns what the simulated value is compared with. */
static inline const struct expression_value *figure_reference(const struct figure *figure,
                                                              const struct figure_point *point)
{
    return figure->real.read ? &point->measured : &point->published;
}

/* Returns "homogeneous, models 8, gpus 4". */
enum { FIGURE_LABEL_BYTES = 160 };
const char *figure_row_label(const struct figure *figure, uint32_t row, char label[FIGURE_LABEL_BYTES]);

#endif
