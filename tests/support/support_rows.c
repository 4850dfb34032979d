#include "tests/support/support_rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdlib.h>

#include "base/random.h"
#include "models/rows/rows_write.h"

void support_rows_write(const char *path, uint64_t seed, uint64_t rows, uint64_t longest, uint64_t vocabulary,
                        uint64_t idle)
{
    struct rows_write *out;
    struct error err = {0};
    uint32_t *const tokens = calloc(longest + 1, sizeof *tokens);
    assert_non_null(tokens);
    if (rows_write_create(path, vocabulary, 0, &out, &err)) fail_msg("%s", err.text);
    for (uint64_t r = 0; r < rows; r++) {
        const uint64_t count = 2 + random_below(seed, 5 * r, longest - 1);
        const struct rows_write_span span = {1 + random_below(seed, 5 * r + 1, count - 1), count};
        for (uint64_t i = 0; i < count; i++) tokens[i] = (uint32_t)random_below(seed + 1 + r, i, vocabulary);
        if (rows_write_row(out, tokens, count, &span, idle == 0 || r % idle > 0, &err)) fail_msg("%s", err.text);
    }
    if (rows_write_commit(out, &err)) fail_msg("%s", err.text);
    rows_write_destroy(out);
    free(tokens);
}
