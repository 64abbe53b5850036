/* Threads in pairs that pass a byte to and fro, each from some depths of its stack: more places to wait in than any table has
 * rows. Where the two sides of a pair have depths of different numbers each turn is ended from another place than the one before.
 * Words: pairs, depths of one side, depths of the other. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { PAIRS = 1000, STACK = 1 << 16 };

static int to[PAIRS][2], fro[PAIRS][2], depths[2];

__attribute__((noinline)) static int pass(int depth, int from, int into) {
    volatile char room[64];
    char byte;
    room[0] = (char)depth;
    if (depth)
        return pass(depth - 1, from, into) + room[0];
    if (read(from, &byte, 1) != 1 || write(into, &byte, 1) != 1)
        exit(1);
    return room[0];
}

static void *ping(void *pair) {
    for (int turn = 0;; turn++)
        pass(turn % depths[0], to[(long)pair][0], fro[(long)pair][1]);
}

static void *pong(void *pair) {
    for (int turn = 0;; turn++)
        pass(turn % depths[1], fro[(long)pair][0], to[(long)pair][1]);
}

int main(int count, char **words) {
    long pairs = count > 3 ? atol(words[1]) : 0;
    if (pairs < 1 || pairs > PAIRS)
        return 1;
    for (int side = 0; side < 2; side++)
        depths[side] = atoi(words[2 + side]);
    pthread_attr_t small;
    pthread_t thread;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK);
    for (long pair = 0; pair < pairs; pair++)
        if (pipe(to[pair]) || pipe(fro[pair]) || pthread_create(&thread, &small, ping, (void *)pair) ||
            pthread_create(&thread, &small, pong, (void *)pair))
            return 1;
    for (int pair = 0; pair < pairs; pair++)
        if (write(to[pair][1], "x", 1) != 1)
            return 1;
    pause();
}
