/* FMI 2.0 for model exchange and co-simulation, on what fmu_core.h computes. */
#ifdef FMI2_FUNCTION_PREFIX
#define FUNCTION_PREFIX FMI2_FUNCTION_PREFIX
#endif
#include "fmu_core.h"

typedef void (*Logger)(void *, const char *, int, const char *, const char *, ...);
typedef struct {
    Logger logger;
    void *(*allocateMemory)(size_t, size_t);
    void (*freeMemory)(void *);
    void (*stepFinished)(void *, int);
    void *componentEnvironment;
} Callbacks;
typedef struct {
    int newDiscreteStatesNeeded;
    int terminateSimulation;
    int nominalsOfContinuousStatesChanged;
    int valuesOfContinuousStatesChanged;
    int nextEventTimeDefined;
    double nextEventTime;
} EventInfo;

static int report(Instance *c, int status)
{
    union {
        void *data;
        Logger call;
    } logger;
    logger.data = c->logger;
    if (status != OK && c->logger)
        logger.call(c->environment, c->name, status,
                    status == ERROR ? "logStatusError" : "logStatusDiscard", c->message);
    return status;
}

EXPORT const char *F(fmi2GetTypesPlatform)(void) { return "default"; }
EXPORT const char *F(fmi2GetVersion)(void) { return "2.0"; }

EXPORT int F(fmi2SetDebugLogging)(void *c, int on, size_t count, const char *const categories[])
{
    (void)c, (void)on, (void)count, (void)categories;
    return OK;
}

EXPORT void *F(fmi2Instantiate)(const char *name, int type, const char *guid, const char *resources,
                                const Callbacks *functions, int visible, int logging)
{
    union {
        void *data;
        Logger call;
    } logger;
    Instance *c;
    (void)resources, (void)visible, (void)logging;
    if (!functions) return NULL;
    if (!name || !guid || strcmp(guid, MODEL_TOKEN) != 0) {
        if (functions->logger)
            functions->logger(functions->componentEnvironment, name ? name : "", ERROR,
                              "logStatusError", "the model description is that of another FMU");
        return NULL;
    }
    c = functions->allocateMemory ? functions->allocateMemory(1, sizeof *c) : calloc(1, sizeof *c);
    if (!c) return NULL;
    memset(c, 0, sizeof *c);
    logger.call = functions->logger;
    c->logger = logger.data;
    c->environment = functions->componentEnvironment;
    c->reserve = functions->allocateMemory ? functions->allocateMemory : calloc;
    c->release = functions->freeMemory ? functions->freeMemory : free;
    c->cosimulation = type == 1;
    strncpy(c->name, name, sizeof c->name - 1);
    restart(c);
    return c;
}

EXPORT void F(fmi2FreeInstance)(void *c)
{
    if (c) ((Instance *)c)->release(c);
}

EXPORT int F(fmi2SetupExperiment)(void *component, int tolerance_defined, double tolerance,
                                  double start, int stop_defined, double stop)
{
    Instance *c = component;
    (void)tolerance_defined, (void)tolerance, (void)stop_defined, (void)stop;
    c->n.v[TIME] = start;
    touch(c);
    return OK;
}

EXPORT int F(fmi2EnterInitializationMode)(void *c)
{
    ((Instance *)c)->n.phase = INITIALIZING;
    return OK;
}

EXPORT int F(fmi2ExitInitializationMode)(void *c) { return report(c, finish_start(c)); }

EXPORT int F(fmi2Terminate)(void *c)
{
    ((Instance *)c)->n.phase = TERMINATED;
    return OK;
}

EXPORT int F(fmi2Reset)(void *c)
{
    restart(c);
    return OK;
}

/* values ---------------------------------------------------------------------------------- */

EXPORT int F(fmi2GetReal)(void *c, const Reference r[], size_t n, double values[])
{
    return report(c, get_values(c, r, n, values));
}

EXPORT int F(fmi2SetReal)(void *c, const Reference r[], size_t n, const double values[])
{
    return report(c, set_values(c, r, n, values));
}

#define NO_VARIABLES(name, type)                                         \
    EXPORT int F(fmi2Get##name)(void *c, const Reference r[], size_t n, type v[]) \
    {                                                                    \
        (void)r, (void)v;                                                \
        return unsupported(c, n);                                        \
    }                                                                    \
    EXPORT int F(fmi2Set##name)(void *c, const Reference r[], size_t n, const type v[]) \
    {                                                                    \
        (void)r, (void)v;                                                \
        return unsupported(c, n);                                        \
    }
typedef const char *Text;
NO_VARIABLES(Integer, int)
NO_VARIABLES(Boolean, int)
NO_VARIABLES(String, Text)

/* states of the FMU ------------------------------------------------------------------------- */

EXPORT int F(fmi2GetFMUstate)(void *component, void **state)
{
    return save_state(component, &((Instance *)component)->n, state);
}

EXPORT int F(fmi2SetFMUstate)(void *component, void *state)
{
    return load_state(component, state);
}

EXPORT int F(fmi2FreeFMUstate)(void *component, void **state)
{
    return free_state(component, state);
}

EXPORT int F(fmi2SerializedFMUstateSize)(void *c, void *state, size_t *size)
{
    (void)c, (void)state;
    *size = sizeof(Numbers);
    return OK;
}

EXPORT int F(fmi2SerializeFMUstate)(void *c, void *state, char bytes[], size_t size)
{
    return write_state(c, state, bytes, size);
}

EXPORT int F(fmi2DeSerializeFMUstate)(void *component, const char bytes[], size_t size,
                                      void **state)
{
    return read_state(component, bytes, size, state);
}

EXPORT int F(fmi2GetDirectionalDerivative)(void *c, const Reference unknowns[], size_t n_unknowns,
                                           const Reference knowns[], size_t n_knowns,
                                           const double seed[], double changes[])
{
    return report(c, differentiate(c, unknowns, n_unknowns, knowns, n_knowns, seed, changes));
}

/* model exchange ---------------------------------------------------------------------------- */

EXPORT int F(fmi2EnterEventMode)(void *c)
{
    (void)c;
    return OK;
}

EXPORT int F(fmi2NewDiscreteStates)(void *c, EventInfo *info)
{
    int ends;
    memset(info, 0, sizeof *info);
    info->valuesOfContinuousStatesChanged = at_event(c, &ends);
    info->terminateSimulation = ends;
    info->nextEventTimeDefined = next_time_event(c, &info->nextEventTime);
    return OK;
}

EXPORT int F(fmi2EnterContinuousTimeMode)(void *c)
{
    (void)c;
    return OK;
}

EXPORT int F(fmi2CompletedIntegratorStep)(void *c, int no_set, int *event_mode, int *terminate)
{
    (void)no_set;
    after_step(c, event_mode, terminate);
    return OK;
}

EXPORT int F(fmi2SetTime)(void *component, double time)
{
    return set_time(component, time);
}

EXPORT int F(fmi2SetContinuousStates)(void *c, const double x[], size_t size)
{
    return report(c, set_states(c, x, size));
}

EXPORT int F(fmi2GetContinuousStates)(void *c, double x[], size_t size)
{
    return report(c, get_states(c, x, size));
}

EXPORT int F(fmi2GetDerivatives)(void *c, double rates[], size_t size)
{
    return report(c, get_rates(c, rates, size));
}

EXPORT int F(fmi2GetEventIndicators)(void *c, double indicators[], size_t size)
{
    return report(c, get_indicators(c, indicators, size));
}

EXPORT int F(fmi2GetNominalsOfContinuousStates)(void *c, double nominals[], size_t size)
{
    (void)c;
    return nominal_states(nominals, size);
}

/* co-simulation ------------------------------------------------------------------------------ */

EXPORT int F(fmi2DoStep)(void *c, double time, double step, int no_set)
{
    (void)no_set;
    return report(c, advance(c, time, step));
}

EXPORT int F(fmi2CancelStep)(void *c)
{
    return report(c, fail(c, ERROR, "steps are complete when they return"));
}

EXPORT int F(fmi2SetRealInputDerivatives)(void *c, const Reference r[], size_t n, const int order[],
                                          const double values[])
{
    (void)r, (void)order, (void)values;
    return unsupported(c, n);
}

EXPORT int F(fmi2GetRealOutputDerivatives)(void *c, const Reference r[], size_t n,
                                           const int order[], double values[])
{
    (void)r, (void)order, (void)values;
    return unsupported(c, n);
}

EXPORT int F(fmi2GetStatus)(void *c, int kind, int *value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD;
}

EXPORT int F(fmi2GetRealStatus)(void *c, int kind, double *value)
{
    if (kind != 2) return DISCARD;
    *value = ((Instance *)c)->n.v[TIME]; /* the last successful time */
    return OK;
}

EXPORT int F(fmi2GetIntegerStatus)(void *c, int kind, int *value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD;
}

EXPORT int F(fmi2GetBooleanStatus)(void *c, int kind, int *value)
{
    if (kind != 3) return DISCARD;
    *value = ((Instance *)c)->n.ended; /* terminated */
    return OK;
}

EXPORT int F(fmi2GetStringStatus)(void *c, int kind, const char **value)
{
    (void)c, (void)kind, (void)value;
    return DISCARD;
}
