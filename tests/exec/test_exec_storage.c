/* exec/device/storage.h: all bytes arrive whatever their place, however little the system does at a time, and
 * with io_uring or without it; what fails says where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "exec/device/storage.h"
#include "tests/support/support_seed.h"

enum { QUEUES = 2, FILE_BYTES = 5 << 20, MIB = 1 << 20 };

/* The outcomes that the calls are to report. */
struct faults {
    struct storage_calls calls; /* first: what storage.c knows */
    pthread_mutex_t lock;
    uint64_t seed, count;       /* of outcomes */
    uint32_t fail_at;           /* this outcome, from 1, is `error`; 0: none */
    int error;
    bool shorten, interrupt;    /* each third outcome at random */
    int open_error, reserve_error;
    bool nothing;               /* no transfer ever makes progress */
    bool no_tmpfile, no_direct; /* the file system knows neither */
};

static int open_or_fail(struct storage_calls *calls, const char *path, int flags)
{
    struct faults *const faults = (struct faults *)(void *)calls;
    errno = faults->open_error                                            ? faults->open_error
            : faults->no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE ? EOPNOTSUPP
            : faults->no_direct && (flags & O_DIRECT)                ? EINVAL
                                                                     : 0;
    return errno ? -1 : storage_calls_real.open(&storage_calls_real, path, flags);
}

static int reserve_or_fail(struct storage_calls *calls, int file, uint64_t bytes)
{
    struct faults *const faults = (struct faults *)(void *)calls;
    return faults->reserve_error ? faults->reserve_error
                                 : storage_calls_real.reserve(&storage_calls_real, file, bytes);
}

static int64_t outcome(struct storage_calls *calls, bool write, uint64_t offset, uint64_t length,
                       int64_t result)
{
    (void)write, (void)offset, (void)length;
    struct faults *const faults = (struct faults *)(void *)calls;
    pthread_mutex_lock(&faults->lock);
    const uint64_t number = ++faults->count;
    pthread_mutex_unlock(&faults->lock);
    if (faults->nothing) return 0;
    if (faults->fail_at > 0 && number == faults->fail_at) return -faults->error;
    if (faults->shorten && result > 0 && random_below(faults->seed, 2 * number, 3) == 0)
        return (int64_t)random_below(faults->seed, 2 * number + 1, (uint64_t)result);
    if (faults->interrupt && random_below(faults->seed, 2 * number, 3) == 1)
        return number % 2 ? -EINTR : -EAGAIN;
    return result;
}

static const struct faults no_faults = {
    .calls = {.open = open_or_fail, .reserve = reserve_or_fail, .outcome = outcome},
    .lock = PTHREAD_MUTEX_INITIALIZER};

static struct storage *open_storage(struct faults *faults, bool no_ring, bool buffered)
{
    struct storage *storage;
    struct error err = {0};
    const struct storage_options options = {.folder = ".",
                                            .bytes = FILE_BYTES,
                                            .queues = QUEUES,
                                            .no_ring = no_ring,
                                            .buffered = buffered,
                                            .calls = faults ? &faults->calls : NULL};
    if (storage_open(&options, &storage, &err) != STATUS_OK) fail_msg("%s", err.text);
    return storage;
}

/* Random ranges, written and read at random places in memory, and compared with an array that must be equal. */
static void write_and_read(struct storage *storage, uint64_t seed)
{
    char *const model = calloc(1, FILE_BYTES), *const from = malloc(FILE_BYTES + STORAGE_BLOCK);
    struct error err = {0};
    assert_non_null(model);
    assert_non_null(from);
    for (uint64_t i = 0; i < 40; i++) {
        /* some large, some within a block, many on its border */
        const uint64_t most = i % 3 == 0 ? 3 * MIB : i % 3 == 1 ? 9000 : 300;
        uint64_t offset = random_below(seed, 4 * i, FILE_BYTES - most);
        uint64_t bytes = 1 + random_below(seed, 4 * i + 1, most);
        if (i % 4 == 0) offset -= offset % STORAGE_BLOCK;
        if (i % 8 == 0) bytes += STORAGE_BLOCK - bytes % STORAGE_BLOCK;
        const uint64_t shift = i % 4 == 0 ? 0 : random_below(seed, 4 * i + 2, STORAGE_BLOCK);
        char *const at = from + shift;
        if (i % 2 == 0) {
            for (uint64_t b = 0; b < bytes; b++) at[b] = (char)random_u64(seed ^ i, b);
            memcpy(model + offset, at, bytes);
            assert_int_equal(storage_write(storage, 1, at, offset, bytes, &err), STATUS_OK);
        } else {
            memset(from, 7, FILE_BYTES + STORAGE_BLOCK);
            assert_int_equal(storage_read(storage, 0, at, offset, bytes, &err), STATUS_OK);
            assert_memory_equal(at, model + offset, bytes);
            assert_true(shift == 0 || at[-1] == 7); /* and nothing around it */
            assert_int_equal(at[bytes], 7);
        }
    }
    assert_int_equal(storage_read(storage, 0, from, 0, FILE_BYTES, &err), STATUS_OK);
    assert_memory_equal(from, model, FILE_BYTES);
    free(model);
    free(from);
}

static void every_byte_arrives(void **state)
{
    (void)state;
    const uint64_t seed = support_seed(__func__);
    for (uint32_t way = 0; way < 16; way++) {
        struct faults faults = no_faults;
        faults.seed = seed + way;
        faults.shorten = way & 4;
        faults.interrupt = way & 8;
        struct storage *const storage = open_storage(&faults, way & 1, way & 2);
        print_message("way %u: %s\n", way, storage_text(storage));
        write_and_read(storage, seed + way);
        storage_close(storage);
    }
}

/* The k-th transfer fails, for all k; earlier data stays readable. */
static void failures_say_where(void **state)
{
    (void)state;
    char *const memory = aligned_alloc(STORAGE_BLOCK, 3 * MIB);
    assert_non_null(memory);
    memset(memory, 1, 3 * MIB);
    for (uint32_t way = 0; way < 4; way++) {
        struct faults faults = no_faults;
        struct storage *const storage = open_storage(&faults, way & 1, false);
        for (uint32_t k = 1; k <= 3; k++) {
            struct error err = {0};
            faults.fail_at = k;
            faults.error = way & 2 ? ENOSPC : EIO;
            faults.count = 0;
            const enum status status = way & 2 ? storage_write(storage, 0, memory, MIB, 3 * MIB, &err)
                                               : storage_read(storage, 0, memory, MIB, 3 * MIB, &err);
            assert_int_equal(status, STATUS_IO);
            const char *const expected =
                way & 2 ? "cannot write the storage in '.' at byte " : "cannot read the storage in '.' at byte ";
            assert_memory_equal(err.text, expected, strlen(expected));
            const uint64_t at = strtoull(err.text + strlen(expected), NULL, 10);
            assert_true(at >= MIB && at < 4 * MIB && at % MIB == 0);
            assert_non_null(strstr(err.text, strerror(faults.error)));
        }
        faults.fail_at = 0;
        struct error err = {0};
        assert_int_equal(storage_read(storage, 0, memory, 0, 3 * MIB, &err), STATUS_OK);
        storage_close(storage);
    }
    free(memory);
}

static void a_disk_that_does_nothing_is_given_up(void **state)
{
    (void)state;
    for (uint32_t way = 0; way < 2; way++) {
        struct faults faults = no_faults;
        struct error err = {0};
        char byte;
        struct storage *const storage = open_storage(&faults, way == 1, false);
        faults.nothing = true;
        assert_int_equal(storage_read(storage, 0, &byte, 4096 * 3, 1, &err), STATUS_IO);
        assert_string_equal(err.text, "cannot read the storage in '.' at byte 12288: Input/output error");
        storage_close(storage);
    }
}

static void expect_refused(const struct storage_options *options, enum status status, const char *expected)
{
    struct storage *storage = NULL;
    struct error err = {0};
    assert_int_equal(storage_open(options, &storage, &err), status);
    assert_null(storage);
    assert_string_equal(err.text, expected);
}

static void opening_fails_with_a_reason(void **state)
{
    (void)state;
    struct faults full = no_faults, shut = no_faults;
    full.reserve_error = ENOSPC;
    shut.open_error = EACCES;
    struct storage_options options = {.folder = ".", .bytes = 3 * MIB, .queues = 1};
    options.calls = &full.calls;
    expect_refused(&options, STATUS_IO, "cannot reserve 3 MiB of storage in '.': No space left on device");
    options.calls = &shut.calls;
    expect_refused(&options, STATUS_IO, "cannot open storage in '.': Permission denied");
    options.calls = NULL;
    options.folder = "no/such/folder";
    expect_refused(&options, STATUS_BAD_INPUT, "cannot open storage in 'no/such/folder': No such file or directory");
}

static uint32_t files_here(void)
{
    uint32_t count = 0;
    DIR *const folder = opendir(".");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += strncmp(entry->d_name, "spillway-", 9) == 0 &&
                 strstr(entry->d_name, "-storage") != NULL;
    closedir(folder);
    return count;
}

/* A file system that opens for direct I/O but refuses it, or cannot reserve: storage works without. */
static void does_without(void **state)
{
    (void)state;
    struct faults faults = no_faults;
    struct storage *storage = open_storage(&faults, true, true);
    assert_string_equal(storage_text(storage), "through the page cache, threads");
    assert_non_null(strstr(storage_note(storage), "page cache"));
    storage_close(storage);
    faults.reserve_error = EOPNOTSUPP;
    storage = open_storage(&faults, false, false);
    assert_non_null(strstr(storage_note(storage), "cannot be reserved beforehand"));
    write_and_read(storage, 11);
    storage_close(storage);

    for (uint32_t way = 1; way < 4; way++) {
        struct faults old = no_faults;
        old.no_tmpfile = way & 1;
        old.no_direct = way & 2;
        storage = open_storage(&old, false, false);
        assert_int_equal(files_here(), 0);
        assert_true((strstr(storage_text(storage), "direct") == NULL) == old.no_direct);
        write_and_read(storage, 12 + way);
        storage_close(storage);
    }
}

static void nothing_is_left(void **state)
{
    (void)state;
    struct storage *const storage = open_storage(NULL, false, false);
    assert_int_equal(files_here(), 0); /* not even while it is open */
    storage_close(storage);
    assert_int_equal(files_here(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_byte_arrives),
        cmocka_unit_test(failures_say_where),
        cmocka_unit_test(a_disk_that_does_nothing_is_given_up),
        cmocka_unit_test(opening_fails_with_a_reason),
        cmocka_unit_test(does_without),
        cmocka_unit_test(nothing_is_left),
    };
    if (chdir(BINARY_DIR) != 0) return 1; /* messages say "." */
    return cmocka_run_group_tests_name("storage", tests, NULL, NULL);
}
