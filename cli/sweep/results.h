/*
 * The results of all points of a sweep, in memory and as CSV.
 */
#ifndef SPILLWAY_CLI_SWEEP_RESULTS_H
#define SPILLWAY_CLI_SWEEP_RESULTS_H

#include "cli/sweep/grid.h"

enum { SWEEP_FIGURES_MAX = 16, SWEEP_REASON_BYTES = 512 };

enum sweep_outcome {
    SWEEP_PENDING, /* not known yet */
    SWEEP_DONE,
    SWEEP_NO,      /* the answer is no: the jobs do not fit, no plan exists */
    SWEEP_REFUSED, /* the point is invalid: three tensor ranks for sixteen heads, for example */
    SWEEP_OUTCOME_COUNT
};
extern const char *const sweep_outcome_names[SWEEP_OUTCOME_COUNT]; /* "pending", "done", "no", "refused" */

/* Plain bytes without pointers, because ranks send it to each other. */
struct sweep_result {
    uint64_t point;
    uint32_t outcome;                  /* enum sweep_outcome */
    double figures[SWEEP_FIGURES_MAX]; /* NAN: unknown */
    char reason[SWEEP_REASON_BYTES];   /* reason of NO and REFUSED; "" otherwise */
};

struct sweep_results {
    const struct sweep_grid *grid;
    const char *const *figures; /* names, which end with their unit (makespan_s) */
    uint32_t figure_count;
    struct sweep_result *points; /* one per point of the grid, in its order */
};

/* Makes results that are all pending; `points` lives in the arena. */
MUST_CHECK enum status sweep_results_create(const struct sweep_grid *grid, const char *const *figures,
                                            uint32_t figure_count, struct arena *arena, struct sweep_results *out,
                                            struct error *err);

/* Returns true if less is better, by the figure's name: seconds, bytes, gaps, money. */
bool sweep_less_is_better(const char *figure);

/* Returns the point with the best value of the figure, the first of equal ones; UINT64_MAX if no point has a value. */
uint64_t sweep_results_best(const struct sweep_results *results, uint32_t figure);

/*
 * Finds Pareto's front of two figures: points for which no other point is at least as good in both figures and better
 * in one. front[p] is set for each point p; points that lack either figure are not on the front. Cost: O(n log n).
 */
MUST_CHECK enum status sweep_results_front(const struct sweep_results *results, uint32_t first, uint32_t second,
                                           bool *front, struct error *err);

/*
 * Writes CSV (RFC 4180), a line per point in the grid's order: the axes (with the unit in brackets after the name),
 * outcome, figures, reason. Unknown values are empty. `path` "-" is standard output. Errors: as in base/files/file.h.
 */
MUST_CHECK enum status sweep_results_csv(const struct sweep_results *results, const char *path, struct error *err);

#endif
