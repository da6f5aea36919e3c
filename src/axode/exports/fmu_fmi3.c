/* FMI 3.0 for model exchange and co-simulation, on what fmu_core.h computes. */
#ifdef FMI3_FUNCTION_PREFIX
#define FUNCTION_PREFIX FMI3_FUNCTION_PREFIX
#endif
#include "fmu_core.h"

#include <stdbool.h>
#include <stdint.h>

typedef void (*Logger)(void *, int, const char *, const char *);
typedef const char *Text;
typedef const uint8_t *Binary;

static int report(Instance *c, int status)
{
    union {
        void *data;
        Logger call;
    } logger;
    logger.data = c->logger;
    if (status != OK && c->logger)
        logger.call(c->environment, status,
                    status == ERROR ? "logStatusError" : "logStatusDiscard", c->message);
    return status;
}

static int refuse(Instance *c)
{
    return report(c, fail(c, ERROR, "the model description does not offer this function"));
}

static void *instantiate(const char *name, const char *token, void *environment, Logger log,
                         int cosimulation)
{
    union {
        void *data;
        Logger call;
    } logger;
    Instance *c;
    if (!token || strcmp(token, MODEL_TOKEN) != 0) {
        if (log)
            log(environment, ERROR, "logStatusError",
                "the model description is that of another FMU");
        return NULL;
    }
    c = calloc(1, sizeof *c);
    if (!c) return NULL;
    logger.call = log;
    c->logger = logger.data;
    c->environment = environment;
    c->reserve = calloc;
    c->release = free;
    c->cosimulation = cosimulation;
    strncpy(c->name, name ? name : "", sizeof c->name - 1);
    restart(c);
    return c;
}

EXPORT const char *F(fmi3GetVersion)(void) { return "3.0"; }

EXPORT int F(fmi3SetDebugLogging)(void *c, bool on, size_t count, const Text categories[])
{
    (void)c, (void)on, (void)count, (void)categories;
    return OK;
}

EXPORT void *F(fmi3InstantiateModelExchange)(Text name, Text token, Text resources, bool visible,
                                             bool logging, void *environment, Logger log)
{
    (void)resources, (void)visible, (void)logging;
    return instantiate(name, token, environment, log, 0);
}

EXPORT void *F(fmi3InstantiateCoSimulation)(Text name, Text token, Text resources, bool visible,
                                            bool logging, bool event_mode, bool early_return,
                                            const Reference intermediate[], size_t n_intermediate,
                                            void *environment, Logger log, void (*update)(void))
{
    (void)resources, (void)visible, (void)logging, (void)event_mode, (void)early_return;
    (void)intermediate, (void)n_intermediate, (void)update;
    return instantiate(name, token, environment, log, 1);
}

EXPORT void *F(fmi3InstantiateScheduledExecution)(Text name, Text token, Text resources,
                                                  bool visible, bool logging, void *environment,
                                                  Logger log, void (*update)(void),
                                                  void (*lock)(void), void (*unlock)(void))
{
    (void)name, (void)token, (void)resources, (void)visible, (void)logging, (void)environment;
    (void)log, (void)update, (void)lock, (void)unlock;
    return NULL;
}

EXPORT void F(fmi3FreeInstance)(void *c) { free(c); }

EXPORT int F(fmi3EnterInitializationMode)(void *component, bool tolerance_defined, double tolerance,
                                          double start, bool stop_defined, double stop)
{
    Instance *c = component;
    (void)tolerance_defined, (void)tolerance, (void)stop_defined, (void)stop;
    c->n.v[TIME] = start;
    c->n.phase = INITIALIZING;
    touch(c);
    return OK;
}

EXPORT int F(fmi3ExitInitializationMode)(void *c) { return report(c, finish_start(c)); }

EXPORT int F(fmi3Terminate)(void *c)
{
    ((Instance *)c)->n.phase = TERMINATED;
    return OK;
}

EXPORT int F(fmi3Reset)(void *c)
{
    restart(c);
    return OK;
}

/* values ---------------------------------------------------------------------------------- */

EXPORT int F(fmi3GetFloat64)(void *c, const Reference r[], size_t n, double values[], size_t size)
{
    if (size != n) return report(c, fail(c, ERROR, "all variables are scalar"));
    return report(c, get_values(c, r, n, values));
}

EXPORT int F(fmi3SetFloat64)(void *c, const Reference r[], size_t n, const double values[],
                             size_t size)
{
    if (size != n) return report(c, fail(c, ERROR, "all variables are scalar"));
    return report(c, set_values(c, r, n, values));
}

#define NO_VARIABLES(name, type)                                                            \
    EXPORT int F(fmi3Get##name)(void *c, const Reference r[], size_t n, type v[], size_t m) \
    {                                                                                       \
        (void)r, (void)v, (void)m;                                                          \
        return unsupported(c, n);                                                           \
    }                                                                                       \
    EXPORT int F(fmi3Set##name)(void *c, const Reference r[], size_t n, const type v[], size_t m) \
    {                                                                                       \
        (void)r, (void)v, (void)m;                                                          \
        return unsupported(c, n);                                                           \
    }
NO_VARIABLES(Float32, float)
NO_VARIABLES(Int8, int8_t)
NO_VARIABLES(UInt8, uint8_t)
NO_VARIABLES(Int16, int16_t)
NO_VARIABLES(UInt16, uint16_t)
NO_VARIABLES(Int32, int32_t)
NO_VARIABLES(UInt32, uint32_t)
NO_VARIABLES(Int64, int64_t)
NO_VARIABLES(UInt64, uint64_t)
NO_VARIABLES(Boolean, bool)
NO_VARIABLES(String, Text)

/* Functions of clocks and binary variables, of which there are none. */
#define NO_CLOCKS(name, ...)                                                   \
    EXPORT int F(fmi3##name)(void *c, const Reference r[], size_t n, __VA_ARGS__) \
    {                                                                          \
        (void)r, (void)a, (void)b, (void)d;                                    \
        return unsupported(c, n);                                              \
    }
NO_CLOCKS(GetBinary, size_t a[], Binary b[], size_t d)
NO_CLOCKS(SetBinary, const size_t a[], const Binary b[], size_t d)
NO_CLOCKS(GetIntervalFraction, uint64_t a[], uint64_t b[], int d[])
#undef NO_CLOCKS
#define NO_CLOCKS(name, first, second)                                         \
    EXPORT int F(fmi3##name)(void *c, const Reference r[], size_t n, first, second) \
    {                                                                          \
        (void)r, (void)a, (void)b;                                             \
        return unsupported(c, n);                                              \
    }
NO_CLOCKS(GetIntervalDecimal, double a[], int b[])
NO_CLOCKS(GetShiftFraction, uint64_t a[], uint64_t b[])
NO_CLOCKS(SetIntervalFraction, const uint64_t a[], const uint64_t b[])
NO_CLOCKS(SetShiftFraction, const uint64_t a[], const uint64_t b[])
#undef NO_CLOCKS
#define NO_CLOCKS(name, first)                                            \
    EXPORT int F(fmi3##name)(void *c, const Reference r[], size_t n, first) \
    {                                                                     \
        (void)r, (void)a;                                                 \
        return unsupported(c, n);                                         \
    }
NO_CLOCKS(GetClock, bool a[])
NO_CLOCKS(SetClock, const bool a[])
NO_CLOCKS(GetShiftDecimal, double a[])
NO_CLOCKS(SetIntervalDecimal, const double a[])
NO_CLOCKS(SetShiftDecimal, const double a[])

EXPORT int F(fmi3GetNumberOfVariableDependencies)(void *c, Reference r, size_t *count)
{
    (void)r, (void)count;
    return refuse(c);
}

EXPORT int F(fmi3GetVariableDependencies)(void *c, Reference dependent, size_t elements[],
                                          Reference independents[], size_t their_elements[],
                                          int kinds[], size_t count)
{
    (void)dependent, (void)elements, (void)independents, (void)their_elements, (void)kinds;
    (void)count;
    return refuse(c);
}

/* states of the FMU ------------------------------------------------------------------------- */

EXPORT int F(fmi3GetFMUState)(void *component, void **state)
{
    return save_state(component, &((Instance *)component)->n, state);
}

EXPORT int F(fmi3SetFMUState)(void *component, void *state)
{
    return load_state(component, state);
}

EXPORT int F(fmi3FreeFMUState)(void *c, void **state)
{
    return free_state(c, state);
}

EXPORT int F(fmi3SerializedFMUStateSize)(void *c, void *state, size_t *size)
{
    (void)c, (void)state;
    *size = sizeof(Numbers);
    return OK;
}

EXPORT int F(fmi3SerializeFMUState)(void *c, void *state, uint8_t bytes[], size_t size)
{
    return write_state(c, state, bytes, size);
}

EXPORT int F(fmi3DeserializeFMUState)(void *component, const uint8_t bytes[], size_t size,
                                      void **state)
{
    return read_state(component, bytes, size, state);
}

EXPORT int F(fmi3GetDirectionalDerivative)(void *c, const Reference unknowns[], size_t n_unknowns,
                                           const Reference knowns[], size_t n_knowns,
                                           const double seed[], size_t n_seed, double changes[],
                                           size_t n_changes)
{
    if (n_seed != n_knowns || n_changes != n_unknowns)
        return report(c, fail(c, ERROR, "all variables are scalar"));
    return report(c, differentiate(c, unknowns, n_unknowns, knowns, n_knowns, seed, changes));
}

/* Gradients by knowns of the weighted sum of unknowns, by reverse derivatives of the functions. */
static int pull_back(Instance *c, const Reference *unknowns, size_t n_unknowns,
                     const Reference *knowns, size_t n_knowns, const double *seed, double *changes)
{
    double w[N_VALUES], g[STEP], total[STEP];
    const double *v = c->n.v, t = time_inside(c);
    int rates = 0, outputs = 0, j;
    size_t k;
    const int status = close_start(c);
    if (status != OK) return status;
    memset(w, 0, sizeof w);
    for (k = 0; k < n_unknowns; ++k) {
        if (unknowns[k] >= Z) return fail(c, ERROR, "an unknown is no derivative and no output");
        outputs |= unknowns[k] >= Y;
        rates |= unknowns[k] >= DER && unknowns[k] < Y;
        w[unknowns[k]] += seed[k];
    }
    memcpy(total, w, sizeof total); /* an unknown may be a known */
    if (rates) {
        model_rate_adjoint(&t, v + X, v + U, v + P, w + DER, g + TIME, g + X, g + U, g + P);
        for (j = 0; j < STEP; ++j) total[j] += g[j];
    }
    if (outputs) {
        model_outputs_adjoint(&t, v + X, v + U, v + P, w + Y, g + TIME, g + X, g + U, g + P);
        for (j = 0; j < STEP; ++j) total[j] += g[j];
    }
    for (k = 0; k < n_knowns; ++k) {
        if (knowns[k] >= STEP) return fail(c, ERROR, "a known is no state, input or parameter");
        changes[k] = total[knowns[k]];
    }
    return OK;
}

EXPORT int F(fmi3GetAdjointDerivative)(void *c, const Reference unknowns[], size_t n_unknowns,
                                       const Reference knowns[], size_t n_knowns,
                                       const double seed[], size_t n_seed, double changes[],
                                       size_t n_changes)
{
    if (n_seed != n_unknowns || n_changes != n_knowns)
        return report(c, fail(c, ERROR, "all variables are scalar"));
    return report(c, pull_back(c, unknowns, n_unknowns, knowns, n_knowns, seed, changes));
}

EXPORT int F(fmi3EnterConfigurationMode)(void *c) { return refuse(c); }
EXPORT int F(fmi3ExitConfigurationMode)(void *c) { return refuse(c); }
EXPORT int F(fmi3EvaluateDiscreteStates)(void *c) { return refuse(c); }

/* events and model exchange ----------------------------------------------------------------- */

EXPORT int F(fmi3EnterEventMode)(void *c)
{
    (void)c;
    return OK;
}

EXPORT int F(fmi3UpdateDiscreteStates)(void *c, bool *again, bool *terminate, bool *nominals,
                                       bool *states, bool *next_defined, double *next)
{
    int ends;
    *states = at_event(c, &ends) != 0;
    *terminate = ends != 0;
    *again = *nominals = false;
    *next_defined = next_time_event(c, next) != 0;
    return OK;
}

EXPORT int F(fmi3EnterContinuousTimeMode)(void *c)
{
    (void)c;
    return OK;
}

EXPORT int F(fmi3CompletedIntegratorStep)(void *c, bool no_set, bool *event_mode, bool *terminate)
{
    int correct, ends;
    (void)no_set;
    after_step(c, &correct, &ends);
    *event_mode = correct != 0;
    *terminate = ends != 0;
    return OK;
}

EXPORT int F(fmi3SetTime)(void *component, double time)
{
    return set_time(component, time);
}

EXPORT int F(fmi3SetContinuousStates)(void *c, const double x[], size_t size)
{
    return report(c, set_states(c, x, size));
}

EXPORT int F(fmi3GetContinuousStates)(void *c, double x[], size_t size)
{
    return report(c, get_states(c, x, size));
}

EXPORT int F(fmi3GetContinuousStateDerivatives)(void *c, double rates[], size_t size)
{
    return report(c, get_rates(c, rates, size));
}

EXPORT int F(fmi3GetEventIndicators)(void *c, double indicators[], size_t size)
{
    return report(c, get_indicators(c, indicators, size));
}

EXPORT int F(fmi3GetNominalsOfContinuousStates)(void *c, double nominals[], size_t size)
{
    (void)c;
    return nominal_states(nominals, size);
}

EXPORT int F(fmi3GetNumberOfEventIndicators)(void *c, size_t *count)
{
    (void)c;
    *count = N_INDICATORS;
    return OK;
}

EXPORT int F(fmi3GetNumberOfContinuousStates)(void *c, size_t *count)
{
    (void)c;
    *count = N_X;
    return OK;
}

/* co-simulation ------------------------------------------------------------------------------ */

EXPORT int F(fmi3EnterStepMode)(void *c)
{
    (void)c;
    return OK;
}

EXPORT int F(fmi3GetOutputDerivatives)(void *c, const Reference r[], size_t n,
                                       const int32_t orders[], double values[], size_t size)
{
    (void)r, (void)orders, (void)values, (void)size;
    return unsupported(c, n);
}

EXPORT int F(fmi3DoStep)(void *component, double time, double step, bool no_set, bool *event,
                         bool *terminate, bool *early, double *last)
{
    Instance *c = component;
    const int status = report(c, advance(c, time, step));
    (void)no_set;
    *event = *early = false;
    *terminate = c->n.ended != 0;
    *last = c->n.v[TIME];
    return status == DISCARD && c->n.ended ? OK : status; /* to terminate is not to fail */
}

EXPORT int F(fmi3ActivateModelPartition)(void *c, Reference clock, double time)
{
    (void)clock, (void)time;
    return refuse(c);
}
