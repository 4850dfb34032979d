/*
 * Formats are recognised by their first bytes, whatever the name: a text never begins with them, tokens less than once
 * in 16 million files. JSON and CSV are recognised by the name.
 *
 * Sources are the formats' specifications; safetensors: 8 bytes of header length, then '{"'.
 */
#include "models/jobs/data_file.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/files/file.h"
#include "base/little_endian.h"
#include "base/size.h"
#include "base/text.h"

struct magic {
    const char *bytes;
    size_t count, offset;
    const char *name;
};
static const struct magic magics[] = {
    {"PAR1", 4, 0, "a Parquet file"},
    {"ARROW1", 6, 0, "an Arrow file"},
    {"\xff\xff\xff\xff", 4, 0, "a stream of Arrow records"},
    {"\x1f\x8b\x08", 3, 0, "compressed by gzip"},
    {"\x28\xb5\x2f\xfd", 4, 0, "compressed by zstd"},
    {"\xfd" "7zXZ", 5, 0, "compressed by xz"},
    {"1AY&SY", 6, 4, "compressed by bzip2"},
    {"7z\xbc\xaf\x27\x1c", 6, 0, "a 7z archive"},
    {"PK\x03\x04", 4, 0, "a zip archive, as PyTorch writes"},
    {"ustar", 5, 257, "a tar archive"},
    {"\x93NUMPY", 6, 0, "a NumPy array"},
    {"\x89HDF\r\n\x1a\n", 8, 0, "an HDF5 file"},
    {"SQLite format 3", 16, 0, "an SQLite database"},
    {"\x80\x02\x8a\x0al\xfc\x9c" "F\xf9 j\xa8P\x19", 14, 0, "a pickle, as old PyTorch writes"},
    {"GGUF\x03\0\0\0", 8, 0, "a GGUF file of weights"},
    {"%PDF-", 5, 0, "a PDF document"},
    {"MMIDIDX\0\0", 9, 0, "an index of Megatron-LM"},
};

enum { HEAD_BYTES = 512 };

/* Returns true if the header is a JSON object shorter than the file. */
static bool is_safetensors(const unsigned char *head, size_t count, uint64_t file_bytes)
{
    const uint64_t header = count > 9 ? little_u64(head) : 0;
    return header > 0 && header < file_bytes && head[8] == '{' && head[9] == '"';
}

static const char *name_of(const unsigned char *head, size_t count, uint64_t file_bytes)
{
    for (size_t i = 0; i < ARRAY_COUNT(magics); i++)
        if (count >= magics[i].offset + magics[i].count &&
            memcmp(head + magics[i].offset, magics[i].bytes, magics[i].count) == 0)
            return magics[i].name;
    return is_safetensors(head, count, file_bytes) ? "a safetensors file of weights" : NULL;
}

bool data_file_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

const char *data_file_foreign(const char *path)
{
    struct stat about;
    unsigned char head[HEAD_BYTES];
    if (stat(path, &about) != 0) return NULL;
    if (S_ISDIR(about.st_mode)) return "a folder";
    const size_t count = file_read_head(path, head, sizeof head);
    return count > 0 ? name_of(head, count, (uint64_t)about.st_size) : NULL;
}

const char *data_file_records(const char *path)
{
    static const char *const kinds[][2] = {
        {".jsonl", "JSON lines"},     {".ndjson", "JSON lines"}, {".json", "JSON"},
        {".csv", "a table"},          {".tsv", "a table"},       {".parquet", "Parquet records"},
        {".arrow", "Arrow records"},  {".yaml", "YAML"},         {".xml", "XML"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
        if (text_ends_like(path, kinds[i][0])) return kinds[i][1];
    return NULL;
}
