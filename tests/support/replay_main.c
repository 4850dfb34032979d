/*
 * Runs a fuzz target without a fuzzer. libFuzzer needs clang and hours; every run of the tests should at least feed
 * each reader some thousands of broken inputs. This main() takes the target's corpus and calls LLVMFuzzerTestOneInput
 *
 *   1. on every file of it, as it is;
 *   2. on each file cut short at 64 places, or at fewer if there are many files;
 *   3. on mutations of them: a few bit flips, bytes removed, doubled or replaced, cuts, splices of two files, and
 *      tokens that readers get wrong (NaN, 1e999, huge integers, quotes).
 *
 *     fuzz_plan tests/fuzz/corpus/plan            2000 mutations, seed from the clock
 *     SPILLWAY_SEED=7 SPILLWAY_FUZZ_RUNS=100000 fuzz_plan tests/fuzz/corpus/plan
 *
 * The seed is printed first. While an input is tried it is in /tmp/spillway-fuzz-PID. If the target crashes, the file
 * stays there as the reproducer, which this program also takes as an argument.
 */
#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILES_MAX = 4096, INPUT_BYTES_MAX = 1 << 20, CUTS_MAX = 64, CUTS_IN_ALL = 2048, CHANGES_MAX = 6 };

struct input {
    uint8_t *data;
    size_t size;
};

static struct input files[FILES_MAX];
static size_t file_count;

/* --- random numbers (SplitMix64; kept here, so that this file needs nothing else) ------------- */

static uint64_t random_state;

static uint64_t random_below_bound(uint64_t bound)
{
    uint64_t x = random_state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    x ^= x >> 31;
    return bound > 0 ? x % bound : 0;
}

/* --- the corpus ------------------------------------------------------------------------------- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool load_file(const char *path)
{
    FILE *stream = fopen(path, "rb");
    if (!stream) return false;
    uint8_t *data = malloc(INPUT_BYTES_MAX);
    assert(data);
    size_t size = fread(data, 1, INPUT_BYTES_MAX, stream);
    bool good = !ferror(stream) && file_count < FILES_MAX;
    fclose(stream);
    if (good) {
        uint8_t *fitting = realloc(data, size > 0 ? size : 1);
        files[file_count++] = (struct input){fitting ? fitting : data, size};
    } else {
        free(data);
    }
    return good;
}

/* Loads files in the order of their names, so that a seed gives the same runs on every machine. */
static bool load_folder(const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory) return errno == ENOTDIR && load_file(folder);
    static char *names[FILES_MAX];
    size_t count = 0;
    for (struct dirent *entry; (entry = readdir(directory)) && count < FILES_MAX;) {
        if (entry->d_name[0] == '.') continue;
        size_t bytes = strlen(folder) + strlen(entry->d_name) + 2;
        names[count] = malloc(bytes);
        assert(names[count]);
        snprintf(names[count++], bytes, "%s/%s", folder, entry->d_name);
    }
    closedir(directory);
    qsort(names, count, sizeof names[0], by_name);
    bool good = count > 0;
    for (size_t i = 0; i < count; i++) {
        good = good && load_file(names[i]);
        free(names[i]);
    }
    return good;
}

/* --- trying one input ------------------------------------------------------------------------- */

static char reproducer[64];
static uint8_t *reproducer_map;
static int reproducer_fd = -1;

/* The input is kept in a mapped file, which outlives a crash without a handler. */
static void open_reproducer(void)
{
    snprintf(reproducer, sizeof reproducer, "/tmp/spillway-fuzz-%ld", (long)getpid());
    reproducer_fd = open(reproducer, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (reproducer_fd < 0 || ftruncate(reproducer_fd, INPUT_BYTES_MAX * 2) != 0) return;
    void *map = mmap(NULL, INPUT_BYTES_MAX * 2, PROT_READ | PROT_WRITE, MAP_SHARED, reproducer_fd,
                     0);
    if (map != MAP_FAILED) reproducer_map = map;
}

static void try(const uint8_t *data, size_t size)
{
    if (reproducer_map) {
        memcpy(reproducer_map, data, size);
        if (ftruncate(reproducer_fd, (off_t)size) != 0) reproducer_map = NULL;
    }
    /* a block of exactly this size, so that the address sanitizer sees reads past its end */
    uint8_t *exact = malloc(size > 0 ? size : 1);
    assert(exact);
    memcpy(exact, data, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    if (reproducer_map && ftruncate(reproducer_fd, INPUT_BYTES_MAX * 2) != 0) reproducer_map = NULL;
}

/* --- mutations -------------------------------------------------------------------------------- */

static const char *const tokens[] = {
    "NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e-999", "-0", "0.1e-400",
    "9223372036854775807", "9223372036854775808", "18446744073709551615",
    "-9223372036854775808", "4294967296", "4294967295", "-1", "0", "1e300", "0x10", "01",
    "\"", "\\", "\\u0000", "\\ud800", "{", "}", "[", "]", "[]", "{}", ",", ":", "null", "true",
    "false", "\"\"", "\n", "\t", " ", "\"GiB\"", "\"-5GB\"", "\"1e400s\"", "\xff", "\xef\xbb\xbf",
    "\xed\xa0\x80", "/*", "//", "#", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
};

/* Replace `removed` bytes at `at` by `added` bytes of `with`. */
static void replace(struct input *input, size_t at, size_t removed, const void *with, size_t added)
{
    if (removed > input->size - at) removed = input->size - at;
    if (input->size - removed + added > INPUT_BYTES_MAX) return;
    memmove(input->data + at + added, input->data + at + removed, input->size - at - removed);
    memcpy(input->data + at, with, added);
    input->size = input->size - removed + added;
}

static void mutate(struct input *input)
{
    size_t at = (size_t)random_below_bound(input->size + 1);
    const struct input *other = &files[random_below_bound(file_count)];
    const char *token = tokens[random_below_bound(sizeof tokens / sizeof tokens[0])];
    static uint8_t piece[256];
    size_t length;
    switch (random_below_bound(9)) {
    case 0:
        if (at < input->size) input->data[at] ^= (uint8_t)(1u << random_below_bound(8));
        break;
    case 1:
        if (at < input->size) input->data[at] = (uint8_t)random_below_bound(256);
        break;
    case 2: input->size = at; break;
    case 3: replace(input, at, (size_t)random_below_bound(20) + 1, "", 0); break;
    case 4: /* double a piece, or move it to another place */
        length = (size_t)random_below_bound(sizeof piece);
        if (length > input->size - at) length = input->size - at;
        memcpy(piece, input->data + at, length);
        replace(input, (size_t)random_below_bound(input->size + 1), 0, piece, length);
        break;
    case 5: replace(input, at, 0, token, strlen(token)); break;
    case 6: { /* a token in place of the number that begins after `at` */
        while (at < input->size && (input->data[at] < '0' || input->data[at] > '9')) at++;
        length = 0;
        while (at + length < input->size && strchr("0123456789.eE+-", input->data[at + length]) &&
               input->data[at + length])
            length++;
        replace(input, at, length, token, strlen(token));
        break;
    }
    case 7: { /* the beginning of one file, the end of another */
        size_t from = (size_t)random_below_bound(other->size + 1);
        input->size = at;
        replace(input, at, 0, other->data + from, other->size - from);
        break;
    }
    default:
        if (at < input->size) replace(input, at, 1, token, strlen(token));
        break;
    }
}

static uint64_t number_from_environment(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t clock_seed = (uint64_t)now.tv_sec * 1000000007u + (uint64_t)now.tv_nsec;
    random_state = number_from_environment("SPILLWAY_SEED", clock_seed);
    uint64_t runs = number_from_environment("SPILLWAY_FUZZ_RUNS", 2000);
    printf("SPILLWAY_SEED=%" PRIu64 " SPILLWAY_FUZZ_RUNS=%" PRIu64 "\n", random_state, runs);
    fflush(stdout);

    for (int i = 1; i < argc; i++)
        if (!load_folder(argv[i])) {
            fprintf(stderr, "%s: cannot read the corpus '%s'\n", argv[0], argv[i]);
            return 3;
        }
    if (file_count == 0) {
        fprintf(stderr, "usage: %s CORPUS...\n", argv[0]);
        return 2;
    }
    open_reproducer();
    try((const uint8_t *)"", 0);
    size_t cuts = CUTS_IN_ALL / file_count;
    if (cuts > CUTS_MAX) cuts = CUTS_MAX;
    for (size_t i = 0; i < file_count; i++) {
        try(files[i].data, files[i].size);
        for (size_t cut = 0; cut < cuts; cut++) try(files[i].data, files[i].size * cut / cuts);
    }
    struct input work = {malloc(INPUT_BYTES_MAX), 0};
    assert(work.data);
    for (uint64_t run = 0; run < runs; run++) {
        const struct input *seed = &files[random_below_bound(file_count)];
        work.size = seed->size;
        memcpy(work.data, seed->data, seed->size);
        uint64_t changes = 1 + random_below_bound(CHANGES_MAX);
        for (uint64_t i = 0; i < changes; i++) mutate(&work);
        try(work.data, work.size);
    }
    free(work.data);
    for (size_t i = 0; i < file_count; i++) free(files[i].data);
    if (reproducer_fd >= 0) unlink(reproducer);
    printf("%zu files, %" PRIu64 " mutations, no crash\n", file_count, runs);
    return 0;
}
