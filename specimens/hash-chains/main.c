/* A table that finds duplicates among pieces of a file, as a program does that stores each piece once.
 *
 * defect:   the hash uses 24 of 1024 buckets: 77 entries hang on each in the mean, and all are looked at.
 * repaired: the hash uses them all: two entries hang on each. */
#include "harness.h"
#include <stdint.h>

#define BUCKETS 1024
#define BUCKETS_USED 24
#define CHAIN_BAD 77
#define CHAIN_GOOD 2
/* Pieces of a unit. */
#define PIECES 2000

/* Eight bytes, so that all chains lie in the nearest cache whatever their length. */
struct entry {
    uint32_t key;
    uint32_t next;
};

static struct entry entries[BUCKETS * CHAIN_GOOD + 1];
static uint32_t buckets[BUCKETS];
static long split_steps, pack_steps, chain;

static void hang(uint32_t bucket, long length) {
    static uint32_t used = 1;
    for (long i = 0; i < length; i++) {
        entries[used].key = 0x80000000u | used;
        entries[used].next = buckets[bucket];
        buckets[bucket] = used++;
    }
}

/* From half the mean to one and a half of it: the end of equal chains would be foreseen by the processor at some lengths
 * and not at others, so that a shorter chain saved more or less than its steps. */
static void fill(void) {
    uint32_t count = run_repaired ? BUCKETS : BUCKETS_USED;
    for (uint32_t bucket = 0; bucket < count; bucket++)
        hang(bucket, chain / 2 + chain * (long)bucket / (long)(count - 1));
}

static uint32_t bucket_of(uint32_t key) {
    return run_repaired ? key % BUCKETS : key % BUCKETS_USED;
}

static __attribute__((noinline)) uint32_t find_in_chain(uint32_t key) {
    uint32_t at = buckets[bucket_of(key)];
    while (at && entries[at].key != key)
        at = entries[at].next;
    return at;
}

static __attribute__((noinline)) void split_pieces(void) {
    run_steps(split_steps);
}

static __attribute__((noinline)) void pack_pieces(void) {
    run_steps(pack_steps);
}

static long long file_after_file(int index) {
    unsigned long long chance = 88172645463325252ULL + (unsigned long long)index;
    long long done = 0;
    while (!run_over) {
        split_pieces();
        for (int i = 0; i < PIECES; i++) {
            /* Keys of the table have their highest bit set: nothing is found, and a chain is read to its end. */
            uint32_t found = find_in_chain((uint32_t)run_random(&chance) >> 1);
            run_keep(&found);
        }
        pack_pieces();
        progress();
        done++;
    }
    return done;
}

int main(int count, char **words) {
    run_begin(count, words);
    chain = run_less("find_in_chain", run_repaired ? CHAIN_GOOD : CHAIN_BAD);
    split_steps = run_less("split_pieces", 300 * RUN_STEPS_PER_US);
    pack_steps = run_less("pack_pieces", 400 * RUN_STEPS_PER_US);
    fill();
    return run_end(run_threads(1, file_after_file));
}
