// Run-time dispatch: hot functions are compiled once per instruction set, and the loader picks the
// best version for the machine. Sanitizers do not support it.
#pragma once

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define OKFOREST_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define OKFOREST_CLONES
#endif

#define OKFOREST_INLINE inline __attribute__((always_inline))
