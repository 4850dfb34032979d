/* Orders of numbers for qsort() and bsearch(). Doubles must not be NaN. */
#ifndef SPILLWAY_BASE_ORDER_H
#define SPILLWAY_BASE_ORDER_H

#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

int order_u32(const void *a, const void *b);
int order_u64(const void *a, const void *b);
int order_i64(const void *a, const void *b);
int order_double(const void *a, const void *b);
int order_u64_descending(const void *a, const void *b);

#endif
