/* label: medium
 * Checkpoints: damaged ones are skipped; and at whatever call the disk fails, the program is killed or the power goes,
 * the newest complete checkpoint is found and nothing that was promised is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "base/size.h"
#include "exec/checkpoint/checkpoint.h"
#include "exec/files/safetensors.h"
#include "tests/support/exec/support_checkpoint.h"
#include "tests/support/exec/support_gpt2.h"
#include "tests/support/support_disk.h"
#include "tests/support/support_seed.h"

/* --- damage ----------------------------------------------------------------------------------- */

/* Every byte of the newest file is changed, one at a time: the previous file is taken, with a reason. */
static void test_every_damaged_byte(void **state)
{
    (void)state;
    const struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 1, 2, &err), 2);
    const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
    size_t length;
    unsigned char *const data = support_disk_file(&disk, support_checkpoint_path(&trainer, 2), &length);
    for (size_t i = 0; i < length; i++) {
        struct checkpoint_found found = {0};
        data[i] ^= (unsigned char)(1 << i % 8);
        if (checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err) != STATUS_OK)
            fail_msg("byte %zu: %s", i, err.text);
        if (found.step != 1 || found.passed_over != 1) fail_msg("byte %zu is not missed", i);
        assert_non_null(strstr(found.reason, "step-0000000002"));
        data[i] ^= (unsigned char)(1 << i % 8);
    }
    print_message("%zu bytes\n", length);
    for (size_t cut = length; cut-- > 0; cut -= cut > 300 ? cut / 50 : 0) {
        struct checkpoint_found found = {0};
        support_disk_truncate(&disk, support_checkpoint_path(&trainer, 2), cut);
        assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
        assert_int_equal(found.step, 1);
    }
    /* resumed from there, the damaged one goes as soon as there is a whole one */
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 2, 2, &err), 2);
    support_disk_truncate(&disk, support_checkpoint_path(&trainer, 2), 100);
    support_disk_truncate(&disk, support_checkpoint_path(&trainer, 1), 0);
    struct checkpoint_found found = {0};
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_CHECK);
    print_message("%s\n", err.text);
    assert_non_null(strstr(err.text, "all 2 checkpoints"));
    support_disk_release(&disk);
    trainer_release(&trainer);
}

/* After resuming from step 1, because 2 and 3 are damaged, the next checkpoint removes them. */
static void test_later_ones_go(void **state)
{
    (void)state;
    const struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 3, 4, &err), 4);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 2, 2, &err), 2);
    assert_int_equal(support_disk_count(&disk, ".safetensors"), 1);
    support_disk_release(&disk);
    trainer_release(&trainer);
}

static void test_failing_reads(void **state)
{
    (void)state;
    const struct job job = support_checkpoint_job();
    struct support_disk disk;
    struct trainer trainer;
    struct error err = {0};
    support_checkpoint_trainer(&trainer, &job, 1);
    support_disk_init(&disk);
    assert_int_equal(support_checkpoint_write(&disk.disk, &trainer, 1, 2, &err), 2);
    const struct checkpoint_subject subject = support_checkpoint_subject(&trainer);
    double read_losses[SUPPORT_CHECKPOINT_STEPS];
    struct checkpoint_found found = {0};
    disk.reads = 0;
    assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
    const uint64_t reads = disk.reads;
    for (uint64_t n = 1; n <= reads; n++) {
        disk.reads = 0;
        disk.read_at = n;
        assert_int_equal(checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &err), STATUS_OK);
        assert_int_equal(found.step, 1);
        assert_non_null(strstr(found.reason, strerror(EIO)));
        disk.reads = 0;
        struct error why = {0};
        struct checkpoint_history read = support_checkpoint_only_losses(read_losses);
        assert_int_equal(checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, 2, &read, NULL, &why),
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

/* Writes the next checkpoint after a fault: no rubbish is left. */
static void go_on(struct support_disk *disk, struct trainer *trainer, uint64_t next)
{
    struct error err = {0};
    disk->lies = false;
    if (support_checkpoint_write(&disk->disk, trainer, next, next, &err) != next) fail_msg("%s", err.text);
    assert_int_equal(support_disk_count(disk, ".tmp"), 0);
    assert_in_range(support_disk_count(disk, ".safetensors"), 1, SUPPORT_CHECKPOINT_KEEP + 1);
}

/* Runs steps 1 .. SUPPORT_CHECKPOINT_STEPS with a fault at call `at`, then checks the files. Returns false if that call
 * never came. */
static bool one_case(enum support_disk_fault fault, uint64_t at, uint64_t seed, bool lies,
                     struct trainer *trainer, struct tally *tally)
{
    struct support_disk disk;
    struct error err = {0};
    struct checkpoint_found found = {0};
    double read_losses[SUPPORT_CHECKPOINT_STEPS + 1];
    support_disk_init(&disk);
    disk.fault = fault;
    disk.at = at;
    disk.lies = lies;
    const uint64_t written = support_checkpoint_write(&disk.disk, trainer, 1, SUPPORT_CHECKPOINT_STEPS, &err);
    const bool came = disk.calls >= at;
    if (fault == FAULT_ONCE || fault == FAULT_FULL) {
        /* removing fails in silence: it is tried again with the next one */
        if (came && err.status != STATUS_OK && err.status != STATUS_IO) fail_msg("%s", err.text);
        if (err.status != STATUS_OK && fault == FAULT_FULL)
            assert_non_null(strstr(err.text, strerror(ENOSPC)));
        if (fault == FAULT_FULL) assert_int_equal(support_disk_count(&disk, ".tmp"), 0);
    }
    if (fault == FAULT_SHORT) assert_int_equal(written, SUPPORT_CHECKPOINT_STEPS);
    if (fault == FAULT_POWER)
        support_disk_after_power(&disk, seed);
    else
        support_disk_after_kill(&disk);

    const struct checkpoint_subject subject = support_checkpoint_subject(trainer);
    struct error why = {0};
    const enum status status = checkpoint_find(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, &found, &why);
    bool good = status == STATUS_OK && found.passed_over == 0 && found.step >= written &&
                found.step <= SUPPORT_CHECKPOINT_STEPS;
    if (good && found.step > 0) {
        support_checkpoint_fill(trainer, 99);
        struct checkpoint_history read = support_checkpoint_only_losses(read_losses);
        good = checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, found.step, &read, NULL, &why) ==
                   STATUS_OK &&
               support_checkpoint_holds(trainer, found.step) &&
               memcmp(read_losses, support_checkpoint_losses, found.step * sizeof *support_checkpoint_losses) == 0;
    }
    /* the best checkpoint of all that were reported as done is there, too old or not */
    if (good && found.best_step > 0 && (err.status == STATUS_OK || fault > FAULT_FULL)) {
        support_checkpoint_fill(trainer, 99);
        good = checkpoint_read(&disk.disk, SUPPORT_CHECKPOINT_FOLDER, &subject, found.best_step, NULL, NULL, &why) ==
                   STATUS_OK &&
               support_checkpoint_holds(trainer, found.best_step);
    }
    if (!good && !lies)
        fail_msg("fault %d at call %u, seed %llu: %u were done and %u is found, %u passed over (%s%s)",
                 (int)fault, (unsigned)at, (unsigned long long)seed, (unsigned)written,
                 (unsigned)found.step, found.passed_over, found.reason, why.text);
    tally->cases++;
    tally->broken |= !good;
    tally->behind += good && found.step > written;
    if (good) go_on(&disk, trainer, found.step + 1);
    support_disk_release(&disk);
    return came;
}

static void sweep(enum support_disk_fault fault, uint32_t draws, uint64_t seed, bool lies,
                  struct tally *tally)
{
    const struct job job = support_checkpoint_evaluated_job();
    struct trainer trainer;
    support_checkpoint_trainer(&trainer, &job, 1);
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
        assert_true(tally.cases > 4 * SUPPORT_CHECKPOINT_STEPS);
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
    support_checkpoint_begin();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_damaged_byte),
        cmocka_unit_test(test_later_ones_go),
        cmocka_unit_test(test_failing_reads),
        cmocka_unit_test(test_a_fault_at_every_call),
        cmocka_unit_test(test_power_cut_at_every_call),
        cmocka_unit_test(test_a_disk_that_lies_is_noticed),
    };
    return cmocka_run_group_tests_name("checkpoint_faults", tests, NULL, NULL);
}
