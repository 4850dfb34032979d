/*
 * Uses the executor's transfers in a file of FILE_BYTES, or half of the free space if less, written whole first. It is
 * then read and written in passes of PASS_BYTES, separately and by two threads at once for BOTH_PASSES. The medians
 * are the rates. A block read by itself gives the latency.
 *
 * Passes over a large file show the worst of caches, but not an SSD after an hour of writing.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "base/process/clock.h"
#include "base/text/quantity.h"
#include "base/try.h"
#include "exec/device/host_memory.h"
#include "exec/device/storage.h"
#include "exec/measure/measure_state.h"

enum { PASSES = 5, BOTH_PASSES = 3, LATENCY_SAMPLES = 15, QUEUE_READ = 0, QUEUE_WRITE = 1, QUEUES = 2 };
static const uint64_t file_bytes = UINT64_C(1) << 30, pass_bytes = UINT64_C(128) << 20;
static const double usable_share = 0.9; /* of the free space */

struct disk_bench {
    struct measure *measure;
    struct storage *storage;
    uint64_t bytes, pass; /* of the file; of a pass */
    uint64_t at[QUEUES];
    char *memory[QUEUES];
};

static enum status one_pass(struct disk_bench *bench, uint32_t queue, struct error *err)
{
    const uint64_t at = bench->at[queue];
    bench->at[queue] = at + 2 * bench->pass <= bench->bytes ? at + bench->pass : 0;
    if (queue == QUEUE_WRITE)
        return storage_write(bench->storage, queue, bench->memory[queue], at, bench->pass, err);
    return storage_read(bench->storage, queue, bench->memory[queue], at, bench->pass, err);
}

static enum status measure_alone(struct disk_bench *bench, uint32_t queue, struct sourced_value *out,
                                 struct error *err)
{
    struct measure_samples samples = {.count = 0};
    for (uint32_t i = 0; i < PASSES; i++) {
        const double start_s = clock_s();
        TRY(one_pass(bench, queue, err));
        measure_samples_add(&samples, (double)bench->pass / (clock_s() - start_s));
        if (measure_stopped(bench->measure))
            return error_set(err, STATUS_INTERRUPTED, "stopped while measuring");
    }
    *out = measure_sourced(bench->measure, measure_samples_median(&samples), measure_samples_spread(&samples));
    return STATUS_OK;
}

struct storage_side {
    struct disk_bench *bench;
    uint32_t queue;
    struct error err;
};

static void *run_side(void *pointer)
{
    struct storage_side *const side = pointer;
    for (uint32_t i = 0; i < BOTH_PASSES && side->err.status == STATUS_OK; i++)
        side->err.status = one_pass(side->bench, side->queue, &side->err);
    return NULL;
}

/* Measures both directions. The slower thread has the disk for itself at the end, so the result is a lower estimate. */
static enum status measure_both(struct disk_bench *bench, struct sourced_value *out, struct error *err)
{
    struct storage_side sides[QUEUES] = {{.bench = bench, .queue = QUEUE_READ},
                                        {.bench = bench, .queue = QUEUE_WRITE}};
    pthread_t helper;
    const double start_s = clock_s();
    const int failed = pthread_create(&helper, NULL, run_side, &sides[QUEUE_READ]);
    if (failed)
        return error_set(err, STATUS_DEVICE, "cannot start a thread to measure storage: %s",
                         strerror(failed));
    run_side(&sides[QUEUE_WRITE]);
    pthread_join(helper, NULL);
    const double seconds = clock_s() - start_s;
    for (uint32_t queue = 0; queue < QUEUES; queue++)
        if (sides[queue].err.status != STATUS_OK)
            return error_set(err, sides[queue].err.status, "%s", sides[queue].err.text);
    *out = measure_sourced(bench->measure, QUEUES * BOTH_PASSES * (double)bench->pass / seconds, 0);
    return STATUS_OK;
}

static enum status measure_latency(struct disk_bench *bench, struct sourced_value *out, struct error *err)
{
    struct measure_samples samples = {.count = 0};
    for (uint64_t i = 0; i < LATENCY_SAMPLES; i++) {
        const uint64_t at = bench->bytes / LATENCY_SAMPLES * i / STORAGE_BLOCK * STORAGE_BLOCK;
        const double start_s = clock_s();
        TRY(storage_read(bench->storage, QUEUE_READ, bench->memory[QUEUE_READ],
                                                at, STORAGE_BLOCK, err));
        measure_samples_add(&samples, clock_s() - start_s);
    }
    *out = measure_sourced(bench->measure, measure_samples_median(&samples), measure_samples_spread(&samples));
    return STATUS_OK;
}

static enum status measure_all(struct disk_bench *bench, struct hardware_storage *out,
                               struct error *err)
{
    enum status status = STATUS_OK;
    for (uint64_t done = 0; done < bench->bytes && status == STATUS_OK; done += bench->pass)
        status = one_pass(bench, QUEUE_WRITE, err);
    if (status == STATUS_OK) status = measure_alone(bench, QUEUE_WRITE, &out->write_rate, err);
    if (status == STATUS_OK) status = measure_alone(bench, QUEUE_READ, &out->read_rate, err);
    if (status == STATUS_OK) status = measure_both(bench, &out->both_rate, err);
    if (status == STATUS_OK) status = measure_latency(bench, &out->latency, err);
    return status;
}

enum status measure_storage(struct measure *measure, const char *folder,
                            struct hardware_storage *out, struct error *err)
{
    struct disk_bench bench = {.measure = measure};
    struct statvfs about;
    char text[2][QUANTITY_TEXT_BYTES];
    if (statvfs(folder, &about) != 0) return error_io(err, "cannot look at storage in '%s'", folder);
    const uint64_t free_bytes = (uint64_t)about.f_bavail * about.f_frsize;
    bench.bytes = file_bytes < free_bytes / 2 ? file_bytes : free_bytes / 2;
    bench.bytes = bench.bytes / (2 * STORAGE_BLOCK) * (2 * STORAGE_BLOCK);
    bench.pass = pass_bytes < bench.bytes / 2 ? pass_bytes : bench.bytes / 2;
    if (bench.bytes == 0)
        return error_set(err, STATUS_IO, "cannot measure storage in '%s': it is full", folder);
    const struct storage_options options = {.folder = folder, .bytes = bench.bytes, .queues = QUEUES};
    enum status status = storage_open(&options, &bench.storage, err);
    for (uint32_t queue = 0; queue < QUEUES && status == STATUS_OK; queue++) {
        void *memory = NULL;
        status = host_memory_map("measuring storage", bench.pass, &memory, err);
        bench.memory[queue] = memory;
    }
    if (status == STATUS_OK) status = measure_all(&bench, out, err);
    if (status == STATUS_OK) {
        out->capacity_bytes = measure_sourced(measure, usable_share * (double)free_bytes, 0);
        if (measure->options->notes)
            fprintf(measure->options->notes, "storage in '%s' (%s): read %s, write %s\n", folder,
                    storage_text(bench.storage),
                    quantity_text(out->read_rate.value, DIMENSION_BYTES_PER_S, text[0]),
                    quantity_text(out->write_rate.value, DIMENSION_BYTES_PER_S, text[1]));
        if (measure->options->notes && storage_note(bench.storage))
            fprintf(measure->options->notes, "note: storage in '%s': %s\n", folder,
                    storage_note(bench.storage));
    }
    for (uint32_t queue = 0; queue < QUEUES; queue++) host_memory_unmap(bench.memory[queue], bench.pass);
    storage_close(bench.storage);
    return status;
}
