/*
 * The line is redrawn in place: carriage return, text, "erase to the end of the line". All of it
 * goes out in one write(), so that it never mixes with a message half way.
 *
 * The time left is elapsed * (total - done) / done: correct when the work is even, and self-correcting when it is
 * not. Nothing is drawn in the first second, when the estimate is worst and most commands end.
 */
#include "base/process/progress.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/process/clock.h"
#include "base/text/quantity.h"

enum { BAR_CELLS = 24, LINE_MAX_BYTES = 512 };

static const double silent_s = 1.0;
static const double redraw_s = 0.1;

static bool disabled;

void progress_disable(void)
{
    disabled = true;
}

static bool terminal_wanted(void)
{
    const char *terminal = getenv("TERM");
    return !disabled && isatty(STDERR_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

static size_t terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
    return size.ws_col;
}

static void put(const char *text, size_t length)
{
    /* A bar that cannot be drawn is no reason to stop. */
    if (write(STDERR_FILENO, text, length) < 0) disabled = true;
}

static void draw(struct progress *progress, double now_s)
{
    char line[LINE_MAX_BYTES];
    double elapsed_s = now_s - progress->started_s;
    int length;
    if (progress->total > 0) {
        double share = fmin(fmax(progress->done / progress->total, 0), 1);
        char bar[BAR_CELLS + 1];
        int filled = (int)(share * BAR_CELLS);
        memset(bar, '.', BAR_CELLS);
        memset(bar, '#', (size_t)filled);
        bar[BAR_CELLS] = '\0';
        char left[QUANTITY_TEXT_BYTES] = "";
        double left_s = share > 0 ? ceil(elapsed_s * (1 - share) / share) : 0;
        if (share > 0) quantity_text(left_s, DIMENSION_SECONDS, left);
        length = snprintf(line, sizeof line, "%s [%s] %3.0f %%  %s%s  %s", progress->label, bar,
                          floor(100 * share), left, share > 0 ? " left" : "", progress->note);
    } else {
        char elapsed[QUANTITY_TEXT_BYTES];
        quantity_text(floor(elapsed_s), DIMENSION_SECONDS, elapsed);
        length = snprintf(line, sizeof line, "%s  %.6g  %s  %s", progress->label, progress->done,
                          elapsed, progress->note);
    }
    if (length < 0) return;
    size_t shown = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;
    size_t columns = terminal_columns();
    if (shown >= columns) shown = columns - 1; /* a wrapped line could not be wiped */

    bool colour = !getenv("NO_COLOR");
    char out[LINE_MAX_BYTES + 32];
    int bytes = snprintf(out, sizeof out, "\r%s%.*s%s\033[K", colour ? "\033[36m" : "", (int)shown,
                         line, colour ? "\033[0m" : "");
    put(out, (size_t)bytes);
    progress->drawn = true;
    progress->drawn_s = now_s;
}

void progress_begin(struct progress *progress, const char *label, double total)
{
    *progress = (struct progress){.label = label, .total = total};
    progress->started_s = clock_s();
    progress->enabled = terminal_wanted();
}

void progress_lines(struct progress *progress, double interval_s)
{
    progress->interval_s = interval_s;
    progress->line_s = progress->started_s;
}

/* Prints "running: 25 %, 31 s left, loss 3.21". */
static void print_line(struct progress *progress, const char *note)
{
    char line[LINE_MAX_BYTES], time[QUANTITY_TEXT_BYTES];
    double now_s = clock_s(), elapsed_s = now_s - progress->started_s;
    double share = progress->total > 0 ? fmin(fmax(progress->done / progress->total, 0), 1) : 0;
    if (now_s - progress->line_s < progress->interval_s) return;
    progress->line_s = now_s;
    quantity_text(share > 0 ? ceil(elapsed_s * (1 - share) / share) : floor(elapsed_s), DIMENSION_SECONDS, time);
    int length = progress->total > 0
                   ? snprintf(line, sizeof line, "%s: %.0f %%, %s %s%s%s\n", progress->label, floor(100 * share), time,
                              share > 0 ? "left" : "so far", note ? ", " : "", note ? note : "")
                   : snprintf(line, sizeof line, "%s: %.6g, %s so far%s%s\n", progress->label, progress->done, time,
                              note ? ", " : "", note ? note : "");
    if (length > 0) put(line, (size_t)length < sizeof line ? (size_t)length : sizeof line - 1);
}

void progress_update(struct progress *progress, double done, const char *note)
{
    progress->done = done;
    if (disabled) return;
    if (!progress->enabled) {
        if (progress->interval_s > 0) print_line(progress, note && note[0] ? note : NULL);
        return;
    }
    double now_s = clock_s();
    if (now_s - progress->started_s < silent_s || now_s - progress->drawn_s < redraw_s) return;
    snprintf(progress->note, sizeof progress->note, "%s", note ? note : "");
    draw(progress, now_s);
}

void progress_show(void *context, double done, double total)
{
    struct progress *progress = context;
    progress->total = total;
    progress_update(progress, done, NULL);
}

void progress_end(struct progress *progress)
{
    if (progress->drawn) put("\r\033[K", 4);
    progress->enabled = false;
    progress->drawn = false;
}
