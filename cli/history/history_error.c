#include "cli/history/history_error.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/try.h"

const char *const history_by_names[] = {"day", "month", "policy", "hardware", "networks", NULL};

struct history_error_run {
    const char *group;
    double error;
};

bool history_error_of(const struct history_record *record, double *out)
{
    if (!record->complete || !(record->predicted_s > 0) || !(record->measured_s > 0)) return false;
    *out = record->predicted_s / record->measured_s - 1;
    return true;
}

static enum status group_of(const struct history_record *record, enum history_by by, struct arena *arena,
                            const char **out, struct error *err)
{
    char date[HISTORY_TIME_BYTES];
    const char *text = NULL;
    switch (by) {
    case HISTORY_BY_DAY:
    case HISTORY_BY_MONTH:
        snprintf(date, sizeof date, "%.*s", by == HISTORY_BY_DAY ? 10 : 7, record->made_at ? record->made_at : "");
        return arena_string(arena, date, out, err);
    case HISTORY_BY_POLICY: text = record->policy; break;
    case HISTORY_BY_HARDWARE: text = record->hardware; break;
    case HISTORY_BY_NETWORKS: text = record->networks; break;
    case HISTORY_BY_COUNT: break;
    }
    *out = text ? text : "-";
    return STATUS_OK;
}

static int compare_groups(const void *a, const void *b)
{
    return strcmp(((const struct history_error_run *)a)->group, ((const struct history_error_run *)b)->group);
}

static int compare_absolute(const void *a, const void *b)
{
    double x = fabs(((const struct history_error_run *)a)->error),
           y = fabs(((const struct history_error_run *)b)->error);
    return (x > y) - (x < y);
}

/* Sorts the runs. */
static struct history_error sum_up(struct history_error_run *runs, size_t count, const char *group)
{
    struct history_error sum = {.group = group, .runs = count};
    qsort(runs, count, sizeof *runs, compare_absolute);
    for (size_t r = 0; r < count; r++) {
        sum.mean += runs[r].error / (double)count;
        sum.mean_absolute += fabs(runs[r].error) / (double)count;
    }
    sum.median_absolute = (fabs(runs[(count - 1) / 2].error) + fabs(runs[count / 2].error)) / 2;
    sum.worst = runs[count - 1].error;
    return sum;
}

enum status history_errors(const struct history_record *records, size_t count, enum history_by by, struct arena *arena,
                           struct history_error **out, size_t *group_count, struct error *err)
{
    struct history_error_run *runs;
    struct history_error *groups;
    TRY(ARENA_NEW(arena, count, runs, err));
    TRY(ARENA_NEW(arena, count + 1, groups, err));
    size_t used = 0, found = 0;
    for (size_t r = 0; r < count; r++) {
        if (!history_error_of(&records[r], &runs[used].error)) continue;
        TRY(group_of(&records[r], by, arena, &runs[used].group, err));
        used++;
    }
    qsort(runs, used, sizeof *runs, compare_groups);
    for (size_t begin = 0, end; begin < used; begin = end) {
        for (end = begin + 1; end < used && strcmp(runs[end].group, runs[begin].group) == 0;) end++;
        groups[found++] = sum_up(&runs[begin], end - begin, runs[begin].group);
    }
    if (used > 0) groups[found++] = sum_up(runs, used, "all");
    *out = groups;
    *group_count = found;
    return STATUS_OK;
}
