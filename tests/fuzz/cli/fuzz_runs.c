/* Tables of measured runs, which `calibrate` reads, on any bytes: refused with a message, or runs that are runs. */
#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cli/machine/cli_runs.h"
#include "tests/support/fuzz_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena = {0};
    struct measured_runs runs = {0};
    struct error err = {0};
    struct fuzz_file file = fuzz_file_make(data, size);
    enum status status = measured_runs_read(file.path, &arena, &runs, &err);
    assert(status == STATUS_OK || strstr(err.text, file.path));
    for (uint32_t i = 0; i < runs.count; i++) {
        const struct measured_run *run = &runs.runs[i];
        assert(isfinite(run->seconds) && run->seconds > 0);
        assert(run->of[RUN_DEVICES] == (uint64_t)run->of[RUN_TENSOR] * run->of[RUN_DATA] * run->of[RUN_PIPELINE]);
        assert(run->of[RUN_WIDTH] % run->of[RUN_HEADS] == 0 && run->of[RUN_BATCH] % run->of[RUN_MICROBATCH] == 0);
    }
    arena_release(&arena);
    close(file.descriptor);
    return 0;
}
