/*
 * The monotonic clock, and a thread's.
 */
#ifndef SPILLWAY_BASE_PROCESS_CLOCK_H
#define SPILLWAY_BASE_PROCESS_CLOCK_H

/* Returns the time of the monotonic clock in seconds. */
double clock_s(void);

/* Returns the calling thread's processor time in seconds: a computation's duration alone, whatever else the cores
 * do. */
double clock_thread_s(void);

#endif
