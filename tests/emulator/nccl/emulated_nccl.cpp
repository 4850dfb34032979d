/*
 * An NCCL over the emulated runtime. A rank's part of a collective is work of its stream, which waits there until all
 * ranks have come, as kernels of the real one do. Sums have the order of a ring: the chunk of rank r begins with rank r
 * + 1.
 *
 * It finds what the real one answers with a hang or with wrong numbers:
 *
 *     calls of one thread outside of a group, with more than one rank
 *     a group in which a rank of a communicator lacks a call that others have, or has another one
 *     groups that come in different orders on two devices, or on two streams of one
 *     a stream of another device; operands that overlap; communicators after their end
 *
 * What it finds it keeps for tests, and the call returns ncclInvalidUsage.
 */
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_runtime_api.h"
#include "tests/emulator/emulator_faults.h"
#include "tests/emulator/nccl/emulated_nccl.h"

enum { SUCCESS = 0, UNHANDLED = 1, SYSTEM = 2, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, REMOTE = 6 };
enum { TYPE_INT8 = 0, TYPE_FLOAT32 = 7, TYPE_FLOAT64 = 8, OP_SUM = 0 };
enum { KINDS = NCCL_BROADCAST + 1, HISTORY = 256 };

struct clique {
    std::vector<struct ncclComm *> ranks;
    int async_error = SUCCESS;
};

enum life { LIVES, DESTROYED, ABORTED };
struct ncclComm { /* never freed: a later use must be found */
    std::shared_ptr<struct clique> clique;
    int rank, device;
    enum life life = LIVES;
};

struct call {
    int kind, type, root;
    const char *from;
    char *to;
    size_t count;
    struct ncclComm *comm;
    cudaStream_t stream;
};

/* A collective that is under way. */
struct round {
    std::shared_ptr<struct clique> clique;
    std::vector<struct call> calls; /* by rank */
    size_t arrived = 0;
    bool done = false, hangs = false;
};

struct part {
    std::shared_ptr<struct round> round;
    struct ncclComm *comm;
};

static std::mutex &lock = *new std::mutex;
static std::condition_variable &changed = *new std::condition_variable;
static std::vector<struct ncclComm *> &comms = *new std::vector<struct ncclComm *>;
/* of groups, by device */
static std::map<int, std::vector<uint64_t>> &order = *new std::map<int, std::vector<uint64_t>>;
static std::map<int, cudaStream_t> &stream_of = *new std::map<int, cudaStream_t>;
static char finding[256];
static int broken;
static uint64_t broken_after, group_count, call_counts[KINDS];
static unsigned long long pauses = 0x853c49e6748fea9bull;
static thread_local int depth;
static thread_local std::vector<struct call> *calls;

/* --- for tests -------------------------------------------------------------------------------- */

extern "C" void emulated_nccl_break(int what, uint64_t after)
{
    const std::lock_guard<std::mutex> guard(lock);
    broken = what;
    broken_after = after;
    group_count = 0;
    finding[0] = '\0';
    memset(call_counts, 0, sizeof call_counts);
}

extern "C" uint64_t emulated_nccl_calls(int kind)
{
    const std::lock_guard<std::mutex> guard(lock);
    return call_counts[kind];
}

extern "C" const char *emulated_nccl_finding(void)
{
    return finding;
}

extern "C" uint64_t emulated_nccl_open(void)
{
    const std::lock_guard<std::mutex> guard(lock);
    uint64_t open = 0;
    for (const struct ncclComm *const comm : comms) open += comm->life == LIVES;
    return open;
}

/* Under the lock. */
static int found(const char *what, int a = -1, int b = -1)
{
    if (finding[0] == '\0') snprintf(finding, sizeof finding, what, a, b);
    return INVALID_USAGE;
}

/* --- communicators ---------------------------------------------------------------------------- */

extern "C" int ncclGetVersion(int *version)
{
    *version = broken == NCCL_BREAK_VERSION ? 2803 : 22809;
    return SUCCESS;
}

extern "C" const char *ncclGetErrorString(int result)
{
    switch (result) {
    case SUCCESS: return "no error";
    case UNHANDLED: return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case SYSTEM: return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case INVALID_ARGUMENT: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case INVALID_USAGE: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    default: return "remote process exited or there was a network error";
    }
}

extern "C" const char *ncclGetLastError(struct ncclComm *)
{
    return finding[0] ? finding : "it was told\nto fail";
}

extern "C" int ncclCommInitAll(struct ncclComm **out, int count, const int *devices)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (broken == NCCL_BREAK_INIT) return UNHANDLED;
    for (int a = 0; a < count; a++)
        for (int b = 0; b < a; b++)
            if (devices[a] == devices[b]) return found("device %d is two ranks of a communicator", devices[a]);
    const std::shared_ptr<struct clique> clique = std::make_shared<struct clique>();
    for (int r = 0; r < count; r++) {
        out[r] = new ncclComm;
        out[r]->clique = clique;
        out[r]->rank = r;
        out[r]->device = devices[r];
        clique->ranks.push_back(out[r]);
        comms.push_back(out[r]);
    }
    return SUCCESS;
}

static int end_life(struct ncclComm *comm, enum life life)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (comm->life != LIVES) return found("rank %d of a communicator ends twice", comm->rank);
    comm->life = life;
    changed.notify_all();
    bool used = false;
    for (const struct ncclComm *const other : comms)
        used = used || (other->life == LIVES && other->device == comm->device);
    if (!used) stream_of.erase(comm->device);
    if (!used) order.erase(comm->device);
    return SUCCESS;
}

extern "C" int ncclCommDestroy(struct ncclComm *comm)
{
    return end_life(comm, DESTROYED);
}

extern "C" int ncclCommAbort(struct ncclComm *comm)
{
    return end_life(comm, ABORTED);
}

extern "C" int ncclCommGetAsyncError(struct ncclComm *comm, int *result)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (comm->life != LIVES) return found("rank %d of a communicator is asked after its end", comm->rank);
    *result = comm->clique->async_error;
    return SUCCESS;
}

/* --- carrying out ----------------------------------------------------------------------------- */

static size_t size_of(int type)
{
    return type == TYPE_INT8 ? 1 : type == TYPE_FLOAT32 ? sizeof(float) : sizeof(double);
}

/* Adds up element `at` of all ranks, the rank after `last` first. */
template <typename Number> static Number sum(const struct round &round, size_t at, size_t last)
{
    const size_t ranks = round.calls.size();
    Number all = ((const Number *)round.calls[(last + 1) % ranks].from)[at];
    for (size_t i = 2; i <= ranks; i++) all += ((const Number *)round.calls[(last + i) % ranks].from)[at];
    return broken == NCCL_BREAK_SUM ? all + 1 : all;
}

template <typename Number> static void add_up(const struct round &round, std::vector<Number> *sums)
{
    const struct call &first = round.calls[0];
    const size_t ranks = round.calls.size(),
        whole = first.kind == NCCL_REDUCE_SCATTER ? ranks * first.count : first.count;
    sums->resize(whole);
    for (size_t i = 0; i < whole; i++) {
        const size_t chunk = first.kind == NCCL_REDUCE_SCATTER ? i / first.count : i * ranks / whole;
        (*sums)[i] = sum<Number>(round, i, first.kind == NCCL_REDUCE ? (size_t)first.root : chunk);
    }
}

/* Reads all operands before it writes: they may be in place. */
template <typename Number> static void carry_out(const struct round &round)
{
    const struct call &first = round.calls[0];
    const size_t ranks = round.calls.size();
    std::vector<Number> values;
    if (first.kind == NCCL_ALL_GATHER)
        for (const struct call &call : round.calls)
            values.insert(values.end(), (const Number *)call.from, (const Number *)call.from + call.count);
    else if (first.kind == NCCL_BROADCAST)
        values.assign((const Number *)round.calls[first.root].from,
                      (const Number *)round.calls[first.root].from + first.count);
    else
        add_up(round, &values);
    for (size_t r = 0; r < ranks; r++) {
        const size_t begin = first.kind == NCCL_REDUCE_SCATTER ? r * first.count : 0;
        const size_t count = first.kind == NCCL_ALL_GATHER ? ranks * first.count : first.count;
        if (first.kind != NCCL_REDUCE || (int)r == first.root)
            memcpy(round.calls[r].to, values.data() + begin, count * sizeof(Number));
    }
}

/* On the stream of a rank. */
static void attend(void *argument)
{
    const std::unique_ptr<struct part> part((struct part *)argument);
    struct round &round = *part->round;
    std::unique_lock<std::mutex> guard(lock);
    if (++round.arrived == round.calls.size() && !round.hangs) {
        const int type = round.calls[0].type;
        if (type == TYPE_INT8) carry_out<char>(round);
        else if (type == TYPE_FLOAT32) carry_out<float>(round);
        else carry_out<double>(round);
        round.done = true;
        changed.notify_all();
    }
    changed.wait(guard, [&]() { return round.done || part->comm->life == ABORTED; });
}

/* --- groups ----------------------------------------------------------------------------------- */

static bool overlap(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

/* Operands may be the same range, or the rank's part of the other one. */
static bool are_apart(const struct call &call)
{
    const size_t ranks = call.comm->clique->ranks.size(), bytes = call.count * size_of(call.type);
    const size_t from_bytes = call.kind == NCCL_REDUCE_SCATTER ? ranks * bytes : bytes;
    const size_t to_bytes = call.kind == NCCL_ALL_GATHER ? ranks * bytes : bytes;
    const size_t at = (size_t)call.comm->rank * bytes;
    if (call.kind == NCCL_REDUCE && call.comm->rank != call.root) return true;
    if (bytes == 0 || !overlap(call.from, from_bytes, call.to, to_bytes)) return true;
    if (call.kind == NCCL_REDUCE_SCATTER) return call.to == call.from + at;
    if (call.kind == NCCL_ALL_GATHER) return call.from == call.to + at;
    return call.from == call.to;
}

/* Under the lock. */
static int check(const struct call &call)
{
    const struct ncclComm &comm = *call.comm;
    if (comm.life != LIVES) return found("rank %d of a communicator is used after its end", comm.rank);
    if (emulator_stream_device(call.stream) != comm.device)
        return found("a stream of device %d is used for a rank on device %d", emulator_stream_device(call.stream),
                     comm.device);
    if (stream_of.count(comm.device) && stream_of[comm.device] != call.stream)
        return found("device %d has collectives on two streams, which have no order", comm.device);
    if (!are_apart(call)) return found("operands of rank %d overlap", comm.rank);
    stream_of[comm.device] = call.stream;
    return SUCCESS;
}

/* Returns the calls of a clique's ranks, in their order. Under the lock. */
static std::vector<std::vector<struct call>> by_rank(const struct clique &clique)
{
    std::vector<std::vector<struct call>> all(clique.ranks.size());
    for (const struct call &call : *calls)
        if (call.comm->clique.get() == &clique) all[call.comm->rank].push_back(call);
    return all;
}

static bool same(const struct call &a, const struct call &b)
{
    return a.kind == b.kind && a.type == b.type && a.root == b.root && a.count == b.count;
}

static int match(const std::vector<std::vector<struct call>> &all)
{
    for (size_t r = 1; r < all.size(); r++) {
        if (all[r].size() != all[0].size())
            return found("ranks 0 and %d of a communicator have different numbers of calls in a group", (int)r);
        for (size_t i = 0; i < all[r].size(); i++)
            if (!same(all[r][i], all[0][i]))
                return found("ranks 0 and %d of a communicator have different calls in a group", (int)r);
    }
    return SUCCESS;
}

/* Compares the orders of the groups that two devices have in common. Under the lock. */
static int compare_orders(int a, int b)
{
    std::vector<uint64_t> common[2];
    for (int side = 0; side < 2; side++)
        for (const uint64_t group : order[side ? b : a])
            for (const uint64_t other : order[side ? a : b])
                if (group == other) common[side].push_back(group);
    return common[0] == common[1] ? SUCCESS : found("groups have different orders on devices %d and %d", a, b);
}

static void note_order(int device, uint64_t group)
{
    std::vector<uint64_t> &all = order[device];
    if (all.empty() || all.back() != group) all.push_back(group);
    if (all.size() > HISTORY) all.erase(all.begin());
}

static void pause()
{
    unsigned us;
    {
        const std::lock_guard<std::mutex> guard(lock);
        pauses = pauses * 6364136223846793005ull + 1442695040888963407ull;
        us = (unsigned)(pauses >> 40) % 40;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(us));
}

/* Gives the ranks' parts to their streams, one device after the other. */
static int enqueue(uint64_t group, const std::vector<std::shared_ptr<struct round>> &rounds)
{
    std::vector<int> devices;
    size_t most = 0;
    for (const std::shared_ptr<struct round> &round : rounds)
        most = round->calls.size() > most ? round->calls.size() : most;
    for (size_t r = 0; r < most; r++) {
        pause();
        for (const std::shared_ptr<struct round> &round : rounds) {
            if (r >= round->calls.size()) continue;
            const struct call &call = round->calls[r];
            {
                const std::lock_guard<std::mutex> guard(lock);
                note_order(call.comm->device, group);
                devices.push_back(call.comm->device);
            }
            struct part *const taken = new part{round, call.comm};
            if (cudaLaunchHostFunc(call.stream, attend, taken) == cudaSuccess) continue;
            delete taken;
            return UNHANDLED;
        }
    }
    const std::lock_guard<std::mutex> guard(lock);
    for (const int a : devices)
        for (const int b : devices)
            if (a < b && compare_orders(a, b) != SUCCESS) return INVALID_USAGE;
    return SUCCESS;
}

/* Checks the group's calls and makes its rounds. Under the lock. */
static int make_rounds(bool hangs, std::vector<std::shared_ptr<struct round>> *rounds)
{
    std::vector<struct clique *> cliques;
    for (const struct call &call : *calls) {
        const int failed = check(call);
        if (failed != SUCCESS) return failed;
        bool known = false;
        for (const struct clique *const clique : cliques) known = known || clique == call.comm->clique.get();
        if (!known) cliques.push_back(call.comm->clique.get());
    }
    for (struct clique *const clique : cliques) {
        const std::vector<std::vector<struct call>> all = by_rank(*clique);
        if (match(all) != SUCCESS) return INVALID_USAGE;
        if (hangs) clique->async_error = REMOTE;
        for (size_t i = 0; i < all[0].size(); i++) {
            const std::shared_ptr<struct round> round = std::make_shared<struct round>();
            round->hangs = hangs;
            for (const std::vector<struct call> &rank : all) round->calls.push_back(rank[i]);
            call_counts[all[0][i].kind] += all.size();
            rounds->push_back(round);
        }
    }
    return SUCCESS;
}

static int end_group()
{
    std::vector<std::shared_ptr<struct round>> rounds;
    uint64_t group;
    int failed;
    {
        const std::lock_guard<std::mutex> guard(lock);
        static uint64_t groups;
        group = groups++;
        const bool breaks = group_count++ >= broken_after;
        failed = breaks && broken == NCCL_BREAK_GROUP
                 ? SYSTEM : make_rounds(breaks && broken == NCCL_BREAK_REMOTE, &rounds);
    }
    calls->clear();
    return failed != SUCCESS ? failed : enqueue(group, rounds);
}

extern "C" int ncclGroupStart(void)
{
    if (!calls) calls = new std::vector<struct call>;
    depth++;
    return SUCCESS;
}

extern "C" int ncclGroupEnd(void)
{
    if (depth == 0) {
        const std::lock_guard<std::mutex> guard(lock);
        return found("a group ends that has not begun");
    }
    return --depth > 0 ? SUCCESS : end_group();
}

static int note(const struct call &call)
{
    if (depth == 0) {
        const std::lock_guard<std::mutex> guard(lock);
        return found("rank %d of a communicator of %d has a call outside of a group, which waits for ever",
                     call.comm->rank, (int)call.comm->clique->ranks.size());
    }
    calls->push_back(call);
    return SUCCESS;
}

extern "C" int ncclAllReduce(const void *from, void *to, size_t count, int type, int, struct ncclComm *comm,
                             cudaStream_t stream)
{
    return note({NCCL_ALL_REDUCE, type, 0, (const char *)from, (char *)to, count, comm, stream});
}

extern "C" int ncclReduceScatter(const void *from, void *to, size_t share, int type, int, struct ncclComm *comm,
                                 cudaStream_t stream)
{
    return note({NCCL_REDUCE_SCATTER, type, 0, (const char *)from, (char *)to, share, comm, stream});
}

extern "C" int ncclAllGather(const void *from, void *to, size_t share, int type, struct ncclComm *comm,
                             cudaStream_t stream)
{
    return note({NCCL_ALL_GATHER, type, 0, (const char *)from, (char *)to, share, comm, stream});
}

extern "C" int ncclReduce(const void *from, void *to, size_t count, int type, int, int root, struct ncclComm *comm,
                          cudaStream_t stream)
{
    return note({NCCL_REDUCE, type, root, (const char *)from, (char *)to, count, comm, stream});
}

extern "C" int ncclBroadcast(const void *from, void *to, size_t count, int type, int root, struct ncclComm *comm,
                             cudaStream_t stream)
{
    return note({NCCL_BROADCAST, type, root, (const char *)from, (char *)to, count, comm, stream});
}
