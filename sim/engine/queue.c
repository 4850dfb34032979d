/*
 * A tournament in which every owner has a fixed place.
 *
 * A predicted end changes whenever another operation starts or ends, so most calls move existing entries, often
 * neighbours. A heap pays for each move, with a mispredicted branch per level. Here an owner's key stays in place;
 * eight neighbours are a *block*, a block's first entry plays against the neighbouring block's, and so on up to the
 * first of all:
 *
 *     keys      3 7 9 - - 5 8 6 | 4 - - 2 9 9 - - | - - - - - - - -      - : no entry
 *     blocks           3        |        2        |        -             nodes[4 ..]
 *                         \     /                   \      ...
 *                           2                         -                    nodes[2 ..]
 *                                 \          /
 *                                      2                                   nodes[1]
 *
 * Setting an entry writes its key and notes its block. Reading the first entry replays noted blocks and the matches
 * above them, so entries that change together cost one way up; so does an owner that is popped and set again at once,
 * the usual case. A match above a noted block may use another one's stale winner; but it is also above that block, and
 * is replayed with it.
 *
 * Comparing. A match's winner is random, so a branch on it is mispredicted half of the time. Times are integers, so
 * that a comparison is a conditional move; the branch on equal times is rare. Owners without an entry have a key after
 * all others, so that a block is compared as a whole.
 *
 * Ties. Events at the same time are ordered by `order` (kind, then operation number), never by owners; with unique
 * numbers the order is total and the run reproducible.
 *
 * An assertion refuses entries before the last popped one: time does not go back.
 *
 * Memory: 19 bytes per owner, for a power of two of blocks. No allocation after creation. Before blocks were compared
 * as a whole: hold model (pop, set it later, move another one every second time), best of 15 on an EPYC, 28 ns with 16
 * owners, 44 with 256, 52 with 4096; a 4-ary heap with positions took 31, 45 and 67.
 *
 * Source: tournament trees (Knuth, The Art of Computer Programming, vol. 3, sec. 5.4.1).
 */
#include "sim/engine/queue.h"

#include "sim/engine/allocate.h"

enum { BLOCK = SIM_QUEUE_BLOCK };

/* Keys after every time (the keys of NaNs): no entry. A block's absent keys differ, so they are no ties. */
static const uint64_t absent = UINT64_MAX - (BLOCK - 1);

static inline uint64_t absent_key(uint32_t owner)
{
    return absent + owner % BLOCK;
}

static inline double time_of_key(uint64_t key)
{
    uint64_t sign_bit = UINT64_C(1) << 63, bits = key & sign_bit ? key & ~sign_bit : ~key;
    double time_s;
    memcpy(&time_s, &bits, sizeof time_s);
    return time_s;
}

/* --- playing --------------------------------------------------------------------------------- */

struct first {
    uint64_t time;
    uint32_t owner;
};

/* Returns true if the owner precedes the first of the others at the same time. */
static inline bool is_tie(const struct sim_queue *queue, uint32_t owner, struct first first)
{
    return queue->times[owner] == first.time && queue->orders[owner] < queue->orders[first.owner];
}

static __attribute__((noinline)) struct first play_block_with_ties(const struct sim_queue *queue, uint32_t block)
{
    struct first best = {queue->times[block * BLOCK], block * BLOCK};
    for (uint32_t owner = block * BLOCK + 1; owner < (block + 1) * BLOCK; owner++)
        if (queue->times[owner] < best.time || is_tie(queue, owner, best))
            best = (struct first){queue->times[owner], owner};
    return best;
}

/* Returns the first of two entries with different times, by arithmetic, because compilers would make a mispredicted
 * branch. */
static inline struct first first_of(struct first a, struct first b)
{
    uint64_t second = -(uint64_t)(b.time < a.time);
    return (struct first){b.time < a.time ? b.time : a.time, a.owner ^ ((a.owner ^ b.owner) & (uint32_t)second)};
}

/* Plays a block pair by pair, so that comparisons are independent. Returns false, without a result, for ties. */
static inline bool play_block(const struct sim_queue *queue, uint32_t block, struct first *out)
{
    struct first firsts[BLOCK];
    #pragma GCC unroll 8
    for (uint32_t i = 0; i < BLOCK; i++) firsts[i] = (struct first){queue->times[block * BLOCK + i], i};
    #pragma GCC unroll 8
    for (uint32_t apart = 1; apart < BLOCK; apart *= 2)
        #pragma GCC unroll 8
        for (uint32_t i = 0; i < BLOCK; i += 2 * apart) {
            if (__builtin_expect(firsts[i].time == firsts[i + apart].time, 0)) return false;
            firsts[i] = first_of(firsts[i], firsts[i + apart]);
        }
    *out = (struct first){firsts[0].time, block * BLOCK + firsts[0].owner};
    return true;
}

/* Replays the way up from a block with this first owner. */
static inline void play_matches(struct sim_queue *queue, uint32_t block, struct first best)
{
    uint64_t *times = queue->node_times;
    uint32_t *owners = queue->node_owners, node = queue->leaf_count + block;
    times[node] = best.time;
    owners[node] = best.owner;
    while (node > 1) {
        uint64_t time = times[node ^ 1];
        uint32_t owner = owners[node ^ 1];
        node /= 2;
        if (__builtin_expect(time == best.time, 0) && is_tie(queue, owner, best)) best.owner = owner;
        best.owner = time < best.time ? owner : best.owner;
        best.time = time < best.time ? time : best.time;
        times[node] = best.time;
        owners[node] = best.owner;
    }
}

static void play(struct sim_queue *queue, uint32_t block)
{
    struct first best;
    if (!play_block(queue, block, &best)) best = play_block_with_ties(queue, block);
    play_matches(queue, block, best);
}

void sim_queue_play_noted(struct sim_queue *queue)
{
    for (uint32_t i = 0; i < queue->noted_count; i++) play(queue, queue->noted[i]);
    queue->noted_count = 0;
}

/* --- public --------------------------------------------------------------------------------- */

enum status sim_queue_create(struct arena *arena, uint32_t owner_count, struct sim_queue **out,
                             struct error *err)
{
    assert(owner_count < INT32_MAX);
    enum status status = STATUS_OK;
    struct sim_queue *queue = sim_allocate(arena, 1, sizeof *queue, &status, err);
    if (status != STATUS_OK) return status;
    queue->owner_count = owner_count;
    queue->leaf_count = 1;
    while (queue->leaf_count * BLOCK < owner_count) queue->leaf_count *= 2;
    size_t owners = (size_t)queue->leaf_count * BLOCK, nodes = (size_t)queue->leaf_count * 2;
    queue->times = sim_allocate(arena, owners, sizeof *queue->times, &status, err);
    queue->orders = sim_allocate(arena, owners, sizeof *queue->orders, &status, err);
    queue->node_times = sim_allocate(arena, nodes, sizeof *queue->node_times, &status, err);
    queue->node_owners = sim_allocate(arena, nodes, sizeof *queue->node_owners, &status, err);
    if (status != STATUS_OK) return status;
    for (uint32_t i = 0; i < owners; i++) queue->times[i] = absent_key(i);
    for (uint32_t i = 0; i < nodes; i++) queue->node_times[i] = absent;
    queue->floor_s = -INFINITY;
    *out = queue;
    return STATUS_OK;
}

void sim_queue_remove(struct sim_queue *queue, uint32_t owner)
{
    assert(owner < queue->owner_count);
    if (queue->times[owner] >= absent) return;
    queue->times[owner] = absent_key(owner);
    sim_queue_note(queue, owner / BLOCK);
}

struct sim_event sim_queue_entry(const struct sim_queue *queue, uint32_t owner)
{
    assert(owner < queue->owner_count);
    assert(queue->times[owner] < absent);
    return (struct sim_event){.time_s = time_of_key(queue->times[owner]), .order = queue->orders[owner],
                              .owner = owner};
}

static inline bool first_entry(const struct sim_queue *queue, struct sim_event *out)
{
    uint64_t time = queue->node_times[1];
    uint32_t owner = queue->node_owners[1];
    if (time >= absent) return false;
    *out = (struct sim_event){.time_s = time_of_key(time), .order = queue->orders[owner], .owner = owner};
    return true;
}

bool sim_queue_first(struct sim_queue *queue, struct sim_event *out)
{
    if (queue->noted_count > 0) sim_queue_play_noted(queue);
    return first_entry(queue, out);
}

/* Pops the first entry, after all noted blocks have been replayed. */
static inline bool pop_first(struct sim_queue *queue, struct sim_event *out)
{
    if (!first_entry(queue, out)) return false;
    assert(out->time_s >= queue->floor_s);
    queue->floor_s = out->time_s;
    queue->times[out->owner] = absent_key(out->owner);
    queue->noted[0] = out->owner / BLOCK;
    queue->noted_count = 1;
    return true;
}

static __attribute__((noinline)) bool pop_with_ties(struct sim_queue *queue, struct sim_event *out)
{
    sim_queue_play_noted(queue);
    return pop_first(queue, out);
}

/* Calls other functions only at its end, so that no register must be saved. */
bool sim_queue_pop(struct sim_queue *queue, struct sim_event *out)
{
    for (uint32_t i = 0; i < queue->noted_count; i++) {
        struct first best;
        if (!play_block(queue, queue->noted[i], &best)) return pop_with_ties(queue, out);
        play_matches(queue, queue->noted[i], best);
    }
    queue->noted_count = 0;
    return pop_first(queue, out);
}

void sim_queue_shift(struct sim_queue *queue, double seconds)
{
    struct sim_event first;
    assert(isfinite(seconds));
    queue->floor_s -= seconds;
    if (!sim_queue_first(queue, &first)) return;
    for (uint32_t i = 0; i < queue->owner_count; i++)
        if (queue->times[i] < absent)
            queue->times[i] = sim_queue_key(time_of_key(queue->times[i]) - seconds);
    /* Rounding may have made different times equal; their order decides now. */
    for (uint32_t block = 0; block < queue->leaf_count; block++) play(queue, block);
}

void sim_queue_write(const struct sim_queue *queue, uint64_t first_order, struct sim_snapshot *out)
{
    for (uint32_t i = 0; i < queue->owner_count; i++) {
        if (queue->times[i] >= absent) continue;
        sim_snapshot_put(out, i);
        sim_snapshot_put_real(out, time_of_key(queue->times[i]));
        sim_snapshot_put(out, queue->orders[i] - first_order);
    }
}
