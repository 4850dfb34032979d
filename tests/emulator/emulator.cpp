/*
 * Runs CUDA kernels on one core of the host, to test what they compute where there is no GPU.
 *
 * Each thread of a block is a fiber of its own. Fibers run one at a time until they come to a
 * barrier, in an order that changes from round to round, and half of the warps, drawn at random, stand
 * still until the others can go no further, or for some hundred rounds. So a kernel that lacks a barrier reads what was
 * not written yet, or what was written too early: shared memory is full of NaN when a block begins. A barrier that only
 * some of the threads reach, or an exchange in a warp that some lanes miss, aborts.
 *
 * What this cannot show: memory that is out of bounds, races between blocks, the machine's own
 * rounding, limits of registers and shared memory, and how fast anything is.
 */
#include <mutex>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "cuda_runtime.h"

struct dim3 threadIdx, blockIdx, blockDim, gridDim;

enum { WARP_LANES = 32, THREADS_MAX = 1024, STACK_BYTES = 128 << 10, SHARED_MAX = 64 << 10 };
enum { LATE_ROUNDS = 256 }; /* longer than the exchanges between two barriers */
enum state { READY, AT_BLOCK, AT_WARP, DONE };

/* Fibers are started once, by their context; from then on they change hands by the compiler's own jumps, which ask
 * nothing of the kernel, as contexts do, nor of the C library. */
struct fiber {
    bool started;
    void *place[5];
    dim3 thread;
    bool counts; /* at a barrier that counts */
    /* For exchanges in a warp, in turns: a lane that is an exchange ahead does not overwrite what another still reads,
       and two exchanges ahead it cannot be. */
    float exchanged[2];
    unsigned char turn;
};

static struct fiber fibers[THREADS_MAX];
static unsigned char states[THREADS_MAX]; /* enum state of each; apart from the fibers, since all are looked at in every
                                             round */
static void *scheduler[5];
static int running, thread_count;
static int counted; /* threads whose condition held at the last barrier */
static const std::function<void()> *body;
static char *stacks;
static float shared[SHARED_MAX / sizeof(float)];
static unsigned long long order = 88172645463325252ull;

static void set_thread(int index)
{
    running = index;
    threadIdx = fibers[index].thread;
}

#ifdef __clang__
#define APART __attribute__((noinline, optnone))
#else
#define APART __attribute__((noipa))
#endif

/* These are opaque to the compiler: a function must not jump into itself, and whoever calls them must not count on
 * registers that they themselves leave as they are. */
static void APART jump(void **there)
{
    __builtin_longjmp(there, 1);
}

/* Goes on at another place, until somebody comes back here. */
static void APART change(void **here, void **there)
{
    if (__builtin_setjmp(here) == 0) jump(there);
}

static void stop_at(enum state state)
{
    states[running] = state;
    change(fibers[running].place, scheduler);
}

/* A thread of one block after the other. */
static void fiber_main()
{
    for (;;) {
        (*body)();
        stop_at(DONE);
    }
}

static void APART start(struct fiber *fiber, char *stack, size_t bytes)
{
    fiber->started = true;
    if (__builtin_setjmp(scheduler) != 0) return;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stack;
    context.uc_stack.ss_size = bytes;
    context.uc_link = NULL;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

static void go_on(int index)
{
    set_thread(index);
    struct fiber *const fiber = &fibers[index];
    if (fiber->started) change(scheduler, fiber->place);
    else /* they begin at unlike places, since a cache has few lines for addresses that differ by a power of two */
        start(fiber, stacks + (size_t)index * STACK_BYTES, STACK_BYTES - (size_t)index % 128 * 320);
}

void __syncthreads()
{
    stop_at(AT_BLOCK);
}

int __syncthreads_count(int predicate)
{
    fibers[running].counts = predicate != 0;
    stop_at(AT_BLOCK);
    return counted;
}

float __shfl_xor_sync(unsigned mask, float value, int distance)
{
    if (mask != 0xffffffffu) abort();
    struct fiber *const fiber = &fibers[running];
    const unsigned char turn = fiber->turn;
    fiber->turn ^= 1;
    fiber->exchanged[turn] = value;
    const struct fiber *const other = &fibers[running ^ distance];
    stop_at(AT_WARP);
    return other->exchanged[turn];
}

float *emulator_shared()
{
    return shared;
}

/* Let those go on whose barrier is complete. False: nobody can go on. */
static bool release()
{
    bool any = false;
    int at_block = 0, alive = 0;
    for (int first = 0; first < thread_count; first += WARP_LANES) {
        int at_warp = 0, lanes = 0;
        for (int i = first; i < first + WARP_LANES && i < thread_count; i++, lanes++) {
            at_warp += states[i] == AT_WARP;
            at_block += states[i] == AT_BLOCK;
            alive += states[i] != DONE;
            any = any || states[i] == READY;
        }
        if (at_warp != WARP_LANES) continue;
        for (int i = first; i < first + lanes; i++) states[i] = READY;
        any = true;
    }
    if (any || alive == 0 || at_block != alive) return any;
    counted = 0;
    for (int i = 0; i < thread_count; i++) {
        if (states[i] != AT_BLOCK) continue;
        counted += fibers[i].counts;
        states[i] = READY;
    }
    return true;
}

static void run_block()
{
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) shared[i] = NAN;
    for (int i = 0; i < thread_count; i++) states[i] = READY;
    unsigned late = 0; /* a bit per warp */
    bool ran = false;
    do {
        order = order * 6364136223846793005ull + 1442695040888963407ull;
        const unsigned first = (unsigned)(order >> 33) % (unsigned)thread_count;
        const bool backwards = order >> 63;
        if (!ran || (order >> 40) % LATE_ROUNDS == 0) late = (unsigned)(order >> 20);
        ran = false;
        const int count = thread_count, last = backwards ? 0 : count - 1, step = backwards ? -1 : 1;
        for (int n = 0, i = (int)first; n < count; n++, i = i == last ? count - 1 - last : i + step) {
            const bool waits = late >> (i / WARP_LANES % 32) & 1;
            if (states[i] != READY || waits) continue;
            go_on(i);
            ran = true;
        }
    } while (release());
    for (int i = 0; i < thread_count; i++)
        if (states[i] != DONE) {
            fprintf(stderr, "thread %d waits at a barrier that others do not reach\n", i);
            abort();
        }
}

void emulator_run(int64_t blocks, struct dim3 threads, size_t shared_bytes,
                  const std::function<void()> &thread)
{
    static std::mutex one_at_a_time; /* streams are threads, and there is one set of fibers */
    const std::lock_guard<std::mutex> guard(one_at_a_time);
    if (shared_bytes > SHARED_MAX) abort();
    if (!stacks) {
        void *const memory = mmap(NULL, (size_t)THREADS_MAX * STACK_BYTES, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) abort();
        stacks = (char *)memory;
    }
    body = &thread;
    blockDim = threads;
    gridDim = dim3((unsigned)blocks);
    thread_count = (int)(threads.x * threads.y * threads.z);
    if (thread_count > THREADS_MAX) abort();
    for (unsigned i = 0; i < (unsigned)thread_count; i++)
        fibers[i].thread = dim3(i % threads.x, i / threads.x % threads.y, i / threads.x / threads.y);
    for (int64_t block = 0; block < blocks; block++) {
        blockIdx = dim3((unsigned)block, 0, 0);
        run_block();
    }
}
