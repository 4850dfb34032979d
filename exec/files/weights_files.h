/*
 * A network's tensors by name: in one safetensors file, or in the shards of a folder as the Hub has them.
 *
 *     model.safetensors                      a small network
 *     model.safetensors.index.json           a large one: {"metadata": ..., "weight_map": {"tensor": "file", ...}}
 *     model-00001-of-00002.safetensors ...
 *
 * Of an index only "weight_map" is believed. It names files beside it, and each tensor of these files once. Files are
 * mapped, not read.
 * Source: transformers, save_pretrained() and huggingface_hub, split_torch_state_dict_into_shards().
 */
#ifndef SPILLWAY_EXEC_FILES_WEIGHTS_FILES_H
#define SPILLWAY_EXEC_FILES_WEIGHTS_FILES_H

#include "exec/files/safetensors.h"

struct weights_files; /* opaque */

/* Opens a safetensors file, an index, or a folder with one of them. The caller closes it with weights_files_close(),
 * which takes NULL. Errors: STATUS_IO, STATUS_BAD_INPUT ("path: fault"). */
MUST_CHECK enum status weights_files_open(const char *path, struct weights_files **out, struct error *err);
void weights_files_close(struct weights_files *files);

/* Returns how many tensors there are, in all files. */
size_t weights_files_count(const struct weights_files *files);

/* Returns the tensor of this name, and counts it as used; NULL if there is none. Borrowed. */
const struct safetensors_tensor *weights_files_find(struct weights_files *files, const char *name);

/* Returns the next tensor from *at on, 0 at first, that was not used; NULL: no more. Borrowed. */
const struct safetensors_tensor *weights_files_unused(const struct weights_files *files, size_t *at);

#endif
