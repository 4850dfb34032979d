/* Checkpoints of a small job whose state says of which step it is, on a disk of tests (support_disk.h). */
#ifndef SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CHECKPOINT_H
#define SPILLWAY_TESTS_SUPPORT_EXEC_SUPPORT_CHECKPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "exec/checkpoint/checkpoint.h"
#include "tests/support/exec/support_gpt2.h"
#include "tests/support/support_disk.h"

#define SUPPORT_CHECKPOINT_FOLDER SUPPORT_DISK_TOP "/kept"
enum { SUPPORT_CHECKPOINT_STEPS = 4, SUPPORT_CHECKPOINT_KEEP = 2, SUPPORT_CHECKPOINT_LOSSES = 64 };

extern const struct checkpoint_origin support_checkpoint_origin;
extern double support_checkpoint_losses[SUPPORT_CHECKPOINT_LOSSES];
extern struct evaluation_progress support_checkpoint_evaluations[5];

/* Fills the losses, NaN and infinity among them. */
void support_checkpoint_begin(void);

struct checkpoint_history support_checkpoint_history(const struct job *job, uint64_t step);

/* Asks for the losses only, to be read into `to`; evaluations are not read. */
struct checkpoint_history support_checkpoint_only_losses(double *to);

struct job support_checkpoint_job(void);

struct job support_checkpoint_evaluated_job(void);

void support_checkpoint_trainer(struct trainer *trainer, const struct job *job, uint64_t blocks_per_shard);

struct checkpoint_subject support_checkpoint_subject(const struct trainer *trainer);

/* Numbers that say of which step, shard and word they are; NaN and infinity among them. Writes only
 * to tensors: the gaps between tensors belong to no tensor. */
void support_checkpoint_fill(const struct trainer *trainer, uint64_t step);

bool support_checkpoint_holds(const struct trainer *trainer, uint64_t step);

/* Writes checkpoints of steps first .. last, each with its own state. Returns the last that succeeded, and the first
 * error. */
uint64_t support_checkpoint_write(struct disk *disk, struct trainer *trainer, uint64_t first, uint64_t last,
                                  struct error *err);

const char *support_checkpoint_path(const struct trainer *trainer, uint64_t step);

#endif
