/*
 * The monotonic clock, waiting by it, and a thread's clock.
 */
#ifndef SPILLWAY_BASE_PROCESS_CLOCK_H
#define SPILLWAY_BASE_PROCESS_CLOCK_H

#include <pthread.h>
#include <stdbool.h>

/* Returns the time of the monotonic clock in seconds. */
double clock_s(void);

/* Sleeps until `at_s` of clock_s(), also if a signal comes. */
void clock_sleep_until(double at_s);

/* As pthread_cond_wait(), until `at_s` of clock_s() at the latest. Returns false when that time has come. */
bool clock_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, double at_s);

/* Returns the calling thread's processor time in seconds: a computation's duration alone, whatever else the cores
 * do. */
double clock_thread_s(void);

#endif
