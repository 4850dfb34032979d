/*
 * A progress bar with the time left, on standard error, drawn only when that is a terminal.
 *
 * Otherwise nothing is printed, or one line per interval after progress_lines(). `TERM=dumb` and --quiet switch the
 * bar off; NO_COLOR removes its colour. The bar appears after one second, so that quick commands stay silent.
 * progress_end() erases it. progress_update() is cheap (it reads the clock); it redraws at most ten times a second.
 * Only one bar at a time; not thread-safe.
 */
#ifndef SPILLWAY_BASE_PROCESS_PROGRESS_H
#define SPILLWAY_BASE_PROCESS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    const char *label;
    double total;
    double done;
    double started_s;
    double drawn_s;
    double interval_s, line_s; /* interval of lines, and when the last one was printed; interval 0: no lines */
    bool enabled;
    bool drawn;
    char note[96];
};

/* Switches progress off for the whole process (--quiet). */
void progress_disable(void);

/* Begins a bar. `total` is in any unit; 0 when unknown. `label` is borrowed. */
void progress_begin(struct progress *progress, const char *label, double total);

/* Prints a line every `interval_s` seconds when no bar can be drawn (a pipe, nohup). */
void progress_lines(struct progress *progress, double interval_s);

/* Updates the bar. `note` is shown at the end of the line ("loss 3.21"); it may be NULL. */
void progress_update(struct progress *progress, double done, const char *note);

/* progress_update() as a callback: `context` is the struct progress, whose total is set to `total`. */
void progress_show(void *context, double done, double total);
void progress_end(struct progress *progress);

#endif
