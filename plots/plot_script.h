/*
 * A gnuplot script as it grows: text, and the few shapes that every picture here is made of.
 *
 * Pictures are laid out in pixels of the canvas, from its upper left corner; the script says it in
 * gnuplot's screen coordinates. Failed allocations are remembered: callers add without asking and
 * plot_draw() (plots/plot_gnuplot.h) reports. The owner calls plot_script_release().
 */
#ifndef SPILLWAY_PLOTS_PLOT_SCRIPT_H
#define SPILLWAY_PLOTS_PLOT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct plot_script {
    char *text; /* NUL-terminated once something was added; may be NULL */
    size_t length, capacity;
    bool no_memory;
    double width_px, height_px; /* of the canvas; height is set when the layout is known */
};

void plot_script_release(struct plot_script *script);

/* Numbers go through plot_script_number(): %g follows the locale. */
void plot_script_add(struct plot_script *script, const char *format, ...) PRINTF_LIKE(2, 3);

/* Ten significant digits, '.' whatever the locale says. */
void plot_script_number(struct plot_script *script, double value);

/* A space, then the same. */
void plot_script_column(struct plot_script *script, double value);

/* `text` as a gnuplot string: single quotes, in which nothing is substituted. */
void plot_script_quoted(struct plot_script *script, const char *text);

/* --- shapes --------------------------------------------------------------------------------- */

enum plot_align { PLOT_LEFT, PLOT_CENTER, PLOT_RIGHT };

struct plot_font {
    double size_px;
    bool bold;
    uint32_t color; /* 0xRRGGBB */
};

/* Text that is centred on y_px in height, and begins, is centred or ends at x_px. */
void plot_script_text(struct plot_script *script, double x_px, double y_px, enum plot_align align,
                      struct plot_font font, const char *text);

/* Filled, without a border, behind the data. */
void plot_script_box(struct plot_script *script, double left_px, double top_px, double right_px,
                     double bottom_px, uint32_t color);

struct plot_pen {
    double width_px;
    uint32_t color;
    bool dashed;
};
void plot_script_line(struct plot_script *script, double x0_px, double y0_px, double x1_px,
                      double y1_px, struct plot_pen pen);

/* Where the data goes. */
struct plot_area {
    double left_px, right_px, top_px, bottom_px;
};

/* Margins, and a vertical axis that counts pixels downwards from the top of the area. */
void plot_script_area(struct plot_script *script, const struct plot_area *area);

/* An axis below the area from `from` to `to`, its grid, and its title at the right end. */
void plot_script_axis(struct plot_script *script, const struct plot_area *area, double from,
                      double to, const char *title);

/* A time axis below the area with its grid; data along it is in *unit_s seconds, so a unit that
 * keeps its figures short is chosen and returned. */
double plot_script_time_axis(struct plot_script *script, const struct plot_area *area,
                             double from_s, double to_s);

/* A guess at how wide a text is: no fonts are at hand. On the wide side. */
double plot_text_width_px(const char *text, double size_px);

#endif
