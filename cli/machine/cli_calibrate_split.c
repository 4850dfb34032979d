#include "cli/machine/cli_calibrate_split.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "base/text/number.h"
#include "base/try.h"

/* --- splits ------------------------------------------------------------------------------------- */

static bool is_in_half(const struct calibration_split *split, uint32_t index)
{
    switch (split->half) {
    case CALIBRATION_HALF_NONE: return false;
    case CALIBRATION_HALF_EVEN: return index % 2 == 0;
    case CALIBRATION_HALF_ODD: return index % 2 == 1;
    case CALIBRATION_HALF_BY_SEED: return random_below(split->seed, index, 2) == 0;
    default: return true;
    }
}

bool calibration_is_fitted(const struct calibration_split *split, const struct measured_run *run, uint32_t index)
{
    if (!is_in_half(split, index) || (split->folds > 0 && index % split->folds == split->fold)) return false;
    for (uint32_t g = 0; g < split->held_count; g++)
        if (run->of[split->held[g].column] == split->held[g].value) return false;
    return true;
}

enum status calibration_half_parse(const char *text, struct calibration_split *out, struct error *err)
{
    static const char *const names[] = {
        [CALIBRATION_HALF_ALL] = "all", [CALIBRATION_HALF_EVEN] = "even", [CALIBRATION_HALF_ODD] = "odd",
        [CALIBRATION_HALF_NONE] = "none"};
    for (uint32_t i = 0; i < ARRAY_COUNT(names); i++)
        if (names[i] && strcmp(text, names[i]) == 0) {
            out->half = CALIBRATION_HALF_ALL + i;
            return STATUS_OK;
        }
    if (number_read_u64(text, &out->seed)) {
        out->half = CALIBRATION_HALF_BY_SEED;
        return STATUS_OK;
    }
    return error_set(err, STATUS_BAD_INPUT, "option '--half' is '%s' (expected none, all, even, odd or a seed)", text);
}

enum status calibration_held_parse(const char *text, struct calibration_split *out, struct error *err)
{
    char name[CALIBRATION_LABEL_BYTES];
    const char *sign = strchr(text, '=');
    struct calibration_group group;
    if (out->held_count == CALIBRATION_HELD_MAX)
        return error_set(err, STATUS_LIMIT, "option '--hold-out' is given too often (limit is %d)",
                         CALIBRATION_HELD_MAX);
    snprintf(name, sizeof name, "%.*s", sign ? (int)(sign - text) : (int)strlen(text), text);
    if (!sign || !measured_runs_column(name, &group.column))
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--hold-out' is '%s' (expected a column and its value, such as 'micro batch=4')",
                         text);
    if (!measured_runs_value(group.column, sign + 1, &group.value))
        return error_set(err, STATUS_BAD_INPUT, "option '--hold-out' is '%s' (expected a value of column '%s')", text,
                         name);
    out->held[out->held_count++] = group;
    return STATUS_OK;
}

/* --- folds -------------------------------------------------------------------------------------- */

/* Inserts in order; false if there is no room. */
static bool add_value(struct calibration_folds *folds, uint32_t value)
{
    uint32_t at = folds->count;
    for (uint32_t i = 0; i < folds->count; i++)
        if (folds->values[i] == value) return true;
    if (folds->count == CALIBRATION_FOLDS_MAX) return false;
    for (; at > 0 && folds->values[at - 1] > value; at--) folds->values[at] = folds->values[at - 1];
    folds->values[at] = value;
    folds->count++;
    return true;
}

static enum status fold_by_column(const struct measured_runs *sets, uint32_t set_count, struct calibration_folds *out,
                                  struct error *err)
{
    const char *name = measured_runs_column_name(out->column);
    for (uint32_t s = 0; s < set_count; s++)
        for (uint32_t i = 0; i < sets[s].count; i++)
            if (!add_value(out, sets[s].runs[i].of[out->column]))
                return error_set(err, STATUS_LIMIT, "column '%s' has too many values (limit is %d)", name,
                                 CALIBRATION_FOLDS_MAX);
    if (out->count > 1) return STATUS_OK;
    return error_set(err, STATUS_BAD_INPUT, "option '--folds' is '%s', which is the same in all runs", name);
}

enum status calibration_folds_parse(const char *text, const struct measured_runs *sets, uint32_t set_count,
                                    struct calibration_folds *out, struct error *err)
{
    char *end;
    unsigned long count = strtoul(text, &end, 10);
    *out = (struct calibration_folds){.count = 0};
    if (measured_runs_column(text, &out->column)) {
        out->by_column = true;
        return fold_by_column(sets, set_count, out, err);
    }
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || count < 2 || count > CALIBRATION_FOLDS_MAX)
        return error_set(err, STATUS_BAD_INPUT, "option '--folds' is '%s' (expected a number from 2 to %d or a column)",
                         text, CALIBRATION_FOLDS_MAX);
    out->count = (uint32_t)count;
    return STATUS_OK;
}

struct calibration_split calibration_fold(const struct calibration_folds *folds, uint32_t index)
{
    assert(index < folds->count);
    if (!folds->by_column)
        return (struct calibration_split){.half = CALIBRATION_HALF_ALL, .fold = index, .folds = folds->count};
    return (struct calibration_split){.half = CALIBRATION_HALF_ALL, .held = {{folds->column, folds->values[index]}},
                                      .held_count = 1};
}

void calibration_fold_label(const struct calibration_folds *folds, uint32_t index, char label[CALIBRATION_LABEL_BYTES])
{
    char value[CALIBRATION_LABEL_BYTES / 2];
    if (!folds->by_column) {
        snprintf(label, CALIBRATION_LABEL_BYTES, "fold %" PRIu32 " of %" PRIu32, index + 1, folds->count);
        return;
    }
    measured_runs_value_text(folds->column, folds->values[index], value, sizeof value);
    snprintf(label, CALIBRATION_LABEL_BYTES, "%.24s %s", measured_runs_column_name(folds->column), value);
}
