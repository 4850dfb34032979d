/* The pictures of a sweep. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/text.h"
#include "base/try.h"
#include "cli/sweep/cli_sweep_report.h"
#include "plots/plot_gnuplot.h"
#include "plots/plot_sweep.h"

enum { TITLE_BYTES = 160, NAME_BYTES = 96 };

enum status cli_sweep_pictures_check(const struct cli_sweep_pictures *pictures, const struct sweep_grid *grid,
                                     uint32_t figure_count, struct error *err)
{
    const char *const paths[] = {pictures->curves, pictures->heat, pictures->front};
    for (size_t p = 0; p < ARRAY_COUNT(paths); p++)
        if (paths[p] && plot_check_path(paths[p], err) != STATUS_OK) return err->status;
    if (pictures->curves && grid->point_count / grid->axes[0].count > PLOT_CURVES_MAX)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--curves': %llu curves are too many for one picture (limit is %d; "
                         "put the variable with the most values first)",
                         (unsigned long long)(grid->point_count / grid->axes[0].count), PLOT_CURVES_MAX);
    if (pictures->heat && grid->axis_count < 2)
        return error_set(err, STATUS_BAD_INPUT, "option '--heat' needs two variables (--vary)");
    if (pictures->front && figure_count < 2)
        return error_set(err, STATUS_BAD_INPUT, "option '--front' needs two figures (--figure)");
    return STATUS_OK;
}

/* Makes "link-rate (GB/s)", and labels of texts if they are no numbers, or with `as_labels`. */
static enum status make_ticks(const struct sweep_axis *axis, bool as_labels, struct arena *arena,
                              char title[TITLE_BYTES], struct plot_ticks *out, struct error *err)
{
    snprintf(title, TITLE_BYTES, axis->unit[0] ? "%s (%s)" : "%s", axis->name, axis->unit);
    *out = (struct plot_ticks){.title = title, .label_count = (uint32_t)axis->count};
    if (axis->numeric && !as_labels) return STATUS_OK;
    const char **labels;
    TRY(ARENA_NEW(arena, axis->count, labels, err));
    for (size_t v = 0; v < axis->count; v++) {
        size_t kept = strlen(axis->values[v].text) - strlen(axis->unit); /* it is in the title */
        char text[NAME_BYTES];
        snprintf(text, sizeof text, "%.*s", (int)kept, axis->values[v].text);
        TRY(arena_string(arena, text, &labels[v], err));
    }
    out->labels = labels;
    return STATUS_OK;
}

/* Scales memory to GiB, nothing else. */
static double scale_of(const char *figure, char title[TITLE_BYTES])
{
    static const char bytes[] = "_bytes";
    bool memory = text_ends_in(figure, bytes);
    if (memory) snprintf(title, TITLE_BYTES, "%.*s (GiB)", (int)(strlen(figure) - strlen(bytes)), figure);
    else snprintf(title, TITLE_BYTES, "%s", figure);
    return memory ? 0x1p-30 : 1;
}

/* --- curves ---------------------------------------------------------------------------------- */

/* Makes "policy srtf, devices 4": all axes but the first. */
static enum status name_curve(const struct sweep_grid *grid, uint64_t point, struct arena *arena, const char **out,
                              struct error *err)
{
    char text[NAME_BYTES];
    size_t used = 0;
    *out = NULL;
    if (grid->axis_count < 2) return STATUS_OK;
    for (uint32_t a = 1; a < grid->axis_count && used < sizeof text; a++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s %s", a > 1 ? ", " : "", grid->axes[a].name,
                                 sweep_grid_value(grid, point, a)->text);
    return arena_string(arena, text, out, err);
}

static enum status draw_curves(const struct cli_sweep_pictures *pictures, const struct sweep_results *results,
                               struct arena *arena, struct error *err)
{
    const struct sweep_grid *grid = results->grid;
    const struct sweep_axis *axis = &grid->axes[0];
    struct plot_curve curves[PLOT_CURVES_MAX];
    uint32_t count = (uint32_t)(grid->point_count / axis->count);
    char title[TITLE_BYTES], figure[TITLE_BYTES];
    double scale = scale_of(results->figures[0], figure);
    struct plot_ticks x, y = {.title = figure};
    TRY(make_ticks(axis, false, arena, title, &x, err));
    for (uint32_t c = 0; c < count; c++) {
        double *xs;
        TRY(ARENA_NEW(arena, 2 * axis->count, xs, err));
        double *ys = xs + axis->count;
        for (size_t v = 0; v < axis->count; v++) {
            xs[v] = x.labels ? (double)v : axis->values[v].number;
            ys[v] = scale * results->points[v * count + c].figures[0];
        }
        curves[c] = (struct plot_curve){.x = xs, .y = ys, .count = (uint32_t)axis->count};
        TRY(name_curve(grid, c, arena, &curves[c].name, err));
    }
    char heading[2 * TITLE_BYTES];
    snprintf(heading, sizeof heading, "%s by %s", figure, axis->name);
    const struct plot_options options = {.title = heading, .keep_script = pictures->keep_scripts};
    return plot_curves(curves, count, &x, &y, pictures->curves, &options, err);
}

/* --- heat map -------------------------------------------------------------------------------- */

static enum status draw_heat(const struct cli_sweep_pictures *pictures, const struct sweep_results *results,
                             struct arena *arena, struct error *err)
{
    const struct sweep_grid *grid = results->grid;
    char titles[2][TITLE_BYTES], figure[TITLE_BYTES];
    double scale = scale_of(results->figures[0], figure);
    struct plot_ticks x, y;
    double *cells;
    TRY(make_ticks(&grid->axes[0], true, arena, titles[0], &x, err));
    TRY(make_ticks(&grid->axes[1], true, arena, titles[1], &y, err));
    TRY(ARENA_NEW(arena, grid->axes[0].count * grid->axes[1].count, cells, err));
    bool less = sweep_less_is_better(results->figures[0]);
    for (size_t c = 0; c < grid->axes[0].count * grid->axes[1].count; c++) cells[c] = NAN;
    for (uint64_t p = 0; p < grid->point_count; p++) {
        double value = scale * results->points[p].figures[0];
        double *cell = &cells[sweep_grid_index(grid, p, 1) * grid->axes[0].count + sweep_grid_index(grid, p, 0)];
        if (isnan(*cell) || (less ? value < *cell : value > *cell)) *cell = value;
    }
    char heading[3 * TITLE_BYTES];
    snprintf(heading, sizeof heading, "%s by %s and %s", figure, grid->axes[0].name, grid->axes[1].name);
    const struct plot_options options = {.title = heading, .keep_script = pictures->keep_scripts};
    return plot_heat(cells, &x, &y, figure, pictures->heat, &options, err);
}

/* --- front ----------------------------------------------------------------------------------- */

static enum status draw_front(const struct cli_sweep_pictures *pictures, const struct sweep_results *results,
                              struct arena *arena, struct error *err)
{
    uint64_t count = results->grid->point_count;
    char titles[2][TITLE_BYTES];
    const double scales[2] = {scale_of(results->figures[0], titles[0]), scale_of(results->figures[1], titles[1])};
    bool *marks;
    double *xs;
    TRY(ARENA_NEW(arena, 2 * count, xs, err));
    TRY(ARENA_NEW(arena, count, marks, err));
    TRY(sweep_results_front(results, 0, 1, marks, err));
    double *ys = xs + count;
    for (uint64_t p = 0; p < count; p++) {
        xs[p] = scales[0] * results->points[p].figures[0];
        ys[p] = scales[1] * results->points[p].figures[1];
    }
    const struct plot_options options = {.keep_script = pictures->keep_scripts};
    return plot_front(xs, ys, marks, count, titles[0], titles[1], pictures->front, &options, err);
}

enum status cli_sweep_pictures_draw(const struct cli_sweep_pictures *pictures, const struct sweep_results *results,
                                    struct error *err)
{
    struct arena arena = {0};
    enum status status = STATUS_OK;
    if (pictures->curves) status = draw_curves(pictures, results, &arena, err);
    if (status == STATUS_OK && pictures->heat) status = draw_heat(pictures, results, &arena, err);
    if (status == STATUS_OK && pictures->front) status = draw_front(pictures, results, &arena, err);
    arena_release(&arena);
    return status;
}
