// What the plain loops need besides themselves: memory, and values in it.

#define _DEFAULT_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

// Memory that nothing has touched, in huge pages where the system has them; NULL without room.
void *plain_memory(size_t bytes) {
    const size_t huge = (size_t)2 << 20;
    const size_t whole = (bytes + huge - 1) / huge * huge;
    void *memory = aligned_alloc(huge, whole);
    if (memory) madvise(memory, whole, MADV_HUGEPAGE);
    return memory;
}

void plain_free(void *memory) {
    free(memory);
}

// Copies so many planes; each thread touches the planes that it will compute.
void plain_fill(size_t planes, size_t plane_bytes, int threads, char *restrict to, const char *restrict from) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t z = 0; z < planes; z++) memcpy(to + z * plane_bytes, from + z * plane_bytes, plane_bytes);
}
