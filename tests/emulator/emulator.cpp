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

#include <setjmp.h>
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

/* Fibers are started once, by their context; from then on they change hands by jumps, which, unlike
 * contexts, ask nothing of the kernel. */
struct fiber {
    bool started;
    jmp_buf place;
    float value; /* for an exchange or a count */
};

static struct fiber fibers[THREADS_MAX];
static unsigned char states[THREADS_MAX]; /* enum state of each; apart from the fibers, since all are looked at in every
                                             round */
static jmp_buf scheduler;
static int running, thread_count;
static const std::function<void()> *body;
static char *stacks;
static float shared[SHARED_MAX / sizeof(float)];
static unsigned long long order = 88172645463325252ull;

static void set_thread(int index)
{
    running = index;
    threadIdx.x = (unsigned)index % blockDim.x;
    threadIdx.y = (unsigned)index / blockDim.x % blockDim.y;
    threadIdx.z = (unsigned)index / blockDim.x / blockDim.y;
}

static void stop_at(enum state state)
{
    const int me = running;
    states[me] = state;
    if (_setjmp(fibers[me].place) == 0) _longjmp(scheduler, 1);
}

/* A thread of one block after the other. */
static void fiber_main()
{
    for (;;) {
        (*body)();
        stop_at(DONE);
    }
}

static void go_on(int index)
{
    set_thread(index);
    struct fiber *const fiber = &fibers[index];
    if (_setjmp(scheduler) != 0) return;
    if (fiber->started) _longjmp(fiber->place, 1);
    fiber->started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = stacks + (size_t)index * STACK_BYTES;
    context.uc_stack.ss_size = STACK_BYTES;
    context.uc_link = NULL;
    makecontext(&context, fiber_main, 0);
    setcontext(&context);
}

void __syncthreads()
{
    stop_at(AT_BLOCK);
}

int __syncthreads_count(int predicate)
{
    fibers[running].value = predicate ? 1 : 0;
    stop_at(AT_BLOCK);
    int count = 0;
    for (int i = 0; i < thread_count; i++) count += states[i] != DONE && fibers[i].value > 0;
    stop_at(AT_BLOCK);
    return count;
}

float __shfl_xor_sync(unsigned mask, float value, int distance)
{
    if (mask != 0xffffffffu) abort();
    fibers[running].value = value;
    stop_at(AT_WARP);
    const float other = fibers[running ^ distance].value;
    stop_at(AT_WARP);
    return other;
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
    for (int i = 0; i < thread_count; i++)
        if (states[i] == AT_BLOCK) states[i] = READY;
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
    for (int64_t block = 0; block < blocks; block++) {
        blockIdx = dim3((unsigned)block, 0, 0);
        run_block();
    }
}
