/* Threads that work in phases: none begins the next before all have ended the last.
 *
 * defect:   who is early waits by looking at a counter again and again. With more threads than CPUs it looks for the rest
 *           of its time slice, on the CPU that the late one needs.
 * repaired: who is early sleeps in the kernel until the last one wakes it. */
#include "harness.h"
#include <stdatomic.h>

/* Work of a phase, some 20 microseconds. */
#define PHASE_STEPS 10000

static long phase_steps;

static atomic_int arrived;
static atomic_long phase;
static atomic_int leaving;
static pthread_barrier_t barrier;
static int parties;

static __attribute__((noinline)) void work_of_phase(unsigned long long *state) {
    for (long i = 0; i < phase_steps; i++)
        run_random(state);
    run_keep(state);
}

/* Whether all go on; when one leaves, all leave after the same phase. */
static __attribute__((noinline)) int wait_spinning(void) {
    long now = atomic_load(&phase);
    if (run_over)
        atomic_store(&leaving, 1);
    if (atomic_fetch_add(&arrived, 1) + 1 == parties) {
        atomic_store(&arrived, 0);
        atomic_store(&phase, atomic_load(&leaving) ? -1 : now + 1);
    }
    while (atomic_load_explicit(&phase, memory_order_acquire) == now)
        ;
    return atomic_load(&phase) >= 0;
}

static int wait_sleeping(void) {
    if (run_over)
        atomic_store(&leaving, 1);
    pthread_barrier_wait(&barrier);
    int leave = atomic_load(&leaving);
    /* Nobody may raise the flag again before all have read it. */
    pthread_barrier_wait(&barrier);
    return !leave;
}

static long long phases(int index) {
    unsigned long long state = 1000003ULL + (unsigned long long)index;
    long long done = 0;
    do {
        work_of_phase(&state);
        if (index == 0)
            progress();
        done++;
    } while (run_repaired ? wait_sleeping() : wait_spinning());
    /* The unit is a phase of all threads. */
    return index == 0 ? done : 0;
}

int main(int count, char **words) {
    run_begin(count, words);
    phase_steps = run_less("work_of_phase", PHASE_STEPS);
    parties = run_two_per_cpu();
    pthread_barrier_init(&barrier, NULL, (unsigned)parties);
    return run_end(run_threads(parties, phases));
}
