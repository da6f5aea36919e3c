/* Steps per second of a co-simulation FMU of FMI 2:  fmu_steps LIBRARY GUID STEPS LENGTH
 *
 * Loads the library as a tool does, makes the steps, and prints the status of the last one, how
 * many there were, how many per second of processor time, and the first state.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct {
    void *logger;
    void *(*allocate)(size_t, size_t);
    void (*release)(void *);
    void *finished;
    void *environment;
} Callbacks;

typedef void *Instantiate(const char *, int, const char *, const char *, const Callbacks *, int,
                          int);
typedef int Setup(void *, int, double, double, int, double);
typedef int Change(void *);
typedef int Step(void *, double, double, int);
typedef void Free(void *);
typedef int Get(void *, const unsigned int *, size_t, double *);

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (!found) {
        fprintf(stderr, "the library has no %s\n", name);
        exit(2);
    }
    return found;
}

int main(int count, char **arguments)
{
    const Callbacks callbacks = {NULL, calloc, free, NULL, NULL};
    const unsigned int first = 1;
    void *library = count == 5 ? dlopen(arguments[1], RTLD_NOW) : NULL, *instance;
    Step *step;
    double length, value = 0.0, seconds;
    long steps, k;
    int status;
    clock_t begin;
    if (!library) {
        fprintf(stderr, "usage: fmu_steps LIBRARY GUID STEPS LENGTH\n");
        return 2;
    }
    instance = ((Instantiate *)find(library, "fmi2Instantiate"))("steps", 1, arguments[2], "",
                                                                 &callbacks, 0, 0);
    if (!instance) return 2;
    ((Setup *)find(library, "fmi2SetupExperiment"))(instance, 0, 0.0, 0.0, 0, 0.0);
    status = ((Change *)find(library, "fmi2EnterInitializationMode"))(instance);
    status |= ((Change *)find(library, "fmi2ExitInitializationMode"))(instance);
    step = (Step *)find(library, "fmi2DoStep");
    steps = atol(arguments[3]);
    length = atof(arguments[4]);
    begin = clock();
    for (k = 0; k < steps && !status; ++k) status = step(instance, (double)k * length, length, 1);
    seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    ((Get *)find(library, "fmi2GetReal"))(instance, &first, 1, &value);
    ((Free *)find(library, "fmi2FreeInstance"))(instance);
    printf("%d %ld %.4g %.17g\n", status, k, seconds > 0.0 ? (double)k / seconds : 0.0, value);
    return status;
}
