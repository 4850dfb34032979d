#include "cli/sweep/results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/csv.h"
#include "base/files/file.h"
#include "base/size.h"
#include "base/text/number.h"
#include "base/try.h"

const char *const sweep_outcome_names[SWEEP_OUTCOME_COUNT] = {"pending", "done", "no", "refused"};

enum status sweep_results_create(const struct sweep_grid *grid, const char *const *figures, uint32_t figure_count,
                                 struct arena *arena, struct sweep_results *out, struct error *err)
{
    struct sweep_result *points;
    TRY(ARENA_NEW(arena, grid->point_count, points, err));
    *out = (struct sweep_results){.grid = grid, .figures = figures, .figure_count = figure_count, .points = points};
    for (uint64_t p = 0; p < grid->point_count; p++) {
        out->points[p].point = p;
        for (uint32_t f = 0; f < SWEEP_FIGURES_MAX; f++) out->points[p].figures[f] = NAN;
    }
    return STATUS_OK;
}

/* --- comparing points ---------------------------------------------------------------------------- */

bool sweep_less_is_better(const char *figure)
{
    static const char *const endings[] = {"_s", "_bytes", "_usd", "_j", "gap", "latency", "error"};
    static const char rate[] = "_per_s";
    size_t length = strlen(figure);
    if (length >= sizeof rate - 1 && strcmp(figure + length - (sizeof rate - 1), rate) == 0) return false;
    for (size_t e = 0; e < ARRAY_COUNT(endings); e++) {
        size_t ending = strlen(endings[e]);
        if (length >= ending && strcmp(figure + length - ending, endings[e]) == 0) return true;
    }
    return false;
}

/* Returns larger values for better points. */
static double merit(const struct sweep_results *results, uint64_t point, uint32_t figure)
{
    double value = results->points[point].figures[figure];
    return sweep_less_is_better(results->figures[figure]) ? -value : value;
}

uint64_t sweep_results_best(const struct sweep_results *results, uint32_t figure)
{
    uint64_t best = UINT64_MAX;
    for (uint64_t p = 0; p < results->grid->point_count; p++)
        if (!isnan(results->points[p].figures[figure]) &&
            (best == UINT64_MAX || merit(results, p, figure) > merit(results, best, figure)))
            best = p;
    return best;
}

struct results_candidate {
    double first, second; /* merits */
    uint64_t point;
};

/* Sorts the best first; equal first figures by the second. */
static int compare_candidates(const void *left, const void *right)
{
    const struct results_candidate *a = left, *b = right;
    if (a->first > b->first || a->first < b->first) return a->first > b->first ? -1 : 1;
    if (a->second > b->second || a->second < b->second) return a->second > b->second ? -1 : 1;
    return a->point < b->point ? -1 : a->point > b->point;
}

enum status sweep_results_front(const struct sweep_results *results, uint32_t first, uint32_t second, bool *front,
                                struct error *err)
{
    uint64_t total = results->grid->point_count, count = 0;
    struct results_candidate *candidates = alloc_zeroed(total, sizeof *candidates);
    if (!candidates) return error_memory(err, "the front", total * sizeof *candidates);
    for (uint64_t p = 0; p < total; p++) {
        struct results_candidate candidate = {merit(results, p, first), merit(results, p, second), p};
        front[p] = false;
        if (!isnan(candidate.first) && !isnan(candidate.second)) candidates[count++] = candidate;
    }
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    /* No later point is better in the first figure: only the best second one matters. */
    double best = -INFINITY, best_first = INFINITY;
    for (uint64_t c = 0; c < count; c++) {
        const struct results_candidate *candidate = &candidates[c];
        bool equal = candidate->second >= best && candidate->first >= best_first; /* the same point in the picture */
        if (!(candidate->second > best) && !equal) continue;
        front[candidate->point] = true;
        best = candidate->second;
        best_first = candidate->first;
    }
    free(candidates);
    return STATUS_OK;
}

/* --- CSV ------------------------------------------------------------------------------------- */

static void write_text(struct file_out *file, const char *text)
{
    if (strpbrk(text, ",\"\r\n")) csv_write_text(file, text);
    else file_out_write(file, text, strlen(text));
}

static void write_number(struct file_out *file, const struct number_powers *powers, double number)
{
    char text[NUMBER_TEXT_BYTES];
    if (!isnan(number)) file_out_write(file, text, number_write(number, powers, text));
}

static void write_heading(struct file_out *file, const struct sweep_results *results)
{
    const struct sweep_grid *grid = results->grid;
    for (uint32_t a = 0; a < grid->axis_count; a++) {
        const struct sweep_axis *axis = &grid->axes[a];
        write_text(file, axis->name);
        if (axis->unit[0]) file_out_printf(file, " [%s]", axis->unit);
        file_out_write(file, ",", 1);
    }
    file_out_printf(file, "outcome");
    for (uint32_t f = 0; f < results->figure_count; f++) {
        file_out_write(file, ",", 1);
        write_text(file, results->figures[f]);
    }
    file_out_printf(file, ",reason\r\n");
}

static void write_point(struct file_out *file, const struct number_powers *powers,
                        const struct sweep_results *results, uint64_t point)
{
    const struct sweep_grid *grid = results->grid;
    const struct sweep_result *result = &results->points[point];
    for (uint32_t a = 0; a < grid->axis_count; a++) {
        const struct sweep_value *value = sweep_grid_value(grid, point, a);
        if (grid->axes[a].numeric) write_number(file, powers, value->number);
        else write_text(file, value->text);
        file_out_write(file, ",", 1);
    }
    file_out_printf(file, "%s", sweep_outcome_names[result->outcome]);
    for (uint32_t f = 0; f < results->figure_count; f++) {
        file_out_write(file, ",", 1);
        write_number(file, powers, result->figures[f]);
    }
    file_out_write(file, ",", 1);
    write_text(file, result->reason);
    file_out_write(file, "\r\n", 2);
}

enum status sweep_results_csv(const struct sweep_results *results, const char *path, struct error *err)
{
    struct number_powers powers;
    struct file_out *file;
    TRY(file_out_create(path, &file, err));
    number_powers_init(&powers);
    write_heading(file, results);
    for (uint64_t p = 0; p < results->grid->point_count; p++) write_point(file, &powers, results, p);
    return file_out_commit(file, err);
}
