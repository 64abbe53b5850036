/* What `program*.elf` were built from: a folded function, one that calls itself and a leaf, without a C
 * library, so that the files stay small and everything in them is said here.
 *
 *   flags="-O2 -fomit-frame-pointer -nostdlib -static-pie -ffile-prefix-map=$PWD=/src"
 *   gcc $flags -g -gdwarf-5 program.c -o program.elf
 *   gcc $flags -g -gdwarf-4 -gz=zlib program.c -o program-compressed.elf
 *   gcc $flags -s program.c -o program-stripped.elf
 *
 * `samples.txt` is a second and a half of program.elf: where it was mapped, then of each sample its period, registers (ip, sp,
 * fp), the kernel's chain by frame pointers, and the stack from the stack pointer up, as far as it is needed. */

#define ALONE __attribute__((noinline, noclone))

typedef unsigned long word;

static inline __attribute__((always_inline)) word turn(word state) {
    state = state * 6364136223846793005u + 1;
    __asm__ volatile("" : "+r"(state));
    return state;
}

static inline __attribute__((always_inline)) word folded(word rounds) {
    word state = 1442695040888963407u;
    for (word at = 0; at < rounds; at++)
        state = turn(state);
    return state;
}

ALONE word leaf(word rounds) { return folded(rounds); }

ALONE word around(word rounds) { return folded(3 * rounds) + leaf(rounds); }

ALONE word deep(word rounds, int left) {
    if (left > 0) {
        word below = deep(rounds, left - 1);
        /* What is touched after the call keeps the compiler from making a loop of it. */
        __asm__ volatile("" : "+r"(below));
        return below + 1;
    }
    return leaf(2 * rounds) + 1;
}

ALONE word often(word rounds) {
    word sum = 0;
    for (int at = 0; at < 3; at++)
        sum += around(rounds) + deep(rounds, 4);
    return sum;
}

void _start(void) {
    volatile word sink = 0;
    for (;;)
        sink += often(5);
}
