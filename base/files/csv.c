#include "base/files/csv.h"

#include <string.h>

#include "base/files/file.h"

typedef void (*put_bytes)(void *to, const char *bytes, size_t length);

static void put_text(put_bytes put, void *to, const char *text)
{
    put(to, "\"", 1);
    for (;;) {
        size_t plain = strcspn(text, "\"");
        put(to, text, plain);
        if (text[plain] == '\0') break;
        put(to, "\"\"", 2);
        text += plain + 1;
    }
    put(to, "\"", 1);
}

static void put_print(void *to, const char *bytes, size_t length) { fwrite(bytes, 1, length, to); }

static void put_write(void *to, const char *bytes, size_t length) { file_out_write(to, bytes, length); }

void csv_print_text(FILE *out, const char *text) { put_text(put_print, out, text); }

void csv_write_text(struct file_out *out, const char *text) { put_text(put_write, out, text); }
