/* label: medium
 * Checkpoints: written data is read back, whatever the cuts, and only by the same training.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/size.h"
#include "exec/checkpoint/checkpoint.h"
#include "exec/files/safetensors.h"
#include "exec/files/weights.h"
#include "tests/support/exec/support_checkpoint.h"
#include "tests/support/exec/support_gpt2.h"
#include "tests/support/support_disk.h"
#include "tests/support/support_folder.h"

/* --- there and back --------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
    (void)state;
    const struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer whole, cut;
    struct error err = {0};
    struct checkpoint_found found;
    double read_losses[SUPPORT_CHECKPOINT_STEPS];
    support_checkpoint_trainer(&whole, &job, 2);
    support_checkpoint_trainer(&cut, &job, 1);
    cut.job.minibatches = 1; /* how much longer it goes on is no matter */
    support_disk_init(&disk);
    struct checkpoint_subject subject = support_checkpoint_subject(&cut);
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, 0);

    assert_int_equal(support_checkpoint_write(&disk.disk, &whole, 1, SUPPORT_CHECKPOINT_STEPS, &err),
                     SUPPORT_CHECKPOINT_STEPS);
    assert_int_equal(support_disk_count(&disk, ".safetensors"), SUPPORT_CHECKPOINT_KEEP);
    assert_int_equal(support_disk_count(&disk, ".tmp"), 0);
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, SUPPORT_CHECKPOINT_STEPS);
    assert_int_equal(found.passed_over, 0);
    assert_true(found.first_loss == support_checkpoint_losses[0] &&
                found.final_loss == support_checkpoint_losses[SUPPORT_CHECKPOINT_STEPS - 1]);
    assert_string_equal(found.backend, "host");
    assert_string_equal(found.libraries, "a library 1.2");
    assert_int_equal(found.threads, 3);
    for (uint64_t step = SUPPORT_CHECKPOINT_STEPS - SUPPORT_CHECKPOINT_KEEP + 1; step <= SUPPORT_CHECKPOINT_STEPS;
         step++) {
        disk.read_most = step % 2 ? 7 : 0; /* short reads are no end */
        struct checkpoint_history read = support_checkpoint_only_losses(read_losses);
        if (checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, step, &read, NULL, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        assert_true(support_checkpoint_holds(&cut, step));
        assert_memory_equal(read_losses, support_checkpoint_losses, step * sizeof *support_checkpoint_losses);
    }
    support_disk_release(&disk);
    trainer_release(&whole);
    trainer_release(&cut);
}

/* Tensors are written in chunks of 1 MiB: one of exactly a chunk, one of two chunks and a rest; also if the disk takes
 * half of each write. */
static void test_large_tensors(void **state)
{
    (void)state;
    static const uint64_t vocabularies[] = {4096, 8193}; /* of 64 numbers of 4 bytes */
    for (size_t i = 0; i < 2 * ARRAY_COUNT(vocabularies); i++) {
        struct job job = support_checkpoint_job();
        struct trainer trainer;
        struct support_disk disk;
        struct error err = {0};
        double read_losses[SUPPORT_CHECKPOINT_STEPS];
        job.network = support_gpt2_network(64, 1, 1, vocabularies[i / 2], 3);
        support_checkpoint_trainer(&trainer, &job, 1);
        support_disk_init(&disk);
        if (i % 2 == 1) {
            disk.fault = FAULT_SHORT;
            disk.at = 1;
        }
        if (support_checkpoint_write(&disk.disk, &trainer, 1, 1, &err) != 1) fail_msg("%s", err.text);
        const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
        struct checkpoint_history read = support_checkpoint_only_losses(read_losses);
        support_checkpoint_fill(&trainer, 99);
        if (checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, 1, &read, NULL, &err))
            fail_msg("%s", err.text);
        assert_true(support_checkpoint_holds(&trainer, 1));
        support_disk_release(&disk);
        trainer_release(&trainer);
    }
}

static uint32_t refused_writes;

/* Takes no byte and says nothing of an error, and takes all after ten such calls. */
static ssize_t refuse(struct disk *disk, int file, const void *data, size_t length)
{
    (void)disk, (void)file, (void)data;
    return refused_writes++ < 10 ? 0 : (ssize_t)length;
}

static void test_a_disk_that_takes_nothing(void **state)
{
    (void)state;
    const struct job job = support_checkpoint_job();
    struct trainer trainer;
    struct support_disk disk;
    struct error err = {0};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    struct disk_calls calls = *disk.disk.calls;
    calls.write = refuse;
    disk.disk.calls = &calls;
    refused_writes = 0;
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 1, 1, &err), 0);
    assert_int_equal(err.status, STATUS_IO);
    assert_non_null(strstr(err.text, strerror(ENOSPC)));
    assert_int_equal(refused_writes, 1);
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* Reads only the parameters of step 2, into memory that has room only for them. */
static void check_parameters_alone(struct support_disk *disk, struct trainer *trainer)
{
    struct error err = {0};
    struct checkpoint_subject subject = support_checkpoint_subject(trainer);
    float *const alone = calloc(1, trainer->parameters[0].bytes);
    float *const places[] = {alone, trainer->states[1]};
    assert_non_null(alone);
    assert_int_equal(trainer->shard_count, 2);
    subject.states = places;
    const struct state_tables values[] = {state_tables_of_values(trainer->parameters[0]), trainer->state_tables[1]};
    subject.tables = values;
    support_checkpoint_fill(trainer, 2);
    assert_int_equal(checkpoint_read(&disk->disk, SUPPORT_CHECKPOINT_FOLDER, &subject, 2, NULL, NULL, &err), STATUS_OK);
    assert_memory_equal(alone, trainer->states[0], trainer->parameters[0].entries[0].bytes);
    free(alone);
}

/* The best evaluation's checkpoint stays, however old; later ones name it. */
static void test_the_best(void **state)
{
    (void)state;
    const struct job job = support_checkpoint_evaluated_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    struct checkpoint_found found = {0};
    struct evaluation_progress read[5];
    struct checkpoint_history history = {
        .losses = (double[5]){0}, .evaluations = read, .evaluation_count = 5};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 1, 5, &err), 5);
    /* the newest two, 4 and 5, and 2; 5 is as good and not better */
    assert_int_equal(support_disk_count(&disk, ".safetensors"), SUPPORT_CHECKPOINT_KEEP + 1);
    struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, 5);
    assert_int_equal(found.evaluation_count, 5);
    assert_int_equal(found.best_step, 2);
    assert_true(found.best_evaluation == 1.5 && found.last_evaluation == 1.5);
    if (checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, 5, &history, NULL, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_int_equal(history.evaluation_count, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(read[i].step, support_checkpoint_evaluations[i].step);
        assert_memory_equal(&read[i].loss, &support_checkpoint_evaluations[i].loss, sizeof read[i].loss);
    }
    size_t length;
    const unsigned char *const data = support_disk_file(&disk, support_checkpoint_path(&trainer, 5), &length);
    struct safetensors *file = NULL;
    if (safetensors_parse("a checkpoint", data, length, &file, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_string_equal(safetensors_metadata(file, "best_step"), "2");
    assert_string_equal(safetensors_metadata(file, "best_evaluation"), "1.5");
    assert_string_equal(safetensors_metadata(file, "evaluation"), "3 minibatches, none, tokens 0");
    safetensors_close(file);

    check_parameters_alone(&disk, &trainer);

    /* with other evaluation data the training is the same, and the evaluations start again from the first */
    subject = support_checkpoint_subject(&trainer);
    trainer.job.evaluation.minibatches = 4;
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
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
    const struct job job = support_checkpoint_evaluated_job();
    struct trainer trainer;
    support_checkpoint_trainer(&trainer, &job, 1);
    const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
    support_checkpoint_fill(&trainer, 3);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct evaluation_progress written[2] = {{cases[i].steps[0], 2.5}, {cases[i].steps[1], 1.5}}, read[5];
        const struct checkpoint_history kept = {.losses = support_checkpoint_losses, .evaluations = written,
                                                .evaluation_count = 2};
        struct checkpoint_history history = {.losses = (double[5]){0}, .evaluations = read, .evaluation_count = 5};
        struct checkpoint_folder *folder = NULL;
        struct support_disk disk;
        struct error err = {0};
        support_disk_init(&disk);
        if (checkpoint_folder_open(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, SUPPORT_CHECKPOINT_KEEP, &folder, &err) !=
            STATUS_OK ||
            checkpoint_write(folder, &subject, &support_checkpoint_origin, 3, &kept, &err) != STATUS_OK)
            fail_msg("%s", err.text);
        checkpoint_folder_close(folder);
        const enum status status = checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, 3, &history, NULL,
                                                   &err);
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
    struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    for (uint32_t kind = 0; kind < OPTIMIZER_COUNT; kind++) {
        job.optimizer.kind = kind;
        support_checkpoint_trainer(&trainer, &job, 1);
        support_disk_init(&disk);
        assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 3, 3, &err), 3);
        size_t length;
        const unsigned char *const data = support_disk_file(&disk, support_checkpoint_path(&trainer, 3), &length);
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
    const struct job job = support_checkpoint_job();
    struct trainer trainer;
    struct error err = {0}, refused = {0};
    struct checkpoint_folder *folder = NULL, *second = NULL;
    struct checkpoint_found found;
    double read_losses[SUPPORT_CHECKPOINT_STEPS];
    support_checkpoint_trainer(&trainer, &job, 1);
    const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
    assert_int_equal(checkpoint_folder_open(&disk_real, folder_path, 1, &folder, &err), STATUS_OK);
    assert_int_equal(checkpoint_folder_open(&disk_real, folder_path, 1, &second, &refused), STATUS_IO);
    assert_non_null(strstr(refused.text, "another run"));
    for (uint64_t step = 1; step <= 2; step++) {
        support_checkpoint_fill(&trainer, step);
        const struct checkpoint_history history = support_checkpoint_history(&job, step);
        if (checkpoint_write(folder, &subject, &support_checkpoint_origin, step, &history, &err) != STATUS_OK)
            fail_msg("%s", err.text);
    }
    checkpoint_folder_close(folder);
    snprintf(path, sizeof path, "%s/%s/step-0000000001.safetensors", folder_path, job.name);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(checkpoint_find(&disk_real, folder_path, &subject, &found, &err), STATUS_OK);
    assert_int_equal(found.step, 2);
    support_checkpoint_fill(&trainer, 9);
    assert_int_equal(checkpoint_read(&disk_real, folder_path, &subject, 2,
                                     &(struct checkpoint_history){.losses = read_losses}, NULL, &err),
                     STATUS_OK);
    assert_true(support_checkpoint_holds(&trainer, 2));
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
        if (checkpoint_folder_open(&disk, spellings[i][0], SUPPORT_CHECKPOINT_KEEP, &folder, &err))
            fail_msg("%s", err.text);
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
    const struct checkpoint_subject subject = support_checkpoint_subject(trainer);
    assert_int_equal(checkpoint_find(disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_BAD_INPUT);
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, expected));
    assert_null(strchr(err.text, '\n'));
}

/* Options that decide a step must match; other options may differ. */
static void test_another_optimizer(void **state)
{
    (void)state;
    struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer, other;
    struct error err = {0};
    job.optimizer = (struct job_optimizer){.kind = OPTIMIZER_MOMENTUM,
                                           .learning_rate = 0.1,
                                           .weight_decay = 0.03,
                                           .momentum = 0.9,
                                           .schedule = {.kind = RATE_COSINE, .warmup = 7, .floor = 0.2}};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 5, 5, &err), 5);
    support_checkpoint_trainer(&other, &job, 1);
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
    const struct checkpoint_subject subject = support_checkpoint_subject(&other);
    if (checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    /* nor is it another one when the job has fewer steps of the same schedule */
    j->minibatches = 10, o->schedule.steps = 60;
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
    o->schedule.steps = 59, check_other(&disk.disk, &other, expected);
    support_disk_release(&disk);
    trainer_release(&trainer);
    trainer_release(&other);
}

/* A rate that is constant after its warm-up does not depend on the number of steps. */
static void test_more_steps(void **state)
{
    (void)state;
    struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    struct checkpoint_found found = {0};
    job.optimizer.schedule = (struct rate_schedule){.kind = RATE_CONSTANT, .warmup = 7};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 5, 5, &err), 5);
    const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
    trainer.job.minibatches = 61;
    if (checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err) != STATUS_OK)
        fail_msg("%s", err.text);
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
    const struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 5, 5, &err), 5);
    size_t length, at = 0;
    unsigned char *const data = support_disk_file(&disk, support_checkpoint_path(&trainer, 5), &length);
    while (memcmp(data + at, key, sizeof key - 1) != 0) assert_true(++at + sizeof key < length);
    data[at + sizeof key - 3] = '3';
    mend_checksums(data, length);
    check_other(&disk.disk, &trainer, "is a checkpoint of version '3' (expected 1 or 2)");
    data[at + sizeof key - 3] = '1';
    mend_checksums(data, length);
    struct checkpoint_found found = {0};
    const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* A file whose description is right and which has a tensor of another name is passed over, whichever tensor it is. */
static void test_another_tensor(void **state)
{
    (void)state;
    static const char *const names[] = {"\"wte.weight\"", "\"h.0.mlp.c_fc.bias\"", "\"exp_avg_sq.ln_f.bias\""};
    const struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer;
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        struct error err = {0};
        struct checkpoint_found found = {0};
        const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
        assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 5, 5, &err), 5);
        size_t length, at = 0, name = strlen(names[i]);
        unsigned char *const data = support_disk_file(&disk, support_checkpoint_path(&trainer, 5), &length);
        while (memcmp(data + at, names[i], name) != 0) assert_true(++at + name < length);
        data[at + 1] ^= 1;
        mend_checksums(data, length);
        assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_CHECK);
        if (!strstr(err.text, "', or has another shape")) fail_msg("%s: %s", names[i], err.text);
    }
    support_disk_release(&disk);
    trainer_release(&trainer);
}

static void test_another_training(void **state)
{
    (void)state;
    const struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer, other;
    struct error err = {0};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 5, 5, &err), 5);
    support_checkpoint_trainer(&other, &job, 1);
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
    const struct checkpoint_subject subject = support_checkpoint_subject(&other);
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
    support_disk_release(&disk);
    trainer_release(&trainer);
    trainer_release(&other);
}

/* Values in full and moments in bf16 come back, and the weights are rounded from the values again. */
static void test_bf16(void **state)
{
    (void)state;
    struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer, other;
    struct error err = {0};
    job.precision = PRECISION_BF16_WEIGHTS;
    job.optimizer.moments = PRECISION_BF16;
    support_checkpoint_trainer(&trainer, &job, 1);
    support_checkpoint_trainer(&other, &job, 2); /* cut elsewhere */
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 3, 3, &err), 3);
    const struct checkpoint_subject subject = support_checkpoint_subject(&other);
    if (checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, 3, NULL, NULL, &err) != STATUS_OK)
        fail_msg("%s", err.text);
    assert_true(support_checkpoint_holds(&other, 3));
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

int main(void)
{
    support_checkpoint_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_large_tensors),
        cmocka_unit_test(test_a_disk_that_takes_nothing),
        cmocka_unit_test(test_the_best),
        cmocka_unit_test(test_evaluations_in_order),
        cmocka_unit_test(test_the_container),
        cmocka_unit_test(test_a_real_folder),
        cmocka_unit_test(test_the_folder_above),
        cmocka_unit_test(test_another_optimizer),
        cmocka_unit_test(test_more_steps),
        cmocka_unit_test(test_another_version),
        cmocka_unit_test(test_another_tensor),
        cmocka_unit_test(test_another_training),
        cmocka_unit_test(test_bf16),
    };
    return cmocka_run_group_tests_name("checkpoint", tests, NULL, NULL);
}
