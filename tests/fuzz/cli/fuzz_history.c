/* A history on any bytes: refused with a message, or records of which every value is in its range; and one can be
 * added. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/size.h"
#include "cli/history/history_error.h"
#include "tests/support/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_record(const struct history_record *r)
{
    const double reals[] = {r->predicted_s, r->lower_bound_s, r->predicted_tokens_per_s, r->measured_s,
                            r->measured_tokens_per_s};
    assert(r->made_at && strlen(r->made_at) == 20 && r->verb);
    assert(r->jobs >= 0 && r->devices >= 0 && (r->complete == 0 || r->complete == 1));
    for (size_t i = 0; i < ARRAY_COUNT(reals); i++)
        assert(reals[i] <= 0 || (reals[i] >= HISTORY_REAL_MIN && reals[i] <= HISTORY_REAL_MAX));
}

static void check_errors(const struct history_record *records, size_t count, struct arena *arena)
{
    for (int by = 0; by < HISTORY_BY_COUNT; by++) {
        struct history_error *groups;
        struct error err = {0};
        size_t group_count;
        enum status status = history_errors(records, count, (enum history_by)by, arena, &groups, &group_count, &err);
        assert(status == STATUS_OK);
        for (size_t g = 0; g < group_count; g++) assert(groups[g].group && isfinite(groups[g].mean_absolute));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct history_record added = {.made_at = "2026-11-22T09:30:00Z", .verb = "run", .predicted_s = 3.5,
                                         .measured_s = 2.5, .complete = 1};
    char path[64];
    struct error err = {0};
    struct arena arena = {0};
    struct history *history = NULL;
    struct history_record *records;
    size_t count;
    snprintf(path, sizeof path, "/dev/shm/spillway-fuzz-history-%ld.db", (long)getpid());
    fuzz_file_write(path, data, size);
    enum status status = history_open(path, false, &history, &err);
    assert((status == STATUS_OK) == (err.text[0] == '\0'));
    if (status == STATUS_OK) {
        status = history_read(history, &(struct history_filter){0}, &arena, &records, &count, NULL, &err);
        assert((status == STATUS_OK) == (err.text[0] == '\0'));
        for (size_t r = 0; status == STATUS_OK && r < count; r++) check_record(&records[r]);
        if (status == STATUS_OK) check_errors(records, count, &arena);
        struct error add = {0};
        status = history_add(history, &added, &add);
        assert((status == STATUS_OK) == (add.text[0] == '\0'));
    }
    history_close(history);
    unlink(path);
    arena_release(&arena);
    return 0;
}
