/*
 * A gnuplot script under construction: text, and the few shapes of which all pictures here consist.
 *
 * Pictures are laid out in pixels from the upper left corner of the canvas; the script uses
 * gnuplot's screen coordinates. Failed allocations are remembered: callers add without checking,
 * and plot_draw() (plots/plot_gnuplot.h) reports the failure. The owner calls
 * plot_script_release().
 */
#ifndef SPILLWAY_PLOTS_PLOT_SCRIPT_H
#define SPILLWAY_PLOTS_PLOT_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct plot_script {
    char *text; /* NUL-terminated after the first addition; may be NULL */
    size_t length, capacity;
    bool no_memory;
    double width_px, height_px; /* size of the canvas; height is set when the layout is known */
};

void plot_script_release(struct plot_script *script);

/* Adds formatted text. Numbers must be added by plot_script_number(), because %g depends on the
 * locale. */
void plot_script_add(struct plot_script *script, const char *format, ...) PRINTF_LIKE(2, 3);

/* Adds a number with ten significant digits and '.' in every locale. */
void plot_script_number(struct plot_script *script, double value);

/* Adds a space and a number. */
void plot_script_column(struct plot_script *script, double value);

/* Adds `text` as a gnuplot string in single quotes, in which gnuplot substitutes nothing. */
void plot_script_quoted(struct plot_script *script, const char *text);

/* --- shapes --------------------------------------------------------------------------------- */

enum plot_align { PLOT_LEFT, PLOT_CENTER, PLOT_RIGHT };

struct plot_font {
    double size_px;
    bool bold;
    uint32_t color; /* 0xRRGGBB */
};

/* Adds text that is vertically centred on y_px and begins, is centred or ends at x_px. */
void plot_script_text(struct plot_script *script, double x_px, double y_px, enum plot_align align,
                      struct plot_font font, const char *text);

/* Adds a filled box without a border, drawn below the data. */
void plot_script_box(struct plot_script *script, double left_px, double top_px, double right_px,
                     double bottom_px, uint32_t color);

struct plot_pen {
    double width_px;
    uint32_t color;
    bool dashed;
};
void plot_script_line(struct plot_script *script, double x0_px, double y0_px, double x1_px,
                      double y1_px, struct plot_pen pen);

/* The area of the data. */
struct plot_area {
    double left_px, right_px, top_px, bottom_px;
};

/* Sets margins, and a vertical axis that counts pixels downwards from the top of the area. */
void plot_script_area(struct plot_script *script, const struct plot_area *area);

/* Adds an axis below the area from `from` to `to`, its grid, and its title at the right end. */
void plot_script_axis(struct plot_script *script, const struct plot_area *area, double from,
                      double to, const char *title);

/* Adds a time axis with its grid below the area. Chooses a unit that keeps the axis labels short,
 * and returns it in seconds; data along the axis must use it. */
double plot_script_time_axis(struct plot_script *script, const struct plot_area *area,
                             double from_s, double to_s);

/* Estimates the width of a text, on the wide side, without fonts. */
double plot_text_width_px(const char *text, double size_px);

#endif
