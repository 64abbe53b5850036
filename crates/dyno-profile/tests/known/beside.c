/* 60, 30 and 10 % of one thread, counted work; and a thread beside it that changes nothing where a word is given. */
#include <pthread.h>
#include <unistd.h>

#define ALONE __attribute__((noinline))

/* Each step waits for the one before it, four or five cycles: a neighbour on the same core takes none of them, where it
 * would take a third of the speed of steps that the core could do side by side. */
static inline __attribute__((always_inline)) void burn(long n) {
    unsigned long step = n;
    for (long i = 0; i < n; i += 4) {
        step = step * 6364136223846793005UL + 1442695040888963407UL;
        __asm__ volatile("" : "+r"(step));
    }
}

ALONE void f60(long n) {
    burn(6 * n);
}

ALONE void f30(long n) {
    burn(3 * n);
}

ALONE void f10(long n) {
    burn(n);
}

ALONE void apart(long n) {
    burn(n);
}

ALONE void progress(void) {
    __asm__ volatile("nop");
}

static void *beside(void *unused) {
    for (;;)
        apart(100000);
    return unused;
}

int main(int count, char **words) {
    (void)words;
    pthread_t thread;
    if (count > 1)
        pthread_create(&thread, 0, beside, 0);
    while (getppid() != 1) {
        f60(50000);
        f30(50000);
        f10(50000);
        progress();
    }
}
