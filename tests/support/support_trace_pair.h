/* Comparing and drawing traces in memory: the program reads them from files. */
#ifndef SPILLWAY_TESTS_SUPPORT_SUPPORT_TRACE_PAIR_H
#define SPILLWAY_TESTS_SUPPORT_SUPPORT_TRACE_PAIR_H

#include "base/try.h"
#include "plots/plot.h"
#include "traces/compare.h"
#include "traces/trace_reader.h"

struct trace_pair {
    struct trace_reader *predicted, *measured; /* NULL where the trace is */
};

static inline enum status trace_pair_open(const struct trace *predicted, const struct trace *measured,
                                          struct trace_pair *pair, struct error *err)
{
    *pair = (struct trace_pair){NULL, NULL};
    if (predicted) TRY(trace_reader_of(predicted, &pair->predicted, err));
    return measured ? trace_reader_of(measured, &pair->measured, err) : STATUS_OK;
}

static inline void trace_pair_close(struct trace_pair *pair)
{
    trace_reader_close(pair->predicted);
    trace_reader_close(pair->measured);
}

static inline enum status trace_pair_compare(const struct trace *predicted, const struct trace *measured,
                                             struct compare_result *out, struct error *err)
{
    struct trace_pair pair;
    enum status status = trace_pair_open(predicted, measured, &pair, err);
    if (status == STATUS_OK) status = compare_readers(pair.predicted, pair.measured, out, err);
    trace_pair_close(&pair);
    return status;
}

typedef enum status (*trace_pair_draw)(struct trace_reader *predicted, struct trace_reader *measured, const char *path,
                                       const struct plot_options *options, struct error *err);

static inline enum status trace_pair_plot(trace_pair_draw draw, const struct trace *predicted,
                                          const struct trace *measured, const char *path,
                                          const struct plot_options *options, struct error *err)
{
    struct trace_pair pair;
    enum status status = trace_pair_open(predicted, measured, &pair, err);
    if (status == STATUS_OK) status = draw(pair.predicted, pair.measured, path, options, err);
    trace_pair_close(&pair);
    return status;
}

#endif
