/*
 * A progress bar with the time left, on standard error, only when that is a terminal.
 *
 * Elsewhere nothing is printed. `TERM=dumb` and --quiet switch it off; NO_COLOR removes colour. The
 * bar appears after one second, so that quick commands stay silent, and is wiped by progress_end().
 * progress_update() is cheap (a clock read); it redraws at most ten times a second.
 * One at a time; not thread-safe.
 */
#ifndef SPILLWAY_BASE_PROGRESS_H
#define SPILLWAY_BASE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label;
    double total;
    double done;
    double started_s;
    double drawn_s;
    bool enabled;
    bool drawn;
    char note[96];
};

/* Off for the whole process (--quiet). */
void progress_disable(void);

/* `total` in any unit; 0 when it is not known. `label` is borrowed. */
void progress_begin(struct progress *progress, const char *label, double total);

/* `note` may be NULL: shown at the end of the line ("loss 3.21"). */
void progress_update(struct progress *progress, double done, const char *note);

/* The same as a function to call back: `context` is the struct progress, which gets the total. */
void progress_show(void *context, double done, double total);
void progress_end(struct progress *progress);

/* Seconds on the monotonic clock. */
double clock_s(void);

#endif
