/* A bounded queue between stages of threads. What is handed on is a number; a closed queue is left by everybody. */
#ifndef QUEUE_H
#define QUEUE_H

#include "harness.h"

#define QUEUE_PLACES_MAX 16

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int places;
    int used;
    int first;
    int closed;
    long long items[QUEUE_PLACES_MAX];
};

static inline void queue_begin(struct queue *queue, int places) {
    memset(queue, 0, sizeof *queue);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->changed, NULL);
    queue->places = places;
}

/* 1 when it was put there, 0 when nobody takes any more. */
static inline int queue_put(struct queue *queue, long long item) {
    pthread_mutex_lock(&queue->lock);
    while (queue->used == queue->places && !queue->closed)
        pthread_cond_wait(&queue->changed, &queue->lock);
    int open = !queue->closed;
    if (open)
        queue->items[(queue->first + queue->used++) % queue->places] = item;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return open;
}

/* The item, or -1 when the queue is closed. */
static inline long long queue_take(struct queue *queue) {
    long long item = -1;
    pthread_mutex_lock(&queue->lock);
    while (!queue->used && !queue->closed)
        pthread_cond_wait(&queue->changed, &queue->lock);
    if (!queue->closed) {
        item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->places;
        queue->used--;
    }
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
    return item;
}

static inline void queue_close(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    queue->closed = 1;
    pthread_cond_broadcast(&queue->changed);
    pthread_mutex_unlock(&queue->lock);
}

#endif
