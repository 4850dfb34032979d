/*
 * Functions compiled once per instruction set, the best for this processor chosen when the program
 * starts: gcc's and clang's target_clones. For leaves: loops and arithmetic, no OpenMP.
 */
#ifndef SPILLWAY_BASE_CLONES_H
#define SPILLWAY_BASE_CLONES_H

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CLONES_OFF
#endif
#elif defined(__SANITIZE_THREAD__)
#define CLONES_OFF
#endif

/*
 * The choice among clones runs before the thread sanitizer is ready for it, and clang 14 links no clones whose
 * coverage is counted (SPILLWAY_FUZZ).
 */
#if defined(__x86_64__) && !defined(CLONES_OFF) && !defined(SPILLWAY_FUZZ)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES __attribute__((noinline))
#endif

/* For what leaves are made of: becomes part of each clone. */
#define CLONES_PART static inline __attribute__((always_inline))

#endif
