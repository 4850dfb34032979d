/*
 * A table of hues; the middle shade is the mean of light and dark.
 *
 * The order of the hues matters too: the first four are as far apart as possible, since most
 * pictures have few jobs.
 */
#include "plots/plot_color.h"

#include <assert.h>
#include <stdbool.h>

static const struct {
    uint32_t light, dark;
} hues[PLOT_HUE_COUNT] = {
    {0x89befc, 0x0171d0}, /* blue */
    {0xd8df8c, 0x939a03}, /* lime */
    {0xd692c5, 0xa73e93}, /* magenta */
    {0x89c195, 0x1e8945}, /* green */
    {0xc18d64, 0x874a06}, /* brown */
    {0x8a7cc2, 0x5937a5}, /* violet */
    {0xfec5cc, 0xdc5574}, /* rose */
    {0x129d99, 0x065f5d}, /* teal */
};

/* Channel by channel. */
static uint32_t mean(uint32_t a, uint32_t b)
{
    return (a & b) + (((a ^ b) & 0xfefefe) >> 1);
}

uint32_t plot_job_color(uint32_t job, enum plot_shade shade)
{
    assert(shade < PLOT_SHADE_COUNT);
    uint32_t light = hues[job % PLOT_HUE_COUNT].light, dark = hues[job % PLOT_HUE_COUNT].dark;
    if (shade == PLOT_SHADE_LOSS) return mean(light, dark);
    return shade == PLOT_SHADE_FORWARD ? light : dark;
}

uint32_t plot_share_color(uint32_t job)
{
    bool first_round = job / PLOT_HUE_COUNT % 2 == 0;
    return plot_job_color(job, first_round ? PLOT_SHADE_BACKWARD : PLOT_SHADE_FORWARD);
}

uint32_t plot_gray(enum plot_shade shade)
{
    static const uint32_t grays[] = {0xc9ced4, 0x979ea7, 0x656d76};
    assert(shade < PLOT_SHADE_COUNT);
    return grays[shade];
}

/* Rec. 709 weights on the coded values: enough to choose between two. */
uint32_t plot_ink_on(uint32_t color)
{
    uint32_t red = color >> 16 & 255, green = color >> 8 & 255, blue = color & 255;
    return red * 2126 + green * 7152 + blue * 722 > 1350000 ? PLOT_INK : 0xffffff;
}
