/* Events that are counted by several threads in one table.
 *
 * defect:   every event takes the one lock, for a few nanoseconds of work.
 * repaired: a thread counts by itself and takes the lock once for every 256 events. */
#include "harness.h"

#define KINDS 64
#define GATHERED 256
/* What an event costs before it is counted, some 60 nanoseconds. */
#define EVENT_STEPS 24
/* A causal profile counts hundreds of events as one: a probe on each would be dearer than the event. */
#define PROGRESS_EVENTS 1024

struct count {
    unsigned long long events[KINDS];
};

static pthread_mutex_t table_lock;
static struct count table;
static long event_steps;

static __attribute__((noinline)) void count_event(unsigned long long event) {
    pthread_mutex_lock(&table_lock);
    table.events[event % KINDS]++;
    pthread_mutex_unlock(&table_lock);
}

static void count_gathered(const struct count *own) {
    pthread_mutex_lock(&table_lock);
    for (int kind = 0; kind < KINDS; kind++)
        table.events[kind] += own->events[kind];
    pthread_mutex_unlock(&table_lock);
}

static __attribute__((noinline)) unsigned long long next_event(unsigned long long *chance) {
    unsigned long long event = 0;
    for (long i = 0; i < event_steps; i++)
        event += run_random(chance);
    return event;
}

static long long events_one_by_one(unsigned long long *chance) {
    long long done = 0;
    while (!run_over) {
        count_event(next_event(chance));
        if (++done % PROGRESS_EVENTS == 0)
            progress();
    }
    return done;
}

static long long events_gathered(unsigned long long *chance) {
    long long done = 0;
    while (!run_over) {
        struct count own;
        memset(&own, 0, sizeof own);
        for (int i = 0; i < GATHERED; i++)
            own.events[next_event(chance) % KINDS]++;
        count_gathered(&own);
        done += GATHERED;
    }
    return done;
}

static long long events(int index) {
    unsigned long long chance = 362436069ULL + (unsigned long long)index;
    return run_repaired ? events_gathered(&chance) : events_one_by_one(&chance);
}

int main(int count, char **words) {
    pthread_mutexattr_t adaptive;
    run_begin(count, words);
    event_steps = run_less("next_event", EVENT_STEPS);
    pthread_mutexattr_init(&adaptive);
    /* It spins a while before it sleeps: the usual advice for short sections. */
    pthread_mutexattr_settype(&adaptive, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&table_lock, &adaptive);
    return run_end(run_threads(run_two_per_cpu() * 2, events));
}
