/* Threads that take and give back buffers of mixed sizes, as servers do for messages.
 *
 * defect:   the allocator was told to keep one arena for all threads ("to save memory"): every call takes one lock.
 * repaired: the setting is gone, and each thread has an arena of its own. */
#include "harness.h"
#include <malloc.h>

/* Buffers that a thread holds at a time. */
#define HELD 512
/* Above what glibc keeps per thread without a lock (1,032 bytes), below what it asks the kernel for (128 KiB). */
#define BYTES_MIN 1100
#define BYTES_SPREAD 6000

static long long take_and_give_back(int index) {
    unsigned long long chance = 88172645463325252ULL + (unsigned long long)index * 7919;
    static __thread char *held[HELD];
    long long done = 0;
    while (!run_over) {
        unsigned long long draw = run_random(&chance);
        char **slot = &held[draw % HELD];
        free(*slot);
        *slot = (char *)malloc(BYTES_MIN + (draw >> 32) % BYTES_SPREAD);
        if (!*slot)
            run_fail("malloc");
        **slot = (char)draw;
        done++;
    }
    return done;
}

static void share_one_arena(void) {
    mallopt(M_ARENA_MAX, 1);
}

int main(int count, char **words) {
    run_begin(count, words);
    if (!run_repaired)
        share_one_arena();
    return run_end(run_threads(run_two_per_cpu() * 2, take_and_give_back));
}
