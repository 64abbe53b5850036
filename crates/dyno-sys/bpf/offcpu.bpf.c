/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Where the threads of some processes wait, for how long, and who wakes them: summed up in the kernel.
 *
 * A thread that leaves its CPU is looked at while it is still the current one: its kernel stack, and the shape of its
 * user stack. Whoever wakes it is looked at while waking. When it gets a CPU again, the time since is added to the row
 * of all that. User stacks are unwound in user space: the first one of each shape is copied there.
 *
 * Nothing is pinned: the maps and links live as long as the descriptors of the process that loaded them.
 */
#include "offcpu.h"

/* The helpers are for programs that say so; the source is under the project's own two licences. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
    MAP_KIND(ARRAY);
    MAP_FLAGS(MAPPED);
    MAP_ROWS(1);
    MAP_KEY(u32);
    MAP_VALUE(struct control);
} controls SEC(".maps");

/* Processes that are watched: thread group -> 1. */
struct {
    MAP_KIND(HASH);
    MAP_ROWS(4096);
    MAP_KEY(u32);
    MAP_VALUE(u32);
} processes SEC(".maps");

/* Where their code lies: what on a stack may be a return address. */
struct {
    MAP_KIND(HASH);
    MAP_ROWS(4096);
    MAP_KEY(u32);
    MAP_VALUE(struct code);
} codes SEC(".maps");

struct {
    MAP_KIND(HASH);
    MAP_ROWS(32768);
    MAP_KEY(u32);
    MAP_VALUE(struct thread);
} threads SEC(".maps");

struct {
    MAP_KIND(HASH);
    MAP_ROWS(WAITS);
    MAP_KEY(struct wait_key);
    MAP_VALUE(struct wait_sum);
} waits SEC(".maps");

struct {
    MAP_KIND(HASH);
    MAP_ROWS(WAKERS);
    MAP_KEY(u64);
    MAP_VALUE(struct waker);
} wakers SEC(".maps");

/* Shapes of user stacks that user space has a copy of. */
struct {
    MAP_KIND(HASH);
    MAP_ROWS(SHAPES);
    MAP_KEY(u64);
    MAP_VALUE(u32);
} shapes SEC(".maps");

struct addresses {
    u64 ip[64];
};

struct {
    MAP_KIND(STACK_TRACE);
    MAP_ROWS(16384);
    MAP_KEY(u32);
    MAP_VALUE(struct addresses);
} kernel_stacks SEC(".maps");

/*
 * Where the return addresses of a kernel stack lie. To unwind one takes ten times as long as to see that the same
 * addresses lie in the same places again: then it is the same stack, for each address says how far away the next one is.
 */
struct layout {
    s32 id;                                /* of the stack, in kernel_stacks */
    u32 frames;
    u32 sure;                              /* how often it was unwound and found alike: stale words lie elsewhere each time */
    u32 uses;
    u32 words;                             /* up to the last address */
    u32 unused;
    u32 slot[KERNEL_FRAMES];
    u64 address[KERNEL_FRAMES];
};

/* By who is looked at, and in what system call: guesses, which are checked. */
struct {
    MAP_KIND(LEAST_USED_LEAVE);
    MAP_ROWS(8192);
    MAP_KEY(u64);
    MAP_VALUE(struct layout);
} layouts SEC(".maps");

struct kernel_words {
    u64 word[KERNEL_WORDS];
    u64 ip[KERNEL_FRAMES];
    struct layout fresh;
};

struct {
    MAP_KIND(PERCPU_ARRAY);
    MAP_ROWS(1);
    MAP_KEY(u32);
    MAP_VALUE(struct kernel_words);
} kernel_scratch SEC(".maps");

struct {
    MAP_KIND(PERCPU_ARRAY);
    MAP_ROWS(SYSTEM_CALLS);
    MAP_KEY(u32);
    MAP_VALUE(struct call_sum);
} calls SEC(".maps");

/* System calls whose first argument says what they wait for. */
struct {
    MAP_KIND(ARRAY);
    MAP_ROWS(SYSTEM_CALLS);
    MAP_KEY(u32);
    MAP_VALUE(u32);
} named SEC(".maps");

struct words {
    u64 word[HASH_WORDS];
    u64 kept[HASH_WORDS];                  /* those that may be return addresses */
    u64 count;
};

struct {
    MAP_KIND(PERCPU_ARRAY);
    MAP_ROWS(1);
    MAP_KEY(u32);
    MAP_VALUE(struct words);
} scratch SEC(".maps");

struct {
    MAP_KIND(RING);
    MAP_ROWS(1 << 24);
} ring SEC(".maps");

INLINE struct control *control(void) {
    u32 zero = 0;
    return lookup(&controls, &zero);
}

INLINE struct control *active(void) {
    struct control *all = control();
    return all && all->active ? all : 0;
}

/* Strangers cost next to nothing: nearly all are ruled out by their number's bit alone. */
INLINE u64 *mark_of(struct control *all, u32 tgid) {
    return &all->mark[(tgid >> 6) & (MARKS - 1)];
}

INLINE int is_watched(struct control *all, u32 tgid) {
    if (!(*mark_of(all, tgid) >> (tgid & 63) & 1))
        return 0;
    return lookup(&processes, &tgid) != 0;
}

INLINE void count(u64 *counter) {
    __sync_fetch_and_add(counter, 1);
}

INLINE u64 mixed(u64 hash, u64 word) {
    hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
    return hash ^ (hash >> 29);
}

struct place {
    u64 ip;
    u64 sp;
    u64 bp;
};

INLINE void user_place(struct task_struct *task, struct place *place) {
    struct pt_regs *regs = user_registers(task);
    if (HAS(regs->ip)) {
        place->ip = regs->ip;
        place->sp = regs->sp;
        place->bp = regs->bp;
        return;
    }
    struct pt_regs___arm64 *arm = (void *)regs;
    if (HAS(arm->pc)) {
        place->ip = arm->pc;
        place->sp = arm->sp;
        place->bp = arm->regs[29];
    }
}

struct reading {
    struct words *words;
    struct code *code;
    u64 hash;
};

/* One word of a stack: mixed into the hash when it lies in code. Ranges are in order; absent ones begin beyond all. */
static long mix_word(u32 at, struct reading *reading) {
    struct code *code = reading->code;
    u64 word = reading->words->kept[at & (HASH_WORDS - 1)];
    for (u32 range = 0; range < RANGES; range++) {
        if (word < code->from[range])
            break;
        if (word < code->to[range]) {
            reading->hash = mixed(reading->hash, word);
            break;
        }
    }
    return 0;
}

/* Most words are none of the program's code nor near it: two comparisons tell. */
INLINE int may_be_code(struct code *code, u64 word) {
    return word - code->low[0] < code->bytes[0] || word - code->low[1] < code->bytes[1];
}

/* Near the base of a stack fewer words are there; those that could not be read become zero, which is no code. */
INLINE void read_words(struct words *words, u64 sp) {
    u32 bytes = sizeof(words->word);
    if (read_user(words->word, bytes, (void *)sp) && read_user(words->word, bytes / 2, (void *)sp))
        read_user(words->word, bytes / 8, (void *)sp);
}

enum { AT_ONCE = 16 };                     /* words: a call for each would cost as much as looking at it */

/* Keeps those words of one go that may be return addresses. */
static long keep_likely(u32 go, struct reading *reading) {
    struct words *words = reading->words;
    for (u32 at = 0; at < AT_ONCE; at++) {
        u64 word = words->word[(go * AT_ONCE + at) & (HASH_WORDS - 1)];
        if (may_be_code(reading->code, word)) {
            words->kept[words->count & (HASH_WORDS - 1)] = word;
            words->count++;
        }
    }
    return 0;
}

/*
 * One number for all user stacks that unwind to the same frames, as near as can be told without unwinding: where it
 * left user mode, the words near the stack pointer that may be return addresses, and how deep the stack is within its
 * page (two depths of a recursion differ in nothing else). Stale words make more shapes than there are, never fewer.
 */
NOINLINE u64 shape_of(struct place *place, u32 tgid) {
    u32 zero = 0;
    struct words *words = lookup(&scratch, &zero);
    struct code *code = lookup(&codes, &tgid);
    u64 hash = mixed(mixed(tgid, place->ip), place->sp & 0xfff);
    if (!words || !code)
        return hash | 1;
    read_words(words, place->sp);
    struct reading reading = { words, code, hash };
    words->count = 0;
    loop(HASH_WORDS / AT_ONCE, keep_likely, &reading, 0);
    loop((u32)words->count, mix_word, &reading, 0);
    return reading.hash | 1;
}

/* Copies the stack from its pointer up until a page is absent; chunks end on multiples of their size, as pages do. */
INLINE u32 copy_stack(u8 *into, u64 sp) {
    u32 bytes = CHUNK_BYTES - (sp & (CHUNK_BYTES - 1));
    if (bytes > CHUNK_BYTES || read_user(into, bytes, (void *)sp))
        return 0;
    for (u32 at = 0; at < STACK_BYTES / CHUNK_BYTES - 1; at++) {
        if (bytes > STACK_BYTES - CHUNK_BYTES)
            break;
        if (read_user(into + bytes, CHUNK_BYTES, (void *)(sp + bytes)))
            break;
        bytes += CHUNK_BYTES;
    }
    return bytes;
}

/* `whole`: with the stack; else it is known by its leaf alone, and callers of one would be shown for all. */
INLINE void send_shape(void *context, struct control *all, struct place *place, u64 shape, u32 tgid, u32 whole) {
    struct shape_record *record = ring_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        /* It is tried again the next time. */
        delete(&shapes, &shape);
        count(&all->lost_stacks);
        return;
    }
    record->kind = SHAPE;
    record->tgid = tgid;
    record->shape = shape;
    record->ip = place->ip;
    record->sp = place->sp;
    record->bp = place->bp;
    long got = whole ? stack_addresses(context, record->frame, sizeof(record->frame), USER_STACK) : 0;
    record->frames = got > 0 ? (u32)got / 8 : 0;
    record->bytes = whole ? copy_stack(record->stack, place->sp) : 0;
    ring_submit(record, 0);
}

/* The shape of the current thread's user stack; the first of each is sent to user space. */
INLINE u64 user_shape(void *context, struct control *all, struct task_struct *task, u32 tgid) {
    struct place place = {};
    if (!task->mm)
        return 0;
    user_place(task, &place);
    u64 shape = shape_of(&place, tgid);
    if (lookup(&shapes, &shape))
        return shape;
    u32 one = 1, whole = all->shape_rows < SHAPES_OF_WORDS;
    if (!whole) {
        shape = mixed(mixed(5, tgid), place.ip) | 1;
        if (lookup(&shapes, &shape))
            return shape;
    }
    long refused = update(&shapes, &shape, &one, NEW_ONLY);
    if (!refused) {
        count(&all->shape_rows);
        send_shape(context, all, &place, shape, tgid, whole);
    } else if (refused != -17 /* EEXIST: another CPU was first */)
        count(&all->lost_stacks);
    return shape;
}

enum { SURE = 3 };                         /* a stale address lies in one place three times in 32 * 32 * 32 */
enum { SURE_BLINDLY = 8 };                 /* and one too deep to be looked through, by its depth alone */
enum { LOOK_AGAIN = 64 };                  /* uses, until a stack is unwound again */
enum { TAKEN = 17 };                       /* EEXIST */
enum { PLACES = 6 };                       /* that are tried for a stack */
enum { INNER = 4 };                        /* frames of the tracepoint itself, at most, which lie below its arguments */

INLINE int is_sure(struct layout *layout) {
    return *(volatile u32 *)&layout->sure >= SURE;
}

/* Whether the addresses lie where they lay. */
NOINLINE u32 is_there(struct kernel_words *here, struct layout *layout, void *context) {
    u32 words = layout->words;
    if (!words || words > KERNEL_WORDS || read_kernel(here->word, words * 8, context))
        return 0;
    for (u32 at = 0; at < KERNEL_FRAMES; at++) {
        if (at >= layout->frames)
            break;
        if (here->word[layout->slot[at] & (KERNEL_WORDS - 1)] != layout->address[at])
            return 0;
    }
    return 1;
}

struct search {
    struct kernel_words *here;
    u32 start, next, end;
};

static long look_at_word(u32 at, struct search *search) {
    struct kernel_words *here = search->here;
    u32 row = search->next - search->start;
    if (search->next >= search->end || at >= KERNEL_WORDS)
        return 1;
    u64 word = here->word[at];
    if (word == here->ip[search->next & (KERNEL_FRAMES - 1)]) {
        here->fresh.slot[row & (KERNEL_FRAMES - 1)] = at;
        here->fresh.address[row & (KERNEL_FRAMES - 1)] = word;
        here->fresh.frames = row + 1;
        here->fresh.words = at + 1;
        search->next++;
    }
    return 0;
}

/* Looks for all return addresses from `start` on, one after the other; whether all are there. */
NOINLINE u32 find_slots(struct kernel_words *here, u32 start, u32 end) {
    struct search search = { here, start, start, end };
    loop(KERNEL_WORDS, look_at_word, &search, 0);
    return search.next == end;
}

/*
 * Where the addresses lie in a stack that was just unwound. The outermost is left out: before it the kernel leaves a gap
 * whose size it draws at each system call, and what called the last but one is one thing only.
 */
INLINE u32 find_layout(void *context, struct kernel_words *here) {
    u64 most = sizeof(here->word);
    u64 bytes = (u64)user_registers(current_task()) - (u64)context;
    /* On the stack of an interrupt the user's registers are elsewhere. */
    u32 there = (u32)(bytes < most ? bytes : most) & ~7U;
    long got = stack_addresses(context, here->ip, sizeof(here->ip), 0);
    if (got < 0 || got == sizeof(here->ip) || there > most || read_kernel(here->word, there, context))
        return 0;
    u32 end = (u32)got / 8 - 1;
    for (u32 start = 0; start < INNER; start++)
        if (start < end && find_slots(here, start, end))
            return 1;
    return 0;
}

NOINLINE u32 same_slots(struct layout *one, struct layout *other) {
    if (one->id != other->id || one->frames != other->frames)
        return 0;
    for (u32 at = 0; at < KERNEL_FRAMES; at++)
        if (at < one->frames && one->slot[at] != other->slot[at])
            return 0;
    return 1;
}

INLINE void learn(void *context, struct kernel_words *here, struct layout *known, u64 key, s32 id) {
    struct layout *fresh = &here->fresh;
    if (!find_layout(context, here))
        fresh->frames = fresh->words = 0;
    fresh->id = id;
    fresh->uses = 1;
    fresh->sure = 0;
    if (!known) {
        update(&layouts, &key, fresh, ANY);
    } else if (fresh->frames ? same_slots(known, fresh) : !known->frames && known->id == id) {
        known->sure++;
    } else {
        fresh->uses = known->uses;
        /* First of all, for those on other CPUs who compare with it just now. */
        *(volatile u32 *)&known->sure = 0;
        *known = *fresh;
    }
}

/*
 * Keeps the stack. A table of stacks has one place for each: where another one has it the kernel refuses. Without its innermost
 * frames, which are the tracepoint's and the scheduler's, the same stack has another place.
 */
INLINE long kept_stack(void *context) {
    long id = -TAKEN;
    for (u32 left_out = 0; left_out < PLACES && id == -TAKEN; left_out++)
        id = stack_id(context, &kernel_stacks, left_out);
    return id;
}

/*
 * The stack's number. `key`: what is likely to have the same stack again. `exactly`: the key holds so much that it stands
 * for a stack that is too deep to be looked through, once it has always been the same.
 */
INLINE s32 kernel_stack(void *context, struct control *all, u64 key, u32 exactly) {
    u32 zero = 0;
    struct kernel_words *here = lookup(&kernel_scratch, &zero);
    struct layout *known = lookup(&layouts, &key);
    u32 uses = known ? ++known->uses : 0;
    if (here && known && uses % LOOK_AGAIN && is_sure(known)) {
        s32 id = known->id;
        if (exactly && !known->frames && *(volatile u32 *)&known->sure >= SURE_BLINDLY)
            return id;
        if (is_there(here, known, context) && is_sure(known))
            return id;
    }
    s32 id = (s32)kept_stack(context);
    if (id < 0) {
        count(&all->lost_stacks);
        return NO_STACK;
    }
    /* Where it was in vain thirty times it is tried now and then only. */
    if (here && (uses < 32 || uses % LOOK_AGAIN < 2 + SURE))
        learn(context, here, known, key, id);
    return id;
}

INLINE struct thread *thread_of(struct control *all, u32 tid, u32 tgid, u32 state, u64 since_ns) {
    struct thread *known = lookup(&threads, &tid);
    if (known)
        return known;
    struct thread fresh = {};
    fresh.since_ns = since_ns;
    fresh.tgid = tgid;
    fresh.kernel_stack = NO_STACK;
    fresh.system_call = -1;
    fresh.state = state;
    update(&threads, &tid, &fresh, NEW_ONLY);
    known = lookup(&threads, &tid);
    if (!known)
        count(&all->lost_threads);
    return known;
}

INLINE void span(struct control *all, struct thread *thread, u32 tid, u32 state, u64 from_ns, u64 to_ns) {
    if (!all->spans || to_ns <= from_ns)
        return;
    struct span_record *record = ring_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        count(&all->lost_spans);
        return;
    }
    record->kind = SPAN;
    record->tid = tid;
    record->tgid = thread->tgid;
    record->state = state;
    record->from_ns = from_ns;
    record->to_ns = to_ns;
    record->kernel_stack = thread->kernel_stack;
    record->system_call = thread->system_call;
    /* The reader looks every so often: a wake-up for each of these would be most of the cost. */
    ring_submit(record, QUIETLY);
}

/* While the thread still has it: descriptors are closed and their numbers used again. */
INLINE void tell_object(struct wait_key *key) {
    struct object_record *record = ring_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return;
    record->kind = OBJECT;
    record->tgid = key->tgid;
    record->system_call = (u32)key->system_call;
    record->unused = 0;
    record->object = key->object;
    ring_submit(record, 0);
}

INLINE void add(struct control *all, struct thread *thread, u32 tid, u32 part, u64 ns) {
    if (ns < all->min_ns)
        return;
    struct wait_key key = {};
    key.shape = thread->shape;
    key.waker = part == OF_WAIT ? thread->waker : 0;
    key.object = part == OF_WAIT ? thread->object : 0;
    key.tid = tid;
    key.tgid = thread->tgid;
    key.kernel_stack = thread->kernel_stack;
    key.system_call = thread->system_call;
    key.part = part;
    struct wait_sum *sum = lookup(&waits, &key);
    if (!sum && all->wait_rows >= WAITS_OF_WAKERS) {
        key.waker = key.object = 0;
        if (all->wait_rows >= WAITS_OF_SHAPES)
            key.shape = 0;
        count(&all->coarse);
        sum = lookup(&waits, &key);
    }
    if (sum) {
        __sync_fetch_and_add(&sum->ns, ns);
        __sync_fetch_and_add(&sum->count, 1);
        if (ns > sum->max_ns)
            sum->max_ns = ns;
        return;
    }
    struct wait_sum fresh = { ns, 1, ns, thread->fault };
    if (update(&waits, &key, &fresh, NEW_ONLY)) {
        count(&all->lost_waits);
        return;
    }
    count(&all->wait_rows);
    if (key.object)
        tell_object(&key);
}

INLINE int is_blocked(struct task_struct *task) {
    if (HAS(task->__state))
        return task->__state != 0;
    struct task_struct___before_5_14 *old = (void *)task;
    return old->state != 0;
}

/* What the first argument of the system call says that the thread waits for; 0 where it says nothing. */
INLINE u64 object_of(struct task_struct *task, s32 system_call) {
    u32 row = (u32)system_call < SYSTEM_CALLS ? (u32)system_call : SYSTEM_CALLS - 1;
    u32 *says = lookup(&named, &row);
    if (system_call < 0 || !says || !*says)
        return 0;
    struct pt_regs *regs = user_registers(task);
    struct pt_regs___arm64 *arm = (void *)regs;
    u64 object = 0;
    if (HAS(regs->di))
        object = regs->di;
    else if (HAS(arm->pc))
        object = arm->regs[0];
    /* A descriptor is an int: what stands above it is noise. One more, so that 0 stays none. */
    return *says == 2 ? (object & 0xffffffff) + 1 : object;
}

struct pt_regs___arm64_call {
    int syscallno;
} MOVED;

/* The system call that the current thread is in, as the kernel keeps it beside the user's registers; -1 outside of one. */
INLINE s32 call_of(struct task_struct *task) {
    struct pt_regs *regs = user_registers(task);
    struct pt_regs___arm64_call *arm = (void *)regs;
    if (!task->mm || task->flags & OF_KERNEL)
        return -1;
    if (HAS(regs->orig_ax))
        return (s32)regs->orig_ax;
    return HAS(arm->syscallno) ? arm->syscallno : -1;
}

INLINE void leave(void *context, struct control *all, struct task_struct *task, int preempted, u64 now) {
    u32 tid = task->pid, tgid = task->tgid;
    if (task->flags & EXITING)
        return;
    struct thread *thread = thread_of(all, tid, tgid, RUNNING, all->start_ns);
    if (!thread)
        return;
    count(&all->switches);
    if (thread->state == RUNNING) {
        thread->running_ns += now - thread->since_ns;
        span(all, thread, tid, RUNNING, thread->since_ns, now);
    }
    if (!all->calls)
        thread->system_call = call_of(task);
    thread->shape = user_shape(context, all, task, tgid);
    thread->kernel_stack = kernel_stack(context, all, mixed(mixed(2, thread->shape), thread->system_call), 0);
    thread->object = object_of(task, thread->system_call);
    thread->waker = 0;
    thread->since_ns = now;
    /* A preempted thread may have said that it is about to wait; it has not begun to. */
    thread->state = !preempted && is_blocked(task) ? BLOCKED : RUNNABLE;
}

INLINE void enter(struct control *all, struct task_struct *task, u64 now) {
    u32 tid = task->pid, tgid = task->tgid;
    /* A thread's end takes a while after its row was taken out; a new one would be dated from the start. */
    if (task->flags & EXITING)
        return;
    struct thread *thread = thread_of(all, tid, tgid, RUNNABLE, all->start_ns);
    if (!thread || thread->state == RUNNING)
        return;
    u64 since = thread->since_ns;
    if (thread->state == RUNNABLE) {
        thread->runnable_ns += now - since;
        span(all, thread, tid, RUNNABLE, since, now);
        add(all, thread, tid, OF_PREEMPTION, now - since);
    } else {
        /* A wake-up that was missed gives all the time to the wait. */
        u64 woken = thread->state == WOKEN ? thread->woken_ns : now;
        thread->waiting_ns += woken - since;
        thread->runnable_ns += now - woken;
        span(all, thread, tid, BLOCKED, since, woken);
        span(all, thread, tid, RUNNABLE, woken, now);
        add(all, thread, tid, OF_WAIT, woken - since);
        if (now > woken)
            add(all, thread, tid, OF_QUEUE, now - woken);
    }
    thread->since_ns = now;
    thread->fault = 0;
    thread->state = RUNNING;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *context) {
    int preempted = (int)context[0];
    struct task_struct *previous = (void *)context[1], *next = (void *)context[2];
    struct control *all = active();
    if (!all)
        return 0;
    int leaves = is_watched(all, previous->tgid), enters = is_watched(all, next->tgid);
    if (!leaves && !enters)
        return 0;
    u64 now = now_ns();
    if (leaves)
        leave(context, all, previous, preempted & 1, now);
    if (enters)
        enter(all, next, now);
    return 0;
}

/* How much of the kernel's stack is in use; of an interrupt's own stack only that it is another one. */
INLINE u64 depth(void *context, struct task_struct *task) {
    return (u64)user_registers(task) - (u64)context;
}

INLINE u64 waker_of(void *context, struct control *all, struct thread *woken) {
    struct task_struct *task = current_task();
    struct waker waker = {};
    waker.tid = task->pid;
    waker.tgid = task->tgid;
    if (is_watched(all, waker.tgid) && !(task->flags & EXITING))
        waker.shape = user_shape(context, all, task, waker.tgid);
    u64 way = mixed(mixed((u32)woken->kernel_stack, woken->system_call), depth(context, task));
    waker.kernel_stack = kernel_stack(context, all, mixed(mixed(mixed(4, waker.tid), waker.shape), way), 1);
    u64 id = mixed(mixed(mixed(1, waker.tid), waker.kernel_stack), waker.shape) | 1;
    if (lookup(&wakers, &id))
        return id;
    if (all->waker_rows >= WAKERS_OF_SHAPES) {
        waker.shape = 0;
        waker.kernel_stack = NO_STACK;
        id = mixed(6, waker.tid) | 1;
        if (lookup(&wakers, &id))
            return id;
    }
    read_kernel(waker.comm, sizeof(waker.comm), task->comm);
    long refused = update(&wakers, &id, &waker, NEW_ONLY);
    if (refused && refused != -17) {
        count(&all->lost_stacks);
        return 0;
    }
    count(&all->waker_rows);
    return id;
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *context) {
    struct task_struct *task = (void *)context[0];
    struct control *all = active();
    if (!all || !is_watched(all, task->tgid) || task->flags & EXITING)
        return 0;
    u32 tid = task->pid;
    struct thread *thread = thread_of(all, tid, task->tgid, BLOCKED, all->start_ns);
    if (!thread || thread->state != BLOCKED)
        return 0;
    u64 now = now_ns();
    if (now - thread->since_ns >= all->min_ns)
        thread->waker = waker_of(context, all, thread);
    thread->woken_ns = now;
    thread->state = WOKEN;
    return 0;
}

/* Whether it was told: the ring may be full. `tid`: the thread's number, which an exec may have changed. */
INLINE int tell_life(u32 kind, struct task_struct *task, u32 tid, u32 parent, struct thread *thread) {
    struct life_record *record = ring_reserve(&ring, sizeof(*record), 0);
    if (!record)
        return 0;
    struct thread none = {};
    record->kind = kind;
    record->tid = tid;
    record->tgid = task->tgid;
    record->parent = parent;
    record->thread = thread ? *thread : none;
    read_kernel(record->comm, sizeof(record->comm), task->comm);
    ring_submit(record, 0);
    return 1;
}

/* Takes a thread's row out and tells its sums. Where the ring is full the row stays, and is found at the end. */
INLINE void end_thread(struct task_struct *task, u32 tid, struct thread *thread) {
    if (tell_life(EXIT, task, tid, 0, thread))
        delete(&threads, &tid);
    else
        thread->state = ENDED;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *context) {
    struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
    struct control *all = active();
    u32 from = parent->tgid, to = child->tgid, tid = child->pid, one = 1;
    if (!all || !is_watched(all, from))
        return 0;
    struct thread *before = lookup(&threads, &tid);
    if (before) {
        /* One that ended untold had this number. */
        count(&all->lost_threads);
        delete(&threads, &tid);
    }
    thread_of(all, tid, to, RUNNABLE, now_ns());
    if (from == to)
        return 0;
    if (update(&processes, &to, &one, ANY))
        count(&all->lost_processes);
    __sync_fetch_and_or(mark_of(all, to), 1ULL << (to & 63));
    struct code *code = lookup(&codes, &from);
    if (code)
        update(&codes, &to, code, ANY);
    if (!tell_life(FORK, child, tid, from, 0))
        count(&all->lost_stacks);
    return 0;
}

/*
 * A thread that is not the leader takes the leader's number when it runs another program. Under its old number it ends
 * where that last had a CPU; the rest is the new number's. A switch in between made a row there that is dated from the
 * start, with all the time since as running.
 */
INLINE void renumber(struct control *all, struct task_struct *task, u32 before) {
    u32 tid = task->pid;
    struct thread *old = tid == before ? 0 : lookup(&threads, &before);
    if (!old)
        return;
    u64 since = old->since_ns;
    struct thread *fresh = lookup(&threads, &tid);
    if (fresh)
        fresh->running_ns -= since - all->start_ns;
    else
        thread_of(all, tid, task->tgid, RUNNING, since);
    end_thread(task, before, old);
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *context) {
    struct task_struct *task = (void *)context[0];
    struct control *all = active();
    if (!all || !is_watched(all, task->tgid))
        return 0;
    renumber(all, task, (u32)context[1]);
    if (!tell_life(EXEC, task, task->pid, 0, 0))
        count(&all->lost_stacks);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *context) {
    struct task_struct *task = (void *)context[0];
    struct control *all = active();
    u32 tid = task->pid, tgid = task->tgid;
    if (!all || !is_watched(all, tgid))
        return 0;
    struct thread *thread = thread_of(all, tid, tgid, RUNNING, all->start_ns);
    u64 now = now_ns();
    if (thread && thread->state == RUNNING) {
        thread->running_ns += now - thread->since_ns;
        span(all, thread, tid, RUNNING, thread->since_ns, now);
    }
    if (thread)
        end_thread(task, tid, thread);
    /* Numbers are given again: a later process of this one is a stranger, and the tables have room for others. */
    if (task->signal->live.counter == 0) {
        delete(&processes, &tgid);
        delete(&codes, &tgid);
    }
    return 0;
}

SEC("tp_btf/sys_enter")
int on_call(u64 *context) {
    struct task_struct *task = current_task();
    struct control *all = active();
    if (!all || !is_watched(all, task->tgid))
        return 0;
    struct thread *thread = thread_of(all, task->pid, task->tgid, RUNNING, all->start_ns);
    if (!thread)
        return 0;
    thread->system_call = (s32)context[1];
    thread->entered_ns = now_ns();
    return 0;
}

/* The number of bits that it takes to write `ns`. */
INLINE u32 log2_row(u64 ns) {
    u32 row = 0;
    for (u32 half = 32; half; half >>= 1) {
        if (ns >> half) {
            ns >>= half;
            row += half;
        }
    }
    return ns ? row + 1 : 0;
}

SEC("tp_btf/sys_exit")
int on_return(u64 *context) {
    struct task_struct *task = current_task();
    struct control *all = active();
    if (!all || !is_watched(all, task->tgid))
        return 0;
    u32 tid = task->pid;
    struct thread *thread = lookup(&threads, &tid);
    if (!thread || thread->system_call < 0)
        return 0;
    s64 answer = (s64)context[1];
    u64 ns = now_ns() - thread->entered_ns;
    u32 number = (u32)thread->system_call;
    u32 row = number < SYSTEM_CALLS ? number : SYSTEM_CALLS - 1;
    thread->system_call = -1;
    struct call_sum *sum = lookup(&calls, &row);
    if (!sum)
        return 0;
    sum->count++;
    sum->errors += answer < 0 && answer >= -4095;
    sum->total_ns += ns;
    if (ns > sum->max_ns)
        sum->max_ns = ns;
    u32 slot = log2_row(ns);
    sum->log2_ns[slot < LOG2_ROWS ? slot : LOG2_ROWS - 1]++;
    return 0;
}

SEC("tp_btf/page_fault_user")
int on_fault(u64 *context) {
    struct task_struct *task = current_task();
    struct control *all = active();
    if (!all || !is_watched(all, task->tgid))
        return 0;
    u32 tid = task->pid;
    count(&all->faults);
    struct thread *thread = lookup(&threads, &tid);
    if (thread)
        thread->fault = context[0];
    return 0;
}
