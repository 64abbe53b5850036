/* Pictures of 4 MiB that are made and thrown away.
 *
 * defect:   each picture's memory is taken from the kernel and given back: its 1,024 pages are made and zeroed each time.
 * repaired: one piece of memory is used for all of them. */
#include "harness.h"
#include <sys/mman.h>

#define PICTURE_BYTES (4 << 20)
#define PAGE_BYTES 4096

/* One number in each page is touched. */
static void paint(char *picture, long long number) {
    for (int at = 0; at < PICTURE_BYTES; at += PAGE_BYTES / 4)
        picture[at] = (char)(number + at);
    run_keep(picture);
}

static char *take_memory(void) {
    char *memory = (char *)mmap(NULL, PICTURE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        run_fail("mmap");
    return memory;
}

static void paint_in_new_memory(long long number) {
    char *picture = take_memory();
    paint(picture, number);
    munmap(picture, PICTURE_BYTES);
}

int main(int count, char **words) {
    run_begin(count, words);
    char *kept = take_memory();
    long long done = 0;
    run_start();
    while (!run_over) {
        if (run_repaired)
            paint(kept, done);
        else
            paint_in_new_memory(done);
        done++;
    }
    return run_end(done);
}
