/*
 * Figures on any bytes: refused with a message, or a figure whose runs can be made (files that it names by their paths
 * may be missing), the same twice.
 */
#include <assert.h>
#include <stdint.h>

#include "cli/repro/figure_runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint32_t count_runs(const struct figure *figure)
{
    struct arena arena = {0};
    struct run_set *set;
    struct error err = {0};
    const uint32_t *indexes;
    if (run_set_create(&set, &err) != STATUS_OK) return 0;
    enum status status = figure_add_runs(figure, set, &arena, &indexes, &err);
    assert(status == STATUS_OK || err.text[0]);
    uint32_t count = run_set_count(set);
    run_set_destroy(set);
    arena_release(&arena);
    return count;
}

static void try_figure(const char *data, size_t size, bool real)
{
    static const char path[] = "/no/such/folder/f.json";
    struct figure *figure = NULL;
    struct error err = {0};
    enum status status = real ? figure_parse_real(path, data, size, &figure, &err)
                              : figure_parse(path, data, size, &figure, &err);
    assert((status == STATUS_OK) == (figure != NULL) && (status == STATUS_OK || err.text[0]));
    if (figure && figure->row_count < 20) {
        uint32_t count = count_runs(figure);
        assert(count_runs(figure) == count);
    }
    figure_destroy(figure);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    try_figure((const char *)data, size, false);
    try_figure((const char *)data, size, true);
    return 0;
}
