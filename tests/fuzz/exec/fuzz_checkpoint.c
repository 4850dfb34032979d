/*
 * The reader of checkpoints, fed with anything as the newest file of a tiny job.
 *
 * Checksums turn almost every broken input away at the door, so each one is tried twice: as it is, and
 * with all checksums made right, which is what a hostile file would have.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "exec/checkpoint/checkpoint.h"
#include "exec/files/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* --- a disk with one file --------------------------------------------------------------------- */

struct one_file {
    struct disk disk;
    const uint8_t *data;
    size_t size;
};

static int file_open(struct disk *disk, const char *path)
{
    (void)disk;
    (void)path;
    return 0;
}

static int file_close(struct disk *disk, int file)
{
    (void)disk;
    return file;
}

static int64_t file_size(struct disk *disk, int file)
{
    (void)file;
    return (int64_t)((struct one_file *)(void *)disk)->size;
}

static ssize_t file_read(struct disk *disk, int file, void *data, size_t length, uint64_t offset)
{
    (void)file;
    const struct one_file *const one = (struct one_file *)(void *)disk;
    if (offset >= one->size) return 0;
    if (length > one->size - offset) length = one->size - offset;
    memcpy(data, one->data + offset, length);
    return (ssize_t)length;
}

static int file_list(struct disk *disk, const char *path,
                     void (*each)(void *context, const char *name), void *context)
{
    (void)disk;
    (void)path;
    each(context, "step-0000000002.safetensors");
    return 0;
}

static const struct disk_calls calls = {.open = file_open, .close = file_close, .size = file_size,
                                        .read = file_read, .list = file_list};

/* --- checksums -------------------------------------------------------------------------------- */

static uint32_t checksum(const uint8_t *data, uint64_t length)
{
    return (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, length);
}

/* Corrects checksums, as a forger would, for any contents. */
static void forge(uint8_t *data, size_t size)
{
    struct safetensors *file = NULL;
    struct error err = {0};
    uint64_t head;
    if (size < SAFETENSORS_LENGTH_BYTES || !safetensors_head_bytes(data, size, &head)) return;
    if (safetensors_parse("input", data, size, &file, &err) != STATUS_OK) return;
    const size_t count = safetensors_count(file);
    const struct safetensors_tensor *const last = count > 0 ? safetensors_at(file, count - 1) : NULL;
    if (last && last->bytes == (count + 1) * sizeof(uint32_t)) {
        uint8_t *const to = data + last->offset;
        for (size_t i = 0; i < count; i++) {
            const struct safetensors_tensor *const t = i > 0 ? safetensors_at(file, i - 1) : NULL;
            const uint32_t sum = t ? checksum(t->data, t->bytes) : checksum(data, head);
            memcpy(to + i * sizeof sum, &sum, sizeof sum);
        }
        const uint32_t own = checksum(to, count * sizeof own);
        memcpy(to + count * sizeof own, &own, sizeof own);
    }
    safetensors_close(file);
}

/* --- the target ------------------------------------------------------------------------------- */

/* Makes the job of the corpus. */
static void make_job(struct job *job)
{
    *job = (struct job){
        .name = "tiny",
        .network = {.name = "tiny", .family = NETWORK_GPT2, .layer_count = 3, .width = 4, .heads = 1,
                    .head_width = 4, .ff_width = 16, .blocks = 1, .vocabulary = 5, .positions = 3,
                    .norm_epsilon = 1e-5, .tied_head = true, .causal = true, .biases = true,
                    .gelu_tanh = true, .initializer_range = 0.02},
        .sequence = 3,
        .microbatch = 2,
        .microbatches = 1,
        .minibatches = 9,
        .seed = 42,
        .data_format = DATA_NONE,
        .optimizer = {.kind = OPTIMIZER_ADAMW, .learning_rate = 0.1, .beta1 = 0.9, .beta2 = 0.99,
                      .epsilon = 1e-8},
    };
}

static void look(const uint8_t *data, size_t size, const struct checkpoint_subject *subject)
{
    struct one_file one = {{&calls}, data, size};
    struct checkpoint_found found = {0};
    struct error err = {0};
    double losses[2];
    struct evaluation_progress evaluations[2];
    struct checkpoint_history history = {
        .losses = losses, .evaluations = evaluations, .evaluation_count = 2};
    if (checkpoint_find(&one.disk, "folder", subject, &found, &err) != STATUS_OK) {
        if (err.text[0] == '\0' || found.step != 0) abort();
        return;
    }
    if (found.step != 2) abort();
    if (checkpoint_read(&one.disk, "folder", subject, 2, &history, NULL, &err) != STATUS_OK) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct job job;
    struct arena arena = {0};
    struct state_tables tables = {0};
    struct error err = {0};
    make_job(&job);
    if (memory_state_tables(&job.network, 0, 3, job_state_format(&job), &arena, &tables, &err) !=
        STATUS_OK)
        abort();
    float *const state = calloc(1, tables.layout.bytes), *states[] = {state};
    uint8_t *const copy = malloc(size + 1);
    if (!state || !copy) abort();
    const struct checkpoint_subject subject = {
        .job = &job, .tables = &tables, .shard_count = 1, .states = states};
    look(data, size, &subject);
    if (size > 0) memcpy(copy, data, size);
    forge(copy, size);
    look(copy, size, &subject);
    free(copy);
    free(state);
    arena_release(&arena);
    return 0;
}
