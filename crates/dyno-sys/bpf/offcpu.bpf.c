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
    MAP_ROWS(65536);
    MAP_KEY(struct wait_key);
    MAP_VALUE(struct wait_sum);
} waits SEC(".maps");

struct {
    MAP_KIND(HASH);
    MAP_ROWS(16384);
    MAP_KEY(u64);
    MAP_VALUE(struct waker);
} wakers SEC(".maps");

/* Shapes of user stacks that user space has a copy of. */
struct {
    MAP_KIND(HASH);
    MAP_ROWS(16384);
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

INLINE u32 watched(u32 tgid) {
    u32 *mark = lookup(&processes, &tgid);
    return mark ? *mark : 0;
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

/* One word of a stack: mixed into the hash when it lies in code. Ranges are in order, so that most words end early. */
static long mix_word(u32 at, struct reading *reading) {
    struct code *code = reading->code;
    if (at >= HASH_WORDS)
        return 1;
    u64 word = reading->words->word[at];
    if (word < code->low || word >= code->high)
        return 0;
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

/* How many words from the stack pointer up could be read: near the base of a stack fewer are there. */
INLINE u32 read_words(struct words *words, u64 sp) {
    if (!read_user(words, sizeof(*words), (void *)sp))
        return HASH_WORDS;
    if (!read_user(words, sizeof(*words) / 2, (void *)sp))
        return HASH_WORDS / 2;
    if (!read_user(words, sizeof(*words) / 8, (void *)sp))
        return HASH_WORDS / 8;
    return 0;
}

/*
 * One number for all user stacks that unwind to the same frames, as near as can be told without unwinding: where it
 * left user mode, the words near the stack pointer that may be return addresses, and how deep the stack is within its
 * page (two depths of a recursion differ in nothing else). Stale words make more shapes than there are, never fewer.
 */
INLINE u64 shape_of(struct place *place, u32 tgid) {
    u32 zero = 0;
    struct words *words = lookup(&scratch, &zero);
    struct code *code = lookup(&codes, &tgid);
    u64 hash = mixed(mixed(tgid, place->ip), place->sp & 0xfff);
    if (!words || !code)
        return hash | 1;
    struct reading reading = { words, code, hash };
    loop(read_words(words, place->sp), mix_word, &reading, 0);
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

INLINE void send_shape(void *context, struct control *all, struct place *place, u64 shape, u32 tgid) {
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
    long got = stack_addresses(context, record->frame, sizeof(record->frame), USER_STACK);
    record->frames = got > 0 ? (u32)got / 8 : 0;
    record->bytes = copy_stack(record->stack, place->sp);
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
    u32 one = 1;
    long refused = update(&shapes, &shape, &one, NEW_ONLY);
    if (!refused)
        send_shape(context, all, &place, shape, tgid);
    else if (refused != -17 /* EEXIST: another CPU was first */)
        count(&all->lost_stacks);
    return shape;
}

INLINE s32 kernel_stack(void *context, struct control *all) {
    long id = stack_id(context, &kernel_stacks, 0);
    if (id >= 0)
        return (s32)id;
    count(&all->lost_stacks);
    return NO_STACK;
}

INLINE struct thread *thread_of(u32 tid, u32 tgid, u32 state, u64 since_ns) {
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
    return lookup(&threads, &tid);
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
    if (sum) {
        __sync_fetch_and_add(&sum->ns, ns);
        __sync_fetch_and_add(&sum->count, 1);
        if (ns > sum->max_ns)
            sum->max_ns = ns;
        return;
    }
    struct wait_sum fresh = { ns, 1, ns, thread->fault };
    if (update(&waits, &key, &fresh, NEW_ONLY))
        count(&all->lost_waits);
    else if (key.object)
        tell_object(&key);
}

INLINE int is_blocked(struct task_struct *task) {
    if (HAS(task->__state))
        return task->__state != 0;
    struct task_struct___before_5_14 *old = (void *)task;
    return old->state != 0;
}

INLINE void leave(void *context, struct control *all, struct task_struct *task, int preempted, u64 now) {
    u32 tid = task->pid, tgid = task->tgid;
    if (task->flags & EXITING)
        return;
    struct thread *thread = thread_of(tid, tgid, RUNNING, all->start_ns);
    if (!thread)
        return;
    count(&all->switches);
    if (thread->state == RUNNING) {
        thread->running_ns += now - thread->since_ns;
        span(all, thread, tid, RUNNING, thread->since_ns, now);
    }
    thread->kernel_stack = kernel_stack(context, all);
    thread->shape = user_shape(context, all, task, tgid);
    thread->waker = 0;
    thread->since_ns = now;
    /* A preempted thread may have said that it is about to wait; it has not begun to. */
    thread->state = !preempted && is_blocked(task) ? BLOCKED : RUNNABLE;
}

INLINE void enter(struct control *all, struct task_struct *task, u64 now) {
    u32 tid = task->pid, tgid = task->tgid;
    struct thread *thread = thread_of(tid, tgid, RUNNABLE, all->start_ns);
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
    u32 leaves = watched(previous->tgid), enters = watched(next->tgid);
    if (!leaves && !enters)
        return 0;
    u64 now = now_ns();
    if (leaves)
        leave(context, all, previous, preempted & 1, now);
    if (enters)
        enter(all, next, now);
    return 0;
}

INLINE u64 waker_of(void *context, struct control *all) {
    struct task_struct *task = current_task();
    struct waker waker = {};
    waker.tid = task->pid;
    waker.tgid = task->tgid;
    waker.kernel_stack = kernel_stack(context, all);
    if (watched(waker.tgid) && !(task->flags & EXITING))
        waker.shape = user_shape(context, all, task, waker.tgid);
    u64 id = mixed(mixed(mixed(1, waker.tid), waker.kernel_stack), waker.shape) | 1;
    if (lookup(&wakers, &id))
        return id;
    read_kernel(waker.comm, sizeof(waker.comm), task->comm);
    long refused = update(&wakers, &id, &waker, NEW_ONLY);
    if (refused && refused != -17) {
        count(&all->lost_stacks);
        return 0;
    }
    return id;
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *context) {
    struct task_struct *task = (void *)context[0];
    struct control *all = active();
    if (!all || !watched(task->tgid))
        return 0;
    u32 tid = task->pid;
    struct thread *thread = thread_of(tid, task->tgid, BLOCKED, all->start_ns);
    if (!thread || thread->state != BLOCKED)
        return 0;
    u64 now = now_ns();
    if (now - thread->since_ns >= all->min_ns)
        thread->waker = waker_of(context, all);
    thread->woken_ns = now;
    thread->state = WOKEN;
    return 0;
}

INLINE void tell_life(struct control *all, u32 kind, struct task_struct *task, u32 parent, struct thread *thread) {
    struct life_record *record = ring_reserve(&ring, sizeof(*record), 0);
    if (!record) {
        count(&all->lost_stacks);
        return;
    }
    struct thread none = {};
    record->kind = kind;
    record->tid = task->pid;
    record->tgid = task->tgid;
    record->parent = parent;
    record->thread = thread ? *thread : none;
    read_kernel(record->comm, sizeof(record->comm), task->comm);
    ring_submit(record, 0);
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *context) {
    struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
    struct control *all = active();
    u32 from = parent->tgid, to = child->tgid, one = 1;
    if (!all || !watched(from))
        return 0;
    thread_of(child->pid, to, RUNNABLE, now_ns());
    if (from == to)
        return 0;
    update(&processes, &to, &one, ANY);
    struct code *code = lookup(&codes, &from);
    if (code)
        update(&codes, &to, code, ANY);
    tell_life(all, FORK, child, from, 0);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *context) {
    struct task_struct *task = (void *)context[0];
    struct control *all = active();
    if (all && watched(task->tgid))
        tell_life(all, EXEC, task, 0, 0);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *context) {
    struct task_struct *task = (void *)context[0];
    struct control *all = active();
    u32 tid = task->pid, tgid = task->tgid;
    if (!all || !watched(tgid))
        return 0;
    struct thread *thread = thread_of(tid, tgid, RUNNING, all->start_ns);
    if (!thread)
        return 0;
    u64 now = now_ns();
    if (thread->state == RUNNING) {
        thread->running_ns += now - thread->since_ns;
        span(all, thread, tid, RUNNING, thread->since_ns, now);
    }
    tell_life(all, EXIT, task, 0, thread);
    delete(&threads, &tid);
    return 0;
}

SEC("tp_btf/sys_enter")
int on_call(u64 *context) {
    struct task_struct *task = current_task();
    struct control *all = active();
    if (!all || !watched(task->tgid))
        return 0;
    struct thread *thread = thread_of(task->pid, task->tgid, RUNNING, all->start_ns);
    if (!thread)
        return 0;
    struct pt_regs *regs = (void *)context[0];
    s32 number = (s32)context[1];
    u32 row = (u32)number < SYSTEM_CALLS ? (u32)number : SYSTEM_CALLS - 1;
    u32 *says = lookup(&named, &row);
    u64 object = 0;
    if (says && *says) {
        struct pt_regs___arm64 *arm = (void *)regs;
        if (HAS(regs->di))
            object = regs->di;
        else if (HAS(arm->pc))
            object = arm->regs[0];
        /* A descriptor is an int: what stands above it is noise. One more, so that 0 stays none. */
        if (*says == 2)
            object = (object & 0xffffffff) + 1;
    }
    thread->object = object;
    thread->system_call = number;
    thread->entered_ns = now_ns();
    return 0;
}

INLINE u32 log2_row(u64 ns) {
    u32 row = 0;
    for (u32 step = 0; step < LOG2_ROWS - 1; step++) {
        if (!ns)
            break;
        ns >>= 1;
        row++;
    }
    return row;
}

SEC("tp_btf/sys_exit")
int on_return(u64 *context) {
    struct task_struct *task = current_task();
    struct control *all = active();
    if (!all || !watched(task->tgid))
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
    thread->object = 0;
    struct call_sum *sum = lookup(&calls, &row);
    if (!sum)
        return 0;
    sum->count++;
    sum->errors += answer < 0 && answer >= -4095;
    sum->total_ns += ns;
    if (ns > sum->max_ns)
        sum->max_ns = ns;
    u32 slot = log2_row(ns);
    if (slot < LOG2_ROWS)
        sum->log2_ns[slot]++;
    return 0;
}

SEC("tp_btf/page_fault_user")
int on_fault(u64 *context) {
    struct task_struct *task = current_task();
    struct control *all = active();
    if (!all || !watched(task->tgid))
        return 0;
    u32 tid = task->pid;
    count(&all->faults);
    struct thread *thread = lookup(&threads, &tid);
    if (thread)
        thread->fault = context[0];
    return 0;
}
