/* Four stages of a search, and how many threads each has.
 *
 * defect:   one for each stage: the last one has nine tenths of the work.
 * repaired: one for the first three together, two for the last. */
#include "queue.h"

static long segment_steps, extract_steps, index_steps, rank_steps;
static struct queue segmented, extracted, found;
static pthread_mutex_t counting = PTHREAD_MUTEX_INITIALIZER;
static int rankers;

static __attribute__((noinline)) void segment(void) {
    run_steps(segment_steps);
}

static __attribute__((noinline)) void extract(void) {
    run_steps(extract_steps);
}

static __attribute__((noinline)) void look_up(void) {
    run_steps(index_steps);
}

static __attribute__((noinline)) void rank(void) {
    run_steps(rank_steps);
}

/* Takes, works, hands on; when nothing comes any more it tells the next. */
static long long between(struct queue *from, void (*work)(void), struct queue *to) {
    while (queue_take(from) > 0) {
        work();
        if (!queue_put(to, 1))
            break;
    }
    queue_close(to);
    return 0;
}

static long long first_stage(struct queue *to, int all_three) {
    do {
        segment();
        if (all_three) {
            extract();
            look_up();
        }
    } while (!run_over && queue_put(to, 1));
    queue_close(to);
    return 0;
}

static long long last_stage(void) {
    long long done = 0;
    while (queue_take(&found) > 0) {
        rank();
        pthread_mutex_lock(&counting);
        progress();
        pthread_mutex_unlock(&counting);
        done++;
    }
    return done;
}

static long long stage_each(int index) {
    switch (index) {
    case 0: return first_stage(&segmented, 0);
    case 1: return between(&segmented, extract, &extracted);
    case 2: return between(&extracted, look_up, &found);
    default: return last_stage();
    }
}

static long long stages_together(int index) {
    return index == 0 ? first_stage(&found, 1) : last_stage();
}

int main(int count, char **words) {
    run_begin(count, words);
    segment_steps = run_less("segment", 300 * RUN_STEPS_PER_US);
    extract_steps = run_less("extract", 400 * RUN_STEPS_PER_US);
    index_steps = run_less("look_up", 300 * RUN_STEPS_PER_US);
    rank_steps = run_less("rank", 6000 * RUN_STEPS_PER_US);
    rankers = run_repaired ? 2 : 1;
    queue_begin(&segmented, 4);
    queue_begin(&extracted, 4);
    queue_begin(&found, 4);
    return run_end(run_threads(run_repaired ? 1 + rankers : 4, run_repaired ? stages_together : stage_each));
}
