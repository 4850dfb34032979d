/*
 * gnuplot is good at axes, clipping and output formats, and poor at layout: it places labels by
 * guesses about fonts, and legends where there is no room. The layout is therefore done here, in
 * pixels, with exact positions for gnuplot. Only the axis along the data keeps gnuplot's own units,
 * so that a kept script can be changed by hand without arithmetic.
 *
 *     (0,0) +--------------------------------------------+
 *           |  title                                     |
 *           |       +---------- area ----------+         |   area: margins "at screen x"
 *           | label | y: pixels downwards      | legend  |   label: "at screen x, screen y"
 *           |       +--- x: gnuplot's axis ----+         |   screen x = x_px / width_px
 *           +--------------------------------------------+   screen y = 1 - y_px / height_px
 *
 * Texts come from files (names of jobs, machines, policies). Inside single quotes gnuplot
 * substitutes nothing, neither `commands` nor macros; a quote is doubled, control characters become
 * spaces. Labels are "noenhanced", so that an underscore is an underscore. Bold type exists only in
 * enhanced text (the SVG terminal takes "sans-serif:Bold" for the name of a font), so special
 * characters in bold labels get a backslash.
 */
#include "plots/plot_script.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/size.h"
#include "plots/plot_color.h"

/* --- text ----------------------------------------------------------------------------------- */

void plot_script_release(struct plot_script *script)
{
    free(script->text);
    *script = (struct plot_script){0};
}

/* Makes room for `more` characters and the NUL after them. */
static bool make_room(struct plot_script *script, size_t more)
{
    if (script->no_memory) return false;
    if (more < script->capacity - script->length) return true;
    size_t capacity = script->capacity > 0 ? script->capacity : 4096;
    while (more >= capacity - script->length) capacity *= 2;
    char *text = alloc_resize(script->text, capacity);
    if (!text) {
        script->no_memory = true;
        return false;
    }
    script->text = text;
    script->capacity = capacity;
    return true;
}

static void add_text(struct plot_script *script, const char *text, size_t length)
{
    if (!make_room(script, length)) return;
    memcpy(script->text + script->length, text, length);
    script->length += length;
    script->text[script->length] = 0;
}

void plot_script_add(struct plot_script *script, const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    assert(length >= 0 && (size_t)length < sizeof line); /* texts of any length are quoted */
    add_text(script, line, (size_t)length);
}

void plot_script_number(struct plot_script *script, double value)
{
    assert(isfinite(value));
    char text[40], *to = text;
    snprintf(text, sizeof text, "%.10g", value);
    for (const char *from = text; *from; from++) {
        bool plain = strchr("0123456789+-e", *from);
        if (plain)
            *to++ = *from;
        else if (to == text || to[-1] != '.') /* the locale's decimal point, perhaps two bytes */
            *to++ = '.';
    }
    add_text(script, text, (size_t)(to - text));
}

void plot_script_column(struct plot_script *script, double value)
{
    add_text(script, " ", 1);
    plot_script_number(script, value);
}

/* `escape`: characters that get a backslash in front. */
static void add_quoted(struct plot_script *script, const char *before, const char *text,
                       const char *escape, const char *behind)
{
    add_text(script, "'", 1);
    add_text(script, before, strlen(before));
    for (; *text; text++) {
        char c = (unsigned char)*text < 0x20 || *text == 0x7f ? ' ' : *text;
        if (c == '\'') add_text(script, "'", 1);
        if (strchr(escape, c)) add_text(script, "\\", 1);
        add_text(script, &c, 1);
    }
    add_text(script, behind, strlen(behind));
    add_text(script, "'", 1);
}

void plot_script_quoted(struct plot_script *script, const char *text)
{
    add_quoted(script, "", text, "", "");
}

/* --- shapes --------------------------------------------------------------------------------- */

/* Writes " screen X, screen Y" in hundred-thousandths: a tenth of a pixel on the largest canvas. */
static void add_point(struct plot_script *script, double x_px, double y_px)
{
    assert(script->width_px > 0 && script->height_px > 0);
    add_text(script, " screen", 7);
    plot_script_column(script, round(x_px / script->width_px * 1e5) / 1e5);
    add_text(script, ", screen", 8);
    plot_script_column(script, round((1 - y_px / script->height_px) * 1e5) / 1e5);
}

void plot_script_text(struct plot_script *script, double x_px, double y_px, enum plot_align align,
                      struct plot_font font, const char *text)
{
    static const char *const names[] = {"left", "center", "right"};
    add_text(script, "set label ", 10);
    if (font.bold)
        add_quoted(script, "{/:Bold ", text, "\\{}^_@&~", "}");
    else
        plot_script_quoted(script, text);
    add_text(script, " at", 3);
    add_point(script, x_px, y_px);
    plot_script_add(script, " %s font ',", names[align]);
    plot_script_number(script, font.size_px);
    plot_script_add(script, "' tc rgb '#%06x' front%s\n", (unsigned)font.color,
                    font.bold ? "" : " noenhanced");
}

void plot_script_box(struct plot_script *script, double left_px, double top_px, double right_px,
                     double bottom_px, uint32_t color)
{
    add_text(script, "set object rect from", 20);
    add_point(script, left_px, top_px);
    add_text(script, " to", 3);
    add_point(script, right_px, bottom_px);
    plot_script_add(script, " fc rgb '#%06x' fs solid noborder behind\n", (unsigned)color);
}

void plot_script_line(struct plot_script *script, double x0_px, double y0_px, double x1_px,
                      double y1_px, struct plot_pen pen)
{
    add_text(script, "set arrow from", 14);
    add_point(script, x0_px, y0_px);
    add_text(script, " to", 3);
    add_point(script, x1_px, y1_px);
    add_text(script, " nohead lw", 10);
    plot_script_column(script, pen.width_px);
    plot_script_add(script, " lc rgb '#%06x' dt %s front\n", (unsigned)pen.color,
                    pen.dashed ? "(8,5)" : "solid");
}

void plot_script_area(struct plot_script *script, const struct plot_area *area)
{
    static const char *const names[] = {"lmargin", "rmargin", "tmargin", "bmargin"};
    const double places[] = {area->left_px / script->width_px, area->right_px / script->width_px,
                             1 - area->top_px / script->height_px,
                             1 - area->bottom_px / script->height_px};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        plot_script_add(script, "set %s at screen", names[i]);
        plot_script_column(script, places[i]);
        add_text(script, "\n", 1);
    }
    add_text(script, "set yrange [", 12);
    plot_script_number(script, area->bottom_px - area->top_px);
    add_text(script, ":0]\n", 4);
}

void plot_script_axis(struct plot_script *script, const struct plot_area *area, double from,
                      double to, const char *title)
{
    assert(to > from);
    add_text(script, "set xrange [", 12);
    plot_script_number(script, from);
    add_text(script, ":", 1);
    plot_script_number(script, to);
    plot_script_add(script,
                    "]\nset border 1 lc rgb '#%06x'\nunset ytics\n"
                    "set format x '%%.10g'\n"
                    "set xtics out nomirror scale 0.5 font ',%d' tc rgb '#%06x'\n"
                    "set grid xtics lt 1 lw 1 lc rgb '#%06x' back\n",
                    PLOT_AXIS, PLOT_SMALL_PX, PLOT_FAINT_INK, PLOT_GRID);
    plot_script_text(script, area->right_px, area->bottom_px + 40, PLOT_RIGHT,
                     (struct plot_font){PLOT_SMALL_PX, false, PLOT_FAINT_INK}, title);
}

double plot_script_time_axis(struct plot_script *script, const struct plot_area *area,
                             double from_s, double to_s)
{
    static const struct {
        double below_s, unit_s;
        const char *title;
    } units[] = {{1e-3, 1e-6, "time (µs)"}, {1, 1e-3, "time (ms)"}, {600, 1, "time (s)"},
                 {36000, 60, "time (min)"}, {INFINITY, 3600, "time (h)"}};
    size_t u = 0;
    while (to_s - from_s >= units[u].below_s) u++;
    plot_script_axis(script, area, from_s / units[u].unit_s, to_s / units[u].unit_s,
                     units[u].title);
    return units[u].unit_s;
}

double plot_text_width_px(const char *text, double size_px)
{
    size_t characters = 0;
    for (; *text; text++) characters += ((unsigned char)*text & 0xc0) != 0x80;
    return (double)characters * size_px * 0.62;
}
