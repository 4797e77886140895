// A step of elastic waves on a staggered grid as two plain triple loops: velocities from stresses, then stresses from the
// new velocities, all in place.

#include <stddef.h>

// The derivatives half a cell further along the axis with stride e, and half a cell back.
#define FORWARD(a, e) (9.0 / 8.0 * (a[c + (e)] - a[c]) - 1.0 / 24.0 * (a[c + 2 * (e)] - a[c - (e)]))
#define BACKWARD(a, e) (9.0 / 8.0 * (a[c] - a[c - (e)]) - 1.0 / 24.0 * (a[c + (e)] - a[c - 2 * (e)]))
// The reciprocal density half a cell further along e, and the shear modulus half a cell further along d and e.
#define LIGHT(e) (2.0 / (rho[c] + rho[c + (e)]))
#define SHEAR(d, e) (4.0 / (1.0 / mu[c] + 1.0 / mu[c + (d)] + 1.0 / mu[c + (e)] + 1.0 / mu[c + (d) + (e)]))

double elastic_step(size_t n, int threads, const double *scalars, void *const *fields) {
    const double dt = scalars[0];
    double *restrict vx = fields[0], *restrict vy = fields[1], *restrict vz = fields[2];
    double *restrict xx = fields[3], *restrict yy = fields[4], *restrict zz = fields[5];
    double *restrict xy = fields[6], *restrict xz = fields[7], *restrict yz = fields[8];
    const double *restrict lambda = fields[9], *restrict mu = fields[10], *restrict rho = fields[11];
    const size_t m = n * n;
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t z = 2; z < n - 2; z++)
        for (size_t y = 2; y < n - 2; y++) {
            #pragma omp simd
            for (size_t x = 2; x < n - 2; x++) {
                const size_t c = (z * n + y) * n + x;
                vx[c] += dt * LIGHT(1) * (FORWARD(xx, 1) + BACKWARD(xy, n) + BACKWARD(xz, m));
                vy[c] += dt * LIGHT(n) * (BACKWARD(xy, 1) + FORWARD(yy, n) + BACKWARD(yz, m));
                vz[c] += dt * LIGHT(m) * (BACKWARD(xz, 1) + BACKWARD(yz, n) + FORWARD(zz, m));
            }
        }
    #pragma omp parallel for schedule(static) num_threads(threads)
    for (size_t z = 2; z < n - 2; z++)
        for (size_t y = 2; y < n - 2; y++) {
            #pragma omp simd
            for (size_t x = 2; x < n - 2; x++) {
                const size_t c = (z * n + y) * n + x;
                const double exx = BACKWARD(vx, 1), eyy = BACKWARD(vy, n), ezz = BACKWARD(vz, m);
                const double trace = lambda[c] * (exx + eyy + ezz);
                xx[c] += dt * (trace + 2.0 * mu[c] * exx);
                yy[c] += dt * (trace + 2.0 * mu[c] * eyy);
                zz[c] += dt * (trace + 2.0 * mu[c] * ezz);
                xy[c] += dt * SHEAR(1, n) * (FORWARD(vx, n) + FORWARD(vy, 1));
                xz[c] += dt * SHEAR(1, m) * (FORWARD(vx, m) + FORWARD(vz, 1));
                yz[c] += dt * SHEAR(n, m) * (FORWARD(vy, m) + FORWARD(vz, n));
            }
        }
    return 0.0;
}
