/*
 * The monotonic clock.
 */
#ifndef SPILLWAY_BASE_PROCESS_CLOCK_H
#define SPILLWAY_BASE_PROCESS_CLOCK_H

/* Returns the time of the monotonic clock in seconds. */
double clock_s(void);

#endif
