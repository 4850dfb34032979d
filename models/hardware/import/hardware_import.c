/* Recognises the format of a file. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/file.h"
#include "base/try.h"
#include "models/hardware/import/hardware_import_parts.h"

static const size_t file_limit = (size_t)64 << 20;

static enum status import_json(struct import *import, const char *text, size_t length, struct error *err)
{
    struct json_input *in;
    TRY(json_input_parse(import->name, text, length, &in, err));
    const json_t *root = json_input_root(in);
    enum status status;
    if (json_is_object(root) && json_object_get(root, "nvbandwidth")) status = import_nvbandwidth(import, in, err);
    else if (json_is_object(root) && json_object_get(root, "results")) status = import_nccl_json(import, in, err);
    else
        status = json_fail_key(in, root, NULL, err,
                               "neither nvbandwidth's nor nccl-tests' (expected the key 'nvbandwidth' or 'results')");
    json_input_destroy(in);
    return status;
}

/* Returns true if it has a line "Running host_to_device_memcpy_ce." before each matrix. */
static bool is_of_nvbandwidth(const char *text, size_t length)
{
    static const char mark[] = "Running ";
    return memmem(text, length, "memcpy", strlen("memcpy")) && memmem(text, length, mark, strlen(mark));
}

enum status hardware_import_text(const char *name, const char *text, size_t length, const char *as_of,
                                 struct hardware *machine, struct import_report *report, struct error *err)
{
    struct import import = {.name = name, .machine = machine, .report = report};
    TRY(arena_string(&machine->arena, as_of, &import.as_of, err));
    TRY(arena_string(&machine->arena, name, &machine->measured_on, err));
    size_t blanks = 0;
    while (blanks < length && isspace((unsigned char)text[blanks])) blanks++;
    bool json = blanks < length && text[blanks] == '{';
    TRY(json                        ? import_json(&import, text, length, err)
        : is_of_nvbandwidth(text, length) ? import_nvbandwidth_text(&import, text, length, err)
                                          : import_nccl_table(&import, text, length, err));
    return hardware_check(machine, err);
}

enum status hardware_import(const char *path, const char *as_of, struct hardware *machine,
                            struct import_report *report, struct error *err)
{
    char *text;
    size_t length;
    TRY(file_read(path, file_limit, &text, &length, err));
    enum status status = hardware_import_text(path, text, length, as_of, machine, report, err);
    free(text);
    return status;
}
