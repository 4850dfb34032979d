/*
 * How fast exec/device/storage.h moves the states of shards, by their size, with io_uring and with threads.
 *
 *     bench_storage FOLDER
 *
 * In a file of 1 GiB, all of it written before; each transfer at the next place, around and around.
 * Medians of 9 rounds that move 256 MiB each; "both": a reading and a writing thread, added up. Compare
 * with what the disk can do: fio --direct=1 --ioengine=io_uring --bs=1M --iodepth=16.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/process/clock.h"
#include "exec/device/storage.h"

enum { ROUNDS = 9, LANES = 2 };
static const uint64_t file_bytes = UINT64_C(1) << 30, round_bytes = UINT64_C(256) << 20;

struct side {
    struct storage *storage;
    char *memory;
    uint64_t bytes, at;
    bool write;
    struct error err;
};

static void *move_round(void *pointer)
{
    struct side *const side = pointer;
    for (uint64_t done = 0; done < round_bytes && side->err.status == STATUS_OK; done += side->bytes) {
        side->err.status =
            side->write ? storage_write(side->storage, 1, side->memory, side->at, side->bytes, &side->err)
                        : storage_read(side->storage, 0, side->memory, side->at, side->bytes, &side->err);
        side->at = side->at + 2 * side->bytes <= file_bytes ? side->at + side->bytes : 0;
    }
    return NULL;
}

static int compare(const void *left, const void *right)
{
    double a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    return (a > b) - (a < b);
}

/* Returns the GB/s of all sides together. */
static double rate_of(struct side *sides, uint32_t count)
{
    double rates[ROUNDS];
    for (uint32_t r = 0; r < ROUNDS; r++) {
        pthread_t threads[LANES];
        const double start_s = clock_s();
        for (uint32_t i = 1; i < count; i++)
            if (pthread_create(&threads[i], NULL, move_round, &sides[i]) != 0) exit(3);
        move_round(&sides[0]);
        for (uint32_t i = 1; i < count; i++) pthread_join(threads[i], NULL);
        rates[r] = count * (double)round_bytes / (clock_s() - start_s) / 1e9;
    }
    qsort(rates, ROUNDS, sizeof *rates, compare);
    return rates[ROUNDS / 2];
}

static void measure(const char *folder, bool no_ring)
{
    struct storage *storage;
    struct error err = {0};
    const struct storage_options options = {
        .folder = folder, .bytes = file_bytes, .lanes = LANES, .no_ring = no_ring};
    if (storage_open(&options, &storage, &err) != STATUS_OK) {
        fprintf(stderr, "error: %s\n", err.text);
        exit(3);
    }
    struct side sides[LANES] = {{.storage = storage}, {.storage = storage, .write = true}};
    for (uint32_t i = 0; i < LANES; i++) {
        sides[i].memory = aligned_alloc(STORAGE_BLOCK, round_bytes);
        if (!sides[i].memory) exit(3);
        memset(sides[i].memory, 1 + (int)i, round_bytes);
    }
    sides[1].bytes = round_bytes;
    for (uint64_t i = 0; i < file_bytes / round_bytes; i++) move_round(&sides[1]);
    printf("%s\n", storage_text(storage));
    for (uint64_t bytes = 256 << 10; bytes <= 64 << 20; bytes *= 4) {
        double rates[3];
        for (uint32_t i = 0; i < LANES; i++) sides[i].bytes = bytes, sides[i].at = 0;
        rates[0] = rate_of(&sides[0], 1);
        rates[1] = rate_of(&sides[1], 1);
        rates[2] = rate_of(sides, 2);
        printf("  %6llu KiB  read %5.2f GB/s  write %5.2f GB/s  both %5.2f GB/s\n",
               (unsigned long long)(bytes >> 10), rates[0], rates[1], rates[2]);
    }
    for (uint32_t i = 0; i < LANES; i++) {
        if (sides[i].err.status != STATUS_OK) fprintf(stderr, "error: %s\n", sides[i].err.text);
        free(sides[i].memory);
    }
    storage_close(storage);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: bench_storage FOLDER\n");
        return 2;
    }
    measure(argv[1], false);
    measure(argv[1], true);
    return 0;
}
