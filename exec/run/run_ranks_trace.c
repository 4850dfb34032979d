/*
 * The measured trace of a run in several processes. Each rank keeps what its operations leave in a spool. At the end
 * rank 0 asks for the others' in pieces, and records all by number of operation, the order of the walk, which is the
 * same on every rank.
 *
 * Clocks. Before and after the walk each rank asks rank 0 for the time, several times (F. Cristian, "Probabilistic
 * clock synchronization", 1989). The answer that came fastest tells how much its own clock is to be set forward, give
 * or take half of the time that question and answer took. Anything smaller counts as nothing: ranks on one machine have
 * one clock. In between, clocks drift evenly.
 */
#include <math.h>

#include "base/process/clock.h"
#include "base/try.h"
#include "exec/run/run_ranks.h"

enum { ROUNDS = 16, PIECE = 512 };
enum clock_moment { BEFORE, AFTER };

struct clock_answer {
    double now_s, start_s; /* by rank 0's clock: now, and the start of its run */
};

/* How much this rank's clock is to be set forward, at a time of its own. */
struct clock_ahead {
    double at_s, ahead_s;
};

/* In the run's arena, since messages may still write here after an error. */
struct trace_room {
    uint64_t word; /* a wish, a question, or a number of operations */
    struct clock_answer answer;
    struct clock_ahead ahead[2]; /* by moment */
    struct run_ended piece[PIECE];
};

/* What a rank has left, in pieces. */
struct trace_cursor {
    struct trace_room *room;
    uint32_t rank;
    uint64_t count, taken; /* operations */
};

static enum status move(struct run *run, uint32_t what, uint64_t number, uint32_t other, bool sends, void *at,
                        uint64_t bytes, struct error *err)
{
    const struct run_peers_data data = {.what = what, .number = (uint32_t)number, .other = other, .sends = sends,
                                        .at = at,
                                        .bytes = bytes};
    return run_peers_move(run, &data, run->peers->moved, err);
}

/* --- clocks --------------------------------------------------------------------------------------- */

static enum status answer_rank(struct run *run, struct trace_room *room, enum clock_moment moment, uint32_t rank,
                               struct error *err)
{
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint32_t number = moment * ROUNDS + i;
        TRY(move(run, PEERS_CLOCKS, number, rank, false, &room->word, sizeof room->word, err));
        room->answer = (struct clock_answer){.now_s = clock_s(), .start_s = run->start_s};
        TRY(move(run, PEERS_CLOCKS, number, rank, true, &room->answer, sizeof room->answer, err));
    }
    return STATUS_OK;
}

static enum status ask_first(struct run *run, struct trace_room *room, enum clock_moment moment, struct error *err)
{
    double least_s = INFINITY;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        const uint32_t number = moment * ROUNDS + i;
        const double asked_s = clock_s();
        TRY(move(run, PEERS_CLOCKS, number, 0, true, &room->word, sizeof room->word, err));
        TRY(move(run, PEERS_CLOCKS, number, 0, false, &room->answer, sizeof room->answer, err));
        const double told_s = clock_s(), half_s = (told_s - asked_s) / 2, at_s = asked_s + half_s;
        if (2 * half_s >= least_s) continue;
        least_s = 2 * half_s;
        const double ahead_s = room->answer.now_s - at_s;
        room->ahead[moment] = (struct clock_ahead){at_s, fabs(ahead_s) > half_s ? ahead_s : 0};
    }
    return STATUS_OK;
}

static enum status compare_clocks(struct run *run, struct trace_room *room, enum clock_moment moment, struct error *err)
{
    if (run->peers->own > 0) return ask_first(run, room, moment, err);
    for (uint32_t r = 1; r < run->peers->count; r++) TRY(answer_rank(run, room, moment, r, err));
    return STATUS_OK;
}

/* Makes a time of this rank's run one of rank 0's. */
static double time_of_first(const struct run *run, const struct trace_room *room, double time_s)
{
    const struct clock_ahead *const before = &room->ahead[BEFORE], *const after = &room->ahead[AFTER];
    const double at_s = run->start_s + time_s, between_s = after->at_s - before->at_s;
    const double drift = between_s > 0 ? (after->ahead_s - before->ahead_s) / between_s : 0;
    return fmax(0, at_s + before->ahead_s + drift * (at_s - before->at_s) - room->answer.start_s);
}

/* --- public --------------------------------------------------------------------------------------- */

enum status run_ranks_begin_trace(struct run_loop *loop, struct error *err)
{
    struct run *const run = loop->run;
    struct run_peers *const peers = run->peers;
    if (!peers) return STATUS_OK;
    TRY(ARENA_NEW(&run->arena, 1, peers->traced, err));
    struct trace_room *const room = peers->traced;
    room->word = run->options->writer || run->options->record_spans;
    if (peers->own > 0) TRY(move(run, PEERS_ENDED, 0, 0, false, &room->word, sizeof room->word, err));
    for (uint32_t r = 1; peers->own == 0 && r < peers->count; r++)
        TRY(move(run, PEERS_ENDED, 0, r, true, &room->word, sizeof room->word, err));
    if (!room->word) return STATUS_OK;
    TRY(compare_clocks(run, room, BEFORE, err));
    return spool_create(NULL, &loop->ended, err);
}

static void set_times(const struct run *run, struct trace_room *room, struct run_ended *ended)
{
    for (uint32_t i = 0; i < ended->slot_count; i++) {
        ended->slots[i].start_s = time_of_first(run, room, ended->slots[i].start_s);
        ended->slots[i].end_s = time_of_first(run, room, ended->slots[i].end_s);
    }
    ended->span.start_s = time_of_first(run, room, ended->span.start_s);
    ended->span.end_s = time_of_first(run, room, ended->span.end_s);
}

static uint64_t piece_of(const struct trace_cursor *cursor)
{
    const uint64_t left = cursor->count - cursor->taken;
    return left < PIECE ? left : PIECE;
}

static enum status read_piece(const struct run_loop *loop, struct trace_cursor *cursor, struct error *err)
{
    return spool_read(loop->ended, cursor->taken * sizeof *cursor->room->piece, cursor->room->piece,
                      piece_of(cursor) * sizeof *cursor->room->piece, err);
}

/* Numbers of messages: 1 for the number of operations, then the pieces from 2 on. */
static enum status send_all(struct run_loop *loop, struct trace_room *room, uint64_t count, struct error *err)
{
    struct trace_cursor cursor = {.room = room, .count = count};
    room->word = count;
    TRY(move(loop->run, PEERS_ENDED, 1, 0, true, &room->word, sizeof room->word, err));
    for (; cursor.taken < count; cursor.taken += PIECE) {
        TRY(read_piece(loop, &cursor, err));
        for (uint64_t i = 0; i < piece_of(&cursor); i++) set_times(loop->run, room, &room->piece[i]);
        TRY(move(loop->run, PEERS_ENDED, 2 + cursor.taken / PIECE, 0, true, room->piece,
                 piece_of(&cursor) * sizeof *room->piece, err));
    }
    return STATUS_OK;
}

/* Brings the cursor's next piece, where the last one is used up. */
static enum status fill(struct run_loop *loop, struct trace_cursor *cursor, struct error *err)
{
    if (cursor->taken == cursor->count || cursor->taken % PIECE > 0) return STATUS_OK;
    if (cursor->rank == 0) return read_piece(loop, cursor, err);
    return move(loop->run, PEERS_ENDED, 2 + cursor->taken / PIECE, cursor->rank, false, cursor->room->piece,
                piece_of(cursor) * sizeof *cursor->room->piece, err);
}

/* Returns the number of the cursor's next operation. */
static uint64_t number_of(const struct trace_cursor *cursor)
{
    return cursor->taken < cursor->count ? cursor->room->piece[cursor->taken % PIECE].span.number : UINT64_MAX;
}

/* Cuts off what overlaps with earlier spans of the stream: processors of ranks on one machine share a stream. */
static void cut_overlap(struct trace_span *span, double *ended_s)
{
    span->start_s = fmax(span->start_s, ended_s[span->stream]);
    span->end_s = ended_s[span->stream] = fmax(span->end_s, span->start_s);
}

static enum status record_all(struct run_loop *loop, struct trace_cursor *cursors, struct error *err)
{
    const uint32_t ranks = loop->run->peers->count;
    double *ended_s;
    TRY(ARENA_NEW(&loop->run->arena, plan_stream_count(loop->plan), ended_s, err));
    for (uint32_t r = 0; r < ranks; r++) TRY(fill(loop, &cursors[r], err));
    for (;;) {
        struct trace_cursor *first = &cursors[0];
        for (uint32_t r = 1; r < ranks; r++)
            if (number_of(&cursors[r]) < number_of(first)) first = &cursors[r];
        if (first->taken == first->count) return STATUS_OK;
        struct run_ended *const ended = &first->room->piece[first->taken % PIECE];
        if (ended->has_span) cut_overlap(&ended->span, ended_s);
        run_record_ended(loop->record, ended);
        first->taken++;
        TRY(fill(loop, first, err));
    }
}

enum status run_ranks_gather_trace(struct run_loop *loop, struct error *err)
{
    struct run *const run = loop->run;
    struct trace_cursor *cursors;
    if (!loop->ended) return STATUS_OK;
    struct trace_room *const room = run->peers->traced;
    const uint64_t count = spool_length(loop->ended) / sizeof *room->piece;
    TRY(compare_clocks(run, room, AFTER, err));
    if (run->peers->own > 0) return send_all(loop, room, count, err);
    TRY(ARENA_NEW(&run->arena, run->peers->count, cursors, err));
    cursors[0] = (struct trace_cursor){.room = room, .count = count};
    for (uint32_t r = 1; r < run->peers->count; r++) {
        cursors[r].rank = r;
        TRY(ARENA_NEW(&run->arena, 1, cursors[r].room, err));
        TRY(move(run, PEERS_ENDED, 1, r, false, &cursors[r].room->word, sizeof room->word, err));
        cursors[r].count = cursors[r].room->word;
    }
    return record_all(loop, cursors, err);
}
