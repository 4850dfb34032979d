/*
 * A CUDA runtime in which a stream is a thread: what is enqueued runs later, in order, after a pause of
 * random length, so that whoever forgets to wait reads what is not there yet.
 *
 * Device memory is host memory, full of NaN at first. Host memory that was not pinned is treated as the
 * real runtime may treat it: a copy to the device reads it when it is called, long before its turn.
 *
 * A device can be lost on request (emulator_faults.h): what is queued on it is dropped, host functions
 * included, and every call that concerns it fails from then on.
 */
#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <stdlib.h>
#include <string.h>

#include "cuda_runtime.h"
#include "emulator_faults.h"

typedef std::chrono::steady_clock steady;

/* Never destroyed: after a test that failed, streams still wait when the program ends. */
static std::mutex &lock = *new std::mutex;
static std::map<const char *, size_t> &pinned = *new std::map<const char *, size_t>;
static std::map<void *, size_t> &allocated = *new std::map<void *, size_t>; /* device memory */
/* What a thread's calls returned and nobody asked for: the next launch returns it. */
static thread_local cudaError_t last_error = cudaSuccess;
static unsigned long long pauses = 88172645463325252ull;
enum { PAUSE_MAX_US = 60, DEVICES_MAX = 8 };

static int devices = 2;
static struct emulator_faults faults;
static uint64_t worked; /* pieces of work on faults.device */
static bool lost[DEVICES_MAX];
static bool peers[DEVICES_MAX][DEVICES_MAX]; /* access of the first to the second's memory is enabled */
static struct emulator_peer_copies peer_copies;
static thread_local int current;

/* Wakes those who wait for a stream's work or marks; one for each stream, else each piece of work would wake all
 * threads. */
typedef std::shared_ptr<std::condition_variable> bell;

struct mark {
    bool done = false;
    int device = 0;
    bell passed;
    steady::time_point at;
};

struct emulated_event {
    std::shared_ptr<struct mark> mark; /* of the last record */
};

struct emulated_stream {
    std::deque<std::function<void()>> work;
    bool busy = false, quit = false;
    int device = 0;
    std::condition_variable more; /* for its thread */
    bell passed = std::make_shared<std::condition_variable>();
    std::thread thread;
};

static std::set<struct emulated_stream *> &streams = *new std::set<struct emulated_stream *>;

extern "C" void emulator_set_faults(struct emulator_faults next)
{
    const std::lock_guard<std::mutex> guard(lock);
    faults = next;
    worked = 0;
    peer_copies = {};
    memset(peers, 0, sizeof peers);
    for (bool &is_lost : lost) is_lost = false;
}

extern "C" void emulator_set_devices(int count)
{
    devices = count;
}

extern "C" int emulator_stream_device(cudaStream_t stream)
{
    return stream->device;
}

/* The real libraries must not meet streams of ours. */
__attribute__((constructor)) static void leave_out_libraries()
{
    setenv("SPILLWAY_CUDNN", "off", 0);
    setenv("SPILLWAY_NCCL", "off", 0);
}

/* Under the lock. */
static cudaError_t state_of(int device)
{
    return lost[device] ? cudaErrorIllegalAddress : cudaSuccess;
}

/* --- streams ------------------------------------------------------------------------------------------ */

/* Wakes all who wait for a device that is gone. Under the lock. */
static void lose(int device)
{
    lost[device] = true;
    for (struct emulated_stream *const stream : streams)
        if (stream->device == device) stream->passed->notify_all();
}

static void run(struct emulated_stream *stream)
{
    std::unique_lock<std::mutex> guard(lock);
    for (;;) {
        stream->more.wait(guard, [=]() { return stream->quit || !stream->work.empty(); });
        if (stream->work.empty()) return;
        const std::function<void()> next = stream->work.front();
        stream->work.pop_front();
        stream->busy = true;
        pauses = pauses * 6364136223846793005ull + 1442695040888963407ull;
        const unsigned pause = (unsigned)(pauses >> 40) % PAUSE_MAX_US;
        if (faults.loses && stream->device == faults.device && worked++ == faults.after) lose(stream->device);
        if (lost[stream->device]) {
            stream->work.clear();
            stream->busy = false;
            stream->passed->notify_all();
            continue;
        }
        guard.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(pause));
        next();
        guard.lock();
        stream->busy = false;
        stream->passed->notify_all();
    }
}

cudaError_t emulator_enqueue(cudaStream_t stream, const std::function<void()> &work)
{
    if (!stream) {
        work();
        return cudaSuccess;
    }
    const std::lock_guard<std::mutex> guard(lock);
    if (lost[stream->device]) return state_of(stream->device);
    stream->work.push_back(work);
    stream->more.notify_one();
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
    *out = new emulated_stream;
    (*out)->device = current;
    {
        const std::lock_guard<std::mutex> guard(lock);
        streams.insert(*out);
    }
    (*out)->thread = std::thread(run, *out);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    {
        const std::lock_guard<std::mutex> guard(lock);
        stream->quit = true;
        streams.erase(stream);
        stream->more.notify_one();
    }
    stream->thread.join();
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    std::unique_lock<std::mutex> guard(lock);
    if (!stream) return cudaSuccess;
    stream->passed->wait(guard, [=]() {
        return lost[stream->device] || (stream->work.empty() && !stream->busy);
    });
    return state_of(stream->device);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    return emulator_enqueue(stream, [=]() { function(argument); });
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
    mark->device = stream->device;
    mark->passed = stream->passed;
    {
        const std::lock_guard<std::mutex> guard(lock);
        if (lost[stream->device]) return state_of(stream->device);
        event->mark = mark;
    }
    return emulator_enqueue(stream, [=]() {
        const std::lock_guard<std::mutex> guard(lock);
        mark->at = steady::now();
        mark->done = true;
        mark->passed->notify_all();
    });
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    std::shared_ptr<struct mark> mark;
    {
        const std::lock_guard<std::mutex> guard(lock);
        mark = event->mark;
        if (mark && lost[mark->device]) return state_of(mark->device);
    }
    return emulator_enqueue(stream, [=]() {
        std::unique_lock<std::mutex> guard(lock);
        if (mark) mark->passed->wait(guard, [=]() { return mark->done || lost[mark->device]; });
    });
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (!event->mark) return cudaSuccess;
    if (lost[event->mark->device]) return state_of(event->mark->device);
    if (!event->mark->done) last_error = cudaErrorNotReady;
    return event->mark->done ? cudaSuccess : cudaErrorNotReady;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    std::unique_lock<std::mutex> guard(lock);
    const std::shared_ptr<struct mark> mark = event->mark;
    if (!mark) return cudaSuccess;
    mark->passed->wait(guard, [=]() { return mark->done || lost[mark->device]; });
    return state_of(mark->device);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from, cudaEvent_t to)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (!from->mark || !to->mark) return cudaErrorInvalidValue;
    if (lost[to->mark->device]) return state_of(to->mark->device);
    if (!from->mark->done || !to->mark->done) return cudaErrorNotReady;
    *milliseconds =
        std::chrono::duration<float, std::milli>(to->mark->at - from->mark->at).count();
    return cudaSuccess;
}

/* --- memory --------------------------------------------------------------------------------------------- */

cudaError_t cudaMalloc(void **out, size_t bytes)
{
    if (faults.largest_bytes > 0 && bytes > faults.largest_bytes)
        return last_error = cudaErrorMemoryAllocation;
    *out = aligned_alloc(256, (bytes + 255) / 256 * 256);
    if (!*out) return cudaErrorMemoryAllocation;
    memset(*out, 0xff, bytes);
    const std::lock_guard<std::mutex> guard(lock);
    allocated[*out] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    const std::lock_guard<std::mutex> guard(lock);
    allocated.erase(memory);
    free(memory);
    return cudaSuccess;
}

cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (faults.refuses_pinning) return last_error = cudaErrorNotSupported;
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
        return emulator_enqueue(stream, [=]() { memcpy(to, staged.data(), bytes); });
    }
    const cudaError_t failed = emulator_enqueue(stream, [=]() { memcpy(to, from, bytes); });
    if (failed != cudaSuccess || kind != cudaMemcpyDeviceToHost || is_pinned(to)) return failed;
    return cudaStreamSynchronize(stream);
}

/* --- copies between devices ------------------------------------------------------------------------------ */

extern "C" struct emulator_peer_copies emulator_peer_copies(void)
{
    const std::lock_guard<std::mutex> guard(lock);
    return peer_copies;
}

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    const std::lock_guard<std::mutex> guard(lock);
    *can = device != peer && !faults.forbids_peers;
    return cudaSuccess;
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (faults.forbids_peers || peer == current) return last_error = cudaErrorNotSupported;
    if (peers[current][peer]) return last_error = cudaErrorPeerAccessAlreadyEnabled;
    peers[current][peer] = true;
    return cudaSuccess;
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    const std::lock_guard<std::mutex> guard(lock);
    if (!peers[current][peer]) return last_error = cudaErrorNotSupported;
    peers[current][peer] = false;
    return cudaSuccess;
}

/* Returns true for memory of a device. */
static bool is_allocated(const void *memory)
{
    for (const std::pair<void *const, size_t> &piece : allocated)
        if ((const char *)memory >= (char *)piece.first &&
            (const char *)memory < (char *)piece.first + piece.second)
            return true;
    return false;
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    uint64_t every = 0;
    {
        const std::lock_guard<std::mutex> guard(lock);
        if (!is_allocated(to) || !is_allocated(from) || to_device == from_device)
            return cudaErrorInvalidValue;
        if (lost[from_device]) return state_of(from_device);
        const bool direct = peers[to_device][from_device];
        direct ? peer_copies.direct++ : peer_copies.through_driver++;
        if (direct) every = faults.damages_peers;
    }
    return emulator_enqueue(stream, [=]() {
        memcpy(to, from, bytes);
        for (uint64_t i = every; every > 0 && i <= bytes; i += every) ((char *)to)[i - 1] ^= 0x10;
    });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind)
{
    memcpy(to, from, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes, cudaStream_t stream)
{
    return emulator_enqueue(stream, [=]() { memset(memory, value, bytes); });
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    const std::lock_guard<std::mutex> guard(lock);
    *available = (size_t)3 << 30;
    *total = (size_t)4 << 30;
    for (const std::pair<void *const, size_t> &piece : allocated) *available -= piece.second;
    return cudaSuccess;
}

/* --- the device --------------------------------------------------------------------------------------------- */

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorMemoryAllocation: return "out of memory";
    case cudaErrorIllegalAddress: return "an illegal memory access was encountered";
    case cudaErrorPeerAccessAlreadyEnabled: return "peer access is already enabled";
    case cudaErrorNotSupported: return "operation not supported";
    default: return "an error";
    }
}

cudaError_t cudaGetLastError()
{
    const cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaGetDeviceCount(int *count)
{
    *count = devices;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    current = device;
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

/* Four multiprocessors of an A100 at 1 GHz, beside memory of 32 GB/s. */
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int)
{
    switch (which) {
    case cudaDevAttrClockRate: *value = 1000000; break;
    case cudaDevAttrMultiProcessorCount: *value = 4; break;
    case cudaDevAttrMemoryClockRate: *value = 1000000; break;
    case cudaDevAttrGlobalMemoryBusWidth: *value = 128; break;
    case cudaDevAttrComputeCapabilityMajor: *value = 8; break;
    case cudaDevAttrComputeCapabilityMinor: *value = 0; break;
    }
    return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char *out, int bytes, int device)
{
    snprintf(out, (size_t)bytes, "0000:%02X:00.0", 0x3b + device);
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
