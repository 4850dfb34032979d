/*
 * Functions compiled once per instruction set, by target_clones of gcc and clang. The best clone for the processor is
 * chosen when the program starts. Only for leaf functions: loops and arithmetic, no OpenMP.
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
 * No clones under the thread sanitizer: the choice among them runs before the sanitizer is ready. No clones in fuzz
 * builds (SPILLWAY_FUZZ): clang 14 cannot link clones whose coverage is counted.
 */
#if defined(__x86_64__) && !defined(CLONES_OFF) && !defined(SPILLWAY_FUZZ)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES __attribute__((noinline))
#endif

/* Marks functions that are inlined into each clone. */
#define CLONES_PART static inline __attribute__((always_inline))

#endif
