/* The larger and the smaller of two numbers. */
#ifndef SPILLWAY_BASE_EXTREME_H
#define SPILLWAY_BASE_EXTREME_H

#include <stdint.h>

static inline uint32_t max_u32(uint32_t a, uint32_t b) { return a > b ? a : b; }
static inline uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }
static inline uint64_t max_u64(uint64_t a, uint64_t b) { return a > b ? a : b; }
static inline uint64_t min_u64(uint64_t a, uint64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int32_t max_i32(int32_t a, int32_t b) { return a > b ? a : b; }

/* For seconds, which are never NaN: faster than fmax() and fmin(), which check for NaN. */
static inline double max_s(double a, double b) { return a > b ? a : b; }
static inline double min_s(double a, double b) { return a < b ? a : b; }

#endif
