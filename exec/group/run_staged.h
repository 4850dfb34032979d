/*
 * Collectives of GPUs over host memory, without a library: each member's stream copies its data to the host, where they
 * are added up in the host's order (run_collective.h), and copies the result back.
 */
#ifndef SPILLWAY_EXEC_GROUP_RUN_STAGED_H
#define SPILLWAY_EXEC_GROUP_RUN_STAGED_H

#include "exec/group/run_collective.h"

/* Lays out room for the data of each stream with collectives, in the run's host memory, which is pinned as a whole. */
MUST_CHECK enum status run_staged_lay_out(struct run *run, struct error *err);

/* Returns a stream's room; NULL: its data are in host memory. */
char *run_staged_of(const struct run *run, uint32_t stream);

/* Gives the members of tensor groups the room of their compute streams. After the run's host memory was mapped. */
void run_staged_give_rooms(struct run *run);

/* On the stream's thread, before the members meet. Brings the member's data to `room`, and makes *data those in host
 * memory; an all-gather's `to` stays on the device. `kind`: enum collective_kind; `size`: bytes of a number. */
void run_staged_bring(struct device_stream *stream, uint32_t kind, uint64_t size, struct run_collective_data *data,
                      char *room);

/* Copies a sum back to the device. */
void run_staged_return(struct device_stream *stream, uint32_t kind, uint64_t size,
                       const struct run_collective_data *data, const struct run_collective_data *on_device);

#endif
