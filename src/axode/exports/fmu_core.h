/* What FMUs of Axode compute, whichever version of FMI asks for it.
 *
 * All numbers of an instance lie in one array, and a value reference is a place in it:
 *
 *     time | states x | inputs u | parameters p | internal step
 *          | derivatives of x | outputs y | event indicators z
 *
 * "settings.h" has the sizes and the start values of the model, "model.h" its functions. Nothing
 * is allocated here. Statuses are the numbers that FMI 2 and FMI 3 share.
 */
#ifndef AXODE_FMU_CORE_H
#define AXODE_FMU_CORE_H

#include "settings.h"
#include "model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef double real;
#define FLOOR floor
#define CLOSED 1e-13  /* change of coordinates by which Newton's method has ended */
#define INWARDS 1e-15 /* these are relative too, see fixed_step.h */
#define JUMPED 1e-12
#define TORN 1e-9
#include "fixed_step.h"

enum { OK = 0, DISCARD = 2, ERROR = 3 };
enum { INSTANTIATED, INITIALIZING, RUNNING, TERMINATED };
enum {
    TIME = 0,
    X = 1,
    U = X + N_X,
    P = U + N_U,
    STEP = P + N_P,
    DER = STEP + 1,
    Y = DER + N_X,
    BALANCE = Y + N_Y - 1, /* error of the energy, the last output of an audited model */
    Z = Y + N_Y,
    N_VALUES = Z + N_INDICATORS
};

#define CLOSURE 1e-9        /* residual of a closed loop, by the mechanism's length */
#define MAX_DRIFT 1e-7      /* of loops in model exchange, before states are corrected */
#define FOLLOWS 1e-5        /* of its terms: more, and a row that was left out is missed */
#define AHEAD 1000          /* internal steps in which switches are looked for in model exchange */
#define MAX_STEPS 1e9       /* internal steps of one communication step */

/* Everything that changes: the state of the FMU as its environment saves it. */
typedef struct {
    double v[N_VALUES];
    double signs[N_PIVOTS + 1];
    double due;     /* energy at the start and the work since, in co-simulation */
    double since;   /* last event, in model exchange */
    double until;   /* time of the next switch of prescribed motions, or until when there is none */
    double asked[N_MEMORY + 1]; /* what a law remembers before its first samples */
    double sampled; /* time up to which it took samples, in model exchange */
    int switches;   /* whether there is one */
    int phase;
    int open;       /* whether start values are not closed yet */
    int fresh_der;  /* whether derivatives belong to the other numbers */
    int fresh_y;    /* whether outputs do */
    int fresh_z;    /* whether event indicators do */
    int ended;      /* whether no step can follow */
} Numbers;

typedef struct {
    Numbers n;
    int cosimulation;
    const char *message; /* of the last failure */
    void *environment;
    void *logger;
    void (*release)(void *);
    void *(*reserve)(size_t, size_t);
    char name[64];
} Instance;
typedef unsigned int Reference;

#if defined _WIN32
#define EXPORT __declspec(dllexport)
#elif defined __GNUC__
#define EXPORT __attribute__((visibility("default")))
#else
#define EXPORT
#endif

/* In programs that hold the sources of several FMUs the names begin with the model's. */
#ifdef FUNCTION_PREFIX
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define F(name) JOIN(FUNCTION_PREFIX, name)
#else
#define F(name) name
#endif

#define TORN_APART "a prescribed position jumps; let it move there within some time"

static int report(Instance *c, int status); /* to the environment's logger, as each version does */

static int fail(Instance *c, int status, const char *message)
{
    c->message = message;
    return status;
}

static int unsupported(Instance *c, size_t count)
{
    return count == 0 ? OK : report(c, fail(c, ERROR, "the model has no such variables"));
}

static void touch(Instance *c)
{
    c->n.fresh_der = c->n.fresh_y = c->n.fresh_z = 0;
    if (c->n.phase <= INITIALIZING) c->n.open = 1;
}

static void restart(Instance *c)
{
    memset(&c->n, 0, sizeof c->n);
    memcpy(c->n.v, start_values, sizeof start_values);
    memcpy(c->n.asked, c->n.v + U - N_MEMORY, N_MEMORY * sizeof *c->n.asked);
    touch(c);
}

/* Parameters that no mechanism can have are refused, as in `simulate`. */
static int check_parameters(Instance *c)
{
#if N_CHECKS
    double faults[N_CHECKS];
    int i;
    model_parameter_faults(c->n.v + P, faults);
    for (i = 0; i < N_CHECKS; ++i)
        if (faults[i] != 0.0) return fail(c, ERROR, check_texts[i]);
#else
    (void)c;
#endif
    return OK;
}

/* Close the loops near the start values. */
static int close_start(Instance *c)
{
    double *v = c->n.v;
    if (!c->n.open) return OK;
    if (check_parameters(c) != OK) return ERROR;
#if CAN_OPEN
    close_loops(v + U, v + P, v[TIME], v + X);
#endif
#if N_RESIDUAL || N_DROPPED
    {
        double off[N_RESIDUAL + N_DROPPED];
        int i;
        model_residual(v + TIME, v + X, v + U, v + P, off);
        for (i = 0; i < N_RESIDUAL + N_DROPPED; ++i) {
            if (i < N_RESIDUAL && !(fabs(off[i]) <= CLOSURE))
                return fail(c, ERROR, "the start values and parameters do not close the loops; "
                                      "start nearer to a configuration that is closed");
            if (i >= N_RESIDUAL && !(fabs(off[i]) <= FOLLOWS))
                return fail(c, ERROR, "at these parameters constraints hold that the model left "
                                      "out; derive the mechanism with them as defaults");
        }
    }
#endif
#if N_PERIODS
    {
        char only[N_MEMORY]; /* values that were set stay */
        int i;
        for (i = 0; i < N_MEMORY; ++i) {
            v[U - N_MEMORY + i] = c->n.asked[i];
            only[i] = fresh_memory[i] && c->n.asked[i] == start_values[U - N_MEMORY + i];
        }
        take_samples(v + U, v + P, v[TIME], v[TIME], only, v + X);
    }
#endif
    c->n.open = 0;
    return OK;
}

/* Remember on which side of a singularity each pivot is, or see whether it has changed. */
static int watch_pivots(Instance *c, const double *x, double t, int first)
{
#if N_PIVOTS
    double pivots[N_PIVOTS];
    int i;
    model_pivots(&t, x, c->n.v + U, c->n.v + P, pivots);
    for (i = 0; i < N_PIVOTS; ++i) {
        if (first) c->n.signs[i] = pivots[i] < 0.0 ? -1.0 : 1.0;
        if (!(pivots[i] * c->n.signs[i] > 1e-12)) {
            c->n.ended = 1;
            return fail(c, DISCARD, "the independent speeds do not determine the others beyond "
                                    "this configuration; derive the mechanism with others");
        }
    }
#else
    (void)c;
    (void)x;
    (void)t;
    (void)first;
#endif
    return OK;
}

/* How near to a switch of the motion a time is that switch, in model exchange. */
static double near_switch(const Instance *c)
{
    return c->cosimulation ? 0.0 : inwards(c->n.v[TIME], c->n.v[STEP]);
}

/* The time, next to a switch on the side from which the environment comes to it. */
static double time_inside(const Instance *c)
{
    const double t = c->n.v[TIME], off = near_switch(c);
    if (fabs(t - c->n.since) < off) return c->n.since + off;
    return fabs(t - c->n.until) < off ? c->n.until - off : t;
}

/* Find when prescribed motions switch next, in model exchange. */
static void look_ahead(Instance *c)
{
#if N_PLACES
    const double t = c->n.v[TIME], h = c->n.v[STEP], off = near_switch(c);
    int k;
    c->n.since = t;
    c->n.switches = 0;
    for (k = 0; k < AHEAD && !c->n.switches; ++k) {
        const double end = c->n.until = t + (k + 1) * h;
        c->n.switches = next_switch(c->n.v + P, t + k * h + off, end + off, &c->n.until);
    }
#else
    (void)c;
#endif
}

static void compute_outputs(Instance *c)
{
    double *v = c->n.v;
    const double t = time_inside(c);
    model_outputs(&t, v + X, v + U, v + P, v + Y);
#if AUDITED
    v[BALANCE] = c->cosimulation ? v[BALANCE] - c->n.due : 0.0;
#endif
    c->n.fresh_y = 1;
}

/* Let the error of the energy be what it was, or zero, at the present numbers. */
static void count_energy(Instance *c, double error)
{
#if AUDITED
    compute_outputs(c);
    c->n.due += c->n.v[BALANCE] - error;
    c->n.fresh_y = 0;
#else
    (void)c;
    (void)error;
#endif
}

static int finish_start(Instance *c)
{
    const int status = close_start(c);
    if (status != OK) return status;
    c->n.phase = RUNNING;
    c->n.sampled = c->n.v[TIME];
    if (!c->cosimulation) look_ahead(c);
    count_energy(c, 0.0);
    return watch_pivots(c, c->n.v + X, c->n.v[TIME], 1) == OK ? OK : ERROR;
}

static int get_values(Instance *c, const unsigned int *references, size_t count, double *values)
{
    double *v = c->n.v;
    size_t k;
    int status = close_start(c);
    if (status != OK) return status;
    for (k = 0; k < count; ++k) {
        const unsigned int place = references[k];
        if (place >= N_VALUES) return fail(c, ERROR, "there is no variable of this reference");
        if (place >= Z && !c->n.fresh_z) {
#if N_INDICATORS
            model_indicators(v + TIME, v + X, v + U, v + P, v + Z);
#endif
            c->n.fresh_z = 1;
        } else if (place >= Y && place < Z && !c->n.fresh_y) {
            compute_outputs(c);
        } else if (place >= DER && place < Y && !c->n.fresh_der) {
            const double t = time_inside(c);
            double rates[N_X + 1];
            model_flow(&t, v + X, v + U, v + P, rates);
            memcpy(v + DER, rates, N_X * sizeof *rates);
            c->n.fresh_der = 1;
        }
        values[k] = v[place];
    }
    return OK;
}

static int set_values(Instance *c, const unsigned int *references, size_t count,
                      const double *values)
{
    double before[N_P + 1], error = 0.0;
    const int running = c->n.phase >= RUNNING;
    int changes = 0;
    size_t k;
    memcpy(before, c->n.v + P, N_P * sizeof *before);
    for (k = 0; k < count; ++k) changes |= running && references[k] >= P && references[k] < STEP;
#if AUDITED
    if (changes) {
        compute_outputs(c);
        error = c->n.v[BALANCE];
    }
#endif
    for (k = 0; k < count; ++k) {
        const unsigned int place = references[k];
        const int state = place >= X && place < U, parameter = place >= P && place < STEP;
        if (place == TIME || place >= DER)
            return fail(c, ERROR, "this variable is computed and cannot be set");
        if (c->n.phase >= RUNNING && ((state && c->cosimulation) ||
                                      (parameter && fixed_parameters[place - P])))
            return fail(c, ERROR, "this variable can be set until initialization ends");
        if (!is_finite(values + k, 1)) return fail(c, ERROR, "a value is not finite");
        if (place == STEP && !(values[k] > 0.0))
            return fail(c, ERROR, "the internal step must be positive");
        c->n.v[place] = values[k];
        if (place >= U - N_MEMORY && place < U) c->n.asked[place - (U - N_MEMORY)] = values[k];
    }
    touch(c);
    if (changes && check_parameters(c) != OK) {
        memcpy(c->n.v + P, before, N_P * sizeof *before);
        return ERROR;
    }
    if (changes) count_energy(c, error);
    return OK;
}

static int get_rates(Instance *c, double *rates, size_t size)
{
    static const unsigned int first = DER;
    int status;
    if (size != N_X) return fail(c, ERROR, "the number of states is another");
    if (size == 0) return OK;
    status = get_values(c, &first, 1, rates); /* all of them become fresh */
    memcpy(rates, c->n.v + DER, N_X * sizeof *rates);
    return status == OK && !is_finite(rates, N_X)
               ? fail(c, DISCARD, "the derivatives are not finite in this state")
               : status;
}

static int get_states(Instance *c, double *x, size_t size)
{
    const int status = close_start(c);
    if (size != N_X) return fail(c, ERROR, "the number of states is another");
    memcpy(x, c->n.v + X, N_X * sizeof *x);
    return status;
}

static int set_states(Instance *c, const double *x, size_t size)
{
    if (size != N_X) return fail(c, ERROR, "the number of states is another");
    memcpy(c->n.v + X, x, N_X * sizeof *x);
    touch(c);
    return OK;
}

static int get_indicators(Instance *c, double *indicators, size_t size)
{
    unsigned int places[N_INDICATORS + 1];
    size_t k;
    if (size != N_INDICATORS) return fail(c, ERROR, "the number of event indicators is another");
    for (k = 0; k < size; ++k) places[k] = (unsigned int)(Z + k);
    return get_values(c, places, size, indicators);
}

/* After a step of the environment's integrator: whether states must be corrected, or all ends. */
static void after_step(Instance *c, int *correct, int *ends)
{
    double x[N_X + 1];
    memcpy(x, c->n.v + X, N_X * sizeof *x);
    *correct = project(c->n.v + U, c->n.v + P, c->n.v[TIME], x) > MAX_DRIFT;
    *ends = watch_pivots(c, c->n.v + X, c->n.v[TIME], 0) != OK;
}

/* At an event: correct the states if loops have drifted apart; gives whether they changed. */
static int at_event(Instance *c, int *ends)
{
    int correct, jumps = 0;
#if N_PLACES
    const double off = near_switch(c);
    double x[N_X + 1];
    memcpy(x, c->n.v + X, N_X * sizeof *x);
    x[N_X] = 0.0;
    if (c->n.switches && fabs(c->n.v[TIME] - c->n.until) < off) {
        if (cross_switch(c->n.v + U, c->n.v + P, c->n.until, off, x)) {
            c->n.ended = *ends = 1;
            report(c, fail(c, ERROR, TORN_APART));
            return 0;
        }
        jumps = memcmp(x, c->n.v + X, N_X * sizeof *x) != 0;
        memcpy(c->n.v + X, x, N_X * sizeof *x);
    }
    look_ahead(c);
#endif
    after_step(c, &correct, ends);
#if CAN_OPEN
    if (correct) close_loops(c->n.v + U, c->n.v + P, c->n.v[TIME], c->n.v + X);
#endif
#if N_PERIODS
    {
        double found;
        if (next_sample(c->n.sampled, c->n.v[TIME], &found)) {
            take_samples(c->n.v + U, c->n.v + P, c->n.sampled, c->n.v[TIME], 0, c->n.v + X);
            jumps = 1;
        }
        c->n.sampled = c->n.v[TIME];
    }
#endif
    touch(c);
    return correct || jumps;
}

/* Find when the next event is that time alone brings, in model exchange; gives whether there is one.
 */
static int next_time_event(const Instance *c, double *time)
{
    int any = N_PLACES > 0;
    *time = c->n.until;
#if N_PERIODS
    {
        int k;
        for (k = 0; k < N_PERIODS; ++k) {
            const double at = sample_periods[k] * (periods_until(c->n.v[TIME], k) + 1.0);
            if (!any || at < *time) *time = at;
            any = 1;
        }
    }
#endif
    return any;
}

/* Changes of unknowns for changes of knowns, by forward derivatives of the model's functions. */
static int differentiate(Instance *c, const unsigned int *unknowns, size_t n_unknowns,
                         const unsigned int *knowns, size_t n_knowns, const double *seed,
                         double *changes)
{
    double d[N_VALUES];
    const double *v = c->n.v, t = time_inside(c);
    int rates = 0, outputs = 0;
    size_t k;
    const int status = close_start(c);
    if (status != OK) return status;
    memset(d, 0, sizeof d);
    for (k = 0; k < n_knowns; ++k) {
        if (knowns[k] >= STEP) return fail(c, ERROR, "a known is no state, input or parameter");
        d[knowns[k]] += seed[k];
    }
    for (k = 0; k < n_unknowns; ++k) {
        if (unknowns[k] >= Z) return fail(c, ERROR, "an unknown is no derivative and no output");
        outputs |= unknowns[k] >= Y;
        rates |= unknowns[k] >= DER && unknowns[k] < Y;
    }
    if (rates)
        model_rate_along(&t, v + X, v + U, v + P, d + TIME, d + X, d + U, d + P, d + DER);
    if (outputs)
        model_outputs_along(&t, v + X, v + U, v + P, d + TIME, d + X, d + U, d + P, d + Y);
#if AUDITED
    if (!c->cosimulation) d[BALANCE] = 0.0;
#endif
    for (k = 0; k < n_unknowns; ++k) changes[k] = d[unknowns[k]];
    return OK;
}

/* A communication step: equal steps, none longer than the internal step; a failed one is undone. */
static int advance(Instance *c, double t, double h)
{
    const double *u = c->n.v + U, *p = c->n.v + P;
    double x[N_X + 1], count = ceil(h / c->n.v[STEP] - 1e-9), k;
    int status = OK;
    if (c->n.phase != RUNNING || c->n.ended)
        return fail(c, ERROR, "steps follow initialization and end where the model does");
    if (!(h >= 0.0 && is_finite(&t, 1) && count <= MAX_STEPS))
        return fail(c, ERROR, "this step is negative, not finite, or more than 1e9 internal steps");
    if (!(count >= 1.0)) count = 1.0;
    memcpy(x, c->n.v + X, N_X * sizeof *x);
    x[N_X] = 0.0;
    for (k = 0.0; k < count && status == OK; k += 1.0) {
        const double end = t + (k + 1.0) * (h / count);
        const int found = divided_step(u, p, t + k * (h / count), h / count, x);
        if (found == 3)
            status = fail(c, ERROR, TORN_APART);
        else if (found)
            status = fail(c, DISCARD, "the motion is not finite; take shorter internal steps");
        else
            status = watch_pivots(c, x, end, 0);
    }
    if (status != OK) return status;
    memcpy(c->n.v + X, x, N_X * sizeof *x);
    c->n.due += x[N_X];
    c->n.v[TIME] = t + h;
    touch(c);
    return OK;
}

/* States of the FMU, as its environment saves them. */
static int save_state(Instance *c, const void *numbers, void **state)
{
    if (!*state) *state = c->reserve(1, sizeof c->n);
    if (!*state) return report(c, fail(c, ERROR, "there is no memory for a state"));
    memcpy(*state, numbers, sizeof c->n);
    return OK;
}

static int load_state(Instance *c, const void *state)
{
    memcpy(&c->n, state, sizeof c->n);
    return OK;
}

static int free_state(Instance *c, void **state)
{
    if (*state) c->release(*state);
    *state = NULL;
    return OK;
}

static int write_state(Instance *c, const void *state, void *bytes, size_t size)
{
    if (size < sizeof(Numbers)) return report(c, fail(c, ERROR, "a state takes more bytes"));
    memcpy(bytes, state, sizeof(Numbers));
    return OK;
}

static int read_state(Instance *c, const void *bytes, size_t size, void **state)
{
    if (size != sizeof c->n) return report(c, fail(c, ERROR, "these bytes are no state"));
    return save_state(c, bytes, state);
}

static int nominal_states(double *nominals, size_t size)
{
    size_t i;
    for (i = 0; i < size; ++i) nominals[i] = 1.0;
    return OK;
}

static int set_time(Instance *c, double time)
{
    c->n.v[TIME] = time;
    touch(c);
    return OK;
}

#endif
