/*
 * Checks files and answers of Spillway against docs/schemas; a tool of the check scripts.
 *
 * usage: schema_check SCHEMA_FOLDER FILE...
 *
 * Prints a line for each value that has a schema: "NAME FILE" if it fits, or the fault on standard error. A file that
 * ends in .jsonl holds one value per line. Files of other programs are skipped. Exit code 1 if a value does not fit, 2
 * if a file or the folder cannot be read.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "tests/support/support_schema.h"

static const size_t file_bytes_max = (size_t)1 << 28;

static int check_value(const json_t *schemas, const json_t *value, const char *path)
{
    char name[256], why[512] = "";
    if (!support_schema_name(value, name, sizeof name)) return 0;
    if (support_schema_fits(schemas, name, value, why, sizeof why)) {
        printf("%s %s\n", name, path);
        return 0;
    }
    fprintf(stderr, "%s: not as %s.schema.json has it: %s\n", path, name, why);
    return 1;
}

/* Exit code. `text` is NUL-terminated. */
static int check_text(const json_t *schemas, const char *text, const char *path)
{
    json_error_t why;
    json_t *value = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!value) return 0; /* no JSON: broken on purpose, or a page */
    int code = check_value(schemas, value, path);
    json_decref(value);
    return code;
}

static int check_file(const json_t *schemas, const char *path)
{
    struct error err = {0};
    char *text = NULL;
    size_t length = 0;
    int code = 0;
    if (file_read(path, file_bytes_max, &text, &length, &err) != STATUS_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 2;
    }
    const char *end = strrchr(path, '.');
    if (end && strcmp(end, ".jsonl") == 0)
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) code |= check_text(schemas, line, path);
    else
        code = check_text(schemas, text, path);
    free(text);
    return code;
}

int main(int argc, char **argv)
{
    json_t *schemas = argc > 2 ? support_schemas_read(argv[1]) : NULL;
    int code = schemas ? 0 : 2;
    for (int i = 2; i < argc && schemas; i++) {
        int one = check_file(schemas, argv[i]);
        if (one > code) code = one;
    }
    json_decref(schemas);
    return code;
}
