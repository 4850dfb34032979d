/* A sweep's results, in memory and as CSV. */
#ifndef SPILLWAY_CLI_SWEEP_RESULTS_H
#define SPILLWAY_CLI_SWEEP_RESULTS_H

#include "cli/sweep/grid.h"

enum { SWEEP_FIGURES_MAX = 16, SWEEP_REASON_BYTES = 512 };

enum sweep_outcome {
    SWEEP_PENDING, /* not known yet */
    SWEEP_DONE,
    SWEEP_NO,      /* jobs do not fit, no plan exists */
    SWEEP_REFUSED, /* invalid: three tensor ranks for sixteen heads */
    SWEEP_OUTCOME_COUNT
};
extern const char *const sweep_outcome_names[SWEEP_OUTCOME_COUNT]; /* "pending", "done", "no", "refused" */

/* Without pointers: ranks send it. */
struct sweep_result {
    uint64_t point;
    uint32_t outcome;                  /* enum sweep_outcome */
    double figures[SWEEP_FIGURES_MAX]; /* NAN: unknown */
    char reason[SWEEP_REASON_BYTES];   /* of NO and REFUSED, else "" */
};

struct sweep_results {
    const struct sweep_grid *grid;
    const char *const *figures; /* end with their unit (makespan_s) */
    uint32_t figure_count;
    struct sweep_result *points; /* per point of the grid */
};

/* Makes pending results; `points` lives in the arena. */
MUST_CHECK enum status sweep_results_create(const struct sweep_grid *grid, const char *const *figures,
                                            uint32_t figure_count, struct arena *arena, struct sweep_results *out,
                                            struct error *err);

/* Returns true for seconds, bytes, gaps, money, by the name. */
bool sweep_less_is_better(const char *figure);

/* Returns the best point, the first of equal ones; UINT64_MAX if none has a value. */
uint64_t sweep_results_best(const struct sweep_results *results, uint32_t figure);

/*
 * Finds Pareto's front of two figures: no other point is at least as good in both and better in one. Sets front[p] of
 * each point; points that lack a figure are not on it. Cost: O(n log n).
 */
MUST_CHECK enum status sweep_results_front(const struct sweep_results *results, uint32_t first, uint32_t second,
                                           bool *front, struct error *err);

/*
 * Writes CSV (RFC 4180) per point: axes (with units in brackets), outcome, figures, reason. Unknown values are empty.
 * "-" is standard output. Errors: as in base/files/file.h.
 */
MUST_CHECK enum status sweep_results_csv(const struct sweep_results *results, const char *path, struct error *err);

#endif
