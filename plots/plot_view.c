/*
 * A view is one trace or a pair of them, cut to a window of time.
 *
 * Two traces are drawn on one axis and in one set of rows, so they must be of the same machine and jobs. They may be
 * of different plans: a comparison of two policies is useful too, as long as one trace is a prediction and the other
 * a measurement.
 *
 * The window begins at 0, not at the first span, as do the times in trace files.
 */
#include "plots/plot_view.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/quantity.h"
#include "base/try.h"
#include "plots/plot_color.h"
#include "plots/plot_gnuplot.h"

enum { WIDTH_DEFAULT_PX = 1200 };
enum { NAME_CHARACTERS_MAX = 18 };

/* --- which traces --------------------------------------------------------------------------- */

static const struct trace *either(const struct plot_view *view)
{
    return view->traces[0] ? view->traces[0] : view->traces[1];
}

static enum status match(const struct trace *a, const struct trace *b, struct error *err)
{
    if (a->more_hosts != b->more_hosts)
        return error_set(err, STATUS_BAD_INPUT, "the traces are of machines with %" PRIu32 " and %" PRIu32 " hosts",
                         a->more_hosts + 1, b->more_hosts + 1);
    if (a->place_count != b->place_count || a->stream_count != b->stream_count)
        return error_set(err, STATUS_BAD_INPUT,
                         "the traces are of machines with %" PRIu32 " and %" PRIu32 " devices",
                         trace_device_count(a), trace_device_count(b));
    if (a->job_count != b->job_count)
        return error_set(err, STATUS_BAD_INPUT, "the traces have %" PRIu32 " and %" PRIu32 " jobs",
                         a->job_count, b->job_count);
    for (uint32_t j = 0; j < a->job_count; j++)
        if (strcmp(a->jobs[j].name, b->jobs[j].name) != 0)
            return error_set(err, STATUS_BAD_INPUT, "job %" PRIu32 " is '%s' in one trace and '%s' "
                             "in the other", j, a->jobs[j].name, b->jobs[j].name);
    return STATUS_OK;
}

/* Returns the last end of a job; the spans may be only a part of the trace. */
static double last_end_s(const struct trace *trace)
{
    double end_s = 0;
    for (uint32_t j = 0; j < trace->job_count; j++) end_s = fmax(end_s, trace->jobs[j].end_s);
    return end_s;
}

static enum status fail_empty(struct error *err)
{
    return error_set(err, STATUS_BAD_INPUT, "the trace has no spans: there is nothing to draw");
}

static enum status choose_window(struct plot_view *view, const struct plot_options *options,
                                 struct error *err)
{
    struct plot_window *window = &view->window;
    double end_s = fmax(view->end_s[0], view->end_s[1]);
    bool to_the_end = options->to_s <= 0; /* false for NaN */
    window->from_s = options->from_s;
    window->to_s = to_the_end ? end_s : options->to_s;
    view->whole = to_the_end && window->from_s <= 0;
    if (end_s <= 0) return fail_empty(err);
    if (window->from_s >= end_s)
        return error_set(err, STATUS_BAD_INPUT,
                         "the window begins at %g s, but the run ends at %g s", window->from_s,
                         end_s);
    if (!(window->from_s >= 0 && window->to_s > window->from_s &&
          window->to_s <= TRACE_TIME_MAX_S))
        return error_set(err, STATUS_BAD_INPUT, "a window from %g s to %g s cannot be drawn",
                         window->from_s, window->to_s);
    return STATUS_OK;
}

enum status plot_view_check_spans(const struct plot_view *view, uint64_t span_count, struct error *err)
{
    return view->whole && span_count == 0 ? fail_empty(err) : STATUS_OK;
}

enum status plot_view_init(struct plot_view *view, struct trace_reader *predicted,
                           struct trace_reader *measured, const struct plot_options *options,
                           struct error *err)
{
    assert(predicted || measured);
    *view = (struct plot_view){.readers = {predicted, measured}, .title = options->title};
    view->trace_count = predicted && measured ? 2 : 1;
    for (int side = 0; side < PLOT_SIDES; side++)
        if (view->readers[side]) view->traces[side] = trace_reader_head(view->readers[side]);
    if (predicted && measured) TRY(match(view->traces[0], view->traces[1], err));
    for (int side = 0; side < PLOT_SIDES; side++)
        if (view->traces[side]) view->end_s[side] = last_end_s(view->traces[side]);
    view->job_count = either(view)->job_count;
    view->device_count = trace_device_count(either(view));
    if (view->device_count > PLOT_DEVICES_MAX) view->device_count = PLOT_DEVICES_MAX;
    view->host_count = either(view)->more_hosts + 1;
    if (view->host_count > PLOT_HOSTS_MAX) view->host_count = PLOT_HOSTS_MAX;
    uint32_t width_px;
    TRY(plot_width(options, WIDTH_DEFAULT_PX, &width_px, err));
    view->canvas_width_px = width_px;
    return choose_window(view, options, err);
}

const struct trace_job *plot_view_jobs(const struct plot_view *view)
{
    return either(view)->jobs;
}

const char *plot_view_device_name(const struct plot_view *view, uint32_t device)
{
    assert(device < trace_device_count(either(view)));
    return either(view)->places[device + 1].name;
}

uint32_t plot_view_host_place(const struct plot_view *view, uint32_t host)
{
    return trace_host_place(either(view), host);
}

const char *plot_view_host_name(const struct plot_view *view, uint32_t host)
{
    return either(view)->places[plot_view_host_place(view, host)].name;
}

/* --- words ---------------------------------------------------------------------------------- */

/* Appends a note when a picture does not show everything. Returns the new length. */
static size_t say_first(uint32_t shown, uint32_t count, const char *what, char *text, size_t length, size_t size)
{
    if (shown == count || length >= size) return length;
    int used = snprintf(text + length, size - length, "; the first %" PRIu32 " of %" PRIu32 " %s", shown, count, what);
    return length + (used > 0 ? (size_t)used : 0);
}

size_t plot_view_describe(const struct plot_view *view, char *text, size_t size)
{
    const struct trace *p = view->traces[0], *m = view->traces[1];
    char a[QUANTITY_TEXT_BYTES], b[QUANTITY_TEXT_BYTES];
    int used;
    if (p && m && m->makespan_s > 0)
        used = snprintf(text, size, "makespan: predicted %s, measured %s (error %+.1f %%)",
                        quantity_text(p->makespan_s, DIMENSION_SECONDS, a),
                        quantity_text(m->makespan_s, DIMENSION_SECONDS, b),
                        (p->makespan_s / m->makespan_s - 1) * 100);
    else
        used = snprintf(text, size, "%s makespan %s", p ? "predicted" : "measured",
                        quantity_text(either(view)->makespan_s, DIMENSION_SECONDS, a));
    size_t length = used > 0 ? (size_t)used : 0;
    length = say_first(view->device_count, trace_device_count(either(view)), "devices", text, length, size);
    return say_first(view->host_count, either(view)->more_hosts + 1, "hosts", text, length, size);
}

const char *plot_short_name(const char *name, char buffer[PLOT_NAME_BYTES])
{
    if (strlen(name) <= NAME_CHARACTERS_MAX)
        snprintf(buffer, PLOT_NAME_BYTES, "%s", name);
    else
        snprintf(buffer, PLOT_NAME_BYTES, "%.*s…", NAME_CHARACTERS_MAX - 1, name);
    return buffer;
}

/* --- shapes --------------------------------------------------------------------------------- */

void plot_view_heading(const struct plot_view *view, struct plot_script *script,
                       const char *description)
{
    char made[256];
    if (!view->title)
        snprintf(made, sizeof made, "%.100s on %.100s", either(view)->policy,
                 either(view)->hardware);
    plot_script_text(script, 16, 24, PLOT_LEFT, (struct plot_font){PLOT_TITLE_PX, true, PLOT_INK},
                     view->title ? view->title : made);
    plot_script_text(script, 16, 46, PLOT_LEFT,
                     (struct plot_font){PLOT_TEXT_PX, false, PLOT_FAINT_INK}, description);
}

void plot_view_makespans(const struct plot_view *view, struct plot_script *script,
                         const struct plot_area *area)
{
    const struct plot_window *window = &view->window;
    for (int side = 0; side < PLOT_SIDES; side++) {
        double end_s = view->end_s[side];
        if (!view->traces[side] || end_s < window->from_s || end_s > window->to_s) continue;
        double x_px = area->left_px + (end_s - window->from_s) / (window->to_s - window->from_s) *
                                          (area->right_px - area->left_px);
        /* The names are placed away from each other, because the two ends are often close. */
        bool left = side == 0 ? end_s <= view->end_s[1] || view->trace_count == 1
                              : end_s < view->end_s[0];
        /* The SVG terminal draws lines of one colour and width as one path, dashes and all: the
         * solid line is therefore a little wider. */
        bool dashed = side == 0;
        plot_script_line(script, x_px, area->top_px - 16, x_px, area->bottom_px,
                         (struct plot_pen){dashed ? 1.2 : 1.3, PLOT_INK, dashed});
        plot_script_text(script, left ? x_px - 4 : x_px + 4, area->top_px - 12,
                         left ? PLOT_RIGHT : PLOT_LEFT,
                         (struct plot_font){PLOT_SMALL_PX, false, PLOT_INK},
                         side == 0 ? "predicted end" : "measured end");
    }
}
