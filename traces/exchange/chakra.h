/*
 * Execution traces of MLCommons Chakra: the operations of each rank of a training, in one file per rank.
 *
 * PREFIX.R.et holds the nodes of rank R: a GlobalMetadata message, then one message per Node, each preceded by its
 * length (traces/exchange/protobuf.h). A node is a computation, a copy between the device and memory outside it, one
 * end of a message, or a rank's part in a collective. It begins when its dependencies, all of its own rank, have ended.
 * Ranks synchronise only by messages and collectives.
 *
 * Named attributes describe a node. We write the names and types that Chakra's generator and feeder use at version
 * 1.0.0. We read integers of any type, since writers differ:
 *
 *     is_cpu_op    bool            the host computes it
 *     num_ops      int64           FLOPs of a computation
 *     tensor_size  uint64          bytes that a computation moves, or bytes of a copy
 *     comm_type    int64           enum chakra_collective
 *     comm_size    int64           bytes of a message; for a collective the bytes that each member contributes
 *     comm_src, comm_dst, comm_tag int32    ranks of a message; messages match by equal tags
 *     pg_name      string          the process group, a number; "0" or none: all ranks
 *
 * Traces of PyTorch have a node for the host's call of a collective, with is_cpu_op and the collective's type, before
 * the node that communicates. Such a call is read as a computation of the host.
 *
 * Attributes of our own, which other readers ignore:
 *
 *     spillway_seconds   double    the duration, more precise than whole microseconds
 *     spillway_stream    string    the queue of the machine that it runs on ("compute", "h2d"; planner/plan.h)
 *     spillway_signal    bool      a message that says "done" and has no contents
 *     spillway_family    int64     collectives: groups of one number communicate at the same time
 *     spillway_algorithm string    collectives: the requested algorithm ("ring")
 *
 * PREFIX.groups.json holds the process groups, {"1": [0, 1], "2": [2, 3]}, in the form of ASTRA-sim's
 * --comm-group-configuration. Traces without groups have no such file.
 *
 * Source: mlcommons/chakra, schema/protobuf/et_def.proto and src/feeder (field numbers, names, types).
 */
#ifndef SPILLWAY_TRACES_EXCHANGE_CHAKRA_H
#define SPILLWAY_TRACES_EXCHANGE_CHAKRA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/files/file.h"
#include "traces/exchange/protobuf.h"

#define CHAKRA_NONE UINT32_MAX

/* Limits; a rank is read into memory as a whole. */
enum { CHAKRA_RANKS_MAX = 4096, CHAKRA_NODES_MAX = 1 << 26, CHAKRA_PATH_BYTES = 4096 };
#define CHAKRA_FILE_BYTES_MAX ((size_t)4 << 30)
#define CHAKRA_BYTES_MAX ((uint64_t)1 << 50) /* of a node: times the ranks they still fit */

enum chakra_type {
    CHAKRA_METADATA = 1,
    CHAKRA_MEM_LOAD,
    CHAKRA_MEM_STORE,
    CHAKRA_COMP,
    CHAKRA_SEND,
    CHAKRA_RECV,
    CHAKRA_COLLECTIVE,
    CHAKRA_TYPE_COUNT
};

enum chakra_collective {
    CHAKRA_ALL_REDUCE,
    CHAKRA_REDUCE,
    CHAKRA_ALL_GATHER,
    CHAKRA_GATHER,
    CHAKRA_SCATTER,
    CHAKRA_BROADCAST,
    CHAKRA_ALL_TO_ALL,
    CHAKRA_REDUCE_SCATTER,
    CHAKRA_REDUCE_SCATTER_BLOCK,
    CHAKRA_BARRIER,
    CHAKRA_COLLECTIVE_COUNT
};
extern const char *const chakra_collective_names[CHAKRA_COLLECTIVE_COUNT]; /* "ALL_REDUCE", ... */

struct chakra_node {
    uint64_t id;
    const char *name;          /* never NULL */
    uint32_t type;             /* enum chakra_type */
    bool is_cpu_op, is_signal;
    bool has_seconds;
    uint64_t duration_micros;  /* 0: unknown */
    double seconds;            /* the duration, exact, if has_seconds */
    uint64_t num_ops;
    uint64_t tensor_size, comm_size; /* bytes */
    uint32_t comm_type;        /* enum chakra_collective; only for collectives */
    uint32_t comm_src, comm_dst, comm_tag; /* messages; the node's own rank may be CHAKRA_NONE */
    const char *pg_name;       /* NULL: all ranks */
    const char *stream, *algorithm; /* may be NULL */
    uint32_t family;           /* or CHAKRA_NONE */
    const uint64_t *ctrl_deps, *data_deps; /* ids of nodes of the same rank */
    uint32_t ctrl_count, data_count;
    uint64_t at;               /* set by reading: the node's first byte in the file */
};

/* --- writing -------------------------------------------------------------------------------- */

/* Buffers in which nodes are built. Zeroed by the caller, who releases it with chakra_writer_release(). */
struct chakra_writer {
    struct protobuf_out node, attribute;
};
void chakra_writer_release(struct chakra_writer *writer);

/* Write the first message of a file, and a node. file_out_commit() reports failed writes. */
MUST_CHECK enum status chakra_write_header(struct chakra_writer *writer, struct file_out *file,
                                           struct error *err);
MUST_CHECK enum status chakra_write_node(struct chakra_writer *writer, struct file_out *file,
                                         const struct chakra_node *node, struct error *err);

/* --- reading -------------------------------------------------------------------------------- */

struct chakra_rank {
    struct arena arena;
    struct chakra_node *nodes; /* in the order of the file; ids are unique */
    uint32_t count;
    uint32_t *by_id;           /* nodes in ascending order of ids */
};

/* Parses a rank. `name` stands for the file name in messages. Errors: STATUS_BAD_INPUT with the byte; STATUS_LIMIT. */
MUST_CHECK enum status chakra_rank_parse(const char *name, const void *bytes, size_t length,
                                         struct chakra_rank *out, struct error *err);
void chakra_rank_release(struct chakra_rank *rank);

/* Returns the node with this id, or CHAKRA_NONE. */
uint32_t chakra_rank_find(const struct chakra_rank *rank, uint64_t id);

/* A group of ranks in ascending order; number 0 means all ranks and is not stored. */
struct chakra_group {
    uint32_t number, first, count; /* members[first ...] */
};

/* All files of a prefix. */
struct chakra_trace {
    struct arena arena;
    const char *prefix;
    struct chakra_rank *ranks;
    uint32_t rank_count;
    struct chakra_group *groups; /* by number */
    uint32_t group_count;
    uint32_t *members;
};

/* Reads PREFIX.0.et and following files until one does not exist, and PREFIX.groups.json if it exists. */
MUST_CHECK enum status chakra_trace_read(const char *prefix, struct chakra_trace *out, struct error *err);
void chakra_trace_release(struct chakra_trace *trace);

/* Write a path such as PREFIX.3.et. Errors: STATUS_LIMIT when it is longer than a path can be. */
MUST_CHECK enum status chakra_path(const char *prefix, uint32_t rank, char path[CHAKRA_PATH_BYTES],
                                   struct error *err);
MUST_CHECK enum status chakra_groups_path(const char *prefix, char path[CHAKRA_PATH_BYTES], struct error *err);

#endif
