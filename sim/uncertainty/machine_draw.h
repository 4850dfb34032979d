/*
 * A machine as it may really be: its figures moved by chance, within their spreads.
 *
 * A figure's spread is half the range of the middle half of its measurements, or what was assumed; its error is taken to
 * be lognormal with just that middle half. Errors of equal things are one error: all points of a kernel class of a
 * device type move together (each by its own spread), so do its copies of a direction and all links of the same figure,
 * and so devices that were alike stay alike. All that was measured of a device type moves by its "speed" besides: what
 * measurements of one moment have in common.
 */
#ifndef SPILLWAY_NOISE_MACHINE_DRAW_H
#define SPILLWAY_NOISE_MACHINE_DRAW_H

#include "models/hardware/hardware.h"

/* The factor that a figure of this spread has at the quantile `share` (0 to 1) of its error. */
double noise_factor(double spread, double share);

/*
 * Draw number `draw` of `seed`: *out shares with `from`, which must outlive it, all that does not move. Zeroed struct in;
 * release it with hardware_release(), also after an error. STATUS_NO_MEMORY.
 */
MUST_CHECK enum status machine_draw(const struct hardware *from, uint64_t seed, uint64_t draw, struct hardware *out,
                                    struct error *err);

/* Does any figure have a spread, so that draws differ? */
bool machine_has_spread(const struct hardware *hardware);

#endif
