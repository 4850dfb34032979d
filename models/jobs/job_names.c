/* Open addressing, at most half full. */
#include "models/jobs/job_names.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/try.h"

enum { CELLS_LEAST = 64 };

/* Returns the text's cell, or a free one. */
static struct job_name *find_cell(const struct job_names *names, const char *text)
{
    size_t mask = names->cell_count - 1;
    for (size_t i = hash_bytes(HASH_BEGIN, text, strlen(text)) & mask;; i = (i + 1) & mask)
        if (!names->cells[i].text || strcmp(names->cells[i].text, text) == 0) return &names->cells[i];
}

uint32_t job_names_find(const struct job_names *names, const char *text)
{
    if (names->count == 0) return UINT32_MAX;
    const struct job_name *cell = find_cell(names, text);
    return cell->text ? cell->job : UINT32_MAX;
}

static enum status grow(struct job_names *names, struct error *err)
{
    struct job_names larger = {.count = names->count,
                               .cell_count = names->cell_count > 0 ? 2 * names->cell_count : CELLS_LEAST};
    larger.cells = alloc_zeroed(larger.cell_count, sizeof *larger.cells);
    if (!larger.cells) return error_memory(err, "names of jobs", larger.cell_count * sizeof *larger.cells);
    for (size_t i = 0; i < names->cell_count; i++)
        if (names->cells[i].text) *find_cell(&larger, names->cells[i].text) = names->cells[i];
    free(names->cells);
    *names = larger;
    return STATUS_OK;
}

enum status job_names_add(struct job_names *names, const char *text, uint32_t job, struct error *err)
{
    if (2 * (names->count + 1) >= names->cell_count) {
        TRY(grow(names, err));
    }
    *find_cell(names, text) = (struct job_name){text, job};
    names->count++;
    return STATUS_OK;
}
