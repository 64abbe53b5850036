/* Three functions that take 60, 30 and 10 % of the CPU: the same loop in each, with six, three and one parts of its
 * rounds. Whoever measures shares by samples must find these. Turns vary, so that no sampling clock keeps step with
 * them: one that met a turn at the same four places each time would read 50 or 75 %. Runs until it is killed. */
#include <stdint.h>

#define ALONE __attribute__((noinline, noclone))

/* The constants keep the compiler from making the three bodies one. */
#define WORK(name, constant)                                                                                           \
    ALONE uint64_t name(uint64_t rounds) {                                                                             \
        uint64_t state = constant;                                                                                     \
        for (uint64_t i = 0; i < rounds; i++) {                                                                        \
            state = state * 6364136223846793005u + constant;                                                           \
            __asm__ volatile("" : "+r"(state));                                                                        \
        }                                                                                                              \
        return state;                                                                                                  \
    }

WORK(work_sixty, 1442695040888963407u)
WORK(work_thirty, 3037000493u)
WORK(work_ten, 2654435761u)

ALONE uint64_t turn(uint64_t rounds) {
    uint64_t sum = work_sixty(6 * rounds);
    sum += work_thirty(3 * rounds);
    sum += work_ten(rounds);
    return sum;
}

int main(void) {
    volatile uint64_t sink = 0;
    for (uint32_t chance = 1;; chance = chance * 1664525u + 1013904223u)
        sink += turn(5000 + (chance >> 16) % 10000);
}
