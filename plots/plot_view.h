/* What the pictures of traces share: which traces and which part of them, heading, makespans. */
#ifndef SPILLWAY_PLOTS_PLOT_VIEW_H
#define SPILLWAY_PLOTS_PLOT_VIEW_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "plots/plot.h"
#include "plots/plot_boxes.h"
#include "plots/plot_script.h"
#include "traces/trace.h"

enum { PLOT_SIDES = 2 }; /* 0 predicted, 1 measured */

struct plot_view {
    const struct trace *traces[PLOT_SIDES]; /* one may be NULL; borrowed */
    uint32_t trace_count;
    uint32_t device_count; /* shown: at most PLOT_DEVICES_MAX */
    uint32_t host_count;   /* likewise: at most PLOT_HOSTS_MAX */
    uint32_t job_count;
    double end_s[PLOT_SIDES]; /* of the last span */
    struct plot_window window; /* its width is the caller's to set */
    double canvas_width_px;
    const char *title; /* may be NULL */
};

/* Errors: STATUS_BAD_INPUT, as plots/plot.h says. */
MUST_CHECK enum status plot_view_init(struct plot_view *view, const struct trace *predicted,
                                      const struct trace *measured,
                                      const struct plot_options *options, struct error *err);

/* The jobs, and the name of device `device` ("gpu0"); of either trace, for they agree. Borrowed. */
const struct trace_job *plot_view_jobs(const struct plot_view *view);
const char *plot_view_device_name(const struct plot_view *view, uint32_t device);
/* The place of a host's memory, and its name ("host"). Borrowed. */
uint32_t plot_view_host_place(const struct plot_view *view, uint32_t host);
const char *plot_view_host_name(const struct plot_view *view, uint32_t host);

/* "makespan: predicted 1.38 s, measured 1.46 s (error -5.5 %)", and what is left out. Returns the
 * length as snprintf() does. */
size_t plot_view_describe(const struct plot_view *view, char *text, size_t size);

/* Title and the line below it. */
void plot_view_heading(const struct plot_view *view, struct plot_script *script,
                       const char *description);

/* A line down the area where each trace ends, its name above. */
void plot_view_makespans(const struct plot_view *view, struct plot_script *script,
                         const struct plot_area *area);

/* `name`, cut with an ellipsis where a legend has no room for it. Returns `buffer`. */
enum { PLOT_NAME_BYTES = 32 };
const char *plot_short_name(const char *name, char buffer[PLOT_NAME_BYTES]);

#endif
