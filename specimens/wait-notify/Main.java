import java.util.ArrayDeque;

/**
 * Two parties that hand one token to each other, over and over.
 *
 * <p>defect: two threads and a monitor: each hand-off is a notify, a wait, and a switch of threads in the kernel.
 * repaired: two coroutines on one thread: each hand-off is a return and a call. published: the loop that a well-known
 * comparison timed, which counts calls of notify, most of which wake nobody.
 *
 * <p>Only true hand-offs are units: the other party has seen the token.
 */
public final class Main {
    /** Hand-offs before the figures count, so that the code is compiled. */
    private static final long WARM_UP_NS = 300_000_000L;

    /** The token, handed over under a monitor. */
    private static final class Baton {
        private int holder;
        private long handOffs;
        private boolean ended;

        synchronized boolean passFrom(int party) throws InterruptedException {
            while (holder != party && !ended) {
                wait();
            }
            if (ended) {
                return false;
            }
            holder = 1 - party;
            handOffs++;
            notify();
            return true;
        }

        synchronized void end() {
            ended = true;
            notifyAll();
        }
    }

    /** A coroutine without a stack: what it does next stands in its fields. */
    private static final class Party {
        private long turns;

        /** Takes the token and hands it on. */
        void resume(ArrayDeque<Party> ready, Party other) {
            turns++;
            ready.addLast(other);
        }
    }

    private static long passByThreads(long ns) throws InterruptedException {
        Baton baton = new Baton();
        Thread[] threads = new Thread[2];
        for (int party = 0; party < 2; party++) {
            int own = party;
            threads[party] = new Thread(() -> keepPassing(baton, own));
            threads[party].start();
        }
        waitForEnd(ns);
        baton.end();
        for (Thread thread : threads) {
            thread.join();
        }
        return baton.handOffs;
    }

    private static void keepPassing(Baton baton, int party) {
        try {
            while (baton.passFrom(party)) {
                // The hand-off is all there is.
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    private static long passByCoroutines(long ns) {
        Party[] parties = {new Party(), new Party()};
        ArrayDeque<Party> ready = new ArrayDeque<>();
        ready.addLast(parties[0]);
        long end = System.nanoTime() + ns;
        long handOffs = 0;
        while (!isOver(ns, end)) {
            for (int n = 0; n < 1000; n++) {
                Party next = ready.pollFirst();
                next.resume(ready, next == parties[0] ? parties[1] : parties[0]);
            }
            handOffs += 1000;
        }
        return parties[0].turns + parties[1].turns == handOffs ? handOffs : 0;
    }

    /** What was timed and published: notifications; the waiter tells how often it was woken. */
    private static final class Bell {
        private long notifications;
        private long woken;
        private boolean ended;

        synchronized void ring() {
            notifications++;
            notify();
        }

        synchronized boolean listen() throws InterruptedException {
            if (!ended) {
                wait();
                woken++;
            }
            return !ended;
        }

        synchronized void end() {
            ended = true;
            notifyAll();
        }
    }

    private static Bell ringAsPublished(long ns) throws InterruptedException {
        Bell bell = new Bell();
        Thread listener = new Thread(() -> keepListening(bell));
        listener.start();
        long end = System.nanoTime() + ns;
        while (!isOver(ns, end)) {
            for (int n = 0; n < 1000; n++) {
                bell.ring();
            }
        }
        bell.end();
        listener.join();
        return bell;
    }

    private static void keepListening(Bell bell) {
        try {
            while (bell.listen()) {
                // Being woken is all there is.
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /** With a time: when it is up; without: when the run is over. */
    private static boolean isOver(long ns, long end) {
        return Harness.over || (ns < Long.MAX_VALUE && System.nanoTime() > end);
    }

    private static void waitForEnd(long ns) throws InterruptedException {
        long end = System.nanoTime() + ns;
        while (!isOver(ns, end)) {
            Thread.sleep(2);
        }
    }

    public static void main(String[] words) throws InterruptedException {
        String side = words.length > 0 ? words[0] : "";
        switch (side) {
            case "defect" -> passByThreads(WARM_UP_NS);
            case "repaired" -> passByCoroutines(WARM_UP_NS);
            case "published" -> ringAsPublished(WARM_UP_NS);
            default -> {
                System.err.println("usage: java Main defect|repaired|published [--for SECONDS]");
                System.exit(2);
            }
        }
        Harness run = new Harness(words);
        if (side.equals("published")) {
            Bell bell = ringAsPublished(Long.MAX_VALUE);
            run.note("notifications", bell.notifications);
            run.note("woken", bell.woken);
            run.end(bell.woken);
        } else {
            run.end(side.equals("defect") ? passByThreads(Long.MAX_VALUE) : passByCoroutines(Long.MAX_VALUE));
        }
    }
}
