#include "planner/solve/certify/instance_library.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "planner/solve/instance/instance_io.h"
#include "planner/solve/instance/timetable_check.h"
#include "planner/solve/instance/timetable_io.h"

enum { PATH_BYTES = 4096 };

static const char end[] = ".json";

/* --- names ----------------------------------------------------------------------------------- */

static int compare_rows(const void *a, const void *b)
{
    const struct instance_library_row *x = a, *y = b;
    return strcmp(x->name, y->name);
}

static enum status add_row(struct instance_library *out, const char *file, struct error *err)
{
    size_t length = strlen(file) - strlen(end);
    if (out->count == INSTANCE_LIBRARY_MAX || length >= INSTANCE_LIBRARY_NAME_BYTES)
        return error_set(err, STATUS_LIMIT, "'%s': too many instances or too long a name (limits are %d and %d)",
                         file, INSTANCE_LIBRARY_MAX, INSTANCE_LIBRARY_NAME_BYTES - 1);
    struct instance_library_row *row = &out->rows[out->count++];
    memcpy(row->name, file, length);
    return STATUS_OK;
}

enum status instance_library_open(const char *folder, struct instance_library *out, struct error *err)
{
    DIR *dir = opendir(folder);
    if (!dir) return error_input(err, "cannot open the folder '%s'", folder);
    out->rows = alloc_zeroed(INSTANCE_LIBRARY_MAX, sizeof *out->rows);
    if (!out->rows) error_memory(err, "a library", INSTANCE_LIBRARY_MAX * sizeof *out->rows);
    for (const struct dirent *entry; !err->status;) {
        errno = 0;
        entry = readdir(dir);
        if (!entry && errno) error_input(err, "cannot read the folder '%s'", folder);
        if (!entry) break;
        if (text_ends_in(entry->d_name, end) && add_row(out, entry->d_name, err)) break;
    }
    closedir(dir);
    if (!err->status && out->count == 0)
        error_set(err, STATUS_BAD_INPUT, "no instances in '%s' (expected NAME.json and best/NAME.json)", folder);
    if (!err->status) qsort(out->rows, out->count, sizeof *out->rows, compare_rows);
    return err->status;
}

void instance_library_release(struct instance_library *library)
{
    free(library->rows);
    *library = (struct instance_library){0};
}

/* --- one of them ----------------------------------------------------------------------------- */

static enum status read_best(const struct instance *in, const char *path, struct instance_library_row *row,
                             struct error *err)
{
    struct timetable best = {0};
    if (!timetable_read(in, path, &best, &row->best_bound, err) && timetable_check(in, &best, err))
        error_add(err, "%s", path);
    row->best = best.value;
    timetable_release(&best);
    return err->status;
}

static enum status compare(const struct instance_library_row *row, const char *path, struct error *err)
{
    if (row->found.bound > row->best)
        return error_set(err, STATUS_CHECK, "%s: the value %" PRId64 " is below the bound %" PRId64 " of now",
                         path, row->best, row->found.bound);
    if (row->found.value < row->best_bound)
        return error_set(err, STATUS_CHECK, "%s: the bound %" PRId64 " is above the value %" PRId64 " of now",
                         path, row->best_bound, row->found.value);
    return STATUS_OK;
}

enum status instance_library_solve(const char *folder, struct instance_library *library, uint32_t index,
                                   const struct certify_options *limits, struct error *err)
{
    struct instance_library_row *row = &library->rows[index];
    char instance[PATH_BYTES], best[PATH_BYTES];
    if (snprintf(instance, sizeof instance, "%s/%s%s", folder, row->name, end) >= PATH_BYTES ||
        snprintf(best, sizeof best, "%s/best/%s%s", folder, row->name, end) >= PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "the path '%s' is too long (limit is %d bytes)", folder, PATH_BYTES);
    struct instance in = {0};
    struct timetable found = {0};
    if (instance_read(instance, &in, err) || read_best(&in, best, row, err) ||
        certify(&in, limits, &found, &row->found, err) || compare(row, best, err)) {}
    row->device_count = in.device_count;
    row->job_count = in.job_count;
    row->task_count = in.task_count;
    timetable_release(&found);
    instance_release(&in);
    return err->status;
}
