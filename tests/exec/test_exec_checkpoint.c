/* label: medium
 * Checkpoints: written data is read back, whatever the cuts; damaged checkpoints are skipped; and at
 * whatever call the disk fails, the program is killed or the power goes, the newest complete
 * checkpoint is found and nothing that was promised is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/checkpoint/checkpoint.h"
#include "exec/files/safetensors.h"
#include "exec/files/weights.h"
#include "tests/support/exec/support_gpt2.h"
#include "tests/support/support_disk.h"
#include "tests/support/support_folder.h"
#include "tests/support/support_seed.h"

#define FOLDER SUPPORT_DISK_TOP "/kept"
enum { STEPS = 4, KEEP = 2 };

static const struct checkpoint_origin origin = {"host", "a library 1.2", 3};
static double losses[64];
/* The evaluations of a job that is evaluated after every step: the best is step 2, which is soon too old. */
static struct evaluation_progress evaluations[] = {{1, 5.25}, {2, 1.5}, {3, NAN}, {4, 2.125}, {5, 1.5}};

static struct checkpoint_history history_of(const struct job *job, uint64_t step)
{
    return (struct checkpoint_history){
        .losses = losses,
        .evaluations = evaluations,
        .evaluation_count = job->evaluation.every > 0 ? step : 0,
    };
}

/* Asks for the losses only, to be read into `to`; evaluations are not read. */
static struct checkpoint_history only_losses(double *to)
{
    return (struct checkpoint_history){.losses = to};
}

/* --- jobs and their states -------------------------------------------------------------------- */

static struct job tiny_job(void)
{
    return (struct job){.name = "tiny.job-1",
                        .network = support_gpt2_network(4, 1, 1, 5, 3),
                        .sequence = 3,
                        .microbatch = 2,
                        .microbatches = 1,
                        .minibatches = 60,
                        .seed = 42,
                        .data_format = DATA_NONE,
                        .optimizer = {.kind = OPTIMIZER_ADAMW, .learning_rate = 0.1, .beta1 = 0.9}};
}

static struct job evaluated_job(void)
{
    struct job job = tiny_job();
    job.evaluation = (struct job_evaluation){.every = 1, .minibatches = 3, .data_format = DATA_NONE};
    return job;
}

static void init(struct trainer *trainer, const struct job *job, uint64_t blocks_per_shard)
{
    *trainer = (struct trainer){.loss = 0};
    trainer_init(trainer, job,
                 &(struct trainer_options){.blocks_per_shard = blocks_per_shard, .slices = 1});
}

static struct checkpoint_subject subject_of(const struct trainer *trainer)
{
    return (struct checkpoint_subject){.job = &trainer->job,
                                       .data_tokens = 0,
                                       .tables = trainer->state_tables,
                                       .shard_count = trainer->shard_count,
                                       .states = trainer->states};
}

/* Part 0 are values, the others moments. */
static size_t number_bytes(const struct job *job, uint32_t part)
{
    return part == 0 ? sizeof(float) : precision_bytes(job->optimizer.moments);
}

static void *number(const struct job *job, const struct weights_tensor *tensor, uint32_t part, uint64_t i)
{
    char *const at = part == 0 ? (char *)tensor->values : (char *)tensor->moments[part - 1];
    return at + i * number_bytes(job, part);
}

/* Numbers that say of which step, shard and word they are; NaN and infinity among them. Writes only
 * to tensors: the gaps between tensors belong to no tensor. */
static void fill(const struct trainer *trainer, uint64_t step)
{
    const uint32_t parts = 1 + optimizer_moments(trainer->job.optimizer.kind);
    uint64_t n = 0;
    for (uint32_t part = 0; part < parts; part++) {
        struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                    .shard_count = trainer->shard_count, .states = trainer->states};
        struct weights_tensor tensor;
        while (weights_walk_next(&walk, &tensor))
            for (uint64_t i = 0; i < tensor.spec->elements; i++) {
                const uint32_t bits = (uint32_t)random_u64(step, n++);
                memcpy(number(&trainer->job, &tensor, part, i), &bits, number_bytes(&trainer->job, part));
            }
    }
}

static bool holds(const struct trainer *trainer, uint64_t step)
{
    const uint32_t parts = 1 + optimizer_moments(trainer->job.optimizer.kind);
    uint64_t n = 0;
    for (uint32_t part = 0; part < parts; part++) {
        struct weights_walk walk = {.job = &trainer->job, .tables = trainer->state_tables,
                                    .shard_count = trainer->shard_count, .states = trainer->states};
        struct weights_tensor tensor;
        while (weights_walk_next(&walk, &tensor))
            for (uint64_t i = 0; i < tensor.spec->elements; i++) {
                const uint32_t bits = (uint32_t)random_u64(step, n++);
                if (memcmp(number(&trainer->job, &tensor, part, i), &bits,
                           number_bytes(&trainer->job, part)) != 0)
                    return false;
            }
    }
    return true;
}

/* Writes checkpoints of steps first .. last, each with its own state. Returns the last that succeeded, and the first
 * error. */
static uint64_t write_steps(struct disk *disk, struct trainer *trainer, uint64_t first, uint64_t last,
                            struct error *err)
{
    struct checkpoint_folder *folder = NULL;
    const struct checkpoint_subject subject = subject_of(trainer);
    uint64_t written = 0;
    if (checkpoint_folder_open(disk, FOLDER, KEEP, &folder, err) != STATUS_OK) return 0;
    for (uint64_t step = first; step <= last; step++) {
        struct error one = {0};
        const struct checkpoint_history history = history_of(&trainer->job, step);
        fill(trainer, step);
        if (checkpoint_write(folder, &subject, &origin, step, &history, &one) == STATUS_OK)
            written = step;
        else if (err->status == STATUS_OK)
            *err = one;
    }
    checkpoint_folder_close(folder);
    return written;
}

static const char *path_of(const struct trainer *trainer, uint64_t step)
{
    static char path[256];
    snprintf(path, sizeof path, FOLDER "/%s/step-%010llu.safetensors", trainer->job.name,
             (unsigned long long)step);
    return path;
}

/* --- there and back --------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
    (void)state;
    const struct job job = tiny_job();
    struct support_disk disk;
    struct trainer whole, cut;
    struct error err = {0};
    struct checkpoint_found found;
    double read_losses[STEPS];
    init(&whole, &job, 2);
    init(&cut, &job, 1);
    cut.job.minibatches = 1; /* how much longer it goes on is no matter */
    support_disk_init(&disk);
    struct checkpoint_subject subject = subject_of(&cut);
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, 0);

    assert_int_equal(write_steps(&disk.disk, &whole, 1, STEPS, &err), STEPS);
    assert_int_equal(support_disk_count(&disk, ".safetensors"), KEEP);
    assert_int_equal(support_disk_count(&disk, ".tmp"), 0);
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, STEPS);
    assert_int_equal(found.passed_over, 0);
    assert_true(found.first_loss == losses[0] && found.final_loss == losses[STEPS - 1]);
    assert_string_equal(found.backend, "host");
    assert_string_equal(found.libraries, "a library 1.2");
    assert_int_equal(found.threads, 3);
    for (uint64_t step = STEPS - KEEP + 1; step <= STEPS; step++) {
        disk.read_most = step % 2 ? 7 : 0; /* short reads are no end */
        struct checkpoint_history read = only_losses(read_losses);
        if (checkpoint_read(&disk.disk, FOLDER, &subject, step, &read, NULL, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_true(holds(&cut, step));
        assert_memory_equal(read_losses, losses, step * sizeof *losses);
    }
    support_disk_release(&disk);
    trainer_release(&whole);
    trainer_release(&cut);
}

/* Reads only the parameters of step 2, into memory that has room only for them. */
static void check_parameters_alone(struct support_disk *disk, struct trainer *trainer)
{
    struct error err = {0};
    struct checkpoint_subject subject = subject_of(trainer);
    float *const alone = calloc(1, trainer->parameters[0].bytes);
    float *const places[] = {alone, trainer->states[1]};
    assert_non_null(alone);
    assert_int_equal(trainer->shard_count, 2);
    subject.states = places;
    const struct state_tables values[] = {state_tables_of_values(trainer->parameters[0]), trainer->state_tables[1]};
    subject.tables = values;
    fill(trainer, 2);
    assert_int_equal(checkpoint_read(&disk->disk, FOLDER, &subject, 2, NULL, NULL, &err), STATUS_OK);
    assert_memory_equal(alone, trainer->states[0], trainer->parameters[0].entries[0].bytes);
    free(alone);
}

/* The best evaluation's checkpoint stays, however old; later ones name it. */
static void test_the_best(void **state)
{
    (void)state;
    const struct job job = evaluated_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    struct checkpoint_found found = {0};
    struct evaluation_progress read[5];
    struct checkpoint_history history = {
        .losses = (double[5]){0}, .evaluations = read, .evaluation_count = 5};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 1, 5, &err), 5);
    /* the newest two, 4 and 5, and 2; 5 is as good and not better */
    assert_int_equal(support_disk_count(&disk, ".safetensors"), KEEP + 1);
    struct checkpoint_subject subject = subject_of(&trainer);
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, 5);
    assert_int_equal(found.evaluation_count, 5);
    assert_int_equal(found.best_step, 2);
    assert_true(found.best_evaluation == 1.5 && found.last_evaluation == 1.5);
    if (checkpoint_read(&disk.disk, FOLDER, &subject, 5, &history, NULL, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(history.evaluation_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(read[i].step, evaluations[i].step);
        assert_memory_equal(&read[i].loss, &evaluations[i].loss, sizeof read[i].loss);
    }
    size_t length;
    const unsigned char *const data = support_disk_file(&disk, path_of(&trainer, 5), &length);
    struct safetensors *file = NULL;
    if (safetensors_parse("a checkpoint", data, length, &file, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_string_equal(safetensors_metadata(file, "best_step"), "2");
    assert_string_equal(safetensors_metadata(file, "best_evaluation"), "1.5");
    assert_string_equal(safetensors_metadata(file, "evaluation"), "3 minibatches, none, tokens 0");
    safetensors_close(file);

    check_parameters_alone(&disk, &trainer);

    /* with other evaluation data the training is the same, and the evaluations start again from the first */
    subject = subject_of(&trainer);
    trainer.job.evaluation.minibatches = 4;
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, 5);
    assert_int_equal(found.evaluation_count, 0);
    assert_int_equal(found.best_step, 0);
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* Fewer evaluations than there is room for are counted; steps that do not ascend up to the checkpoint's are refused. */
static void test_evaluations_in_order(void **state)
{
    (void)state;
    static const struct {
        uint64_t steps[2];
        const char *complaint;
    } cases[] = {{{1, 2}, NULL},
                 {{2, 2}, "evaluation 1 is after step 2 (expected 3 to 3)"},
                 {{3, 1}, "evaluation 1 is after step 1 (expected 4 to 3)"},
                 {{1, 4}, "evaluation 1 is after step 4 (expected 2 to 3)"},
                 {{0, 2}, "evaluation 0 is after step 0 (expected 1 to 3)"}};
    const struct job job = evaluated_job();
    struct trainer trainer;
    init(&trainer, &job, 1);
    const struct checkpoint_subject subject = subject_of(&trainer);
    fill(&trainer, 3);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct evaluation_progress written[2] = {{cases[i].steps[0], 2.5}, {cases[i].steps[1], 1.5}}, read[5];
        const struct checkpoint_history kept = {.losses = losses, .evaluations = written, .evaluation_count = 2};
        struct checkpoint_history history = {.losses = (double[5]){0}, .evaluations = read, .evaluation_count = 5};
        struct checkpoint_folder *folder = NULL;
        struct support_disk disk;
        struct error err = {0};
        support_disk_init(&disk);
        if (checkpoint_folder_open(&disk.disk, FOLDER, KEEP, &folder, &err) != STATUS_OK ||
            checkpoint_write(folder, &subject, &origin, 3, &kept, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        checkpoint_folder_close(folder);
        const enum status status = checkpoint_read(&disk.disk, FOLDER, &subject, 3, &history, NULL, &err);
        assert_int_equal(status, cases[i].complaint ? STATUS_CHECK : STATUS_OK);
        if (cases[i].complaint && !strstr(err.text, cases[i].complaint)) fail_msg("%s", err.text);
        if (!cases[i].complaint) assert_int_equal(history.evaluation_count, 2);
        support_disk_release(&disk);
    }
    trainer_release(&trainer);
}

/* Other software can read the weights: the file is a good safetensors file with the network's names. */
static void test_the_container(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    for (uint32_t kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        job.optimizer.kind = kind;
        init(&trainer, &job, 1);
        support_disk_init(&disk);
        assert_int_equal(write_steps(&disk.disk, &trainer, 3, 3, &err), 3);
        size_t length;
        const unsigned char *const data = support_disk_file(&disk, path_of(&trainer, 3), &length);
        struct safetensors *file = NULL;
        if (safetensors_parse("a checkpoint", data, length, &file, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        const struct safetensors_tensor *const weight = safetensors_find(file, "h.0.mlp.c_fc.weight");
        assert_non_null(weight);
        assert_int_equal(weight->shape[0], 4);
        assert_int_equal(weight->shape[1], 16);
        const bool moments = kind == OPTIMIZER_ADAMW;
        assert_true(moments == (safetensors_find(file, "exp_avg.wte.weight") != NULL));
        assert_true(moments == (safetensors_find(file, "exp_avg_sq.ln_f.bias") != NULL));
        assert_true((kind == OPTIMIZER_MOMENTUM) ==
                    (safetensors_find(file, "momentum_buffer.ln_f.bias") != NULL));
        assert_string_equal(safetensors_metadata(file, "step"), "3");
        assert_string_equal(safetensors_metadata(file, "job"), "tiny.job-1");
        safetensors_close(file);
        support_disk_release(&disk);
        trainer_release(&trainer);
    }
}

/* Uses a real disk; two writers at a time are refused. */
static void test_a_real_folder(void **state)
{
    (void)state;
    char top[SUPPORT_FOLDER_BYTES], folder_path[64], path[256];
    support_folder_make(top);
    snprintf(folder_path, sizeof folder_path, "%s/kept", top);
    const struct job job = tiny_job();
    struct trainer trainer;
    struct error err = {0}, refused = {0};
    struct checkpoint_folder *folder = NULL, *second = NULL;
    struct checkpoint_found found;
    double read_losses[STEPS];
    init(&trainer, &job, 1);
    const struct checkpoint_subject subject = subject_of(&trainer);
    assert_int_equal(checkpoint_folder_open(&disk_real, folder_path, 1, &folder, &err), STATUS_OK);
    assert_int_equal(checkpoint_folder_open(&disk_real, folder_path, 1, &second, &refused), STATUS_IO);
    assert_non_null(strstr(refused.text, "another run"));
    for (uint64_t step = 1; step <= 2; step++) {
        fill(&trainer, step);
        const struct checkpoint_history history = history_of(&job, step);
        if (checkpoint_write(folder, &subject, &origin, step, &history, &err) != STATUS_OK)
            fail_msg("%s", err.text);
    }
    checkpoint_folder_close(folder);
    snprintf(path, sizeof path, "%s/%s/step-0000000001.safetensors", folder_path, job.name);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(checkpoint_find(&disk_real, folder_path, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, 2);
    fill(&trainer, 9);
    assert_int_equal(checkpoint_read(&disk_real, folder_path, &subject, 2, &(struct checkpoint_history){.losses = read_losses}, NULL, &err),
                     STATUS_OK);
    assert_true(holds(&trainer, 2));
    snprintf(path, sizeof path, "%s/%s/step-0000000002.safetensors", folder_path, job.name);
    assert_int_equal(unlink(path), 0);
    /* a folder of that name is no checkpoint */
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(checkpoint_find(&disk_real, folder_path, &subject, &found, &err), STATUS_CHECK);
    print_message("%s\n", err.text);
    rmdir(path);
    *strrchr(path, '/') = '\0';
    rmdir(path);
    rmdir(folder_path);
    assert_int_equal(rmdir(top), 0);
    trainer_release(&trainer);
}

static char synced_path[256];

static int accept_folder(struct disk *disk, const char *path)
{
    (void)disk, (void)path;
    return 0;
}

static int note_synced(struct disk *disk, const char *path)
{
    (void)disk;
    snprintf(synced_path, sizeof synced_path, "%s", path);
    return 0;
}

static int accept_close(struct disk *disk, int file)
{
    (void)disk, (void)file;
    return 0;
}

/* The folder that has the new one's name is synced, however the path is spelled. */
static void test_the_folder_above(void **state)
{
    (void)state;
    static const char *const spellings[][2] = {{"/top/kept", "/top"}, {"/top/kept/", "/top"}, {"/top//kept//", "/top"},
                                               {"/kept", "/"},        {"/kept//", "/"},       {"kept", "."},
                                               {"kept/", "."},        {"a/kept", "a"},        {"/", "/"}};
    static const struct disk_calls calls = {.make_folder = accept_folder, .sync_folder = note_synced,
                                            .lock_folder = accept_folder, .close = accept_close};
    for (size_t i = 0; i < ARRAY_COUNT(spellings); i++) {
        struct disk disk = {&calls};
        struct checkpoint_folder *folder = NULL;
        struct error err = {0};
        if (checkpoint_folder_open(&disk, spellings[i][0], KEEP, &folder, &err)) fail_msg("%s", err.text);
        if (strcmp(synced_path, spellings[i][1]) != 0)
            fail_msg("'%s': '%s' is synced (expected '%s')", spellings[i][0], synced_path, spellings[i][1]);
        checkpoint_folder_close(folder);
    }
}

/* --- another training ------------------------------------------------------------------------- */

static void check_other(struct disk *disk, struct trainer *trainer, const char *expected)
{
    struct error err = {0};
    struct checkpoint_found found = {0};
    const struct checkpoint_subject subject = subject_of(trainer);
    assert_int_equal(checkpoint_find(disk, FOLDER, &subject, &found, &err), STATUS_BAD_INPUT);
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, expected));
    assert_null(strchr(err.text, '\n'));
}

/* Options that decide a step must match; other options may differ. */
static void test_another_optimizer(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer, other;
    struct error err = {0};
    job.optimizer = (struct job_optimizer){.kind = OPTIMIZER_MOMENTUM,
                                           .learning_rate = 0.1,
                                           .weight_decay = 0.03,
                                           .momentum = 0.9,
                                           .schedule = {.kind = RATE_COSINE, .warmup = 7, .floor = 0.2}};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 5, 5, &err), 5);
    init(&other, &job, 1);
    struct job *const j = &other.job;
    struct job_optimizer *const o = &j->optimizer;
    static const char expected[] = "its optimizer is";
    o->learning_rate = 0.2, check_other(&disk.disk, &other, expected), *j = job;
    o->weight_decay = 0.2, check_other(&disk.disk, &other, expected), *j = job;
    o->momentum = 0.8, check_other(&disk.disk, &other, expected), *j = job;
    o->nesterov = true, check_other(&disk.disk, &other, expected), *j = job;
    o->decay = DECAY_ALL, check_other(&disk.disk, &other, expected), *j = job;
    o->schedule.kind = RATE_LINEAR, check_other(&disk.disk, &other, expected), *j = job;
    o->schedule.warmup = 8, check_other(&disk.disk, &other, expected), *j = job;
    o->clip = 0.5, check_other(&disk.disk, &other, expected), *j = job;
    o->schedule.floor = 0.125;
    check_other(&disk.disk, &other, "its optimizer is ..., \"floor\": 0.2}, \"steps\": 60} (expected "
                                    "..., \"floor\": 0.125}, \"steps\": 60})");
    *j = job;
    /* a rate that falls until step 60 is another one when it falls until 61 */
    j->minibatches = 61, check_other(&disk.disk, &other, expected);
    j->first_minibatch = 5, j->minibatches = 55;
    o->beta1 = 0.4;
    struct checkpoint_found found = {0};
    const struct checkpoint_subject subject = subject_of(&other);
    if (checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    /* nor is it another one when the job has fewer steps of the same schedule */
    j->minibatches = 10, o->schedule.steps = 60;
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    o->schedule.steps = 59, check_other(&disk.disk, &other, expected);
    support_disk_release(&disk);
    trainer_release(&trainer);
    trainer_release(&other);
}

/* A rate that is constant after its warm-up does not depend on the number of steps. */
static void test_more_steps(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    struct checkpoint_found found = {0};
    job.optimizer.schedule = (struct rate_schedule){.kind = RATE_CONSTANT, .warmup = 7};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 5, 5, &err), 5);
    const struct checkpoint_subject subject = subject_of(&trainer);
    trainer.job.minibatches = 61;
    if (checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err) != STATUS_OK) fail_msg("%s", err.text);
    assert_int_equal(found.step, 5);
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* The last entries of the file are checksums of everything before them, and the checksum of these. */
static void mend_checksums(unsigned char *data, size_t length)
{
    uint64_t head;
    uint32_t own, count = 0;
    uLong found;
    memcpy(&head, data, sizeof head);
    memcpy(&own, data + length - sizeof own, sizeof own);
    do {
        count++;
        assert_true((count + 1) * sizeof own < length);
        found = crc32_z(crc32_z(0, NULL, 0), data + length - (count + 1) * sizeof own, count * sizeof own);
    } while (found != own);
    unsigned char *const first = data + length - (count + 1) * sizeof own;
    own = (uint32_t)crc32_z(crc32_z(0, NULL, 0), data, sizeof head + head);
    memcpy(first, &own, sizeof own);
    own = (uint32_t)crc32_z(crc32_z(0, NULL, 0), first, count * sizeof own);
    memcpy(data + length - sizeof own, &own, sizeof own);
}

/* A file of another version of the format is refused, and the message has both versions. */
static void test_another_version(void **state)
{
    (void)state;
    static const char key[] = "\"spillway_checkpoint\": \"1\"";
    const struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 5, 5, &err), 5);
    size_t length, at = 0;
    unsigned char *const data = support_disk_file(&disk, path_of(&trainer, 5), &length);
    while (memcmp(data + at, key, sizeof key - 1) != 0) assert_true(++at + sizeof key < length);
    data[at + sizeof key - 3] = '2';
    mend_checksums(data, length);
    check_other(&disk.disk, &trainer, "is a checkpoint of version '2' (expected 1)");
    data[at + sizeof key - 3] = '1';
    mend_checksums(data, length);
    struct checkpoint_found found = {0};
    const struct checkpoint_subject subject = subject_of(&trainer);
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* A file whose description is right and which has a tensor of another name is passed over, whichever tensor it is. */
static void test_another_tensor(void **state)
{
    (void)state;
    static const char *const names[] = {"\"wte.weight\"", "\"h.0.mlp.c_fc.bias\"", "\"exp_avg_sq.ln_f.bias\""};
    const struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer;
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct error err = {0};
        struct checkpoint_found found = {0};
        const struct checkpoint_subject subject = subject_of(&trainer);
        assert_int_equal(write_steps(&disk.disk, &trainer, 5, 5, &err), 5);
        size_t length, at = 0, name = strlen(names[i]);
        unsigned char *const data = support_disk_file(&disk, path_of(&trainer, 5), &length);
        while (memcmp(data + at, names[i], name) != 0) assert_true(++at + name < length);
        data[at + 1] ^= 1;
        mend_checksums(data, length);
        assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_CHECK);
        if (!strstr(err.text, "', or has another shape")) fail_msg("%s: %s", names[i], err.text);
    }
    support_disk_release(&disk);
    trainer_release(&trainer);
}

static void test_another_training(void **state)
{
    (void)state;
    const struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer, other;
    struct error err = {0};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 5, 5, &err), 5);
    init(&other, &job, 1);
    other.job.seed = 43;
    check_other(&disk.disk, &other, "its seed is 42 (expected 43)");
    other.job = job;
    other.job.optimizer.learning_rate = 0.2;
    check_other(&disk.disk, &other, "optimizer is");
    other.job = job;
    other.job.microbatch = 1;
    check_other(&disk.disk, &other, "its microbatch is 2 (expected 1)");
    other.job = job;
    other.job.microbatches = 3;
    check_other(&disk.disk, &other, "its microbatches is 1 (expected 3)");
    other.job = job;
    other.job.precision = PRECISION_BF16_WEIGHTS;
    check_other(&disk.disk, &other, "its precision is fp32 (expected bf16-weights)");
    other.job = job;
    other.job.optimizer.moments = PRECISION_BF16;
    check_other(&disk.disk, &other, "its optimizer is");
    other.job = job;
    other.job.network.norm_epsilon *= 2;
    check_other(&disk.disk, &other, "is not a checkpoint of the network");
    other.job = job;
    strcpy(other.job.network.name, "elsewhere/config.json"); /* no difference */
    struct checkpoint_found found = {0};
    const struct checkpoint_subject subject = subject_of(&other);
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    support_disk_release(&disk);
    trainer_release(&trainer);
    trainer_release(&other);
}

/* Values in full and moments in bf16 come back, and the weights are rounded from the values again. */
static void test_bf16(void **state)
{
    (void)state;
    struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer, other;
    struct error err = {0};
    job.precision = PRECISION_BF16_WEIGHTS;
    job.optimizer.moments = PRECISION_BF16;
    init(&trainer, &job, 1);
    init(&other, &job, 2); /* cut elsewhere */
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 3, 3, &err), 3);
    const struct checkpoint_subject subject = subject_of(&other);
    if (checkpoint_read(&disk.disk, FOLDER, &subject, 3, NULL, NULL, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_true(holds(&other, 3));
    struct weights_walk walk = {.job = &job, .tables = other.state_tables,
                                .shard_count = other.shard_count, .states = other.states};
    struct weights_tensor tensor;
    uint64_t rounded = 0;
    while (weights_walk_next(&walk, &tensor)) {
        assert_true((tensor.rounded != NULL) == tensor.spec->matrix);
        for (uint64_t i = 0; tensor.rounded && i < tensor.spec->elements; i++, rounded++)
            assert_int_equal(tensor.rounded[i], bf16_nearest(tensor.values[i]));
    }
    assert_true(rounded > 0);
    support_disk_release(&disk);
    trainer_release(&trainer);
    trainer_release(&other);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* Every byte of the newest file is changed, one at a time: the previous file is taken, with a reason. */
static void test_every_damaged_byte(void **state)
{
    (void)state;
    const struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 1, 2, &err), 2);
    const struct checkpoint_subject subject = subject_of(&trainer);
    size_t length;
    unsigned char *const data = support_disk_file(&disk, path_of(&trainer, 2), &length);
    for (size_t i = 0; i < length; i++) {
        struct checkpoint_found found = {0};
        data[i] ^= (unsigned char)(1 << i % 8);
        if (checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err) != STATUS_OK)
            fail_msg("byte %zu: %s", i, err.text);
        if (found.step != 1 || found.passed_over != 1) fail_msg("byte %zu is not missed", i);
        assert_non_null(strstr(found.reason, "step-0000000002"));
        data[i] ^= (unsigned char)(1 << i % 8);
    }
    print_message("%zu bytes\n", length);
    for (size_t cut = length; cut-- > 0; cut -= cut > 300 ? cut / 50 : 0) {
        struct checkpoint_found found = {0};
        support_disk_truncate(&disk, path_of(&trainer, 2), cut);
        assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
        assert_int_equal(found.step, 1);
    }
    /* resumed from there, the damaged one goes as soon as there is a whole one */
    assert_int_equal(write_steps(&disk.disk, &trainer, 2, 2, &err), 2);
    support_disk_truncate(&disk, path_of(&trainer, 2), 100);
    support_disk_truncate(&disk, path_of(&trainer, 1), 0);
    struct checkpoint_found found = {0};
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_CHECK);
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, "all 2 checkpoints"));
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* After resuming from step 1, because 2 and 3 are damaged, the next checkpoint removes them. */
static void test_later_ones_go(void **state)
{
    (void)state;
    const struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 3, 4, &err), 4);
    assert_int_equal(write_steps(&disk.disk, &trainer, 2, 2, &err), 2);
    assert_int_equal(support_disk_count(&disk, ".safetensors"), 1);
    support_disk_release(&disk);
    trainer_release(&trainer);
}

static void test_failing_reads(void **state)
{
    (void)state;
    const struct job job = tiny_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    init(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(write_steps(&disk.disk, &trainer, 1, 2, &err), 2);
    const struct checkpoint_subject subject = subject_of(&trainer);
    double read_losses[STEPS];
    struct checkpoint_found found = {0};
    disk.reads = 0;
    assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
    const uint64_t reads = disk.reads;
    for (uint64_t n = 1; n <= reads; n++) {
        disk.reads = 0;
        disk.read_at = n;
        assert_int_equal(checkpoint_find(&disk.disk, FOLDER, &subject, &found, &err), STATUS_OK);
        assert_int_equal(found.step, 1);
        assert_non_null(strstr(found.reason, strerror(EIO)));
        disk.reads = 0;
        struct error why = {0};
        struct checkpoint_history read = only_losses(read_losses);
        assert_int_equal(checkpoint_read(&disk.disk, FOLDER, &subject, 2, &read, NULL, &why),
                         STATUS_IO);
    }
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* --- every call ------------------------------------------------------------------------------- */

struct tally {
    uint32_t cases, behind; /* `behind`: a checkpoint was found that was never reported as done */
    bool broken;            /* a promise was broken: only a disk that lies may do that */
};

/* Runs steps 1 .. STEPS with a fault at call `at`, then checks the files. Returns false if that call never came. */
static bool one_case(enum support_disk_fault fault, uint64_t at, uint64_t seed, bool lies,
                     struct trainer *trainer, struct tally *tally)
{
    struct support_disk disk;
    struct error err = {0};
    struct checkpoint_found found = {0};
    double read_losses[STEPS + 1];
    support_disk_init(&disk);
    disk.fault = fault;
    disk.at = at;
    disk.lies = lies;
    const uint64_t written = write_steps(&disk.disk, trainer, 1, STEPS, &err);
    const bool came = disk.calls >= at;
    if (fault == FAULT_ONCE || fault == FAULT_FULL) {
        /* removing fails in silence: it is tried again with the next one */
        if (came && err.status != STATUS_OK && err.status != STATUS_IO) fail_msg("%s", err.text);
        if (err.status != STATUS_OK && fault == FAULT_FULL)
            assert_non_null(strstr(err.text, strerror(ENOSPC)));
        if (fault == FAULT_FULL) assert_int_equal(support_disk_count(&disk, ".tmp"), 0);
    }
    if (fault == FAULT_SHORT) assert_int_equal(written, STEPS);
    if (fault == FAULT_POWER)
        support_disk_after_power(&disk, seed);
    else
        support_disk_after_kill(&disk);

    const struct checkpoint_subject subject = subject_of(trainer);
    struct error why = {0};
    const enum status status = checkpoint_find(&disk.disk, FOLDER, &subject, &found, &why);
    bool good = status == STATUS_OK && found.passed_over == 0 && found.step >= written &&
                found.step <= STEPS;
    if (good && found.step > 0) {
        fill(trainer, 99);
        struct checkpoint_history read = only_losses(read_losses);
        good = checkpoint_read(&disk.disk, FOLDER, &subject, found.step, &read, NULL, &why) ==
                   STATUS_OK &&
               holds(trainer, found.step) &&
               memcmp(read_losses, losses, found.step * sizeof *losses) == 0;
    }
    /* the best checkpoint of all that were reported as done is there, too old or not */
    if (good && found.best_step > 0 && (err.status == STATUS_OK || fault > FAULT_FULL)) {
        fill(trainer, 99);
        good = checkpoint_read(&disk.disk, FOLDER, &subject, found.best_step, NULL, NULL, &why) ==
                   STATUS_OK &&
               holds(trainer, found.best_step);
    }
    if (!good && !lies)
        fail_msg("fault %d at call %u, seed %llu: %u were done and %u is found, %u passed over (%s%s)",
                 (int)fault, (unsigned)at, (unsigned long long)seed, (unsigned)written,
                 (unsigned)found.step, found.passed_over, found.reason, why.text);
    tally->cases++;
    tally->broken |= !good;
    tally->behind += good && found.step > written;
    if (good) { /* and it goes on from there, without rubbish */
        struct error later = {0};
        const uint64_t next = found.step + 1;
        disk.lies = false;
        if (write_steps(&disk.disk, trainer, next, next, &later) != next) fail_msg("%s", later.text);
        assert_int_equal(support_disk_count(&disk, ".tmp"), 0);
        assert_in_range(support_disk_count(&disk, ".safetensors"), 1, KEEP + 1);
    }
    support_disk_release(&disk);
    return came;
}

static void sweep(enum support_disk_fault fault, uint32_t draws, uint64_t seed, bool lies,
                  struct tally *tally)
{
    const struct job job = evaluated_job();
    struct trainer trainer;
    init(&trainer, &job, 1);
    bool came = true;
    uint64_t at = 0;
    while (came) {
        at++;
        for (uint32_t i = 0; i < draws; i++)
            came = one_case(fault, at, random_mix(seed + at * 1000 + i), lies, &trainer, tally);
    }
    trainer_release(&trainer);
    print_message("fault %d: %u calls, %u cases; %u times more survived than was promised\n",
                  (int)fault, (unsigned)at - 1, tally->cases, tally->behind);
}

static void test_a_fault_at_every_call(void **state)
{
    (void)state;
    for (enum support_disk_fault fault = FAULT_ONCE; fault <= FAULT_KILL; fault++) {
        struct tally tally = {0};
        sweep(fault, 1, 0, false, &tally);
        assert_true(tally.cases > 4 * STEPS);
    }
}

static void test_power_cut_at_every_call(void **state)
{
    (void)state;
    struct tally tally = {0};
    sweep(FAULT_POWER, 12, support_seed(__func__), false, &tally);
}

/* The test can fail: on a disk whose sync does nothing, it does. */
static void test_a_disk_that_lies_is_noticed(void **state)
{
    (void)state;
    struct tally tally = {0};
    sweep(FAULT_POWER, 2, 1, true, &tally);
    assert_true(tally.broken);
}

int main(void)
{
    for (size_t i = 0; i < ARRAY_COUNT(losses); i++) losses[i] = 5.5 / (double)(i + 1);
    losses[1] = NAN;
    losses[2] = INFINITY;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_the_best),
        cmocka_unit_test(test_the_container),
        cmocka_unit_test(test_a_real_folder),
        cmocka_unit_test(test_the_folder_above),
        cmocka_unit_test(test_evaluations_in_order),
        cmocka_unit_test(test_another_tensor),
        cmocka_unit_test(test_another_training), cmocka_unit_test(test_bf16), cmocka_unit_test(test_another_optimizer), cmocka_unit_test(test_more_steps),
        cmocka_unit_test(test_another_version),
        cmocka_unit_test(test_every_damaged_byte),
        cmocka_unit_test(test_later_ones_go),
        cmocka_unit_test(test_failing_reads),
        cmocka_unit_test(test_a_fault_at_every_call),
        cmocka_unit_test(test_power_cut_at_every_call),
        cmocka_unit_test(test_a_disk_that_lies_is_noticed),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
