/* The index of a folder of weights on any bytes, beside two files of tensors: refused with a message, or each tensor of
 * the files is found once. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/folder.h"
#include "exec/files/weights_files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[256];

static void remove_it(void)
{
    folder_remove(folder);
}

static void make_folder(void)
{
    static const float values[6] = {1, 2, 3, 4, 5, 6};
    static const char *const files[] = {"a.safetensors", "b.safetensors"};
    static const char *const names[] = {"x", "y"};
    struct error err = {0};
    if (folder_make_temporary("fuzz", folder, sizeof folder, &err)) abort();
    atexit(remove_it);
    for (size_t f = 0; f < 2; f++) {
        char path[300];
        struct safetensors_tensor tensor = {.name = names[f], .rank = 1, .shape = {6},
                                            .data = (const unsigned char *)values};
        snprintf(path, sizeof path, "%s/%s", folder, files[f]);
        if (safetensors_write(path, &tensor, 1, &err)) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[300];
    struct weights_files *files = NULL;
    struct error err = {0};
    if (!folder[0]) make_folder();
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    FILE *const file = fopen(path, "wb");
    if (!file || fwrite(data, 1, size, file) != size || fclose(file)) abort();
    if (weights_files_open(path, &files, &err)) {
        assert(!files && err.text[0]);
        return 0;
    }
    size_t at = 0, count = weights_files_count(files);
    assert(count > 0 && count <= 2);
    for (const struct safetensors_tensor *tensor; (tensor = weights_files_unused(files, &at)); count--)
        assert(weights_files_find(files, tensor->name) == tensor);
    assert(count == 0);
    weights_files_close(files);
    return 0;
}
