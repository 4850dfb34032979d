/*
 * What came out at each point of a sweep, in memory and as CSV.
 */
#ifndef SPILLWAY_SWEEP_RESULTS_H
#define SPILLWAY_SWEEP_RESULTS_H

#include "cli/sweep/grid.h"

enum { SWEEP_FIGURES_MAX = 16, SWEEP_REASON_BYTES = 512 };

enum sweep_outcome {
    SWEEP_PENDING, /* not known yet */
    SWEEP_DONE,
    SWEEP_NO,      /* the answer is no: it does not fit, there is no plan */
    SWEEP_REFUSED, /* such a point makes no sense: three tensor ranks for sixteen heads */
    SWEEP_OUTCOME_COUNT
};
extern const char *const sweep_outcome_names[SWEEP_OUTCOME_COUNT]; /* "pending", "done", "no", "refused" */

/* Plain bytes: it goes from one rank to another as it is. */
struct sweep_result {
    uint64_t point;
    uint32_t outcome;                  /* enum sweep_outcome */
    double figures[SWEEP_FIGURES_MAX]; /* NAN: not known here */
    char reason[SWEEP_REASON_BYTES];   /* of a no and of what is refused; "" otherwise */
};

struct sweep_results {
    const struct sweep_grid *grid;
    const char *const *figures; /* names; units stand in them (makespan_s) */
    uint32_t figure_count;
    struct sweep_result *points; /* one per point of the grid, in its order */
};

/* All pending; `points` lives in the arena. STATUS_NO_MEMORY. */
MUST_CHECK enum status sweep_results_create(const struct sweep_grid *grid, const char *const *figures,
                                            uint32_t figure_count, struct arena *arena, struct sweep_results *out,
                                            struct error *err);

/* Is less of it better, by its name: seconds, bytes, gaps, money? */
bool sweep_less_is_better(const char *figure);

/* The point where the figure is best, the first of equals; UINT64_MAX where nobody knows it. */
uint64_t sweep_results_best(const struct sweep_results *results, uint32_t figure);

/*
 * Which points no other one beats in two figures (Pareto's front): no other is at least as good in both and better in
 * one. front[p] is set for each point p; points that lack either figure are not on it. O(n log n).
 */
MUST_CHECK enum status sweep_results_front(const struct sweep_results *results, uint32_t first, uint32_t second,
                                           bool *front, struct error *err);

/*
 * RFC 4180, a line per point in the grid's order: the axes (a unit in brackets behind the name), outcome, the figures,
 * the reason of a no or a refusal. What is not known is empty. "-" is standard output. Errors: those of base/files/file.h.
 */
MUST_CHECK enum status sweep_results_csv(const struct sweep_results *results, const char *path, struct error *err);

#endif
