/* Fixed steps of a model: the classical Runge-Kutta method, and coordinates back onto constraints.
 *
 * Known before: the type `real`, N_Q coordinates among N_X states, the function
 * model_flow(t, x, u, p, rates), whose last rate is the power, whether the model CAN_OPEN, and if so
 * model_projection(t, x, u, p, q) and CLOSED, the relative change of coordinates that ends
 * Newton's method. Motions that are prescribed in time may switch: N_PLACES numbers change where one
 * does, N_SLOPES where what switches turns back, model_places(t, x, u, p, both) finds them, and
 * model_momentum(t, x, u, p, m) generalized momentum as speeds, then energy. Relative to the time,
 * INWARDS is how far ends of steps are moved inwards there; relative to one and to themselves, speeds
 * jump by more than JUMPED, and coordinates must not by more than TORN. A law may take samples:
 * model_update(t, x, u, p, due, after) gives its memory, the last N_MEMORY states, after those that
 * are due of N_PERIODS, at whole multiples of the sample_periods. Nothing is allocated and nothing
 * is kept.
 */
#ifndef AXODE_FIXED_STEP_H
#define AXODE_FIXED_STEP_H

#define CLOSING_STEPS 50 /* of Newton's method, for start values */
#define LEAP 100 /* of one and of a coordinate: by more no step of use changes it */
#define OPENED ((real)1 / (real)100) /* the same of a projection: of more a step is too long */

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

/* How far ends of a step are moved inwards, with its sign: a switch there belongs to one side. */
static real inwards(real t, real h)
{
#if N_PLACES
    const real a = t < (real)0 ? -t : t, b = t + h < (real)0 ? -t - h : t + h, most = a > b ? a : b;
    return h < (real)0 ? -INWARDS * most : INWARDS * most;
#else
    (void)t, (void)h;
    return 0;
#endif
}

/* One step of Runge and Kutta's classical method; x[N_X] is the work done. */
static void rk4(const real *u, const real *p, real t, real h, const real *x, real *next)
{
    real k1[N_X + 1], k2[N_X + 1], k3[N_X + 1], k4[N_X + 1], y[N_X + 1];
    const real half = h / (real)2, sixth = h / (real)6, off = inwards(t, h);
    const real begin = t + off, middle = t + half, end = t + h - off;
    int i;
    model_flow(&begin, x, u, p, k1);
    for (i = 0; i < N_X; ++i) y[i] = x[i] + half * k1[i];
    model_flow(&middle, y, u, p, k2);
    for (i = 0; i < N_X; ++i) y[i] = x[i] + half * k2[i];
    model_flow(&middle, y, u, p, k3);
    for (i = 0; i < N_X; ++i) y[i] = x[i] + h * k3[i];
    model_flow(&end, y, u, p, k4);
    for (i = 0; i <= N_X; ++i)
        next[i] = x[i] + sixth * (k1[i] + (real)2 * (k2[i] + k3[i]) + k4[i]);
}

static int differs(real a, real b, real share)
{
    const real by = a > b ? a - b : b - a, size = b < (real)0 ? -b : b;
    return by > share * ((real)1 + size);
}

#if N_PLACES
#define N_SIDES (N_PLACES + N_SLOPES)
enum { SAME, TURNED, SWITCHED };

static int difference(const real *a, const real *b)
{
    int i;
    for (i = 0; i < N_SIDES; ++i)
        if (a[i] < b[i] || b[i] < a[i]) return i < N_PLACES ? SWITCHED : TURNED;
    return SAME;
}

/* Find the first time from which on something is switched, after one and up to another.
 *
 * Times at which a place differs are bisected; where only a slope does, the time of its change is
 * tried. Gives whether there is such a time.
 */
static int next_switch(const real *p, real low, real high, real *found)
{
    real from[N_SIDES], at[N_SIDES];
    int any = 0, how, i;
    model_places(&low, 0, 0, p, from);
    for (;;) {
        real left = low, right = high;
        model_places(&high, 0, 0, p, at);
        how = difference(from, at);
        if (how == SAME) return any;
        for (;;) {
            const real middle = left + (right - left) / (real)2;
            if (!((left < middle && middle < right) || (right < middle && middle < left))) break;
            model_places(&middle, 0, 0, p, at);
            if (difference(from, at) < how) left = middle;
            else right = middle;
        }
        model_places(&right, 0, 0, p, at);
        if (difference(from, at) == SWITCHED) {
            *found = right;
            high = left;
            any = 1;
        } else {
            low = right;
            for (i = 0; i < N_SIDES; ++i) from[i] = at[i];
        }
    }
}

/* Let speeds jump with prescribed rates so that momentum stays; gives 3 if a position jumps. */
static int cross_switch(const real *u, const real *p, real t, real off, real *x)
{
    real y[N_X + 1], before[N_X - N_Q + 1], after[N_X - N_Q + 1];
    const real sides[2] = {t - off, t + off};
    int i, jumps = 0;
    for (i = 0; i < N_X; ++i) y[i] = x[i];
    project(u, p, sides[0], y);
    project(u, p, sides[1], x);
    for (i = 0; i < N_Q; ++i)
        if (differs(x[i], y[i], TORN)) return 3;
    model_momentum(sides, x, u, p, before);
    model_momentum(sides + 1, x, u, p, after);
    for (i = N_Q; i < N_X; ++i) {
        if (!differs(before[i - N_Q], after[i - N_Q], JUMPED)) continue;
        x[i] += before[i - N_Q] - after[i - N_Q];
        jumps = 1;
    }
    if (!jumps) return 0;
    model_momentum(sides + 1, x, u, p, after);
    x[N_X] += after[N_X - N_Q] - before[N_X - N_Q];
    return 0;
}
#endif

#if N_PERIODS
/* A time that is not before a sample by rounding alone. */
static real beyond(real t)
{
    const real a = t < (real)0 ? -t : t;
    return t + (real)INWARDS * (a > (real)INWARDS ? a : (real)INWARDS);
}

static real periods_until(real t, int k)
{
    return FLOOR(beyond(t) / sample_periods[k]);
}

/* Find the first sample after one time and up to another; gives whether there is one.
 *
 * They are counted at both ends, so that rounding of times neither loses nor repeats one.
 */
static int next_sample(real t, real end, real *found)
{
    int k, any = 0;
    for (k = 0; k < N_PERIODS; ++k) {
        const real before = periods_until(t, k), next = sample_periods[k] * (before + (real)1);
        const real at = next > end ? end : next;
        if (!(before < periods_until(end, k))) continue;
        if (!any || at < *found) *found = at;
        any = 1;
    }
    return any;
}

/* Let the law take samples: those after one time and up to another, or all where they are one. */
static void take_samples(const real *u, const real *p, real since, real t, const char *only,
                         real *x)
{
    const real now = beyond(t);
    real due[N_PERIODS], after[N_MEMORY];
    int k;
    for (k = 0; k < N_PERIODS; ++k)
        due[k] = since < t ? (real)(periods_until(since, k) < periods_until(t, k)) : (real)1;
    model_update(&now, x, u, p, due, after);
    for (k = 0; k < N_MEMORY; ++k)
        if (!only || only[k]) x[N_X - N_MEMORY + k] = after[k];
}
#endif

#if N_PLACES || N_PERIODS
enum { END, SWITCH = 1, SAMPLE = 2 };

/* Find where a step has to stop first, and why: at a switch, at a sample, or at both. */
static int next_stop(const real *p, real t, real end, real *stop)
{
    int why = END;
#if N_PLACES
    const real off = inwards(t, end - t);
    if (next_switch(p, t + off, end + off, stop)) why = SWITCH;
#else
    (void)p;
#endif
#if N_PERIODS
    {
        real sample = end;
        if (next_sample(t, why ? *stop : end, &sample)) {
            if (why && !(*stop > beyond(sample))) return SWITCH | SAMPLE;
            *stop = sample;
            why = SAMPLE;
        }
    }
#endif
    return why;
}
#endif

/* Whether the state is not finite, or no step of use leads to it from some coordinates. */
static int leaps(const real *x, const real *first)
{
    int i;
    for (i = 0; i < N_Q; ++i)
        if (differs(x[i], first[i], (real)LEAP)) return 1;
    return !is_finite(x, N_X);
}

/* Make a step that is divided where the motion switches and where a law takes samples.
 *
 * Gives 3 if a prescribed position jumps, 1 if the motion is not finite or leaps: near a singular
 * pose it may be any numbers.
 */
static int divided_step(const real *u, const real *p, real t, real h, real *x)
{
    real first[N_Q + 1]; /* no array is empty */
    int i;
#if N_PLACES || N_PERIODS
    const real end = t + h;
    real stop = end;
    int why;
#endif
    for (i = 0; i < N_Q; ++i) first[i] = x[i];
#if N_PLACES || N_PERIODS
    while ((why = next_stop(p, t, end, &stop)) != END) {
        rk4(u, p, t, stop - t, x, x);
#if N_PLACES
        if ((why & SWITCH) && cross_switch(u, p, stop, inwards(t, end - t), x)) return 3;
#endif
#if N_PERIODS
        if (why & SAMPLE) {
            if (!(project(u, p, stop, x) <= OPENED)) return 1;
            take_samples(u, p, t, stop, 0, x);
        }
#endif
        t = stop;
        if (!((end - t) * h > (real)0)) return leaps(x, first);
        h = end - t;
    }
#endif
    rk4(u, p, t, h, x, x);
    if (!(project(u, p, t + h, x) <= OPENED)) return 1;
    return leaps(x, first);
}

#endif
