/* A function whose frame is larger than the copied piece of a stack, called by turns with one that leaves other words in
 * the same place: what stands behind the copied piece is another thing when it is read. */
#include <stdint.h>

enum { BYTES = 20000, ROUNDS = 400000 };

static volatile uint64_t sink;

static void spin(void) {
    for (int at = 0; at < ROUNDS; at++)
        sink = sink * 6364136223846793005u + 1442695040888963407u;
}

/* Writes a number that is no address of code wherever the others have their return addresses. */
__attribute__((noinline)) void scribble(void) {
    volatile uint64_t words[3 * BYTES / 8];
    for (int at = 0; at < 3 * BYTES / 8; at++)
        words[at] = 0x70a7fe5a4;
    spin();
    sink = words[BYTES / 8];
}

__attribute__((noinline)) void work(void) {
    volatile char room[BYTES];
    room[0] = 1;
    spin();
    sink += room[0];
}

__attribute__((noinline)) void one(void) { work(); sink++; }
__attribute__((noinline)) void other(void) { work(); sink--; }

int main(void) {
    for (;;) {
        one();
        scribble();
        other();
        scribble();
    }
}
