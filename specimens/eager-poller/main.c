/* A thread that works on a table, and another that comes by to look at it, both with the lock in hand.
 *
 * defect:   the one that looks comes by after every little piece of its own work; the faster that piece is done the more
 *           often it holds the lock, and the slower the work goes.
 * repaired: it comes by a tenth as often. */
#include "harness.h"

static long work_steps, look_steps, between_steps;
static int rests;
/* A lock that is had in the order of asking: nobody who comes back at once gets it before who waits. */
static pthread_mutex_t queue = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t served = PTHREAD_COND_INITIALIZER;
static long last_ticket, serving;

static void lock_table(void) {
    pthread_mutex_lock(&queue);
    for (long ticket = last_ticket++; ticket != serving;)
        pthread_cond_wait(&served, &queue);
    pthread_mutex_unlock(&queue);
}

static void unlock_table(void) {
    pthread_mutex_lock(&queue);
    serving++;
    pthread_cond_broadcast(&served);
    pthread_mutex_unlock(&queue);
}

static __attribute__((noinline)) void work_on_table(void) {
    run_steps(work_steps);
}

static __attribute__((noinline)) void look_at_table(void) {
    run_steps(look_steps);
}

static __attribute__((noinline)) void rest_between(void) {
    run_steps(between_steps);
}

static long long worker(void) {
    long long done = 0;
    while (!run_over) {
        lock_table();
        work_on_table();
        progress();
        unlock_table();
        done++;
    }
    return done;
}

static long long poller(void) {
    while (!run_over) {
        lock_table();
        look_at_table();
        unlock_table();
        for (int i = 0; i < rests; i++)
            rest_between();
    }
    return 0;
}

static long long task(int index) {
    return index == 0 ? worker() : poller();
}

int main(int count, char **words) {
    run_begin(count, words);
    work_steps = run_less("work_on_table", 2000 * RUN_STEPS_PER_US);
    look_steps = run_less("look_at_table", 4000 * RUN_STEPS_PER_US);
    between_steps = run_less("rest_between", 6000 * RUN_STEPS_PER_US);
    rests = run_repaired ? 10 : 1;
    return run_end(run_threads(2, task));
}
