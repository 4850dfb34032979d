/* The file that a stopped sweep left, on any bytes: refused with a message, or results of points that there are. */
#include <assert.h>
#include <string.h>

#include "cli/sweep/grid.h"
#include "cli/sweep/kept.h"
#include "tests/support/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_results(const struct sweep_results *results, uint64_t points, uint64_t kept)
{
    uint64_t there = 0;
    for (uint64_t p = 0; p < points; p++) {
        assert(results->points[p].outcome < SWEEP_OUTCOME_COUNT);
        there += results->points[p].outcome != SWEEP_PENDING;
    }
    assert(there == kept);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const figures[] = {"tokens_per_s", "places[gpu0].peak_bytes"};
    static struct sweep_grid grid;
    char path[64];
    struct error err = {0};
    struct arena arena = {0};
    struct sweep_results results = {0};
    struct sweep_kept *kept = NULL;
    uint64_t count = 0;
    snprintf(path, sizeof path, "/dev/shm/spillway-fuzz-kept-%ld.part", (long)getpid());
    fuzz_file_write(path, data, size);
    memset(&grid, 0, sizeof grid);
    enum status status = sweep_grid_add(&grid, "zero=0..3", &arena, &err);
    if (!status) status = sweep_grid_add(&grid, "jobs.microbatch=1..8:x2", &arena, &err);
    if (!status) status = sweep_results_create(&grid, figures, 2, &arena, &results, &err);
    assert(status == STATUS_OK);
    status = sweep_kept_open(path, "what", &results, &count, &kept, &err);
    assert((status == STATUS_OK) == (err.text[0] == '\0'));
    if (status == STATUS_OK) check_results(&results, 16, count); /* 4 levels of ZeRO, 1 2 4 8 */
    sweep_kept_close(kept, true);
    unlink(path);
    arena_release(&arena);
    return 0;
}
