/* Stops a run after a while, as a signal does. */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_STOP_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_STOP_H

#include <stdbool.h>

extern volatile bool support_stop; /* for struct run_options */

/* Clears support_stop, and sets it after less than a second; 0: never. */
void support_stop_after(long microseconds);

#endif
