/*
 * Colours and sizes that all pictures share.
 *
 * A job determines the hue, a pass the lightness: forward is light, backward dark, loss in between.
 * The eight hues were found by a search that separates every two of the sixteen light and dark
 * colours in Oklab, for normal sight and for simulated deuteranopia and protanopia (Machado et al.
 * 2009, severity 1). The nearest pair is 0.065 apart; the first eight hues of common palettes with
 * tints reach 0.01 to 0.04. After eight jobs the hues repeat.
 */
#ifndef SPILLWAY_PLOTS_PLOT_COLOR_H
#define SPILLWAY_PLOTS_PLOT_COLOR_H

#include <stdint.h>

enum {
    PLOT_INK = 0x1f2328,       /* titles, names */
    PLOT_FAINT_INK = 0x59636e, /* explanations: contrast 6 on white */
    PLOT_AXIS = 0x8c959f,
    PLOT_GRID = 0xe4e7ea,
    PLOT_TRACK = 0xf3f4f6,     /* background of a stream: idle time */
    PLOT_PREDICTED = 0x0171d0, /* blue */
    PLOT_PREDICTED_FILL = 0xd9e9f9,
    PLOT_MEASURED = 0xc2410c,  /* burnt orange: distinct from the blue in every kind of sight */
    PLOT_JOINING = 0x8c959f,   /* collectives of all jobs */
    PLOT_LIMIT = 0x1f2328
};
enum { PLOT_TITLE_PX = 16, PLOT_TEXT_PX = 12, PLOT_SMALL_PX = 11, PLOT_TINY_PX = 9 };

enum { PLOT_HUE_COUNT = 8 };
enum plot_shade { PLOT_SHADE_FORWARD, PLOT_SHADE_LOSS, PLOT_SHADE_BACKWARD, PLOT_SHADE_COUNT };

uint32_t plot_job_color(uint32_t job, enum plot_shade shade);

/* Returns a colour per job for pictures without shades: sixteen colours before they repeat. */
uint32_t plot_share_color(uint32_t job);

/* Returns the shade in gray, for a legend. */
uint32_t plot_gray(enum plot_shade shade);

/* Returns black or white, whichever is more readable on `color`. */
uint32_t plot_ink_on(uint32_t color);

#endif
