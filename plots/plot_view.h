/* Common parts of pictures of traces: the traces and the window, heading, makespans. */
#ifndef SPILLWAY_PLOTS_PLOT_VIEW_H
#define SPILLWAY_PLOTS_PLOT_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "plots/plot.h"
#include "plots/plot_boxes.h"
#include "plots/plot_script.h"
#include "traces/trace_reader.h"

enum { PLOT_SIDES = 2 }; /* 0 predicted, 1 measured */

struct plot_view {
    struct trace_reader *readers[PLOT_SIDES]; /* one may be NULL; borrowed */
    const struct trace *traces[PLOT_SIDES]; /* their heads, of which only names and totals are used */
    uint32_t trace_count;
    uint32_t device_count; /* devices shown: at most PLOT_DEVICES_MAX */
    uint32_t host_count;   /* hosts shown: at most PLOT_HOSTS_MAX */
    uint32_t job_count;
    double end_s[PLOT_SIDES]; /* end of the last span */
    struct plot_window window; /* the caller sets its width */
    bool whole;               /* the window is not set: it is the whole run */
    double canvas_width_px;
    const char *title; /* may be NULL */
};

/* Initialises a view. Errors: STATUS_BAD_INPUT, as in plots/plot.h. */
MUST_CHECK enum status plot_view_init(struct plot_view *view, struct trace_reader *predicted,
                                      struct trace_reader *measured,
                                      const struct plot_options *options, struct error *err);

/* Checks that there is something to draw in traces with `span_count` spans in the window. Errors: STATUS_BAD_INPUT. */
MUST_CHECK enum status plot_view_check_spans(const struct plot_view *view, uint64_t span_count, struct error *err);

/* Return the jobs, and the name of device `device` ("gpu0"), which are the same in both traces.
 * Borrowed. */
const struct trace_job *plot_view_jobs(const struct plot_view *view);
const char *plot_view_device_name(const struct plot_view *view, uint32_t device);
/* Return the place of a host's memory, and its name ("host"). Borrowed. */
uint32_t plot_view_host_place(const struct plot_view *view, uint32_t host);
const char *plot_view_host_name(const struct plot_view *view, uint32_t host);

/* Writes "makespan: predicted 1.38 s, measured 1.46 s (error -5.5 %)", and the number of devices
 * that are not shown. Returns the length as snprintf() does. */
size_t plot_view_describe(const struct plot_view *view, char *text, size_t size);

/* Adds the title and the line below it. */
void plot_view_heading(const struct plot_view *view, struct plot_script *script,
                       const char *description);

/* Adds a vertical line at the end of each trace, with its name above. */
void plot_view_makespans(const struct plot_view *view, struct plot_script *script,
                         const struct plot_area *area);

/* Returns `name` in `buffer`, cut with an ellipsis to fit a legend. */
enum { PLOT_NAME_BYTES = 32 };
const char *plot_short_name(const char *name, char buffer[PLOT_NAME_BYTES]);

#endif
