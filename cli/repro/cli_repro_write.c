/* See cli_repro_report.h. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/files/outputs.h"
#include "base/files/path.h"
#include "base/hash.h"
#include "base/size.h"
#include "base/try.h"
#include "cli/repro/cli_repro_report.h"
#include "cli/repro/figure_report.h"

/* Joins a path; callers have checked that there is room for our names. */
static const char *path_in(const char *folder, const char *name, char path[CLI_PATH_BYTES])
{
    int length = snprintf(path, CLI_PATH_BYTES, "%s/%s", folder, name);
    assert(length > 0 && length < CLI_PATH_BYTES);
    return path;
}

static enum status write_csv(const struct figure_result *result, const char *path, struct error *err)
{
    struct file_out *file;
    char *text = NULL;
    size_t length = 0;
    FILE *stream = open_memstream(&text, &length);
    if (!stream) return error_memory(err, "points as CSV", 0);
    figure_write_csv(result, stream);
    bool complete = !ferror(stream);
    if (fclose(stream) != 0 || !complete) error_memory(err, "points as CSV", length);
    if (!err->status && file_out_create(path, &file, err) == STATUS_OK) {
        file_out_write(file, text, length);
        (void)!file_out_commit(file, err);
    }
    free(text);
    return err->status;
}

static enum status write_report(const struct figure_result *result, const char *picture, const char *path,
                                struct error *err)
{
    struct document *document = document_create(result->figure->title);
    if (!document) return error_memory(err, "a report", 0);
    if (figure_add_to_document(result, picture, 2, document, err) == STATUS_OK)
        (void)!document_write(document, path, err);
    document_destroy(document);
    return err->status;
}

/* Hashes bytes, to detect changes. */
static enum status hash_file(const char *path, char text[17], struct error *err)
{
    char *bytes;
    size_t length;
    TRY(file_read(path, 1u << 30, &bytes, &length, err));
    uint64_t hash = hash_bytes(HASH_BEGIN, bytes, length);
    free(bytes);
    snprintf(text, 17, "%016llx", (unsigned long long)hash);
    return STATUS_OK;
}

static enum status write_manifest(const struct figure_result *result, const char *folder, struct error *err)
{
    static const char *const names[] = {"figure.svg", "figure.png", "data.csv", "report.md"};
    char path[CLI_PATH_BYTES], hash[17];
    struct json_file json;
    TRY(hash_file(result->figure->path, hash, err));
    TRY(json_file_begin(&json, path_in(folder, "manifest.json", path), "writing a manifest", err));
    json_out_object_begin(json.out, NULL, false);
    json_out_string(json.out, "schema", "spillway-repro-manifest-1");
    json_out_string(json.out, "tool_version", SPILLWAY_VERSION);
    json_out_string(json.out, "id", result->figure->id);
    json_out_string(json.out, "figure_fnv1a", hash);
    json_out_array_begin(json.out, "changes", false);
    for (uint32_t i = 0; i < result->figure->changes.count; i++)
        json_out_string(json.out, NULL, result->figure->changes.items[i]);
    json_out_array_end(json.out);
    json_out_string(json.out, "verdict", result->verdict);
    json_out_object_begin(json.out, "files_fnv1a", false);
    for (size_t i = 0; i < sizeof names / sizeof *names && !err->status; i++)
        if (hash_file(path_in(folder, names[i], path), hash, err) == STATUS_OK)
            json_out_string(json.out, names[i], hash);
    json_out_object_end(json.out);
    json_out_object_end(json.out);
    if (err->status) {
        file_out_discard(json.file);
        json_out_destroy(json.out);
        return err->status;
    }
    return json_file_end(&json, err);
}

enum status repro_declare_folder(const char *folder, bool runs, bool force, struct error *err)
{
    static const char what[] = "option '--output'";
    static const struct {
        const char *name;
        enum file_kind kind;
    } files[] = {{"figure.svg", FILE_KIND_PICTURE},   {"figure.png", FILE_KIND_PICTURE},
                 {"data.csv", FILE_KIND_TABLE},       {"report.md", FILE_KIND_PAGE},
                 {"report-1.svg", FILE_KIND_PICTURE}, {"manifest.json", FILE_KIND_MANIFEST}};
    char path[CLI_PATH_BYTES];
    struct stat info;
    const bool exists = stat(folder, &info) == 0;
    if (strlen(folder) + 32 > CLI_PATH_BYTES)
        return error_set(err, STATUS_LIMIT, "a path is too long (limit is %d)", CLI_PATH_BYTES - 32);
    if (exists && !S_ISDIR(info.st_mode))
        return error_set(err, STATUS_BAD_INPUT, "%s is '%s', which is not a folder (expected a folder, or a new name)",
                         what, folder);
    for (size_t i = 0; i < ARRAY_COUNT(files); i++) {
        path_in(folder, files[i].name, path);
        if (outputs_declare(path, files[i].kind, what, err) != STATUS_OK ||
            (exists && outputs_probe(path, files[i].kind, what, err) != STATUS_OK))
            return err->status;
    }
    if (!runs || force || access(path_in(folder, "runs", path), F_OK) != 0) return STATUS_OK;
    if (access(path_in(folder, "manifest.json", path), F_OK) == 0) return STATUS_OK; /* checked: a figure's folder */
    return error_set(err, STATUS_BAD_INPUT,
                     "%s would write into '%s/runs', which is not of a figure (expected another name, or "
                     "--force)",
                     what, folder);
}

enum status repro_write_folder(const struct figure_result *result, const char *folder, struct error *err)
{
    char path[CLI_PATH_BYTES], picture[CLI_PATH_BYTES];
    TRY(path_make_folders(path_in(folder, "manifest.json", path), err));
    TRY(figure_draw(result, path_in(folder, "figure.png", path), err));
    TRY(figure_draw(result, path_in(folder, "figure.svg", picture), err));
    TRY(write_csv(result, path_in(folder, "data.csv", path), err));
    TRY(write_report(result, picture, path_in(folder, "report.md", path), err));
    return write_manifest(result, folder, err);
}

/* --- one page with every figure ---------------------------------------------------------------------- */

static void add_summary(struct document *document, const struct figure_result *results, size_t count)
{
    document_table_begin(document, "", (const char *[]){"FIGURE", "WHAT", "VERDICT", NULL});
    for (size_t i = 0; i < count; i++) {
        document_cell(document, "%s", results[i].figure->id);
        document_cell(document, "%s", results[i].figure->title);
        document_cell(document, "%s", results[i].verdict);
    }
    document_table_end(document);
}

/* Draws to a temporary file, whose bytes the document keeps. */
static enum status add_figure(struct document *document, const struct figure_result *result, struct error *err)
{
    char base[CLI_PATH_BYTES - 16], path[CLI_PATH_BYTES];
    TRY(folder_make_temporary("picture", base, sizeof base, err));
    path_in(base, "figure.svg", path);
    if (figure_draw(result, path, err) == STATUS_OK) (void)!figure_add_to_document(result, path, 2, document, err);
    folder_remove(base);
    return err->status;
}

enum status repro_write_page(const struct figure_result *results, size_t count, const char *path, struct error *err)
{
    struct document *document = document_create("Figures of papers, published and simulated");
    if (!document) return error_memory(err, "a page", 0);
    document_paragraph(document,
                       "Made by spillway %s. Simulated values are computed from each figure's own file; nothing "
                       "is fitted to single points.",
                       SPILLWAY_VERSION);
    add_summary(document, results, count);
    document_contents(document);
    for (size_t i = 0; i < count && !err->status; i++) (void)add_figure(document, &results[i], err);
    if (!err->status) (void)!document_write(document, path, err);
    document_destroy(document);
    return err->status;
}
