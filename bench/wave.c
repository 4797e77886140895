// A step of the acoustic wave equation, of 8th order in space, as a plain triple loop: the values two steps after `old` take
// their place.

#include <stddef.h>

double wave_step(size_t n, int threads, const double *scalars, void *const *fields) {
    (void)scalars;
    const float *restrict p = fields[0], *restrict v = fields[2];
    float *restrict old = fields[1];
    const float *restrict sponge_x = fields[3], *restrict sponge_y = fields[4], *restrict sponge_z = fields[5];
    const float c0 = 3.0f * (-205.0f / 72.0f);
    const float c1 = 8.0f / 5.0f, c2 = -1.0f / 5.0f, c3 = 8.0f / 315.0f, c4 = -1.0f / 560.0f;
    const size_t m = n * n;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t z = 4; z < n - 4; z++)
        for (size_t y = 4; y < n - 4; y++) {
            #pragma omp simd
            for (size_t x = 4; x < n - 4; x++) {
                const size_t c = (z * n + y) * n + x;
                float sum = c0 * p[c];
                sum += c1 * (p[c + 1] + p[c - 1] + p[c + n] + p[c - n] + p[c + m] + p[c - m]);
                sum += c2 * (p[c + 2] + p[c - 2] + p[c + 2 * n] + p[c - 2 * n] + p[c + 2 * m] + p[c - 2 * m]);
                sum += c3 * (p[c + 3] + p[c - 3] + p[c + 3 * n] + p[c - 3 * n] + p[c + 3 * m] + p[c - 3 * m]);
                sum += c4 * (p[c + 4] + p[c - 4] + p[c + 4 * n] + p[c - 4 * n] + p[c + 4 * m] + p[c - 4 * m]);
                old[c] = (2.0f * p[c] - old[c] + v[c] * sum) * (sponge_x[x] * sponge_y[y] * sponge_z[z]);
            }
        }
    return 0.0;
}
