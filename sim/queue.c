/*
 * A tournament in which every owner has its place.
 *
 * A simulated finish is a guess that changes whenever something else starts or ends, so most calls
 * move an entry that is already there, and one change of rates moves those of several neighbours. A
 * heap pays for each of them by itself, at a mispredicted branch per level. Here an owner's key stays
 * where it is; eight neighbours are a *block*, the first of a block plays against that of the block
 * beside it, and so on up to the first of all:
 *
 *     keys      3 7 9 - - 5 8 6 | 4 - - 2 9 9 - - | - - - - - - - -      - : no entry, infinite
 *     blocks           3        |        2        |        -             winners[4 ..]
 *                        \     /                    \      ...
 *                          2                          -                  winners[2 ..]
 *                                 \          /
 *                                      2                                 winners[1]
 *
 * Setting an entry writes its key and notes its block. Asking for the first plays the noted blocks
 * and the matches above them, so eight entries that change together cost one way up; and an owner
 * that is popped and gets a new entry at once, as most do, costs one as well. While several blocks
 * are noted, a match above one of them may be played against the stale winner of another; but it is
 * above the other as well, and is played again when that one's turn comes.
 *
 * Comparing. Which of two is first is as random as the simulation, so a branch on it is mispredicted
 * half of the time. Times are kept as integers that compare like the doubles they came from (the bits
 * of a positive double do; those of a negative one when inverted), so that (time, order) is one
 * number of 128 bits, and the smaller of two is chosen by a mask. The way up has no branch but its
 * length, which is the same every time.
 *
 * Ties. Two events at the same time are ordered by `order` (kind, then operation number), never by
 * their owners; with numbers unique the order is total and the run reproducible.
 *
 * Time does not go back: an entry before the last one popped is a mistake of the caller and asserted.
 *
 * Memory: 16 bytes an owner and 3 for the matches. No allocation after creation.
 * Source: tournament trees (Knuth, The Art of Computer Programming, vol. 3, sec. 5.4.1).
 */
#include "sim/queue.h"

#include <math.h>
#include <string.h>

#include "sim/take.h"

enum { BLOCK = 8, NOTED_MAX = 4 };

struct key {
    uint64_t time, order;
};

struct sim_queue {
    struct key *keys;      /* by owner, whole blocks of them */
    uint32_t *winners;     /* owners: of the matches from [1] on, of the blocks from [leaf_count] on */
    uint32_t leaf_count;   /* blocks, a power of two */
    uint32_t block_size;   /* owners in a block: BLOCK, or all of them when those are fewer */
    uint32_t owner_count;
    uint32_t noted[NOTED_MAX]; /* blocks */
    uint32_t noted_count;
    double floor_s;        /* the last time popped */
};

/* --- times as integers ---------------------------------------------------------------------- */

static const uint64_t sign_bit = UINT64_C(1) << 63;
static const struct key absent = {UINT64_MAX, UINT64_MAX}; /* behind every time: of a NaN's bits */

static inline uint64_t key_of_time(double time_s)
{
    uint64_t bits;
    time_s += 0.0; /* -0 is 0 */
    memcpy(&bits, &time_s, sizeof bits);
    return bits ^ ((uint64_t)((int64_t)bits >> 63) | sign_bit);
}

static inline double time_of_key(uint64_t key)
{
    uint64_t bits = key & sign_bit ? key & ~sign_bit : ~key;
    double time_s;
    memcpy(&time_s, &bits, sizeof time_s);
    return time_s;
}

/* An owner and its key while it plays. */
struct player {
    uint64_t time, order, owner;
};

static inline struct player player_of(const struct sim_queue *queue, uint32_t owner)
{
    return (struct player){queue->keys[owner].time, queue->keys[owner].order, owner};
}

/* (time, order) as one number: two instructions compare it. */
__extension__ typedef unsigned __int128 sort_key;

/* The first of two: by a mask, or the compiler would branch. */
static inline struct player first_of(struct player a, struct player b)
{
    bool second = ((sort_key)b.time << 64 | b.order) < ((sort_key)a.time << 64 | a.order);
    uint64_t mask = -(uint64_t)second;
    return (struct player){a.time ^ ((a.time ^ b.time) & mask), a.order ^ ((a.order ^ b.order) & mask),
                           a.owner ^ ((a.owner ^ b.owner) & mask)};
}

/* --- playing --------------------------------------------------------------------------------- */

static inline struct player play_half(const struct sim_queue *queue, uint32_t first)
{
    return first_of(first_of(player_of(queue, first), player_of(queue, first + 1)),
                    first_of(player_of(queue, first + 2), player_of(queue, first + 3)));
}

static inline struct player play_block(const struct sim_queue *queue, uint32_t block)
{
    uint32_t first = block * BLOCK;
    if (queue->block_size == BLOCK) return first_of(play_half(queue, first), play_half(queue, first + 4));
    struct player best = player_of(queue, first);
    for (uint32_t i = 1; i < queue->block_size; i++) best = first_of(best, player_of(queue, first + i));
    return best;
}

static inline void play(struct sim_queue *queue, uint32_t block)
{
    struct player best = play_block(queue, block);
    uint32_t node = queue->leaf_count + block;
    queue->winners[node] = (uint32_t)best.owner;
    while (node > 1) {
        best = first_of(best, player_of(queue, queue->winners[node ^ 1]));
        node /= 2;
        queue->winners[node] = (uint32_t)best.owner;
    }
}

static void play_noted(struct sim_queue *queue)
{
    for (uint32_t i = 0; i < queue->noted_count; i++) play(queue, queue->noted[i]);
    queue->noted_count = 0;
}

static inline void note(struct sim_queue *queue, uint32_t owner)
{
    uint32_t block = owner / BLOCK;
    for (uint32_t i = 0; i < queue->noted_count; i++)
        if (queue->noted[i] == block) return;
    if (queue->noted_count == NOTED_MAX) play_noted(queue);
    queue->noted[queue->noted_count++] = block;
}

/* --- public --------------------------------------------------------------------------------- */

enum status sim_queue_create(struct arena *arena, uint32_t owner_count, struct sim_queue **out,
                             struct error *err)
{
    assert(owner_count < INT32_MAX);
    enum status status = STATUS_OK;
    struct sim_queue *queue = sim_take(arena, 1, sizeof *queue, &status, err);
    if (status != STATUS_OK) return status;
    queue->owner_count = owner_count;
    queue->leaf_count = 1;
    while (queue->leaf_count * BLOCK < owner_count) queue->leaf_count *= 2;
    queue->block_size = owner_count < BLOCK ? owner_count + (owner_count == 0) : BLOCK;
    uint32_t places = (queue->leaf_count - 1) * BLOCK + queue->block_size;
    queue->keys = sim_take(arena, places, sizeof *queue->keys, &status, err);
    queue->winners = sim_take(arena, queue->leaf_count * 2, sizeof *queue->winners, &status, err);
    if (status != STATUS_OK) return status;
    queue->floor_s = -INFINITY;
    for (uint32_t i = 0; i < places; i++) queue->keys[i] = absent;
    for (uint32_t block = 0; block < queue->leaf_count; block++) play(queue, block);
    *out = queue;
    return STATUS_OK;
}

void sim_queue_set(struct sim_queue *queue, uint32_t owner, double time_s, uint64_t order)
{
    assert(owner < queue->owner_count);
    assert(isfinite(time_s));
    assert(time_s >= queue->floor_s);
    queue->keys[owner] = (struct key){key_of_time(time_s), order};
    note(queue, owner);
}

void sim_queue_remove(struct sim_queue *queue, uint32_t owner)
{
    assert(owner < queue->owner_count);
    if (queue->keys[owner].time == absent.time) return;
    queue->keys[owner] = absent;
    note(queue, owner);
}

bool sim_queue_first(struct sim_queue *queue, struct sim_event *out)
{
    if (queue->noted_count > 0) play_noted(queue);
    uint32_t owner = queue->winners[1];
    const struct key *key = &queue->keys[owner];
    if (key->time == absent.time) return false;
    *out = (struct sim_event){.time_s = time_of_key(key->time), .order = key->order, .owner = owner};
    return true;
}

bool sim_queue_pop(struct sim_queue *queue, struct sim_event *out)
{
    if (!sim_queue_first(queue, out)) return false;
    assert(out->time_s >= queue->floor_s);
    queue->floor_s = out->time_s;
    queue->keys[out->owner] = absent;
    note(queue, out->owner);
    return true;
}

bool sim_queue_empty(struct sim_queue *queue)
{
    struct sim_event first;
    return !sim_queue_first(queue, &first);
}

void sim_queue_shift(struct sim_queue *queue, double seconds)
{
    assert(isfinite(seconds));
    queue->floor_s -= seconds;
    if (sim_queue_empty(queue)) return;
    for (uint32_t i = 0; i < queue->owner_count; i++) {
        struct key *key = &queue->keys[i];
        if (key->time != absent.time) key->time = key_of_time(time_of_key(key->time) - seconds);
    }
    /* Rounding may have made times equal that were not; their order decides now. */
    for (uint32_t block = 0; block < queue->leaf_count; block++) play(queue, block);
}
