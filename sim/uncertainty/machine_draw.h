/*
 * Random machines: the values of a machine, drawn within their spreads.
 *
 * A value's spread is half the range of the middle half of its measurements, or an assumption. Its error is lognormal
 * with this middle half. Equal things have one common error: all points of a kernel class of a device type are drawn
 * together (each with its own spread), and so are its copies of one direction, and all links of one value. So equal
 * devices stay equal. All measured values of a device type also share a factor, its "speed": the common error of one
 * measuring session.
 */
#ifndef SPILLWAY_SIM_UNCERTAINTY_MACHINE_DRAW_H
#define SPILLWAY_SIM_UNCERTAINTY_MACHINE_DRAW_H

#include "models/hardware/hardware.h"

/* Returns the factor of a value with this spread, at the quantile `share` (0 to 1) of its error. */
double machine_draw_factor(double spread, double share);

/* Makes draw number `draw` of `seed`. *out shares unchanged parts with `from`, which must outlive it. */
MUST_CHECK enum status machine_draw(const struct hardware *from, uint64_t seed, uint64_t draw, struct hardware *out,
                                    struct error *err);

/* Returns true if a value has a spread, so that draws differ. */
bool machine_has_spread(const struct hardware *hardware);

#endif
