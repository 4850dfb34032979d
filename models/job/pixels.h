/*
 * How bytes of images become numbers: "normalize" of a job, as in torchvision's Normalize after ToTensor.
 *
 *     number = (byte / 255 - mean) / std
 *
 * Without it mean and std are 0.5, and 0 to 255 become -1 to 1.
 */
#ifndef SPILLWAY_MODELS_JOB_PIXELS_H
#define SPILLWAY_MODELS_JOB_PIXELS_H

#include <math.h>
#include <stdint.h>

enum { PIXEL_CHANNELS_MAX = 4 };

/* count 0: not given; 1: of all channels; else one for each. */
struct pixel_scale {
    uint32_t count;
    double mean[PIXEL_CHANNELS_MAX], deviation[PIXEL_CHANNELS_MAX]; /* deviation > 0 */
};

/* Returns the number of a byte, or of a number between two bytes. */
static inline float pixel_number(const struct pixel_scale *scale, uint64_t channel, double byte)
{
    const uint64_t at = scale->count > 1 ? channel : 0;
    if (scale->count == 0) return (float)byte / 127.5f - 1.0f;
    return (float)((byte / 255 - scale->mean[at]) / scale->deviation[at]);
}

#endif
