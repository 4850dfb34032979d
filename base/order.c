#include "base/order.h"

#include <stdint.h>

int order_u32(const void *a, const void *b) { return ORDER(*(const uint32_t *)a, *(const uint32_t *)b); }
int order_u64(const void *a, const void *b) { return ORDER(*(const uint64_t *)a, *(const uint64_t *)b); }
int order_i64(const void *a, const void *b) { return ORDER(*(const int64_t *)a, *(const int64_t *)b); }
int order_double(const void *a, const void *b) { return ORDER(*(const double *)a, *(const double *)b); }
int order_u64_descending(const void *a, const void *b) { return order_u64(b, a); }
