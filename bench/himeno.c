// An iteration of Himeno's benchmark as a plain triple loop, with two arrays of the pressure that change places instead of
// the copy of the original; the sum of the squares of the residuals is the result.

#include <stddef.h>

double himeno_step(size_t n, int threads, const double *scalars, void *const *fields) {
    const float omega = (float)scalars[0];
    const float *restrict p = fields[0];
    const float *restrict a0 = fields[1], *restrict a1 = fields[2], *restrict a2 = fields[3], *restrict a3 = fields[4];
    const float *restrict b0 = fields[5], *restrict b1 = fields[6], *restrict b2 = fields[7];
    const float *restrict c0 = fields[8], *restrict c1 = fields[9], *restrict c2 = fields[10];
    const float *restrict bnd = fields[11], *restrict wrk = fields[12];
    float *restrict next = fields[13];
    const size_t m = n * n;
    double gosa = 0.0;
    #pragma omp parallel for schedule(static) num_threads(threads) reduction(+ : gosa)
    for (size_t z = 1; z < n - 1; z++)
        for (size_t y = 1; y < n - 1; y++) {
            #pragma omp simd reduction(+ : gosa)
            for (size_t x = 1; x < n - 1; x++) {
                const size_t c = (z * n + y) * n + x;
                const float s0 = a0[c] * p[c + m] + a1[c] * p[c + n] + a2[c] * p[c + 1] +
                                 b0[c] * (p[c + m + n] - p[c + m - n] - p[c - m + n] + p[c - m - n]) +
                                 b1[c] * (p[c + n + 1] - p[c + n - 1] - p[c - n + 1] + p[c - n - 1]) +
                                 b2[c] * (p[c + m + 1] - p[c + m - 1] - p[c - m + 1] + p[c - m - 1]) +
                                 c0[c] * p[c - m] + c1[c] * p[c - n] + c2[c] * p[c - 1] + wrk[c];
                const float ss = (s0 * a3[c] - p[c]) * bnd[c];
                gosa += (double)(ss * ss);
                next[c] = p[c] + omega * ss;
            }
        }
    return gosa;
}
