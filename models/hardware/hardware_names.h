/* Names of machines as users write them: counts, the names of presets, names that are nearly right. */
#ifndef SPILLWAY_MODELS_HARDWARE_HARDWARE_NAMES_H
#define SPILLWAY_MODELS_HARDWARE_HARDWARE_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include "models/hardware/hardware_build.h"

enum { MACHINE_NAME_BYTES = 128 };

/* A part of a machine's text: "4x dgx-h100 2:1" is 4 of "dgx-h100" with an oversubscription of 2. */
struct machine_name {
    uint64_t count;                  /* 1 without a count */
    bool counted;
    double oversubscription;         /* 1 without a ratio; 0: out of range */
    char given[MACHINE_NAME_BYTES];  /* without count and ratio */
    char name[MACHINE_NAME_BYTES];   /* the preset's, if `given` stands for a single one; otherwise `given` */
};

/*
 * Splits one part of a machine's text. A count is written "4x NAME", "4 NAME", "4-NAME", "4*NAME", "4×NAME", "NAME*4"
 * or "NAME x4". A name stands for a preset if each of its words is a word of this preset and of no other. Words for
 * vendors and families ("geforce") do not count. A path stays as it is. Returns false if the text is too long.
 */
bool machine_name_split(const char *text, struct machine_name *out);

/* Returns true for the path of a hardware file: it has a slash or ends in .json or .json.gz. */
bool machine_name_is_path(const char *text);

/* Find a preset by its name, a GPU also by the driver's name or without its memory. Return NULL if there is none. */
const struct hardware_gpu *machine_name_gpu(const char *name);
const struct hardware_node *machine_name_node(const char *name);

extern const char machine_name_host[]; /* the preset of a host without GPUs */

/* Reports a name that is no preset's: the presets that it may stand for, or similar ones. Returns err->status. */
enum status machine_name_fail(const char *name, struct error *err);

#endif
