/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * Virtual speed-up from outside: whenever a sample lies in the code that is tried, all other threads of the target are
 * paused for a while, so that the code has become faster relative to them.
 *
 * Each thread has a position: how much inserted delay it has paid, or was credited with. A hit moves the thread's own
 * position on, and with it the greatest of all; whoever lies behind pauses, at its own next sample, until it has caught
 * up. A thread that is woken by another one takes over what was inserted while it slept, as far as its waker has come:
 * it would have slept that much longer. One that is woken by time, a disk or a stranger pays.
 *
 * A pause is a bounded spin in the paused thread's own context, either on its way back to user mode or inside the
 * sample's program. Nothing is stopped, signalled or injected. When the reader dies its descriptors close and the
 * programs go; when it hangs, the deadline lets everybody run.
 */
#include "causal.h"

/* The helpers are for programs that say so; the source is under the project's own two licences. */
char LICENSE[] SEC("license") = "Dual MIT/GPL";

struct {
    MAP_KIND(ARRAY);
    MAP_FLAGS(MAPPED);
    MAP_ROWS(1);
    MAP_KEY(u32);
    MAP_VALUE(struct control);
} controls SEC(".maps");

/* Processes that take part: thread group -> role. */
struct {
    MAP_KIND(HASH);
    MAP_ROWS(4096);
    MAP_KEY(u32);
    MAP_VALUE(u32);
} processes SEC(".maps");

struct {
    MAP_KIND(HASH);
    MAP_ROWS(32768);
    MAP_KEY(u32);
    MAP_VALUE(struct thread);
} threads SEC(".maps");

struct {
    MAP_KIND(ARRAY);
    MAP_ROWS(CODES);
    MAP_KEY(u32);
    MAP_VALUE(struct ranges);
} code SEC(".maps");

struct {
    MAP_KIND(PERCPU_ARRAY);
    MAP_ROWS(POINTS);
    MAP_KEY(u32);
    MAP_VALUE(struct point);
} points SEC(".maps");

/* What a system call waits for. */
struct {
    MAP_KIND(ARRAY);
    MAP_ROWS(SYSTEM_CALLS);
    MAP_KEY(u32);
    MAP_VALUE(u32);
} kinds SEC(".maps");

/* Returns with data, by number: what might be taken for progress. */
struct {
    MAP_KIND(PERCPU_ARRAY);
    MAP_ROWS(SYSTEM_CALLS);
    MAP_KEY(u32);
    MAP_VALUE(u64);
} returns SEC(".maps");

/* Sixteen bytes of code, or the kernel -> samples of the target that fell there. User space empties it. */
struct {
    MAP_KIND(HASH);
    MAP_ROWS(PLACES);
    MAP_KEY(u64);
    MAP_VALUE(u64);
} places SEC(".maps");

struct addresses {
    u64 ip[FRAMES];
};

struct {
    MAP_KIND(PERCPU_ARRAY);
    MAP_ROWS(1);
    MAP_KEY(u32);
    MAP_VALUE(struct addresses);
} stacks SEC(".maps");

INLINE struct control *control(void) {
    u32 zero = 0;
    return lookup(&controls, &zero);
}

INLINE struct control *active(void) {
    struct control *all = control();
    return all && all->active ? all : 0;
}

INLINE u32 role_of(u32 tgid) {
    u32 *role = lookup(&processes, &tgid);
    return role ? *role : 0;
}

INLINE void add(u64 *counter, u64 more) {
    __sync_fetch_and_add(counter, more);
}

INLINE void count(u64 *counter) {
    add(counter, 1);
}

/* Positions of an earlier experiment are worth nothing. */
INLINE void freshen(struct control *all, struct thread *thread) {
    if (thread->epoch == all->epoch)
        return;
    thread->position_ns = 0;
    thread->inserted_off_ns = 0;
    thread->owed_ns = 0;
    thread->spun = 0;
    thread->epoch = all->epoch;
}

INLINE struct thread *known(struct control *all, u32 tid) {
    struct thread *thread = tid ? lookup(&threads, &tid) : 0;
    if (thread)
        freshen(all, thread);
    return thread;
}

INLINE struct thread *born(struct control *all, u32 tid, u32 role, u64 position_ns) {
    struct thread fresh = {};
    fresh.position_ns = position_ns;
    fresh.epoch = all->epoch;
    fresh.inserted_off_ns = all->inserted_ns;
    fresh.off_ns = now_ns();
    fresh.role = role;
    if (update(&threads, &tid, &fresh, NEW_ONLY))
        count(&all->lost);
    return lookup(&threads, &tid);
}

/* A CPU that loses the race four times leaves the greatest to the others, who are about to set it. */
INLINE void insert(struct control *all, struct thread *thread, u64 delay_ns) {
    thread->position_ns += delay_ns;
    u64 mine = thread->position_ns;
    for (int tries = 0; tries < 4; tries++) {
        u64 greatest = all->inserted_ns;
        if (mine <= greatest || __sync_bool_compare_and_swap(&all->inserted_ns, greatest, mine))
            return;
    }
}

/* Marks of an earlier time of watching say nothing: nobody saw the thread leave. */
INLINE int is_on_core(struct control *all, struct thread *thread) {
    return thread->on_core == (u32)all->watch;
}

struct spin {
    struct control *all;
    u64 until_ns;
};

static long is_over(u32 round, struct spin *spin) {
    (void)round;
    u64 now = now_ns();
    return now >= spin->until_ns || now > spin->all->deadline_ns || !spin->all->active;
}

/* A million looks at the clock are some 30 ms and eight million, the most that the kernel allows, some 250: longer than
 * what is asked for, and an end in any case. */
enum { LOOKS_PAUSED = 1 << 20, LOOKS_SLOWED = 1 << 23 };

INLINE u64 spin(struct control *all, u64 from_ns, u64 ns, u32 looks) {
    struct spin spin = { all, from_ns + ns };
    loop(looks, is_over, &spin, 0);
    return now_ns() - from_ns;
}

/* A thread that was sampled in user mode has done nothing since: its pause began then. Longer ago than this, it was
 * scheduled out in between. */
enum { LAG_NS_MAX = 200000 };

/* By how much a pause is made shorter for what the interrupts of samples take. Pauses begin with samples, so that the
 * interrupts for all but their whole periods lie outside of them: the less time is left beside pauses, the more they weigh
 * in it, and that share of theirs is no work that was done. On the other hand a pause that is counted from a sample in user
 * mode has swallowed the end of its own interrupt: a quarter of it, as measured, with what returning from a pause takes. */
INLINE s64 interrupted(struct control *all, u64 pause_ns, int since_sample) {
    u64 period_ns = all->period_ns, interrupt_ns = all->interrupt_ns;
    if (!period_ns)
        return 0;
    s64 outside = (s64)(interrupt_ns * (pause_ns % period_ns) / period_ns);
    return since_sample ? outside - (s64)(interrupt_ns / 4) : outside;
}

/* No longer than the longest pause. */
INLINE u64 cut(struct control *all, u64 debt_ns) {
    if (debt_ns <= all->pause_ns_max)
        return debt_ns;
    count(&all->capped);
    return all->pause_ns_max;
}

/* When a pause has begun: with its sample, if that was just now. */
INLINE u64 begun(u64 since_ns, u64 now) {
    return since_ns && since_ns < now && now - since_ns < LAG_NS_MAX ? since_ns : now;
}

INLINE u64 pause(struct control *all, struct thread *thread, u64 from, u64 ns, u64 asked_ns) {
    thread->paused = 1;
    u64 spent = spin(all, from, ns, LOOKS_PAUSED);
    thread->paused = 0;
    count(&all->pauses);
    add(&all->asked_ns, asked_ns);
    add(&all->paid_ns, spent);
    return spent;
}

/* Really slower: who was hit pauses itself, and no position moves. */
INLINE void pay_own(struct control *all, struct thread *thread, u64 since_ns) {
    if (!thread->owed_ns)
        return;
    u64 owed = cut(all, thread->owed_ns);
    thread->owed_ns = 0;
    pause(all, thread, begun(since_ns, now_ns()), owed, owed);
}

INLINE void pay(struct control *all, struct thread *thread, u64 since_ns) {
    if (!all->active)
        return;
    freshen(all, thread);
    if (all->own_ns) {
        pay_own(all, thread, since_ns);
        return;
    }
    u64 greatest = all->inserted_ns;
    if (greatest <= thread->position_ns)
        return;
    u64 debt = cut(all, greatest - thread->position_ns), now = now_ns(), from = begun(since_ns, now);
    add(&all->lag_ns, now - thread->sampled_ns);
    s64 worked_less_ns = interrupted(all, debt, from == since_ns);
    u64 spent = pause(all, thread, from, debt - worked_less_ns, debt);
    s64 gained = (s64)spent + worked_less_ns;
    u64 reached = thread->position_ns + (gained > 0 ? gained : 0);
    greatest = all->inserted_ns;
    /* What it paused too long is lost: never ahead of all others by waiting. */
    if (reached > greatest)
        reached = greatest;
    if (reached > thread->position_ns)
        thread->position_ns = reached;
}

/* Whether an address lies in such code: in the last piece that begins at or before it. */
APART u32 is_within(u64 ip, u32 which) {
    struct ranges *all = lookup(&code, &which);
    if (!all)
        return 0;
    u64 low = 0, high = all->count;
    for (int step = 0; step < RANGE_STEPS; step++) {
        u64 middle = (low + high) / 2;
        if (low >= high || middle >= RANGES)
            break;
        if (ip < all->from[middle])
            high = middle;
        else
            low = middle + 1;
    }
    u64 piece = low - 1;
    return piece < RANGES && ip < all->to[piece];
}

/* Of `struct bpf_perf_event_data`: the user-visible registers of x86-64 begin it, a fixed layout (uapi/asm/ptrace.h). */
enum { IP_AT = 16 * 8, SP_AT = 19 * 8 };

/* Where a sample found its thread in user mode, or where that thread had entered the kernel. */
struct place {
    u64 ip;
    u64 sp;
    u32 user_mode;
};

INLINE void place_of(void *context, struct task_struct *task, struct place *place) {
    /* Volatile: the verifier wants the context read at fixed places, not through a pointer that might be another. */
    place->ip = *(volatile u64 *)(context + IP_AT);
    place->sp = *(volatile u64 *)(context + SP_AT);
    place->user_mode = !(place->ip >> 63 & 1);
    if (place->user_mode)
        return;
    struct pt_regs *regs = user_registers(task);
    place->ip = regs->ip;
    place->sp = regs->sp;
}

struct walk {
    struct addresses *stack;
    u64 frames;
    u32 hit;
};

static long look_at_frame(u32 at, struct walk *walk) {
    if (at >= walk->frames || at >= FRAMES)
        return 1;
    /* A caller is looked up where its call is, not where it goes on. */
    walk->hit = is_within(walk->stack->ip[at] - (at ? 1 : 0), SITE);
    /* A callback says 0 or 1, and the kernel believes no function that is checked apart. */
    return walk->hit != 0;
}

INLINE u32 is_on_stack(void *context, struct place *place) {
    u32 zero = 0;
    u64 top = 0;
    struct addresses *stack = lookup(&stacks, &zero);
    if (!stack)
        return 0;
    /* A leaf without a frame of its own hides its caller from the walk; where it returns to lies on top. */
    if (!read_user(&top, sizeof(top), (void *)place->sp) && is_within(top - 1, SITE))
        return 1;
    long bytes = stack_addresses(context, stack, sizeof(*stack), USER_STACK);
    if (bytes <= 0)
        return 0;
    struct walk walk = { stack, (u64)bytes / 8, 0 };
    loop(FRAMES, look_at_frame, &walk, 0);
    return walk.hit;
}

/* Each step waits for the one before it: together they take as long as the clock of this CPU says, and longer where a
 * neighbour has the same core. What became faster together with them has become so by the machine. Half a microsecond; what took
 * half as much again as ever before was interrupted. */
enum { STEPS = 512 };

APART u64 steps(u64 value) {
    for (int at = 0; at < STEPS; at++) {
        value = value * 1103515245 + 12345;
        /* The compiler sees no way to do all of them at once. */
        asm volatile("" : "+r"(value));
    }
    return value;
}

INLINE void step(struct control *all) {
    u64 begun_ns = now_ns(), last = steps(begun_ns);
    /* Not before the last step. */
    asm volatile("" : : "r"(last));
    u64 took = now_ns() - begun_ns, least = all->steps_least_ns;
    if (!least || took < least)
        all->steps_least_ns = least = took;
    if (took > least + least / 2)
        return;
    add(&all->steps_ns, took);
    count(&all->stepped);
}

/* The thread that a sample hit, if it is to be looked at any further; counted in any case. */
INLINE struct thread *sampled(struct control *all, struct task_struct *task, u64 now) {
    u32 tid = task->pid;
    if (now > all->deadline_ns) {
        all->active = 0;
        count(&all->expired);
        return 0;
    }
    count(&all->ticks);
    if (!tid) {
        count(&all->idle);
        return 0;
    }
    u32 role = role_of(task->tgid);
    if (!role) {
        /* What the kernel's own threads do somebody asked for, mostly the target: its packets, its files. */
        if (!(task->flags & (OF_KERNEL | EXITING)))
            count(&all->foreign);
        return 0;
    }
    /* One that ends pauses no more: what it has paid is given to who waits for its end, and no more than that. */
    if (task->flags & EXITING)
        return 0;
    struct thread *thread = known(all, tid);
    if (!thread)
        thread = born(all, tid, role, all->inserted_ns);
    if (!thread)
        return 0;
    thread->on_core = (u32)all->watch;
    if (thread->paused) {
        count(&all->pausing);
        return 0;
    }
    count(role & TARGET ? &all->samples : &all->beside);
    if (role & TARGET)
        step(all);
    thread->role = role;
    return thread;
}

/* A thread that waits in a loop has waited for whatever was inserted meanwhile, like one that sleeps, and owes nothing; but
 * nobody says when its wait ends. That lies between two samples, and of what was inserted in between what came before the
 * end is no debt. How much that was shows afterwards: as fast as more was inserted between the two samples before, and as it
 * is between the two that follow. Whether the thread is to pay nothing yet. */
INLINE int spins(struct control *all, struct thread *thread, struct place *place) {
    u64 greatest = all->inserted_ns, since_ns = thread->spun_at_ns;
    u64 more = greatest > since_ns ? greatest - since_ns : 0;
    int is_in_loop = thread->role & TARGET && is_within(place->ip, LOOPS);
    if (!is_in_loop && !thread->spun)
        return 0;
    count(&all->of_spinners);
    if (thread->spun == LEFT) {
        thread->spun = OUT;
        /* Who is ahead of all has inserted itself what was inserted since. */
        u64 before = thread->before_ns, both = before + (thread->position_ns < greatest ? more : 0);
        /* In microseconds: the product of two times in nanoseconds may be too great. Hits of its own have hidden since behind
         * what it seemed to owe. */
        insert(all, thread, both ? thread->late_ns / 1000 * before / both * 1000 : thread->late_ns / 2);
        greatest = all->inserted_ns;
    }
    if (is_in_loop) {
        count(&all->spun);
        thread->before_ns = thread->spun == IN_LOOP ? more : 0;
        if (thread->position_ns < greatest)
            thread->position_ns = greatest;
    } else if (thread->spun == IN_LOOP) {
        count(&all->spins);
        thread->late_ns = greatest > thread->position_ns ? greatest - thread->position_ns : 0;
    } else {
        return 0;
    }
    thread->spun = is_in_loop ? IN_LOOP : LEFT;
    thread->spun_at_ns = greatest;
    return 1;
}

enum { IN_KERNEL = 0, PLACE_BITS = 4 };

/* One that two CPUs begin at once, or that there is no room for, is missing in the sum, and user space sees that. */
INLINE void note(struct place *place) {
    u64 key = place->user_mode ? place->ip >> PLACE_BITS : IN_KERNEL, first = 1;
    u64 *fell = lookup(&places, &key);
    if (fell)
        count(fell);
    else
        update(&places, &key, &first, NEW_ONLY);
}

/* Moves positions on when the sample is a hit; whether its thread has to pause. */
INLINE int is_behind(void *context, struct control *all, struct thread *thread, struct place *place) {
    /* Before its own hit: what it owes by then is told from that. */
    int waits = spins(all, thread, place);
    if (thread->role & TARGET && !all->wait_kinds) {
        if (all->reach ? is_on_stack(context, place) : is_within(place->ip, SITE)) {
            count(&all->hits);
            if (all->own_ns)
                thread->owed_ns += all->own_ns;
            else if (all->delay_ns)
                insert(all, thread, all->delay_ns);
        }
    }
    if (thread->role & TARGET && all->places && all->window)
        note(place);
    return thread->owed_ns || (!waits && all->inserted_ns > thread->position_ns);
}

static int pay_later(void *map, void *key, void *value) {
    (void)map;
    (void)key;
    struct thread *thread = value;
    struct control *all = control();
    thread->scheduled = 0;
    if (all)
        pay(all, thread, thread->user_mode ? thread->sampled_ns : 0);
    return 0;
}

/*
 * bpf_task_work_schedule_resume_impl(), a function of the kernel that the loader does not know how to name: the call is
 * written by hand with a mark where the function's number belongs, and user space puts the running kernel's there.
 */
INLINE long schedule_pause(struct task_struct *task, struct thread *thread) {
    long answer;
    asm volatile("r1 = %1\n"
                 "r2 = %2\n"
                 "r3 = %3\n"
                 "r4 = %4\n"
                 "r5 = 0\n"
                 ".8byte 0x7EADBEEF00002085\n"
                 "%0 = r0"
                 : "=r"(answer)
                 : "r"(task), "r"(&thread->work), "r"(&threads), "r"(pay_later)
                 : "r0", "r1", "r2", "r3", "r4", "r5", "memory");
    return answer;
}

/* -EBUSY */
enum { BUSY = -16 };

/* Samples whose pauses are taken on the way back to user mode (Linux 6.18). */
SEC("perf_event/later")
int sample_later(void *context) {
    struct control *all = active();
    if (!all)
        return 0;
    struct task_struct *task = current_task();
    u64 now = now_ns();
    struct thread *thread = sampled(all, task, now);
    if (!thread)
        return 0;
    struct place place;
    place_of(context, task, &place);
    if (!is_behind(context, all, thread, &place) || thread->scheduled)
        return 0;
    thread->scheduled = 1;
    thread->sampled_ns = now;
    thread->user_mode = place.user_mode;
    /* The kernel's function returns an int: what stands above it in the register says nothing. */
    int refused = (int)schedule_pause(task, thread);
    if (refused) {
        thread->scheduled = 0;
        /* The pause before is over, and the kernel is still putting it away: nothing is lost, the next sample pays. */
        if (refused != BUSY)
            count(&all->missed);
    }
    return 0;
}

/* Samples that pause on the spot, with interrupts off: user space keeps these pauses short. */
SEC("perf_event/now")
int sample_now(void *context) {
    struct control *all = active();
    if (!all)
        return 0;
    struct task_struct *task = current_task();
    u64 now = now_ns();
    struct thread *thread = sampled(all, task, now);
    if (!thread)
        return 0;
    struct place place;
    place_of(context, task, &place);
    if (!is_behind(context, all, thread, &place))
        return 0;
    thread->sampled_ns = now;
    pay(all, thread, 0);
    return 0;
}

/* The credit: all that was inserted while the thread was off its core, and old debt as far as the time off would have
 * hidden it; never past the one who gives it. */
INLINE u64 credit(struct control *all, struct thread *thread, u64 giver_ns, u64 now) {
    if (giver_ns <= thread->position_ns)
        return 0;
    u64 greatest = all->inserted_ns, off = thread->inserted_off_ns;
    u64 inserted = greatest > off ? greatest - off : 0;
    u64 debt = off > thread->position_ns ? off - thread->position_ns : 0;
    u64 away = now - thread->off_ns;
    u64 most = inserted + (debt < away ? debt : away);
    u64 behind = giver_ns - thread->position_ns;
    u64 given = behind < most ? behind : most;
    thread->position_ns += given;
    return given;
}

/* Within a system call the register of its answer says "no such call" (-ENOSYS) until there is one. */
INLINE int is_in_call(struct pt_regs *regs) {
    return (s64)regs->ax == -38;
}

/* Bits of a CPU's count of reasons not to be preempted (linux/preempt.h): it serves a soft interrupt, a hard one. */
enum { SERVES_SOFT = 0x100, IN_HARD = 0xff0000 };

/* Whether an interrupt wakes: then the current thread has nothing to do with it. A soft interrupt counts for the current
 * thread where that is in a system call: on the loopback device it is the sender. Else it was interrupted in user mode, by
 * a card's packet or a timer. The counter lies as far from each CPU's run queue as from any other's. */
INLINE int in_interrupt(struct control *all, struct task_struct *task) {
    u32 preempt_count = 0;
    u64 run_queue = 0;
    struct cfs_rq *queue = task->se.cfs_rq;
    /* Copied, so that it is a number: the verifier lets nobody walk from one variable to another. */
    read_kernel(&run_queue, sizeof(run_queue), &queue->rq);
    read_kernel(&preempt_count, sizeof(preempt_count), (void *)(run_queue + all->preempt_count_at));
    if (preempt_count & IN_HARD)
        return 1;
    return preempt_count & SERVES_SOFT && !is_in_call(user_registers(task));
}

/* A wait of the chosen kind ended: its thread is that much ahead, so that all others pay for it. Delays that the thread
 * was just credited with made its wait longer than it was; and what lay before the start is no part of it. */
INLINE void shorten(struct control *all, struct thread *thread, u64 now, u64 credited) {
    u64 from = thread->off_ns > all->start_ns ? thread->off_ns : all->start_ns;
    u64 lasted = now > from ? now - from : 0;
    if (lasted <= credited)
        return;
    count(&all->hits);
    if (all->wait_percent)
        insert(all, thread, (lasted - credited) * all->wait_percent / 100);
}

SEC("tp_btf/sched_waking")
int on_waking(u64 *context) {
    struct control *all = active();
    if (!all)
        return 0;
    struct task_struct *task = (void *)context[0], *by = current_task();
    struct thread *thread = known(all, task->pid);
    /* One that has not left its core yet has waited for nothing. */
    if (!thread || is_on_core(all, thread))
        return 0;
    struct thread *waker = in_interrupt(all, by) ? 0 : known(all, by->pid);
    u64 now = now_ns(), credited = 0;
    if (waker)
        credited = credit(all, thread, waker->position_ns, now);
    /* Counted is what happens to the target; what it does to participants is theirs. */
    if (thread->role & TARGET) {
        count(waker ? &all->inner_wakes : &all->outer_wakes);
        if (!waker && thread->waits & FOR_NETWORK)
            count(&all->remote_wakes);
        if (waker && waker->role & PARTICIPANT)
            count(&all->partner_wakes);
    }
    /* Whether it is for the file is asked when a wait begins: then it may have been another one. */
    u32 waits = thread->off_ns < all->file_ns ? thread->waits & ~FOR_FILE : thread->waits;
    if (waits & all->wait_kinds)
        shorten(all, thread, now, credited);
    thread->waits = 0;
    thread->inserted_off_ns = all->inserted_ns;
    thread->off_ns = now;
    return 0;
}

INLINE struct inode *opened(struct task_struct *task, u64 descriptor) {
    struct files_struct *files = task->files;
    struct fdtable *table = 0;
    struct file **row = 0, *file = 0;
    struct inode *inode = 0;
    u32 rows = 0;
    if (read_kernel(&table, sizeof(table), &files->fdt) || read_kernel(&rows, sizeof(rows), &table->max_fds))
        return 0;
    if (descriptor >= rows || read_kernel(&row, sizeof(row), &table->fd))
        return 0;
    if (read_kernel(&file, sizeof(file), row + descriptor) || !file)
        return 0;
    read_kernel(&inode, sizeof(inode), &file->f_inode);
    return inode;
}

/* The kinds of file of stat(2). */
enum { KIND_MASK = 0170000, REGULAR = 0100000, BLOCK = 0060000, DIRECTORY = 0040000 };

INLINE u32 for_descriptor(struct control *all, struct task_struct *task, u64 descriptor) {
    struct inode *inode = opened(task, descriptor & 0xffffffff);
    struct super_block *file_system = 0;
    unsigned short mode = 0;
    unsigned long number = 0;
    u32 device = 0;
    if (!inode || read_kernel(&mode, sizeof(mode), &inode->i_mode))
        return FOR_ANYTHING;
    u32 kind = mode & KIND_MASK;
    if (kind != REGULAR && kind != BLOCK && kind != DIRECTORY)
        return FOR_ANYTHING | FOR_NETWORK;
    read_kernel(&number, sizeof(number), &inode->i_ino);
    read_kernel(&file_system, sizeof(file_system), &inode->i_sb);
    read_kernel(&device, sizeof(device), &file_system->s_dev);
    if (number == all->wait_inode && device == all->wait_device)
        return FOR_ANYTHING | FOR_DISK | FOR_FILE;
    return FOR_ANYTHING | FOR_DISK;
}

/* A bit of a structure: read by the bytes that hold it, then shifted out of them. */
INLINE int waits_for_device(struct task_struct *task) {
    u64 bits = 0;
    read_kernel(&bits, PLACE_OF(task->in_iowait, FIELD_BYTES), (void *)task + PLACE_OF(task->in_iowait, FIELD_AT));
    bits <<= PLACE_OF(task->in_iowait, FIELD_LEFT);
    return bits >> PLACE_OF(task->in_iowait, FIELD_RIGHT) != 0;
}

/* What a thread that is about to leave its core waits for. One that blocks outside of any system call waits for a page:
 * for its disk, or only for the lock of the address space that another one holds. */
INLINE u32 waits_for(struct control *all, struct task_struct *task) {
    struct pt_regs *regs = user_registers(task);
    if (!is_in_call(regs))
        return waits_for_device(task) ? FOR_ANYTHING | FOR_DISK : FOR_ANYTHING;
    u64 number = regs->orig_ax;
    u32 row = number < SYSTEM_CALLS ? (u32)number : SYSTEM_CALLS - 1;
    u32 *kind = lookup(&kinds, &row);
    if (!kind || !*kind)
        return FOR_ANYTHING;
    if (!(*kind & BY_DESCRIPTOR))
        return FOR_ANYTHING | *kind;
    u32 found = for_descriptor(all, task, regs->di);
    /* Calls for files only, such as fsync, say what they are whatever stands behind the descriptor. */
    return found | (*kind & ~(u32)BY_DESCRIPTOR);
}

/* TASK_DEAD of linux/sched.h: it leaves its core for the last time. */
enum { DEAD = 0x80 };

INLINE u32 state_of(struct task_struct *task) {
    if (HAS(task->__state))
        return task->__state;
    struct task_struct___before_5_14 *old = (void *)task;
    return old->state;
}

/* The thread waited for its core behind a stranger, which cannot preempt a pause on most kernels and so takes all of its
 * time from what is left beside pauses: their share of it is taken as paid. */
INLINE void share(struct control *all, struct thread *thread, u64 now) {
    u64 from = thread->off_ns > all->start_ns ? thread->off_ns : all->start_ns;
    u64 inserted = all->inserted_ns, position = thread->position_ns;
    /* In microseconds: the product of two times in nanoseconds may be too great. */
    u64 length_us = (now - all->start_ns) / 1000;
    if (thread->paused || now <= from || inserted <= position || !length_us)
        return;
    u64 given = (now - from) * (inserted / 1000) / length_us;
    thread->position_ns += given < inserted - position ? given : inserted - position;
}

/* Shorter queueing is the price of any hand-over on one core. */
enum { QUEUED_NS_MIN = 100000 };

/* Time of a thread that could run and did not, no sibling being there: strangers had the core, or the one that it was
 * taken from. Within a pause it loses nothing by that. */
INLINE void queue(struct control *all, struct thread *thread, u64 now) {
    u64 from = thread->off_ns > all->start_ns ? thread->off_ns : all->start_ns;
    if (thread->role & TARGET && !thread->paused && now > from && now - from >= QUEUED_NS_MIN)
        add(&all->queued_ns, now - from);
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *context) {
    /* Seen between experiments too, so that each begins with knowing who sleeps, since when and for what. */
    struct control *all = control();
    if (!all)
        return 0;
    int preempted = (int)context[0] & 1;
    struct task_struct *previous = (void *)context[1], *next = (void *)context[2];
    struct thread *leaves = known(all, previous->pid), *enters = known(all, next->pid);
    if (!leaves && !enters)
        return 0;
    u64 now = now_ns();
    if (leaves) {
        leaves->inserted_off_ns = all->inserted_ns;
        leaves->off_ns = now;
        leaves->on_core = 0;
        leaves->waits = 0;
        /* Who gives up looking and sleeps is credited by its waker, and who waits for the core by the one who had it. */
        if (leaves->spun == LEFT || (leaves->spun && !preempted))
            leaves->spun = OUT;
        if (leaves->role & TARGET && !preempted && state_of(previous))
            leaves->waits = waits_for(all, previous);
    }
    if (enters) {
        enters->on_core = (u32)all->watch;
        if (leaves && all->active) {
            /* It waited for this core behind the other one: it takes over where that one stands. */
            if (enters->role & TARGET && now - enters->off_ns >= QUEUED_NS_MIN)
                count(&all->runnable_waits);
            credit(all, enters, leaves->position_ns, now);
        } else if (all->active) {
            queue(all, enters, now);
            if (previous->pid && !(previous->flags & OF_KERNEL))
                share(all, enters, now);
        }
    }
    u32 ended = previous->pid;
    if (leaves && state_of(previous) & DEAD)
        delete(&threads, &ended);
    return 0;
}

/* Forks and exits are seen at all times, so that no experiment begins with a wrong table. */
SEC("tp_btf/sched_process_fork")
int on_fork(u64 *context) {
    struct control *all = control();
    struct task_struct *parent = (void *)context[0], *child = (void *)context[1];
    u32 from = parent->tgid, to = child->tgid;
    u32 role = role_of(from);
    if (!all || !role || (from != to && !(role & FOLLOWED)))
        return 0;
    if (from != to && update(&processes, &to, &role, ANY))
        count(&all->lost);
    struct thread *elder = known(all, parent->pid);
    u32 tid = child->pid;
    /* Numbers are given again: the last one that had this may have ended while no switches were seen. */
    delete(&threads, &tid);
    born(all, tid, role, elder ? elder->position_ns : all->inserted_ns);
    return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *context) {
    struct control *all = control();
    struct task_struct *task = (void *)context[0];
    u32 tgid = task->tgid, tid = task->pid, role = role_of(tgid);
    if (!all || !(role & TARGET))
        return 0;
    if (tgid == (u32)all->subject) {
        /* Its code lies elsewhere now. */
        count(&all->replaced);
        all->active = 0;
        return 0;
    }
    /* A child that began a program of its own still works for the target, but its code is not the code that is tried. */
    role = PARTICIPANT | (role & FOLLOWED);
    update(&processes, &tgid, &role, ANY);
    struct thread *thread = lookup(&threads, &tid);
    if (thread)
        thread->role = role;
    return 0;
}

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *context) {
    struct task_struct *task = (void *)context[0];
    struct control *all = control();
    u32 tid = task->pid, tgid = task->tgid;
    /* Who waits for the end of a thread or a process is woken later than this, by the thread that ends (exit_mm and
     * exit_notify of kernel/exit.c): its row is needed until it leaves its core for ever, where that is seen. */
    if (all && !all->period_ns)
        delete(&threads, &tid);
    /* Numbers are given again: a later process of this one has no role. */
    if (role_of(tgid) && task->signal->live.counter == 0)
        delete(&processes, &tgid);
    return 0;
}

INLINE struct thread *visitor(void) {
    u32 tid = current_task()->pid;
    return lookup(&threads, &tid);
}

/* A visit's place in virtual time is that of its own thread: what it still owes has not slowed it yet. */
INLINE u64 position_of(struct control *all, struct thread *thread) {
    if (!thread)
        return all->inserted_ns;
    return thread->epoch == all->epoch ? thread->position_ns : 0;
}

/* The point that counts it; none where no window is open. */
INLINE struct point *visit(struct control *all, struct thread *thread, u32 which) {
    struct point *point = lookup(&points, &which);
    u64 window = all->window;
    if (!point || !window)
        return 0;
    u64 now = now_ns(), position = position_of(all, thread), greatest = all->inserted_ns;
    u64 behind = greatest > position ? greatest - position : 0;
    if (point->window != window) {
        point->window = window;
        point->count = 0;
        point->since_start_ns = 0;
        point->positions_ns = 0;
        point->behind_ns = 0;
        point->carried = 0;
        point->first_ns = now;
        point->first_at_ns = position;
        point->first_behind_ns = behind;
    }
    point->count++;
    point->since_start_ns += now - all->start_ns;
    point->positions_ns += position;
    point->behind_ns += behind;
    point->last_ns = now;
    point->last_at_ns = position;
    point->last_behind_ns = behind;
    return point;
}

/* A probe in code is where user space put it: in the target, or in who counts for it. */
INLINE struct control *of_target(void) {
    return role_of(current_task()->tgid) ? control() : 0;
}

SEC("uprobe/visit")
int on_visit(void *context) {
    (void)context;
    struct control *all = of_target();
    if (all)
        visit(all, visitor(), VISITS);
    return 0;
}

SEC("uprobe/begin")
int on_begin(void *context) {
    (void)context;
    struct control *all = of_target();
    if (!all)
        return 0;
    struct thread *thread = visitor();
    __sync_fetch_and_add(&all->in_flight, 1);
    if (thread)
        thread->begun++;
    visit(all, thread, BEGINS);
    return 0;
}

SEC("uprobe/end")
int on_end(void *context) {
    (void)context;
    struct control *all = of_target();
    if (!all)
        return 0;
    s64 left = __sync_fetch_and_add(&all->in_flight, -1) - 1;
    /* Ends of what had begun before the probes were there: how many there were shows when all of them are through. */
    if (left < all->in_flight_min)
        all->in_flight_min = left;
    struct thread *thread = visitor();
    struct point *point = visit(all, thread, VISITS);
    if (thread && thread->begun)
        thread->begun--;
    else if (point)
        point->carried++;
    return 0;
}

SEC("uprobe/entry")
int on_entry(void *context) {
    (void)context;
    struct control *all = of_target();
    if (all)
        visit(all, visitor(), ENTRIES);
    return 0;
}

/* Really slower: no position moves, nobody else pauses. */
SEC("uprobe/slow")
int on_slow(void *context) {
    (void)context;
    struct control *all = of_target();
    if (!all || !all->active || !all->spin_ns)
        return 0;
    spin(all, now_ns(), all->spin_ns, LOOKS_SLOWED);
    count(&all->hits);
    return 0;
}

/* Attached to the tracepoint that the user names. */
SEC("tp_btf/progress")
int on_trace(u64 *context) {
    (void)context;
    struct control *all = control();
    if (all && role_of(current_task()->tgid) & TARGET)
        visit(all, visitor(), VISITS);
    return 0;
}

SEC("tp_btf/sys_exit")
int on_return(u64 *context) {
    struct control *all = control();
    if (!all || !all->window)
        return 0;
    struct pt_regs *regs = (void *)context[0];
    s64 answer = (s64)context[1];
    if (regs->orig_ax != all->system_call || answer < all->returns_min)
        return 0;
    if (!(role_of(current_task()->tgid) & TARGET))
        return 0;
    visit(all, visitor(), VISITS);
    return 0;
}

/* All calls that return something, while the user is shown what could be counted. */
SEC("tp_btf/sys_exit")
int on_any_return(u64 *context) {
    struct pt_regs *regs = (void *)context[0];
    if ((s64)context[1] <= 0 || !(role_of(current_task()->tgid) & TARGET))
        return 0;
    u64 number = regs->orig_ax;
    u32 row = number < SYSTEM_CALLS ? (u32)number : SYSTEM_CALLS - 1;
    u64 *sum = lookup(&returns, &row);
    if (sum)
        (*sum)++;
    return 0;
}
