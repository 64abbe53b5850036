/* Shapes of stacks: a function that is folded into its caller (70 %), and one that calls itself fifty times before it
 * works (30 %). */
#include <stdint.h>

#define ALONE __attribute__((noinline, noclone))

static inline __attribute__((always_inline)) uint64_t folded(uint64_t rounds) {
    uint64_t state = 1442695040888963407u;
    for (uint64_t i = 0; i < rounds; i++) {
        state = state * 6364136223846793005u + 1;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}

ALONE uint64_t around(uint64_t rounds) { return folded(7 * rounds) + 1; }

ALONE uint64_t deep(uint64_t rounds, int left) {
    if (left > 0) {
        /* What is touched after the call keeps the compiler from making a loop of it. */
        uint64_t below = deep(rounds, left - 1);
        __asm__ volatile("" : "+r"(below));
        return below + 1;
    }
    uint64_t state = 3037000493u;
    for (uint64_t i = 0; i < 3 * rounds; i++) {
        state = state * 6364136223846793005u + 3;
        __asm__ volatile("" : "+r"(state));
    }
    return state;
}

int main(void) {
    volatile uint64_t sink = 0;
    for (;;)
        sink += around(10000) + deep(10000, 50);
}
