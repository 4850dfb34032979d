/* The reader of safetensors files on any bytes. Accepted files are read to the last byte. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "exec/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct safetensors *file = NULL;
    struct error err = {0};
    if (safetensors_parse("input", data, size, &file, &err) != STATUS_OK) {
        if (file || err.text[0] == '\0') abort();
        return 0;
    }
    for (size_t i = 0; i < safetensors_count(file); i++) {
        const struct safetensors_tensor *tensor = safetensors_at(file, i);
        if (tensor->bytes > size || safetensors_find(file, tensor->name) != tensor) abort();
        if (tensor->type == SAFETENSORS_OTHER) continue;
        /* a copy of exactly the size, so that a sanitizer sees a float too many */
        float *values = malloc(tensor->elements * sizeof *values + 1);
        if (!values) abort();
        safetensors_floats(tensor, values);
        free(values);
    }
    safetensors_close(file);
    return 0;
}
