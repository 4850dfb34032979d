/* A stand-in for the one function of CUB that we call: a stable sort by some of the keys' bits. */
#ifndef SPILLWAY_TESTS_EMULATOR_CUB_DEVICE_DEVICE_RADIX_SORT_CUH
#define SPILLWAY_TESTS_EMULATOR_CUB_DEVICE_DEVICE_RADIX_SORT_CUH

#include <algorithm>

namespace cub {

template <typename Key> struct DoubleBuffer {
    Key *buffers[2];
    int selector = 0;
    DoubleBuffer(Key *current, Key *alternate) : buffers{current, alternate} {}
    Key *Current() { return buffers[selector]; }
    Key *Alternate() { return buffers[selector ^ 1]; }
};

struct DeviceRadixSort {
    /* Leaves the result in the other buffer, and the first one spoilt. */
    template <typename Key>
    static cudaError_t SortKeys(void *temporary, size_t &bytes, DoubleBuffer<Key> &keys, int count,
                                int begin_bit, int end_bit, cudaStream_t stream)
    {
        bytes = 1000;
        if (!temporary) return cudaSuccess;
        const Key mask = ((Key)1 << (end_bit - begin_bit)) - 1;
        Key *const from = keys.Current(), *const to = keys.Alternate();
        emulator_enqueue(stream, [=]() {
            std::copy(from, from + count, to);
            std::stable_sort(to, to + count, [=](Key a, Key b) {
                return (a >> begin_bit & mask) < (b >> begin_bit & mask);
            });
            std::fill(from, from + count, ~(Key)0);
        });
        keys.selector ^= 1;
        return cudaSuccess;
    }
};

} // namespace cub

#endif
