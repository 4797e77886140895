// The heat step as a plain triple loop over arrays of n * n * n values: what polyhalo is compared with.

#include <stddef.h>

// One step, from u to next; the boundary keeps its values. Without the second pragma gcc doesn't vectorise the loop: that
// the arrays lie apart is forgotten in the function that each thread runs.
double heat_step(size_t n, int threads, const double *scalars, void *const *fields) {
    const double beta = scalars[0];
    const double *restrict u = fields[0], *restrict f = fields[1], *restrict kappa = fields[2];
    double *restrict next = fields[3];
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
    return 0.0;
}
