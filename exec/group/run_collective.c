/*
 * An all-reduce has three meetings. At the first all values are there, and each member adds up its slice of them into
 * its own memory; at the second all slices are sums, and each member copies the others' slices; after the third nobody
 * reads them any more.
 *
 *     member 0   [ sum | x0  | x0  ]        [ sum | sum | sum ]
 *     member 1   [ x1  | sum | x1  ]   -->  [ sum | sum | sum ]        slices of 64-byte lines
 *     member 2   [ x2  | x2  | sum ]        [ sum | sum | sum ]
 *
 * Of encoded numbers, the code at the beginning of each member's memory is added up and copied like this, and each
 * member decodes the result after the third meeting.
 *
 * A reduce-scatter ends after the sums, at the second meeting. Encoded sums of shares in place wait at the end of the
 * memory, where no code is, and are decoded after the meeting. An all-gather has no sums: after the first meeting each
 * member copies the others' shares, and the second ends it.
 */
#include "exec/group/run_collective.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/extreme.h"
#include "base/process/clock.h"
#include "base/try.h"
#include "exec/device/meeting.h"
#include "exec/group/run_collective_time.h"
#include "exec/group/run_library.h"
#include "exec/group/run_staged.h"
#include "exec/kernels/kernels_code.h"
#include "exec/kernels/kernels_sum.h"
#include "exec/ranks/rank_share.h"
#include "exec/state/run_peers.h"
#include "models/hardware/hardware_dilate.h"

enum { PIECE_FLOATS = 10 * KERNELS_CODE_UNIT };

struct run_collective {
    struct run_collective *next, **link; /* the list of collectives in flight */
    struct meeting meeting; /* of all members at first, then of this process's */
    uint32_t members, here, left; /* here: members of this process; left: they and the walking thread */
    uint32_t job;
    uint64_t minibatch;
    uint32_t kind; /* enum collective_kind */
    bool tree; /* the sums' order */
    bool doubles; /* norms: the numbers are fp64 */
    enum compression_code code; /* of the members' numbers */
    bool shut; /* beyond the job's limit; decided once, at the first meeting ... */
    double begun_s; /* ... when it begins for all members, as in the simulator */
    double paced_s; /* over paced links, the time that it takes */
    struct run_collective_data *data; /* by member */
    struct device_stream **streams; /* of the library's collectives, by member; else NULL */
    uint32_t communicator;
    bool lost;          /* the library could not enqueue it */
    float **values;     /* with other processes, by member: NULL in another one, ... */
    uint32_t *ranks_of; /* ... which is this */
    bool *repeats;      /* by member, as in its data */
    const char **from;  /* by member, as `values`: of shares ... */
    char **to;
    struct rank_piece *pieces; /* ... and all members' ranges */
    uint32_t piece_count;
    uint64_t number;    /* of the first member's operation */
};

struct collective_call {
    struct run *run;
    struct run_collective *collective;
    struct device_stream *stream;
    uint32_t member, worker; /* among all, and among this process's */
    char *staged; /* of a GPU: host memory for the member's data; NULL: they are in host memory */
    bool *omitted;
    struct device_timing *timing;
};

/* --- meetings --------------------------------------------------------------------------------- */

static void free_arrays(struct run_collective *c)
{
    free(c->data);
    free(c->streams);
    free(c->values);
    free(c->ranks_of);
    free(c->repeats);
    free(c->from);
    free(c->to);
    free(c->pieces);
}

static bool make_arrays(struct run_collective *c, uint32_t members, bool over_ranks)
{
    c->data = alloc_zeroed(members, sizeof *c->data);
    if (!over_ranks) return c->data != NULL;
    c->values = alloc_zeroed(members, sizeof *c->values);
    c->ranks_of = alloc_zeroed(members, sizeof *c->ranks_of);
    c->repeats = alloc_zeroed(members, sizeof *c->repeats);
    c->from = alloc_zeroed(members, sizeof *c->from);
    c->to = alloc_zeroed(members, sizeof *c->to);
    return c->data && c->values && c->ranks_of && c->repeats && c->from && c->to;
}

static struct run_collective *create(struct run *run, const struct plan_walk_op *op)
{
    struct run_collective *const c = alloc_zeroed(1, sizeof *c);
    if (!c) return NULL;
    const bool looks = hardware_dilation(&run->plan->hardware) <= 1;
    const bool by_library = run_library_takes(run, op->gang, op->unit, op->op);
    if (by_library) c->streams = alloc_zeroed(op->join_count, sizeof *c->streams);
    if ((by_library && !c->streams) || !make_arrays(c, op->join_count, run->peers != NULL) ||
        !meeting_init(&c->meeting, op->join_count, looks)) {
        free_arrays(c);
        free(c);
        return NULL;
    }
    if (by_library) c->communicator = run_library_communicator(run, op);
    c->number = op->number;
    c->members = op->join_count;
    c->tree = job_sums_as_tree(&run->plan->jobs.jobs[op->unit->job]);
    c->doubles = op->unit->pass == PLAN_NORM;
    c->job = op->unit->job;
    c->minibatch = op->minibatch;
    c->kind = op->op->collective;
    pthread_mutex_lock(&run->lock);
    c->next = run->collectives;
    c->link = &run->collectives;
    if (c->next) c->next->link = &c->next;
    run->collectives = c;
    if (run->cancelled) meeting_cancel(&c->meeting);
    pthread_mutex_unlock(&run->lock);
    return c;
}

static void destroy(struct run_collective *c)
{
    meeting_release(&c->meeting);
    free_arrays(c);
    free(c);
}

struct beginning {
    struct run *run;
    struct run_collective *collective;
};

/* Called when the last member has come, also those of other processes, who come to the first meeting only. */
static void begin(struct meeting *meeting, void *argument)
{
    const struct beginning *const beginning = argument;
    struct run_collective *const c = beginning->collective;
    c->shut = c->minibatch >= atomic_load(&beginning->run->jobs[c->job].limit);
    c->begun_s = clock_s();
    meeting->members = c->here;
}

/* Returns false when the run ends before all members have come. */
static bool meet_first(struct run *run, struct run_collective *c)
{
    struct beginning beginning = {run, c};
    return meeting_attend(&c->meeting, begin, &beginning);
}

static bool meet(struct run_collective *c)
{
    return meeting_attend(&c->meeting, NULL, NULL);
}

/* The last one frees the collective. */
static void leave(struct run *run, struct run_collective *c)
{
    pthread_mutex_lock(&run->lock);
    const bool last = ++c->left > c->here;
    if (last) {
        *c->link = c->next;
        if (c->next) c->next->link = c->link;
    }
    pthread_mutex_unlock(&run->lock);
    if (last) destroy(c);
}

void run_collective_cancel(struct run *run)
{
    pthread_mutex_lock(&run->lock);
    run->cancelled = true;
    for (struct run_collective *c = run->collectives; c; c = c->next) meeting_cancel(&c->meeting);
    pthread_mutex_unlock(&run->lock);
}

void run_collective_release(struct run *run)
{
    while (run->collectives) {
        struct run_collective *const c = run->collectives;
        run->collectives = c->next;
        destroy(c);
    }
}

/* --- sums ------------------------------------------------------------------------------------- */

/* Slices of encoded numbers begin at whole blocks. */
static uint64_t slice_begin(const struct run_collective *c, uint32_t member)
{
    const uint64_t count = c->data[0].count, units = (count + KERNELS_CODE_UNIT - 1) / KERNELS_CODE_UNIT;
    if (c->code == COMPRESSION_PLAIN) return kernels_sum_slice(count, member, c->members);
    const uint64_t begin = units * member / c->members * KERNELS_CODE_UNIT;
    return begin < count ? begin : count;
}

/* Returns a member's numbers from `at` on, decoded. */
static const float *numbers_of(const void *context, uint32_t member, uint64_t at, uint64_t n, float *room)
{
    const struct run_collective *const c = context;
    const char *const from = c->data[member].from + compression_code_bytes(c->code, at);
    if (c->code == COMPRESSION_PLAIN) return (const float *)(const void *)from;
    kernels_decode(c->code, room, from, n);
    return room;
}

static void add_up(const struct run_collective *c, uint64_t at, uint64_t n, float *sum)
{
    float room[PIECE_FLOATS];
    memcpy(sum, numbers_of(c, 0, at, n, room), n * sizeof *sum);
    for (uint32_t m = 1; m < c->members; m++)
        if (!c->data[m].repeats) kernels_sum_add(sum, numbers_of(c, m, at, n, room), n);
}

static void add_up_piece(const struct run_collective *c, uint64_t at, uint64_t n, float *sum)
{
    if (c->tree) kernels_sum_tree(numbers_of, c, c->members, at, n, sum);
    else add_up(c, at, n, sum);
}

static uint64_t piece_of(uint64_t at, uint64_t end)
{
    return end - at < PIECE_FLOATS ? end - at : PIECE_FLOATS;
}

/* Writes the sums of all members' numbers [begin, end) to `to`, or adds them to what is there. */
static void reduce(const struct run_collective *c, uint64_t begin, uint64_t end, float *to, bool adds)
{
    float sum[PIECE_FLOATS];
    for (uint64_t at = begin; at < end; at += PIECE_FLOATS) {
        const uint64_t n = piece_of(at, end);
        add_up_piece(c, at, n, sum);
        if (c->code != COMPRESSION_PLAIN) kernels_code_round(c->code, sum, n);
        if (adds) kernels_sum_add(to + (at - begin), sum, n);
        else memcpy(to + (at - begin), sum, n * sizeof *sum);
    }
}

/* Writes the code of these sums to `to`. */
static void reduce_encoded(const struct run_collective *c, uint64_t begin, uint64_t end, char *to)
{
    float sum[PIECE_FLOATS];
    for (uint64_t at = begin; at < end; at += PIECE_FLOATS) {
        const uint64_t n = piece_of(at, end);
        add_up_piece(c, at, n, sum);
        kernels_encode(c->code, to + compression_code_bytes(c->code, at - begin), sum, n);
    }
}

/* --- all-reduce ------------------------------------------------------------------------------- */

static uint64_t number_bytes(const struct run_collective *c)
{
    return c->doubles ? sizeof(double) : sizeof(float);
}

static void copy_other_slices(const struct run_collective *c, uint32_t member)
{
    const uint64_t scale = number_bytes(c) / sizeof(float);
    for (uint32_t m = 0; m < c->members; m++) {
        const uint64_t begin = scale * compression_code_bytes(c->code, slice_begin(c, m));
        const uint64_t bytes = scale * compression_code_bytes(c->code, slice_begin(c, m + 1)) - begin;
        if (m != member) memcpy(c->data[member].to + begin, c->data[m].to + begin, bytes);
    }
}

static void reduce_doubles(const struct run_collective *c, uint64_t begin, uint64_t end, double *to)
{
    for (uint64_t at = begin; at < end; at++) {
        double sum = 0;
        for (uint32_t m = 0; m < c->members; m++) sum += ((const double *)(const void *)c->data[m].from)[at];
        to[at] = sum;
    }
}

static bool all_reduce(struct run_collective *c, uint32_t member)
{
    const uint64_t begin = slice_begin(c, member), end = slice_begin(c, member + 1);
    char *const to = c->data[member].to;
    if (c->doubles) reduce_doubles(c, begin, end, (double *)(void *)to);
    else if (c->code != COMPRESSION_PLAIN) reduce_encoded(c, begin, end, to + compression_code_bytes(c->code, begin));
    else reduce(c, begin, end, (float *)(void *)to + begin, false);
    if (!meet(c)) return false;
    copy_other_slices(c, member);
    if (!meet(c)) return false; /* a member's slice stays until all have it */
    if (c->code != COMPRESSION_PLAIN) kernels_decode(c->code, (float *)(void *)to, to, c->data[member].count);
    return true;
}

/* --- shares ----------------------------------------------------------------------------------- */

/* Returns the bytes of the encoded sums of a member's share from a range on. */
static uint64_t encoded_from(const struct run_collective *c, const struct run_collective_data *own, uint32_t range)
{
    uint64_t bytes = 0;
    for (uint32_t i = range; i < own->range_count; i++)
        bytes += compression_code_bytes(c->code, own->ranges[i].bytes / sizeof(float));
    return bytes;
}

/* Decodes sums that lie after their place, perhaps over its end. */
static void decode_down(const struct run_collective *c, float *to, const char *from, uint64_t count)
{
    for (uint64_t at = 0; at < count; at += KERNELS_CODE_UNIT) {
        const uint64_t n = count - at < KERNELS_CODE_UNIT ? count - at : KERNELS_CODE_UNIT;
        kernels_decode(c->code, to + at, from + compression_code_bytes(c->code, at), n);
    }
}

/* Adds up encoded shares in place, with a code whose numbers stand alone: a range may begin at any of them. */
static bool reduce_scatter_in_place(struct run_collective *c, uint32_t member)
{
    const struct run_collective_data *const own = &c->data[member];
    char *const end = own->to + own->count * sizeof(float);
    assert(c->code == COMPRESSION_BF16);
    assert(end - encoded_from(c, own, 0) >= own->to + compression_code_bytes(c->code, own->count));
    for (uint32_t i = 0; i < own->range_count; i++) {
        const uint64_t begin = own->ranges[i].whole / sizeof(float);
        reduce_encoded(c, begin, begin + own->ranges[i].bytes / sizeof(float), end - encoded_from(c, own, i));
    }
    if (!meet(c)) return false;
    for (uint32_t i = 0; i < own->range_count; i++)
        decode_down(c, (float *)(void *)(own->to + own->ranges[i].share), end - encoded_from(c, own, i),
                    own->ranges[i].bytes / sizeof(float));
    return true;
}

static bool reduce_scatter(struct run_collective *c, uint32_t member)
{
    const struct run_collective_data *const own = &c->data[member];
    if (c->code != COMPRESSION_PLAIN && own->from == own->to) return reduce_scatter_in_place(c, member);
    for (uint32_t i = 0; i < own->range_count; i++) {
        const struct run_collective_range *const range = &own->ranges[i];
        const uint64_t begin = range->whole / sizeof(float);
        reduce(c, begin, begin + range->bytes / sizeof(float), (float *)(void *)(own->to + range->share), own->adds);
    }
    return meet(c); /* a member's data stay until all have read them */
}

static void copy(const struct collective_call *call, char *to, const char *from, uint64_t bytes)
{
    if (call->staged) device_move(call->stream, to, from, bytes);
    else memcpy(to, from, bytes);
}

static bool all_gather(const struct collective_call *call)
{
    struct run_collective *const c = call->collective;
    char *const to = c->data[call->member].to;
    for (uint32_t m = 0; m < c->members; m++)
        for (uint32_t i = 0; i < c->data[m].range_count; i++) {
            const struct run_collective_range *const range = &c->data[m].ranges[i];
            if (to + range->whole != c->data[m].from + range->share)
                copy(call, to + range->whole, c->data[m].from + range->share, range->bytes);
        }
    return meet(c);
}

/* --- several processes ------------------------------------------------------------------------ */

/* Adds a range in pieces of at most `most` bytes; counts them only if `pieces` is NULL. */
static uint32_t add_pieces(struct rank_piece *pieces, uint32_t count, uint32_t owner,
                           const struct run_collective_range *range, uint64_t most)
{
    for (uint64_t at = 0; at < range->bytes; at += most, count++)
        if (pieces)
            pieces[count] = (struct rank_piece){owner, range->whole + at, range->share + at,
                                                min_u64(most, range->bytes - at)};
    return count;
}

static uint32_t list_pieces(const struct run_collective *c, struct rank_piece *pieces)
{
    const uint64_t most = c->kind == COLLECTIVE_ALL_GATHER ? UINT64_MAX : RANK_PIECE_BYTES;
    uint32_t count = 0;
    for (uint32_t m = 0; m < c->members; m++)
        for (uint32_t i = 0; i < c->data[m].range_count; i++)
            count = add_pieces(pieces, count, m, &c->data[m].ranges[i], most);
    return count;
}

/* Finds the pieces of shares when all members are counted. */
static bool find_pieces(struct run_collective *c)
{
    if (c->here == c->members || c->kind == COLLECTIVE_ALL_REDUCE) return true;
    c->piece_count = list_pieces(c, NULL);
    c->pieces = alloc_zeroed(c->piece_count + 1, sizeof *c->pieces);
    return c->pieces && list_pieces(c, c->pieces) == c->piece_count;
}

/* Between processes decoded numbers travel, and the sums are rounded as their code would. Returns false when the run
 * ends before all members have decoded theirs. */
static bool decode_whole(const struct collective_call *call)
{
    struct run_collective *const c = call->collective;
    const struct run_collective_data *const own = &c->data[call->member];
    float *const values = (float *)(void *)own->from;
    if (c->code == COMPRESSION_PLAIN) return true;
    kernels_decode(c->code, values, values, own->count);
    return meet(c);
}

static bool sum_over_ranks(const struct collective_call *call)
{
    struct run_collective *const c = call->collective;
    const struct rank_sum sum = {.ranks = call->run->peers->ranks, .number = c->number, .members = c->members,
                                 .ranks_of = c->ranks_of, .values = c->values, .repeats = c->repeats,
                                 .count = c->data[call->member].count, .workers = c->here};
    float *const own = c->values[call->member];
    if (c->doubles) return (call->worker > 0 || rank_sum_doubles(&sum)) && meet(c);
    if (!decode_whole(call) || !(c->tree ? rank_tree_work : rank_sum_work)(&sum, call->worker) || !meet(c))
        return false;
    if (c->code != COMPRESSION_PLAIN) kernels_code_round(c->code, own, sum.count);
    return true;
}

static struct rank_share share_of(const struct collective_call *call)
{
    const struct run_collective *const c = call->collective;
    return (struct rank_share){.ranks = call->run->peers->ranks, .number = c->number, .members = c->members,
                               .ranks_of = c->ranks_of, .from = c->from, .to = c->to,
                               .adds = c->data[call->member].adds, .code = c->code,
                               .pieces = c->pieces, .piece_count = c->piece_count, .workers = c->here};
}

/* Copies all pieces that other members of this process have or have received. */
static void copy_pieces(const struct collective_call *call, const struct rank_share *share)
{
    for (uint32_t p = 0; p < share->piece_count; p++) {
        const struct rank_piece *const piece = &share->pieces[p];
        const char *const own = share->from[piece->owner];
        const char *const from = own ? own + piece->share
                                     : share->to[rank_share_member(share, p % share->workers)] + piece->whole;
        char *const to = share->to[call->member] + piece->whole;
        if (to != from) memcpy(to, from, piece->bytes);
    }
}

static bool gather_over_ranks(const struct collective_call *call)
{
    const struct rank_share share = share_of(call);
    if (!rank_gather_work(&share, call->worker) || !meet(call->collective)) return false;
    copy_pieces(call, &share);
    return meet(call->collective);
}

/* Adds up whole data of all members as a tree, and takes the member's share. */
static bool tree_over_ranks(const struct collective_call *call)
{
    const struct run_collective *const c = call->collective;
    const struct run_collective_data *const own = &c->data[call->member];
    const struct rank_sum sum = {.ranks = call->run->peers->ranks, .number = c->number, .members = c->members,
                                 .ranks_of = c->ranks_of, .values = (float *const *)(const void *)c->from,
                                 .count = own->count, .workers = c->here};
    assert(c->code == COMPRESSION_PLAIN && !own->adds);
    if (!rank_tree_work(&sum, call->worker) || !meet(call->collective)) return false;
    for (uint32_t i = 0; i < own->range_count && own->from != own->to; i++)
        memcpy(own->to + own->ranges[i].share, own->from + own->ranges[i].whole, own->ranges[i].bytes);
    return true;
}

static bool scatter_over_ranks(const struct collective_call *call)
{
    if (call->collective->tree) return tree_over_ranks(call);
    const struct rank_share share = share_of(call);
    return decode_whole(call) && rank_scatter_work(&share, call->worker) && meet(call->collective);
}

static bool over_ranks(const struct collective_call *call)
{
    switch (call->collective->kind) {
    case COLLECTIVE_REDUCE_SCATTER: return scatter_over_ranks(call);
    case COLLECTIVE_ALL_GATHER: return gather_over_ranks(call);
    default: return sum_over_ranks(call);
    }
}

static void call_join(void *argument)
{
    const struct collective_call *const call = argument;
    struct run_collective *const c = call->collective;
    const double came_s = call->timing->start_s;
    struct run_collective_data *const own = &c->data[call->member], on_device = *own;
    if (call->staged) run_staged_bring(call->stream, c->kind, number_bytes(c), own, call->staged);
    bool met = meet_first(call->run, c);
    if (met) call->timing->start_s = c->begun_s;
    if (met) call->timing->waited_s = fmax(0, c->begun_s - came_s);
    if (met && c->shut) *call->omitted = true;
    if (met && !c->shut) {
        met = c->here < c->members                   ? over_ranks(call)
              : c->kind == COLLECTIVE_REDUCE_SCATTER ? reduce_scatter(c, call->member)
              : c->kind == COLLECTIVE_ALL_GATHER     ? all_gather(call)
                                                     : all_reduce(c, call->member);
        if (met && call->staged) run_staged_return(call->stream, c->kind, number_bytes(c), own, &on_device);
        if (met && c->paced_s > 0) device_hold(call->stream, c->begun_s, c->paced_s);
    }
    if (met) leave(call->run, c);
}

static struct run_library_collective for_library(const struct run_collective *c)
{
    return (struct run_library_collective){.communicator = c->communicator, .kind = c->kind, .members = c->members,
                                           .doubles = c->doubles, .data = c->data, .streams = c->streams};
}

static void begin_library(struct meeting *meeting, void *argument)
{
    const struct beginning *const beginning = argument;
    struct run_collective *const c = beginning->collective;
    begin(meeting, argument);
    const struct run_library_collective collective = for_library(c);
    if (!c->shut) c->lost = !run_library_enqueue(beginning->run, &collective);
}

/* Called when the member's turn is handed over to its GPU. */
static void call_library(void *argument)
{
    const struct collective_call *const call = argument;
    struct run_collective *const c = call->collective;
    struct beginning beginning = {call->run, c};
    if (!meeting_attend(&c->meeting, begin_library, &beginning)) return;
    const struct run_library_collective collective = for_library(c);
    *call->omitted = c->shut || c->lost;
    if (!*call->omitted) run_library_end(call->run, &collective, call->member);
    leave(call->run, c);
}

/* Makes a collective with its first member, and counts this one. */
static enum status count_member(struct run *run, const struct plan_walk_op *op, const struct run_collective_data *data,
                                struct error *err)
{
    const bool here = run_has_device(run, op->device);
    if (op->join_at == 0) run->joining = create(run, op);
    struct run_collective *const c = run->joining;
    if (!c) return error_memory(err, "a collective", op->join_count * sizeof *data);
    if (op->join_at == 0) TRY(run_collective_time(run->plan, op, &c->paced_s, err));
    pthread_mutex_lock(&run->lock);
    c->data[op->join_at] = *data;
    c->code = data->code;
    if (here) c->here++;
    if (run->peers) c->ranks_of[op->join_at] = run->peers->rank_of[op->device];
    if (run->peers && here) c->values[op->join_at] = (float *)(void *)data->to;
    if (run->peers) c->repeats[op->join_at] = data->repeats;
    if (run->peers && here) c->from[op->join_at] = data->from;
    if (run->peers && here) c->to[op->join_at] = data->to;
    pthread_mutex_unlock(&run->lock);
    if (op->join_at + 1 < op->join_count || find_pieces(c)) return STATUS_OK;
    return error_memory(err, "a collective", c->piece_count * sizeof *c->pieces);
}

/* Lets go of a collective whose last member was counted. */
static void end_joining(struct run *run, const struct plan_walk_op *op)
{
    if (op->join_at + 1 == op->join_count) leave(run, run->joining);
}

enum status run_collective_enqueue_elsewhere(struct run *run, const struct plan_walk_op *op,
                                             const struct run_collective_data *data, struct error *err)
{
    TRY(count_member(run, op, data, err));
    struct beginning beginning = {run, run->joining};
    meeting_arrive(&run->joining->meeting, begin, &beginning);
    end_joining(run, op);
    return STATUS_OK;
}

enum status run_collective_enqueue(struct run *run, const struct plan_walk_op *op,
                                   const struct run_collective_data *data, bool *omitted, struct device_timing *timing,
                                   struct error *err)
{
    TRY(count_member(run, op, data, err));
    const struct collective_call call = {
        .run = run, .collective = run->joining, .stream = run->streams[op->stream], .member = op->join_at,
        .worker = run->joining->here - 1, .staged = run_staged_of(run, op->stream), .omitted = omitted,
        .timing = timing};
    if (call.collective->streams) {
        call.collective->streams[op->join_at] = call.stream;
        device_call_ahead(call.stream, call_library, &call, sizeof call, timing);
    } else {
        device_call(call.stream, call_join, &call, sizeof call, timing);
    }
    end_joining(run, op);
    return STATUS_OK;
}
