/* A row is interpreted when all of it is read. Positions in messages are the field's. */
#include "models/hardware/prices.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/files/file_kind.h"
#include "base/text/number.h"
#include "base/try.h"

enum { FIELDS_MAX = 64, FIELD_BYTES = 512 };
static const size_t file_limit = (size_t)64 << 20;

enum column { MACHINE, GPU, GPU_COUNT, PRICE, SPOT, REGION, AS_OF, BASIS, SOURCE, COLUMNS };
static const char *const column_names[COLUMNS] = {"InstanceType", "AcceleratorName", "AcceleratorCount",
                                                  "Price",        "SpotPrice",       "Region",
                                                  "as_of",        "basis",           "source"};

struct prices_field {
    char text[FIELD_BYTES];
    unsigned long line, column;
};

struct prices_table {
    const char *name, *at, *end;
    unsigned long line, column;
    struct prices_field *fields; /* (FIELDS_MAX) */
    size_t field_count, header_count;
    size_t place[COLUMNS]; /* SIZE_MAX: no such column */
};

/* --- records ---------------------------------------------------------------------------------- */

static enum status fail_at(const struct prices_table *t, unsigned long line, unsigned long column, struct error *err,
                           const char *what)
{
    return error_set(err, STATUS_BAD_INPUT, "%s:%lu:%lu: %s", t->name, line, column, what);
}

static int next_char(struct prices_table *t)
{
    int c = (unsigned char)*t->at++;
    if (c == '\n') {
        t->line++;
        t->column = 1;
    } else {
        t->column++;
    }
    return c;
}

static bool at_end_of_field(const struct prices_table *t)
{
    return t->at == t->end || *t->at == ',' || *t->at == '\n' || *t->at == '\r';
}

static enum status put(struct prices_table *t, struct prices_field *f, size_t *length, int c, struct error *err)
{
    if (c == '\0') return fail_at(t, f->line, f->column, err, "a NUL in a field (expected text)");
    if (*length + 1 >= FIELD_BYTES)
        return fail_at(t, f->line, f->column, err, "the field is too long (limit is 511 bytes)");
    f->text[(*length)++] = (char)c;
    return STATUS_OK;
}

static enum status read_quoted(struct prices_table *t, struct prices_field *f, size_t *length, struct error *err)
{
    next_char(t);
    for (;;) {
        if (t->at == t->end) return fail_at(t, f->line, f->column, err, "the quote is not closed (expected '\"')");
        int c = next_char(t);
        if (c == '"' && (t->at == t->end || *t->at != '"')) break;
        if (c == '"') next_char(t);
        TRY(put(t, f, length, c, err));
    }
    if (at_end_of_field(t)) return STATUS_OK;
    return fail_at(t, t->line, t->column, err, "text after a closing quote (expected ',' or the end of the line)");
}

static enum status read_field(struct prices_table *t, struct prices_field *f, struct error *err)
{
    size_t length = 0;
    f->line = t->line;
    f->column = t->column;
    if (t->at < t->end && *t->at == '"') TRY(read_quoted(t, f, &length, err));
    else
        while (!at_end_of_field(t)) TRY(put(t, f, &length, next_char(t), err));
    f->text[length] = '\0';
    return STATUS_OK;
}

/* Reads a record to the line's end. */
static enum status read_record(struct prices_table *t, struct error *err)
{
    t->field_count = 0;
    for (;;) {
        if (t->field_count == FIELDS_MAX)
            return fail_at(t, t->line, t->column, err, "too many columns (limit is 64)");
        TRY(read_field(t, &t->fields[t->field_count++], err));
        if (t->at < t->end && *t->at == ',') {
            next_char(t);
            continue;
        }
        if (t->at < t->end && *t->at == '\r') next_char(t);
        if (t->at == t->end) return STATUS_OK;
        if (*t->at != '\n') return fail_at(t, t->line, t->column, err, "a carriage return within a line");
        next_char(t);
        return STATUS_OK;
    }
}

static bool is_blank(const struct prices_table *t)
{
    return t->field_count == 1 && t->fields[0].text[0] == '\0';
}

/* --- the header ------------------------------------------------------------------------------- */

static enum status read_header(struct prices_table *t, struct error *err)
{
    TRY(read_record(t, err));
    t->header_count = t->field_count;
    for (size_t c = 0; c < COLUMNS; c++) {
        t->place[c] = SIZE_MAX;
        for (size_t i = 0; i < t->field_count; i++) {
            if (strcmp(t->fields[i].text, column_names[c]) != 0) continue;
            if (t->place[c] != SIZE_MAX)
                return error_set(err, STATUS_BAD_INPUT, "%s:%lu:%lu: two columns '%s'", t->name, t->fields[i].line,
                                 t->fields[i].column, column_names[c]);
            t->place[c] = i;
        }
    }
    if (t->place[PRICE] != SIZE_MAX && (t->place[MACHINE] != SIZE_MAX || t->place[GPU] != SIZE_MAX)) return STATUS_OK;
    return fail_at(t, 1, 1, err,
                   "not the header of a price list (expected the columns InstanceType or AcceleratorName, and Price)");
}

/* --- rows ------------------------------------------------------------------------------------- */

static const char *text_of(const struct prices_table *t, enum column column)
{
    return t->place[column] == SIZE_MAX ? "" : t->fields[t->place[column]].text;
}

/* Parses a number; *found is false for an empty field. */
static enum status parse_number(const struct prices_table *t, enum column column, bool *found, double *out,
                                struct error *err)
{
    const char *text = text_of(t, column), *end;
    *found = text[0] != '\0';
    if (!*found) return STATUS_OK;
    if (number_read(text, &end, out) && *end == '\0' && *out > 0 && *out < 1e9) return STATUS_OK;
    const struct prices_field *f = &t->fields[t->place[column]];
    return error_set(err, STATUS_BAD_INPUT, "%s:%lu:%lu: %s is '%.40s' (expected a number above 0)", t->name, f->line,
                     f->column, column_names[column], text);
}

static enum status check_date(const struct prices_table *t, struct error *err)
{
    const char *date = text_of(t, AS_OF);
    int64_t days;
    if (date[0] == '\0' || price_days_between(date, date, &days)) return STATUS_OK;
    const struct prices_field *f = &t->fields[t->place[AS_OF]];
    return error_set(err, STATUS_BAD_INPUT, "%s:%lu:%lu: as_of is '%.40s' (expected a date such as 2026-09-25)",
                     t->name, f->line, f->column, date);
}

static enum status price_list_add(struct price_list *list, struct price price, struct error *err)
{
    const char **const texts[] = {&price.machine, &price.basis, &price.as_of, &price.region, &price.source};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        TRY(arena_string(&list->arena, *texts[i], texts[i], err));
    TRY(array_reserve(&list->prices, &list->capacity, list->count, sizeof *list->prices, PRICES_MAX, "prices", err));
    list->prices[list->count++] = price;
    return STATUS_OK;
}

static enum status add_row(const struct prices_table *t, struct price_list *out, struct error *err)
{
    double price = 0, spot = 0, count = 1;
    bool has_price, has_spot, has_count;
    struct price row = {.machine = text_of(t, MACHINE), .as_of = text_of(t, AS_OF), .region = text_of(t, REGION),
                        .source = text_of(t, SOURCE)};
    TRY(parse_number(t, PRICE, &has_price, &price, err));
    TRY(parse_number(t, SPOT, &has_spot, &spot, err));
    TRY(parse_number(t, GPU_COUNT, &has_count, &count, err));
    TRY(check_date(t, err));
    if (row.machine[0] != '\0' || !has_count) count = 1;
    if (row.machine[0] == '\0') row.machine = text_of(t, GPU);
    if (row.machine[0] == '\0')
        return fail_at(t, t->fields[0].line, 1, err,
                       "the row names no machine (expected an InstanceType or an AcceleratorName)");
    row.basis = text_of(t, BASIS)[0] != '\0' ? text_of(t, BASIS) : "on_demand";
    row.usd_per_h = price / count;
    if (has_price) TRY(price_list_add(out, row, err));
    row.basis = "spot";
    row.usd_per_h = spot / count;
    return has_spot ? price_list_add(out, row, err) : STATUS_OK;
}

static enum status read_rows(struct prices_table *t, struct price_list *out, struct error *err)
{
    TRY(read_header(t, err));
    while (t->at < t->end) {
        TRY(read_record(t, err));
        if (is_blank(t)) continue;
        if (t->field_count != t->header_count)
            return error_set(err, STATUS_BAD_INPUT, "%s:%lu:1: the row has %zu fields (expected %zu, as the header)",
                             t->name, t->fields[0].line, t->field_count, t->header_count);
        TRY(add_row(t, out, err));
    }
    return STATUS_OK;
}

/* --- lists ------------------------------------------------------------------------------------ */

enum status price_list_parse(const char *name, const char *text, size_t length, struct price_list *out,
                             struct error *err)
{
    struct prices_table t = {.name = name, .at = text, .end = text + length, .line = 1, .column = 1};
    t.fields = alloc_zeroed(FIELDS_MAX, sizeof *t.fields);
    if (!t.fields) return error_memory(err, "a row of prices", FIELDS_MAX * sizeof *t.fields);
    enum status status = read_rows(&t, out, err);
    free(t.fields);
    return status;
}

enum status price_list_read(const char *path, struct price_list *out, struct error *err)
{
    char *text;
    size_t length;
    char found[FILE_READING_BYTES];
    struct file_look look;
    if (file_kind_look(path, &look) && !look.text && file_reading_refusal_at(path, "a price list, a table", found))
        return error_set(err, STATUS_BAD_INPUT, "'%s' is %s", path, found);
    TRY(file_read(path, file_limit, &text, &length, err));
    enum status status = price_list_parse(path, text, length, out, err);
    free(text);
    return status;
}

void price_list_release(struct price_list *list)
{
    free(list->prices);
    arena_release(&list->arena);
    *list = (struct price_list){0};
}

const char *price_machine(const char *machine)
{
    static const char cloud[] = "aws:";
    return strncmp(machine, cloud, sizeof cloud - 1) == 0 ? machine + sizeof cloud - 1 : machine;
}

const struct price *price_find(const struct price_list *list, const char *machine, const char *basis)
{
    const struct price *best = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct price *p = &list->prices[i];
        if (strcmp(price_machine(p->machine), price_machine(machine)) != 0 || strcmp(p->basis, basis) != 0) continue;
        if (!best || p->usd_per_h < best->usd_per_h) best = p;
    }
    return best;
}

/* --- dates ------------------------------------------------------------------------------------ */

static bool digits(const char *text, size_t count, int *out)
{
    *out = 0;
    for (size_t i = 0; i < count; i++) {
        if (text[i] < '0' || text[i] > '9') return false;
        *out = *out * 10 + (text[i] - '0');
    }
    return true;
}

static int month_days(int year, int month)
{
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 ? 28 + leap : month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

/* Returns days of the Gregorian calendar. Years begin in March, so that leap days end them. */
static bool day_number(const char *date, int64_t *out)
{
    int year, month, day = 1;
    size_t length = strlen(date);
    if (length != 7 && length != 10) return false;
    if (!digits(date, 4, &year) || date[4] != '-' || !digits(date + 5, 2, &month)) return false;
    if (length == 10 && (date[7] != '-' || !digits(date + 8, 2, &day))) return false;
    if (month < 1 || month > 12 || day < 1 || day > month_days(year, month)) return false;
    int64_t y = year - (month <= 2), m = (month + 9) % 12;
    *out = 365 * y + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day;
    return true;
}

bool price_days_between(const char *from, const char *to, int64_t *days)
{
    int64_t a, b;
    if (!day_number(from, &a) || !day_number(to, &b)) return false;
    *days = b - a;
    return true;
}
