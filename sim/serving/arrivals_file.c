/* All lines are read in the order of the file, then divided among the models. */
#include "sim/serving/arrivals_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/text/number.h"
#include "base/try.h"

#define TEXT_BYTES_MAX ((size_t)1 << 32)
#define SECONDS_MAX 1e9
#define BLANKS " \t\r"
#define WORD_ENDS " \t\r\n#,"

struct arrival {
    double at_s;
    uint32_t model;
};

struct arrivals_reader {
    const char *path, *line; /* start of the line */
    uint32_t number;         /* of the line, from 1 */
    uint32_t model_count;
    struct arrival *arrivals;
    size_t count, capacity;
    struct error *err;
};

static const char *skip(const char *at, const char *blanks) { return at + strspn(at, blanks); }

static enum status fail(const struct arrivals_reader *r, const char *at, const char *expected)
{
    enum { SHOWN = 40 };
    size_t length = strcspn(at, WORD_ENDS);
    char word[SHOWN + 3] = "";
    if (length > 0) snprintf(word, sizeof word, "'%.*s'", (int)(length < SHOWN ? length : SHOWN), at);
    return error_set(r->err, STATUS_BAD_INPUT, "%s:%u:%d: found %s (expected %s)", r->path, r->number,
                     (int)(at - r->line) + 1, length > 0 ? word : "nothing", expected);
}

static bool ends(const char *at) { return *at == '\0' || *at == '\n' || *at == '#'; }

/* Reads the number of a model, if there is one, after the time. */
static enum status read_model(const struct arrivals_reader *r, const char *at, uint32_t *model)
{
    char expected[64], digits[24] = "";
    uint64_t number = 0;
    const char *comma = skip(at, BLANKS), *word = skip(comma + (*comma == ','), BLANKS);
    size_t length = strcspn(word, WORD_ENDS);
    *model = 0;
    if (ends(word) && r->model_count == 1) return STATUS_OK;
    snprintf(expected, sizeof expected, "a model's number, 0 to %u", r->model_count - 1);
    if (length < sizeof digits) memcpy(digits, word, length);
    if (word == at || !number_read_u64(digits, &number) || number >= r->model_count) return fail(r, word, expected);
    *model = (uint32_t)number;
    word = skip(word + length, BLANKS);
    return ends(word) ? STATUS_OK : fail(r, word, "the end of the line");
}

static enum status read_line(struct arrivals_reader *r)
{
    struct arrival next = {0, 0};
    const char *at = skip(r->line, BLANKS), *end;
    if (ends(at)) return STATUS_OK;
    if (!number_read(at, &end, &next.at_s) || next.at_s < 0 || next.at_s > SECONDS_MAX)
        return fail(r, at, "seconds, 0 to 1e9");
    TRY(read_model(r, end, &next.model));
    if (r->count > 0 && next.at_s < r->arrivals[r->count - 1].at_s)
        return error_set(r->err, STATUS_BAD_INPUT, "%s:%u:%d: %g comes after %g (expected ascending times)", r->path,
                         r->number, (int)(at - r->line) + 1, next.at_s, r->arrivals[r->count - 1].at_s);
    TRY(array_reserve(&r->arrivals, &r->capacity, r->count, sizeof *r->arrivals, SERVING_REQUESTS_MAX, "requests",
                      r->err));
    r->arrivals[r->count++] = next;
    return STATUS_OK;
}

static enum status read_lines(struct arrivals_reader *r, const char *text)
{
    for (r->line = text, r->number = 1; *r->line; r->number++) {
        TRY(read_line(r));
        r->line += strcspn(r->line, "\n");
        r->line += *r->line == '\n';
    }
    return STATUS_OK;
}

static enum status share_out(const struct arrivals_reader *r, struct arena *arena, struct serving_traffic *out)
{
    double *times;
    TRY(ARENA_NEW(arena, r->count, times, r->err));
    uint32_t *first;
    TRY(ARENA_NEW(arena, (size_t)r->model_count + 1, first, r->err));
    for (size_t i = 0; i < r->count; i++) first[r->arrivals[i].model + 1]++;
    for (uint32_t m = 0; m < r->model_count; m++) {
        first[m + 1] += first[m];
        out[m] = (struct serving_traffic){.process = TRAFFIC_TIMES, .times = &times[first[m]],
                                          .time_count = first[m + 1] - first[m]};
    }
    for (size_t i = 0; i < r->count; i++) times[first[r->arrivals[i].model]++] = r->arrivals[i].at_s;
    return STATUS_OK;
}

enum status arrivals_parse(const char *path, const char *text, struct arena *arena, uint32_t model_count,
                           struct serving_traffic *out, struct error *err)
{
    struct arrivals_reader r = {.path = path, .model_count = model_count, .err = err};
    enum status status = read_lines(&r, text);
    if (!status) status = share_out(&r, arena, out);
    free(r.arrivals);
    return status;
}

enum status arrivals_read(const char *path, struct arena *arena, uint32_t model_count, struct serving_traffic *out,
                          struct error *err)
{
    char *text;
    size_t length;
    TRY(file_read(path, TEXT_BYTES_MAX, &text, &length, err));
    enum status status = STATUS_OK;
    if (memchr(text, '\0', length))
        status = error_set(err, STATUS_BAD_INPUT, "%s: a NUL in what should be a text", path);
    if (!status) status = arrivals_parse(path, text, arena, model_count, out, err);
    free(text);
    return status;
}
