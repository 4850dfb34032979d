/*
 * Colours and sizes that all pictures share.
 *
 * Jobs have a hue, passes a lightness: forward is light, backward dark, loss between. The eight hues
 * were chosen by a search that keeps every two of the sixteen light and dark colours apart in Oklab
 * for normal sight and for simulated deuteranopia and protanopia (Machado et al. 2009, severity 1):
 * the nearest pair is 0.065 apart, where the first eight of the usual palettes with tints reach
 * 0.01 to 0.04. After eight jobs the hues repeat.
 */
#ifndef SPILLWAY_PLOTS_PLOT_COLOR_H
#define SPILLWAY_PLOTS_PLOT_COLOR_H

#include <stdint.h>

enum {
    PLOT_INK = 0x1f2328,       /* titles, names */
    PLOT_FAINT_INK = 0x59636e, /* everything that explains: contrast 6 on white */
    PLOT_AXIS = 0x8c959f,
    PLOT_GRID = 0xe4e7ea,
    PLOT_TRACK = 0xf3f4f6,     /* behind a stream: idle time */
    PLOT_PREDICTED = 0x0171d0, /* blue */
    PLOT_PREDICTED_FILL = 0xd9e9f9,
    PLOT_MEASURED = 0xc2410c,  /* burnt orange: apart from the blue in every kind of sight */
    PLOT_JOINING = 0x8c959f,   /* collectives, whosever they are */
    PLOT_LIMIT = 0x1f2328
};
enum { PLOT_TITLE_PX = 16, PLOT_TEXT_PX = 12, PLOT_SMALL_PX = 11, PLOT_TINY_PX = 9 };

enum { PLOT_HUE_COUNT = 8 };
enum plot_shade { PLOT_SHADE_FORWARD, PLOT_SHADE_LOSS, PLOT_SHADE_BACKWARD, PLOT_SHADE_COUNT };

uint32_t plot_job_color(uint32_t job, enum plot_shade shade);

/* One colour per job where shades have no meaning: sixteen before they repeat. */
uint32_t plot_share_color(uint32_t job);

/* The same shades without a hue, for a legend. */
uint32_t plot_gray(enum plot_shade shade);

/* Black or white, whichever reads better on `color`. */
uint32_t plot_ink_on(uint32_t color);

#endif
