#include "cli/repro/figure_report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/files/csv.h"
#include "base/try.h"
#include "plots/plot_figure.h"

/* --- numbers ------------------------------------------------------------------------------------- */

const char *figure_number(const struct expression_value *value, char text[FIGURE_NUMBER_BYTES])
{
    if (value->kind != EXPRESSION_VALUE_NUMBER)
        return strcpy(text, "-");
    double size = fabs(value->number);
    if (size >= 1000 && size < 1e6)
        snprintf(text, FIGURE_NUMBER_BYTES, "%.0f", value->number);
    else
        snprintf(text, FIGURE_NUMBER_BYTES, "%.4g", value->number);
    return text;
}

const char *figure_error(const struct figure_series *series, const struct figure_point *point,
                         char text[FIGURE_NUMBER_BYTES])
{
    text[0] = '\0';
    if (!point->compared) return text;
    if (series->absolute)
        snprintf(text, FIGURE_NUMBER_BYTES, "%+.3g", point->error);
    else
        snprintf(text, FIGURE_NUMBER_BYTES, "%+.1f %%", point->error * 100);
    return text;
}

static const char *cell_text(const struct expression_value *cell, char text[FIGURE_NUMBER_BYTES])
{
    return cell->kind == EXPRESSION_VALUE_TEXT ? cell->text : figure_number(cell, text);
}

/* Returns true if a series shows the column. */
static bool is_published(const struct figure *figure, uint32_t column)
{
    return figure->columns[column].source != NULL;
}

/* --- picture --------------------------------------------------------------------------------------- */

struct picture {
    struct plot_figure plot;
    const char **labels, **series;
    double *x;
    struct plot_figure_value *reference, *simulated;
};

static struct plot_figure_value plot_value(const struct expression_value *value)
{
    return (struct plot_figure_value){value->kind == EXPRESSION_VALUE_NUMBER, value->number};
}

/* Labels lines by texts that name the row except x, bars by all that distinguishes them. */
static enum status label_row(const struct figure *figure, uint32_t row, struct arena *arena, const char **out,
                             struct error *err)
{
    char label[FIGURE_LABEL_BYTES];
    if (figure->kind != FIGURE_LINES) return arena_string(arena, figure_row_label(figure, row, label), out, err);
    size_t at = 0;
    label[0] = '\0';
    for (uint32_t c = 0; c < figure->column_count && at + 1 < sizeof label; c++) {
        const struct expression_value *cell = figure_cell(figure, row, c);
        if (c == figure->x.column || !figure->columns[c].named || cell->kind != EXPRESSION_VALUE_TEXT) continue;
        int length = snprintf(label + at, sizeof label - at, "%s%s", at > 0 ? ", " : "", cell->text);
        at += length > 0 ? (size_t)length : 0;
    }
    return arena_string(arena, label, out, err);
}

static enum status fill_picture(const struct figure_result *result, struct arena *arena, struct picture *p,
                                struct error *err)
{
    const struct figure *figure = result->figure;
    size_t rows = figure->row_count, points = rows * figure->series_count;
    TRY(ARENA_NEW(arena, rows, p->labels, err));
    TRY(ARENA_NEW(arena, figure->series_count, p->series, err));
    TRY(ARENA_NEW(arena, rows, p->x, err));
    TRY(ARENA_NEW(arena, points, p->reference, err));
    TRY(ARENA_NEW(arena, points, p->simulated, err));
    uint32_t shown = 0, count = 0;
    for (uint32_t s = 0; s < figure->series_count; s++) shown += figure->series[s].shown;
    for (uint32_t s = 0; s < figure->series_count; s++) {
        if (!figure->series[s].shown) continue;
        p->series[count] = figure->series[s].label;
        for (uint32_t r = 0; r < rows; r++) {
            const struct figure_point *point = figure_point_at(result, r, s);
            p->reference[r * shown + count] = plot_value(figure_reference(figure, point));
            p->simulated[r * shown + count] = plot_value(&point->simulated);
        }
        count++;
    }
    for (uint32_t r = 0; r < rows; r++) {
        p->x[r] = figure_cell(figure, r, figure->x.column)->number;
        TRY(label_row(figure, r, arena, &p->labels[r], err));
    }
    p->plot = (struct plot_figure){.lines = figure->kind == FIGURE_LINES, .x_log = figure->x.log,
                                   .y_log = figure->quantity.log, .row_count = (uint32_t)rows, .series_count = shown,
                                   .labels = p->labels, .x = p->x, .series = p->series, .reference = p->reference,
                                   .simulated = p->simulated,
                                   .reference_name = figure->real.read ? "measured" : "published"};
    return STATUS_OK;
}

static void name_axis(char *text, size_t size, const char *name, const char *unit)
{
    snprintf(text, size, *unit ? "%s (%s)" : "%s", name, unit);
}

enum status figure_draw(const struct figure_result *result, const char *path, struct error *err)
{
    const struct figure *figure = result->figure;
    struct arena arena = {0};
    struct picture picture;
    char title[256], x_name[128], y_name[128];
    snprintf(title, sizeof title, "%s, %s: %s", figure->paper.id, figure->figure, figure->title);
    name_axis(x_name, sizeof x_name, figure->x.name, figure->x.unit);
    name_axis(y_name, sizeof y_name, figure->quantity.name, figure->quantity.unit);
    if (fill_picture(result, &arena, &picture, err) == STATUS_OK) {
        picture.plot.title = title;
        picture.plot.x_name = x_name;
        picture.plot.y_name = y_name;
        (void)!plot_figure_draw(&picture.plot, path, err);
    }
    arena_release(&arena);
    return err->status;
}

/* --- CSV ------------------------------------------------------------------------------------------- */

static void csv_value(const struct expression_value *value, FILE *out)
{
    if (value->kind == EXPRESSION_VALUE_NUMBER)
        fprintf(out, "%.17g", value->number);
    else if (value->kind == EXPRESSION_VALUE_TEXT)
        csv_print_text(out, value->text);
    fputc(',', out);
}

static void csv_point(const struct figure_result *result, uint32_t row, uint32_t s, FILE *out)
{
    const struct figure *figure = result->figure;
    const struct figure_point *point = figure_point_at(result, row, s);
    for (uint32_t c = 0; c < figure->column_count; c++)
        if (!is_published(figure, c)) csv_value(figure_cell(figure, row, c), out);
    csv_print_text(out, figure->series[s].label);
    fputc(',', out);
    csv_value(&point->published, out);
    if (figure->real.read) csv_value(&point->measured, out);
    csv_value(&point->simulated, out);
    if (point->compared) fprintf(out, "%.6g", point->error);
    fputc('\n', out);
}

void figure_write_csv(const struct figure_result *result, FILE *out)
{
    const struct figure *figure = result->figure;
    for (uint32_t c = 0; c < figure->column_count; c++)
        if (!is_published(figure, c)) fprintf(out, "%s,", figure->columns[c].name);
    fprintf(out, "series,published,%ssimulated,error\n", figure->real.read ? "measured," : "");
    for (uint32_t r = 0; r < figure->row_count; r++)
        for (uint32_t s = 0; s < figure->series_count; s++)
            if (figure->series[s].shown) csv_point(result, r, s, out);
}

/* --- document -------------------------------------------------------------------------------------- */

enum { HEADINGS_MAX = FIGURE_COLUMNS_MAX + 4 * FIGURE_SERIES_MAX + 1 };

struct headings {
    char text[HEADINGS_MAX][128];
    const char *items[HEADINGS_MAX + 1];
    uint32_t count;
};

static void add_heading(struct headings *h, const char *mark, const char *text, const char *behind)
{
    snprintf(h->text[h->count], sizeof h->text[0], "%s%s%s", mark, text, behind);
    h->items[h->count] = h->text[h->count];
    h->count++;
}

static bool is_numeric(const struct figure *figure, uint32_t column)
{
    for (uint32_t r = 0; r < figure->row_count; r++)
        if (figure_cell(figure, r, column)->kind == EXPRESSION_VALUE_TEXT) return false;
    return true;
}

static bool is_compared(const struct figure *figure, const struct figure_series *series)
{
    return figure->real.read ? series->measured != NULL : series->published != FIGURE_NONE;
}

static void make_headings(const struct figure *figure, struct headings *h)
{
    for (uint32_t c = 0; c < figure->column_count; c++)
        if (!is_published(figure, c)) add_heading(h, is_numeric(figure, c) ? ">" : "", figure->columns[c].name, "");
    for (uint32_t s = 0; s < figure->series_count; s++) {
        const struct figure_series *series = &figure->series[s];
        if (!series->shown) continue;
        if (series->published != FIGURE_NONE) add_heading(h, ">", series->label, ", published");
        if (series->measured) add_heading(h, ">", series->label, ", measured");
        add_heading(h, ">", series->label, ", simulated");
        if (is_compared(figure, series)) add_heading(h, ">", "error", "");
    }
}

static void add_table(const struct figure_result *result, struct document *document)
{
    const struct figure *figure = result->figure;
    struct headings *headings = alloc_zeroed(1, sizeof *headings);
    char text[FIGURE_NUMBER_BYTES];
    if (!headings) return;
    make_headings(figure, headings);
    if (headings->count <= DOCUMENT_COLUMNS_MAX) {
        document_table_begin(document, "", headings->items);
        for (uint32_t r = 0; r < figure->row_count; r++) {
            for (uint32_t c = 0; c < figure->column_count; c++)
                if (!is_published(figure, c)) document_cell(document, "%s", cell_text(figure_cell(figure, r, c), text));
            for (uint32_t s = 0; s < figure->series_count; s++) {
                const struct figure_series *series = &figure->series[s];
                const struct figure_point *point = figure_point_at(result, r, s);
                if (!series->shown) continue;
                if (series->published != FIGURE_NONE)
                    document_cell(document, "%s", figure_number(&point->published, text));
                if (series->measured) document_cell(document, "%s", figure_number(&point->measured, text));
                document_cell(document, "%s", figure_number(&point->simulated, text));
                if (is_compared(figure, series)) document_cell(document, "%s", figure_error(series, point, text));
            }
        }
        document_table_end(document);
    } else
        document_paragraph(document, "The table has %u columns, more than fit here; --csv has them.",
                           (unsigned)headings->count);
    free(headings);
}

static void add_texts(struct document *document, const char *name, const struct figure_texts *texts)
{
    if (texts->count > 0) document_paragraph(document, "%s:", name);
    for (uint32_t i = 0; i < texts->count; i++) document_item(document, "%s", texts->items[i]);
}

static void add_claims(const struct figure_result *result, struct document *document)
{
    if (result->figure->claim_count > 0) document_paragraph(document, "Claims:");
    for (uint32_t i = 0; i < result->figure->claim_count; i++) {
        const struct figure_judged *judged = &result->claims[i];
        if (judged->known)
            document_item(document, "%s: %s", judged->holds ? "holds" : "does not hold",
                          result->figure->claims[i].text);
        else
            document_item(document, "not known (%s): %s", judged->why, result->figure->claims[i].text);
    }
}

static void add_sources(const struct figure *figure, struct document *document)
{
    bool any = false;
    for (uint32_t c = 0; c < figure->column_count; c++) {
        if (!is_published(figure, c)) continue;
        if (!any) document_paragraph(document, "Published values:");
        any = true;
        document_item(document, "%s: %s; %s", figure->columns[c].name, figure->columns[c].source,
                      figure->columns[c].reading);
    }
}

enum status figure_add_to_document(const struct figure_result *result, const char *picture, unsigned level,
                                   struct document *document, struct error *err)
{
    const struct figure *figure = result->figure;
    char caption[512];
    document_heading(document, level, "%s, %s: %s", figure->paper.id, figure->figure, figure->title);
    document_paragraph(document, "%s. %s, %s (%s; '%s').", figure->paper.authors, figure->paper.title,
                       figure->paper.version, figure->paper.id, figure->id);
    document_paragraph(document, "Verdict: %s.", result->verdict);
    add_texts(document, "Changed, against the set-up below", &figure->changes);
    snprintf(caption, sizeof caption, "%s: %s, %s and simulated", figure->figure, figure->quantity.name,
             figure->real.read ? "measured" : "published");
    if (picture) TRY(document_picture_file(document, caption, picture, err));
    document_paragraph(document, *figure->quantity.unit ? "%s in %s:" : "%s:", figure->quantity.name,
                       figure->quantity.unit);
    add_table(result, document);
    add_claims(result, document);
    add_texts(document, "Set-up", &figure->set_up);
    add_texts(document, "Assumed", &figure->assumptions);
    add_texts(document, "Not modelled", &figure->not_modelled);
    add_texts(document, "Notes", &figure->notes);
    add_sources(figure, document);
    return STATUS_OK;
}
