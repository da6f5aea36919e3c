/* Fixed steps of a model: the classical Runge-Kutta method, and coordinates back onto constraints.
 *
 * Known before: the type `real`, N_Q coordinates among N_X states, the function
 * model_flow(t, x, u, p, rates), whose last rate is the power, whether the model CAN_OPEN, and if so
 * model_projection(t, x, u, p, q) and CLOSED, the relative change of coordinates that ends
 * Newton's method. Nothing is allocated and nothing is kept.
 */
#ifndef AXODE_FIXED_STEP_H
#define AXODE_FIXED_STEP_H

#define CLOSING_STEPS 50 /* of Newton's method, for start values */

static int is_finite(const real *x, int size)
{
    const real zero = 0;
    real sum = 0;
    int i;
    for (i = 0; i < size; ++i) sum += zero * x[i];
    return sum == zero;
}

/* Bring coordinates back onto the constraints by one step; gives the largest change. */
static real project(const real *u, const real *p, real t, real *x)
{
    real largest = 0;
#if CAN_OPEN
    real q[N_Q];
    int i;
    model_projection(&t, x, u, p, q);
    for (i = 0; i < N_Q; ++i) {
        const real by = q[i] > x[i] ? q[i] - x[i] : x[i] - q[i];
        const real change = by / ((real)1 + (q[i] < (real)0 ? -q[i] : q[i]));
        if (!(change <= largest)) largest = change;
    }
    for (i = 0; i < N_Q; ++i) x[i] = q[i];
#else
    (void)u, (void)p, (void)t, (void)x;
#endif
    return largest;
}

#if CAN_OPEN
/* Close the loops near given coordinates; gives whether Newton's method has ended. */
static int close_loops(const real *u, const real *p, real t, real *x)
{
    int k;
    for (k = 0; k < CLOSING_STEPS; ++k)
        if (project(u, p, t, x) <= (real)CLOSED) return 1;
    return 0;
}
#endif

/* One step of Runge and Kutta's classical method; x[N_X] is the work done. */
static void rk4(const real *u, const real *p, real t, real h, const real *x, real *next)
{
    real k1[N_X + 1], k2[N_X + 1], k3[N_X + 1], k4[N_X + 1], y[N_X + 1];
    const real half = h / (real)2, sixth = h / (real)6, middle = t + half, end = t + h;
    int i;
    model_flow(&t, x, u, p, k1);
    for (i = 0; i < N_X; ++i) y[i] = x[i] + half * k1[i];
    model_flow(&middle, y, u, p, k2);
    for (i = 0; i < N_X; ++i) y[i] = x[i] + half * k2[i];
    model_flow(&middle, y, u, p, k3);
    for (i = 0; i < N_X; ++i) y[i] = x[i] + h * k3[i];
    model_flow(&end, y, u, p, k4);
    for (i = 0; i <= N_X; ++i)
        next[i] = x[i] + sixth * (k1[i] + (real)2 * (k2[i] + k3[i]) + k4[i]);
}

#endif
