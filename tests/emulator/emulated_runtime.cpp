/*
 * A CUDA runtime in which a stream is a thread: what is enqueued runs later, in order, after a pause of
 * random length, so that whoever forgets to wait reads what is not there yet.
 *
 * Device memory is host memory, full of NaN at first. Host memory that was not pinned is treated as the
 * real runtime may treat it: a copy to the device reads it when it is called, long before its turn.
 */
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime.h"

typedef std::chrono::steady_clock steady;

static std::mutex lock;
static std::condition_variable changed;
static std::map<const char *, size_t> pinned;
static unsigned long long pauses = 88172645463325252ull;
enum { PAUSE_MAX_US = 60 };

struct mark {
    bool done = false;
    steady::time_point at;
};

struct emulated_event {
    std::shared_ptr<struct mark> mark; /* of the last record */
};

struct emulated_stream {
    std::deque<std::function<void()>> work;
    bool busy = false, quit = false;
    std::thread thread;
};

/* --- streams ------------------------------------------------------------------------------------------ */

static void run(struct emulated_stream *stream)
{
    std::unique_lock<std::mutex> guard(lock);
    for (;;) {
        changed.wait(guard, [=]() { return stream->quit || !stream->work.empty(); });
        if (stream->work.empty()) return;
        const std::function<void()> next = stream->work.front();
        stream->work.pop_front();
        stream->busy = true;
        pauses = pauses * 6364136223846793005ull + 1442695040888963407ull;
        const unsigned pause = (unsigned)(pauses >> 40) % PAUSE_MAX_US;
        guard.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(pause));
        next();
        guard.lock();
        stream->busy = false;
        changed.notify_all();
    }
}

void emulator_enqueue(cudaStream_t stream, const std::function<void()> &work)
{
    if (!stream) {
        work();
        return;
    }
    const std::lock_guard<std::mutex> guard(lock);
    stream->work.push_back(work);
    changed.notify_all();
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = new emulated_stream;
    (*out)->thread = std::thread(run, *out);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    {
        const std::lock_guard<std::mutex> guard(lock);
        stream->quit = true;
        changed.notify_all();
    }
    stream->thread.join();
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    std::unique_lock<std::mutex> guard(lock);
    if (stream) changed.wait(guard, [=]() { return stream->work.empty() && !stream->busy; });
    return cudaSuccess;
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    emulator_enqueue(stream, [=]() { function(argument); });
    return cudaSuccess;
}

/* --- events -------------------------------------------------------------------------------------------- */

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
    *out = new emulated_event;
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    const std::shared_ptr<struct mark> mark = std::make_shared<struct mark>();
    {
        const std::lock_guard<std::mutex> guard(lock);
        event->mark = mark;
    }
    emulator_enqueue(stream, [=]() {
        const std::lock_guard<std::mutex> guard(lock);
        mark->at = steady::now();
        mark->done = true;
        changed.notify_all();
    });
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    std::shared_ptr<struct mark> mark;
    {
        const std::lock_guard<std::mutex> guard(lock);
        mark = event->mark;
    }
    emulator_enqueue(stream, [=]() {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [=]() { return !mark || mark->done; });
    });
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    const std::lock_guard<std::mutex> guard(lock);
    return !event->mark || event->mark->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    std::unique_lock<std::mutex> guard(lock);
    const std::shared_ptr<struct mark> mark = event->mark;
    changed.wait(guard, [=]() { return !mark || mark->done; });
    return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (!from->mark || !to->mark) return cudaErrorInvalidValue;
    if (!from->mark->done || !to->mark->done) return cudaErrorNotReady;
    *milliseconds =
        std::chrono::duration<float, std::milli>(to->mark->at - from->mark->at).count();
    return cudaSuccess;
}

/* --- memory --------------------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    *out = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*out) return cudaErrorMemoryAllocation;
    memset(*out, 0xff, bytes);
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    const std::lock_guard<std::mutex> guard(lock);
    pinned[(const char *)memory] = bytes;
    return cudaSuccess;
}

cudaError_t cudaHostUnregister(void *memory)
{
    const std::lock_guard<std::mutex> guard(lock);
    pinned.erase((const char *)memory);
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
    *out = malloc(bytes);
    return *out ? cudaHostRegister(*out, bytes, 0) : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
    cudaHostUnregister(memory);
    free(memory);
    return cudaSuccess;
}

static bool is_pinned(const void *memory)
{
    const std::lock_guard<std::mutex> guard(lock);
    std::map<const char *, size_t>::const_iterator next = pinned.upper_bound((const char *)memory);
    if (next == pinned.begin()) return false;
    --next;
    return (const char *)memory < next->first + next->second;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    if (kind == cudaMemcpyHostToDevice && !is_pinned(from)) {
        const char *const begin = (const char *)from;
        const std::vector<char> staged(begin, begin + bytes);
        emulator_enqueue(stream, [=]() { memcpy(to, staged.data(), bytes); });
        return cudaSuccess;
    }
    emulator_enqueue(stream, [=]() { memcpy(to, from, bytes); });
    if (kind == cudaMemcpyDeviceToHost && !is_pinned(to)) cudaStreamSynchronize(stream);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    emulator_enqueue(stream, [=]() { memset(memory, value, bytes); });
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    *available = (size_t)3 << 30;
    *total = (size_t)4 << 30;
    return cudaSuccess;
}

/* --- the device --------------------------------------------------------------------------------------------- */

const char *cudaGetErrorString(cudaError_t)
{
    return "an error";
}

cudaError_t cudaGetLastError()
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 2;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int)
{
    return cudaSuccess;
}

cudaError_t cudaSetDeviceFlags(unsigned)
{
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *out, int)
{
    strcpy(out->name, "an emulated GPU");
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    *version = 12000;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    return cudaSuccess;
}
