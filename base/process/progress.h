/*
 * A progress bar with the time left, on standard error, only when that is a terminal.
 *
 * Elsewhere nothing is printed, or, after progress_lines(), a line from time to time. `TERM=dumb` and --quiet switch it off; NO_COLOR removes colour. The
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
    double interval_s, line_s; /* of lines, and when the last one was printed; interval 0: none */
    bool enabled;
    bool drawn;
    char note[96];
};

/* Off for the whole process (--quiet). */
void progress_disable(void);

/* `total` in any unit; 0 when it is not known. `label` is borrowed. */
void progress_begin(struct progress *progress, const char *label, double total);

/* Where no bar can be drawn (a pipe, nohup), print a line every `interval_s` seconds. */
void progress_lines(struct progress *progress, double interval_s);

/* `note` may be NULL: shown at the end of the line ("loss 3.21"). */
void progress_update(struct progress *progress, double done, const char *note);

/* The same as a function to call back: `context` is the struct progress, which gets the total. */
void progress_show(void *context, double done, double total);
void progress_end(struct progress *progress);

/* Seconds on the monotonic clock. */
double clock_s(void);

#endif
