/* See hardware_import_parts.h. */
#include "models/hardware/import/hardware_import_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"

void import_say(struct import *import, const char *format, ...)
{
    struct import_report *report = import->report;
    if (report->count == IMPORT_LINES_MAX) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->lines[report->count++], IMPORT_LINE_BYTES, format, arguments);
    va_end(arguments);
}

struct import_middle import_middle(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, order_double);
    double median = count % 2 == 1 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
    double low = values[count / 4], high = values[count - 1 - count / 4];
    return (struct import_middle){.value = median, .spread = median > 0 ? (high - low) / 2 / median : 0};
}

struct sourced_value import_sourced(const struct import *import, double value, double spread, const char *source)
{
    return (struct sourced_value){.value = value, .spread = spread, .kind = SOURCE_MEASURED, .source = source,
                                  .as_of = import->as_of};
}
