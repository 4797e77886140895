// The heat step as a plain triple loop over arrays of n * n * n values: what polyhalo is compared with.

#define _DEFAULT_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

// Memory for `count` values that nothing has touched, in huge pages where the system has them; NULL without room.
double *heat_array(size_t count) {
    const size_t huge = (size_t)2 << 20;
    const size_t bytes = (count * sizeof(double) + huge - 1) / huge * huge;
    double *array = aligned_alloc(huge, bytes);
    if (array) madvise(array, bytes, MADV_HUGEPAGE);
    return array;
}

void heat_free(double *array) {
    free(array);
}

// Copies n planes of `plane` values; each thread touches the planes that it will compute.
void heat_fill(size_t n, size_t plane, int threads, double *restrict to, const double *restrict from) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t z = 0; z < n; z++)
        for (size_t i = z * plane; i < (z + 1) * plane; i++) to[i] = from[i];
}

// One step, from u to next; the boundary keeps its values. Without the second pragma gcc doesn't vectorise the loop: that
// the arrays lie apart is forgotten in the function that each thread runs.
void heat_step(size_t n, int threads, double beta, const double *restrict u, const double *restrict f,
               const double *restrict kappa, double *restrict next) {
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t z = 1; z < n - 1; z++)
        for (size_t y = 1; y < n - 1; y++) {
            #pragma omp simd
            for (size_t x = 1; x < n - 1; x++) {
                const size_t c = (z * n + y) * n + x;
                next[c] = u[c] + f[c] +
                          beta * ((kappa[c + 1] + kappa[c]) * (u[c + 1] - u[c]) +
                                  (kappa[c - 1] + kappa[c]) * (u[c - 1] - u[c]) +
                                  (kappa[c + n] + kappa[c]) * (u[c + n] - u[c]) +
                                  (kappa[c - n] + kappa[c]) * (u[c - n] - u[c]) +
                                  (kappa[c + n * n] + kappa[c]) * (u[c + n * n] - u[c]) +
                                  (kappa[c - n * n] + kappa[c]) * (u[c - n * n] - u[c]));
            }
        }
}
