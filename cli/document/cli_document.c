/*
 * A verb prints into a stream in memory, and cli_table.c reports tables with their bytes. At the end the text goes to
 * the verb's output, and the page is made of the tables and of the lines between them:
 *
 *     2 jobs on 'gpu'                    a line that begins a paragraph
 *     JOB    ...                         reported by cli_table.c: a table
 *     makespan     12 s simulated        a name, two spaces or more, text: a row of a table of figures
 *                  and its continuation  leading spaces: a further row without a name
 *     next: spillway run plan.json       the last line: the next command
 *
 * Pictures are drawn while the verb has the traces, and placed after the text.
 */
#include "cli/document/cli_document.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/files/file.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/common/cli_table.h"
#include "cli/document/document.h"
#include "cli/process/cli_child.h"
#include "models/hardware/hardware.h"
#include "plots/plot.h"
#include "traces/trace_reader.h"

enum { SPANS_MAX = 8000000, TABLES_MAX = 4096, PICTURES_MAX = 8, ASSUMPTIONS_MAX = 40, ASSUMPTION_BYTES = 512 };

struct seen_table {
    long from, to; /* bytes in the text */
    const char *const *headings;
    const char *const *cells;
    size_t column_count, cell_count;
};

struct document_picture {
    const char *caption; /* string constant */
    char *data;
    size_t length;
};

struct cli_document {
    FILE *out, *stream; /* the normal output; its replacement until the end */
    char *text;         /* of the stream */
    size_t length;
    struct seen_table *tables;
    size_t table_count, table_capacity;
    struct document_picture pictures[PICTURES_MAX];
    size_t picture_count;
    char assumptions[ASSUMPTIONS_MAX][ASSUMPTION_BYTES];
    size_t assumption_count;
    struct arena arena;
    struct error failed; /* the first failure */
};

/* --- recording ------------------------------------------------------------------------------- */

/* Copies strings, with NULL after the last. */
static enum status copy_strings(struct arena *arena, const char *const *texts, size_t count, const char *const **out,
                                struct error *err)
{
    const char **copies;
    TRY(ARENA_NEW(arena, count + 1, copies, err));
    for (size_t i = 0; i < count; i++)
        TRY(arena_string(arena, texts[i], &copies[i], err));
    *out = copies;
    return STATUS_OK;
}

static void see_table(void *context, const struct cli_table *table, long from, long to)
{
    struct cli_document *document = context;
    struct error *failed = &document->failed;
    if (failed->status != STATUS_OK ||
        array_reserve(&document->tables, &document->table_capacity, document->table_count, sizeof *document->tables,
                      TABLES_MAX, "tables in a report", failed) != STATUS_OK)
        return;
    struct seen_table *seen = &document->tables[document->table_count];
    *seen = (struct seen_table){.from = from, .to = to, .column_count = table->column_count,
                                .cell_count = table->cell_count};
    if (copy_strings(&document->arena, table->headings, table->column_count, &seen->headings, failed) != STATUS_OK ||
        copy_strings(&document->arena, table->cells, table->cell_count, &seen->cells, failed) != STATUS_OK)
        return;
    document->table_count++;
}

/* Checks the target before long work. */
static enum status check_target(const char *path, struct error *err)
{
    struct file_out *file;
    if (document_check_path(path, PICTURES_MAX, err) != STATUS_OK || file_out_create(path, &file, err) != STATUS_OK)
        return error_add(err, "option '--report'");
    file_out_discard(file);
    return STATUS_OK;
}

enum status cli_document_begin(struct cli *cli, struct error *err)
{
    if (cli->json)
        return error_set(err, STATUS_BAD_INPUT,
                         "option '--report' makes a page of the text and cannot be used with '--json'");
    TRY(check_target(cli->report_path, err));
    struct cli_document *document = alloc_zeroed(1, sizeof *document);
    if (!document) return error_memory(err, "a report", sizeof *document);
    document->stream = open_memstream(&document->text, &document->length);
    if (!document->stream) {
        free(document);
        return error_memory(err, "a report", 0);
    }
    document->out = cli->out;
    cli->out = document->stream;
    cli->document = document;
    cli_table_watch(document->stream, see_table, document);
    return STATUS_OK;
}

/* --- pictures -------------------------------------------------------------------------------- */

static enum status read_picture(struct cli_document *document, const char *caption, const char *path, struct error *err)
{
    assert(document->picture_count < PICTURES_MAX);
    struct document_picture *picture = &document->pictures[document->picture_count];
    TRY(file_read(path, DOCUMENT_PICTURE_BYTES_MAX, &picture->data, &picture->length, err));
    picture->caption = caption;
    document->picture_count++;
    return STATUS_OK;
}

void cli_document_draw(struct cli *cli, const char *caption, cli_draw draw, const void *context)
{
    char name[CLI_PATH_BYTES], path[CLI_PATH_BYTES + sizeof ".svg"];
    struct error err = {0};
    if (!cli->document) return;
    if (cli_child_file(name, &err) == STATUS_OK) {
        snprintf(path, sizeof path, "%s.svg", name);
        if (draw(context, path, &err) == STATUS_OK) (void)!read_picture(cli->document, caption, path, &err);
        unlink(path);
        unlink(name);
    }
    if (err.status != STATUS_OK) cli_warn(cli, "a picture is missing from the report: %s", err.text);
}

/* --- pictures of traces ---------------------------------------------------------------------- */

struct document_trace_pair {
    struct trace_reader *predicted, *measured;
};

static enum status draw_timeline(const void *context, const char *path, struct error *err)
{
    const struct document_trace_pair *pair = context;
    return plot_timeline_readers(pair->predicted, pair->measured, path, &(struct plot_options){0}, err);
}

static enum status draw_memory(const void *context, const char *path, struct error *err)
{
    const struct document_trace_pair *pair = context;
    return plot_memory_readers(pair->predicted, pair->measured, path, &(struct plot_options){0}, err);
}

bool cli_document_wants_spans(struct cli *cli, uint64_t operations)
{
    if (!cli->document) return false;
    if (operations <= SPANS_MAX) return true;
    cli_warn(cli, "the report has no timeline: %" PRIu64 " operations are too many to be seen (limit is %d)",
             operations, SPANS_MAX);
    return false;
}

/* Finds out whether a trace has spans and levels. */
static enum status find_contents(struct trace_reader *reader, bool *spans, bool *levels, struct error *err)
{
    struct trace_span span;
    struct trace_level level;
    bool more = true;
    uint64_t span_count, level_count;
    if (trace_reader_counts(reader, &span_count, &level_count)) {
        *spans = span_count > 0;
        *levels = level_count > 0;
        return STATUS_OK;
    }
    TRY(trace_reader_rewind(reader, err));
    TRY(trace_reader_span(reader, &span, spans, err));
    for (more = *spans; more;) TRY(trace_reader_span(reader, &span, &more, err));
    return trace_reader_level(reader, &level, levels, err);
}

void cli_document_readers(struct cli *cli, struct trace_reader *predicted, struct trace_reader *measured)
{
    const struct document_trace_pair pair = {.predicted = predicted, .measured = measured};
    struct trace_reader *any = predicted ? predicted : measured;
    struct error err = {0};
    bool spans, levels;
    if (!cli->document || !any) return;
    if (find_contents(any, &spans, &levels, &err) != STATUS_OK) {
        cli_warn(cli, "pictures are missing from the report: %s", err.text);
        return;
    }
    if (!spans) return;
    cli_document_draw(cli, "Who ran what, when", draw_timeline, &pair);
    if (levels) cli_document_draw(cli, "Memory in use at each place", draw_memory, &pair);
}

void cli_document_traces(struct cli *cli, const struct trace *predicted, const struct trace *measured)
{
    struct trace_reader *readers[2] = {NULL};
    struct error err = {0};
    if (!cli->document) return;
    enum status status = predicted ? trace_reader_of(predicted, &readers[0], &err) : STATUS_OK;
    if (status == STATUS_OK && measured) status = trace_reader_of(measured, &readers[1], &err);
    if (status == STATUS_OK) cli_document_readers(cli, readers[0], readers[1]);
    else cli_warn(cli, "pictures are missing from the report: %s", err.text);
    for (size_t i = 0; i < ARRAY_COUNT(readers); i++) trace_reader_close(readers[i]);
}

/* --- assumptions ------------------------------------------------------------------------------ */

static void assume(struct cli_document *document, const char *format, ...) PRINTF_LIKE(2, 3);
static void assume(struct cli_document *document, const char *format, ...)
{
    if (document->assumption_count == ASSUMPTIONS_MAX) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(document->assumptions[document->assumption_count++], ASSUMPTION_BYTES, format, arguments);
    va_end(arguments);
}

static void assume_devices(struct cli_document *document, const struct hardware *hardware)
{
    for (uint32_t t = 0; t < hardware->type_count; t++) {
        const struct device_type *type = &hardware->types[t];
        if (type->profile_count > 0) {
            assume(document, "Computations on %s take the measured times of their kernels.", type->name);
            continue;
        }
        const struct sourced_value *matmul = type->matmul_efficiency.source ? &type->matmul_efficiency
                                                                     : &hardware_default_matmul_efficiency;
        const struct sourced_value *memory = type->memory_efficiency.source ? &type->memory_efficiency
                                                                     : &hardware_default_memory_efficiency;
        assume(document,
               "Single kernels were not measured on %s: products run at %.0f %% of its peak (%s), kernels that only "
               "move memory at %.0f %% of its bandwidth (%s).",
               type->name, 100 * matmul->value, source_kind_names[matmul->kind], 100 * memory->value,
               source_kind_names[memory->kind]);
    }
}

void cli_document_simulated(struct cli *cli, const struct hardware *hardware)
{
    struct cli_document *document = cli->document;
    if (!document) return;
    assume_devices(document, hardware);
    uint32_t measured = 0;
    for (uint32_t l = 0; l < hardware->link_count; l++)
        measured += hardware->links[l].bandwidth.kind == SOURCE_MEASURED;
    if (hardware->link_count > 0)
        assume(document,
               "%" PRIu32 " of %" PRIu32 " links have a measured bandwidth; copies that use a link at the same "
               "time share it equally.",
               measured, hardware->link_count);
    assume(document, "Not modelled: other programs on the machine, lower clocks of a warm machine, and input data that "
           "arrives late.");
}

/* --- the page -------------------------------------------------------------------------------- */

/* Rows of figures are collected until another kind of line comes. */
struct page {
    struct document *document;
    bool in_figures;
};

static void end_figures(struct page *page)
{
    if (page->in_figures) document_table_end(page->document);
    page->in_figures = false;
}

/* Returns the length of a name, from a small letter to two spaces; 0 if the line is no figure. */
static size_t label_length(const char *line)
{
    enum { LABEL_MAX = 24 };
    if (line[0] < 'a' || line[0] > 'z') return 0;
    const char *end = strstr(line, "  ");
    return end && end - line <= LABEL_MAX && end[strspn(end, " ")] ? (size_t)(end - line) : 0;
}

static void put_line(struct page *page, const char *line)
{
    static const char next[] = "next: ";
    size_t length = label_length(line);
    if (line[0] == '\0') return;
    if (page->in_figures && line[0] == ' ') {
        document_cell(page->document, "%s", "");
        document_cell(page->document, "%s", line + strspn(line, " "));
        return;
    }
    if (length > 0) {
        if (!page->in_figures) document_table_begin(page->document, "", (const char *const[]){"FIGURE", "VALUE", NULL});
        page->in_figures = true;
        document_cell(page->document, "%.*s", (int)length, line);
        document_cell(page->document, "%s", line + length + strspn(line + length, " "));
        return;
    }
    end_figures(page);
    if (strncmp(line, next, strlen(next)) == 0) {
        document_paragraph(page->document, "What to type next:");
        document_code(page->document, line + strlen(next));
    } else {
        document_paragraph(page->document, "%s", line + strspn(line, " "));
    }
}

/* Adds lines of the text, which is modified. */
static void put_lines(struct page *page, char *text, char *end)
{
    while (text < end) {
        char *line_end = memchr(text, '\n', (size_t)(end - text));
        char *next = line_end ? line_end + 1 : end;
        if (line_end) *line_end = '\0';
        put_line(page, text);
        text = next;
    }
    end_figures(page);
}

static void put_table(struct document *page, const struct seen_table *table)
{
    document_table_begin(page, "", table->headings);
    for (size_t i = 0; i < table->cell_count; i++) document_cell(page, "%s", table->cells[i]);
    document_table_end(page);
}

/* Keeps the printed order. */
static void put_answer(struct document *page, const struct cli_document *document, char *text)
{
    struct page lines = {.document = page};
    char *at = text;
    for (size_t i = 0; i < document->table_count; i++) {
        const struct seen_table *table = &document->tables[i];
        put_lines(&lines, at, text + table->from);
        put_table(page, table);
        at = text + table->to;
    }
    put_lines(&lines, at, text + document->length);
}

static void put_command(struct document *page, const struct cli *cli)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out) return; /* the page works without it */
    fputs("spillway", out);
    for (int i = 0; i < cli->argc; i++) {
        fputc(' ', out);
        cli_print_word(out, cli->argv[i]);
    }
    if (fclose(out) == 0) document_code(page, text);
    free(text);
}

static void put_list(struct document *page, const char *title, const char *items, size_t size, size_t count)
{
    if (count > 0) document_heading(page, 2, "%s", title);
    for (size_t i = 0; i < count; i++) document_item(page, "%s", items + i * size);
}

static enum status write_page(const struct cli *cli, struct error *err)
{
    const struct cli_document *document = cli->document;
    char title[CLI_COMMAND_BYTES];
    if (document->failed.status != STATUS_OK)
        return error_set(err, document->failed.status, "%s", document->failed.text);
    /* split into lines */
    char *text = alloc_resize(NULL, document->length + 1);
    struct document *page = document_create(cli_command(cli->verb, title));
    enum status status = STATUS_OK;
    if (text && page) {
        memcpy(text, document->text, document->length + 1);
        put_command(page, cli);
        put_answer(page, document, text);
        if (document->picture_count > 0) document_heading(page, 2, "Pictures");
        for (size_t i = 0; i < document->picture_count && status == STATUS_OK; i++)
            status = document_picture(page, document->pictures[i].caption, document->pictures[i].data,
                                      document->pictures[i].length, err);
        put_list(page, "What this rests on", document->assumptions[0], ASSUMPTION_BYTES, document->assumption_count);
        put_list(page, "Warnings", cli->warnings[0], sizeof cli->warnings[0], cli->warning_count);
        document_paragraph(page, "Made by spillway %s.", SPILLWAY_VERSION);
        if (status == STATUS_OK) status = document_write(page, cli->report_path, err);
    } else {
        status = error_memory(err, "a report", document->length);
    }
    document_destroy(page);
    free(text);
    return status;
}

static void release(struct cli_document *document)
{
    for (size_t i = 0; i < document->picture_count; i++) free(document->pictures[i].data);
    free(document->tables);
    free(document->text);
    arena_release(&document->arena);
    free(document);
}

enum status cli_document_end(struct cli *cli, enum status status, struct error *err)
{
    struct cli_document *document = cli->document;
    if (!document) return status;
    cli_table_watch(NULL, NULL, NULL);
    bool complete = !ferror(document->stream);
    if (fclose(document->stream) != 0) complete = false;
    cli->out = document->out;
    if (!complete) {
        if (status == STATUS_OK) status = error_memory(err, "the answer", document->length);
    } else {
        fwrite(document->text, 1, document->length, cli->out);
        /* "no" is an answer too */
        bool answer = document->length > 0 &&
                      (status == STATUS_OK || status == STATUS_CHECK || status == STATUS_INFEASIBLE);
        struct error page_error = {0};
        if (answer && write_page(cli, &page_error) != STATUS_OK && status == STATUS_OK) {
            *err = page_error;
            status = err->status;
        }
    }
    cli->document = NULL;
    release(document);
    return status;
}
