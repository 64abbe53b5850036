/* Look-ups all over a table of 1.25 GiB.
 *
 * defect:   the table lies in pages of 4 KiB: the TLB reaches a few megabytes of it, and nearly every look-up walks the
 *           page tables first.
 * repaired: the same table in huge pages of 2 MiB: 640 of them, which the TLB holds. */
#include "harness.h"
#include <sys/mman.h>

#define TABLE_BYTES (1280LL << 20)
#define HUGE_BYTES (2LL << 20)
#define ROWS (TABLE_BYTES / (long long)sizeof(unsigned long long))
#define LOOKUPS 4096

static unsigned long long *table;

static void make_table(void) {
    char *memory = (char *)mmap(NULL, TABLE_BYTES + HUGE_BYTES, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        run_fail("mmap");
    unsigned long long start = ((unsigned long long)memory + HUGE_BYTES - 1) / HUGE_BYTES * HUGE_BYTES;
    table = (unsigned long long *)start;
    if (madvise(table, TABLE_BYTES, run_repaired ? MADV_HUGEPAGE : MADV_NOHUGEPAGE))
        run_fail("madvise");
    /* One number per page is enough to have the page. */
    for (long long row = 0; row < ROWS; row += 4096 / (long long)sizeof *table)
        table[row] = (unsigned long long)row;
}

/* Every place depends on what the last one held: the walks cannot overlap. */
static unsigned long long look_up(unsigned long long place) {
    for (int i = 0; i < LOOKUPS; i++) {
        run_random(&place);
        place += table[place % ROWS] & 1;
        place |= 1;
    }
    return place;
}

/* Huge pages that the kernel gave, as it says itself. */
static long long huge_kib(void) {
    char line[256];
    long long sum = 0, kib;
    FILE *rollup = fopen("/proc/self/smaps_rollup", "r");
    while (rollup && fgets(line, sizeof line, rollup))
        if (sscanf(line, "AnonHugePages: %lld", &kib) == 1)
            sum += kib;
    if (rollup)
        fclose(rollup);
    return sum;
}

int main(int count, char **words) {
    run_begin(count, words);
    make_table();
    unsigned long long place = 88172645463325252ULL;
    long long done = 0, huge = huge_kib();
    run_start();
    while (!run_over) {
        place = look_up(place);
        done += LOOKUPS;
    }
    run_keep(&place);
    run_note("huge_pages_kib", huge);
    return run_end(done);
}
