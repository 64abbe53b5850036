import java.lang.management.ManagementFactory;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * What every Java specimen shares: which side runs, for how long, and the line of figures at its end.
 *
 * <p>{@code java Main defect|repaired [--for SECONDS]} prints "ready" when its preparations are over, works until the
 * time is up or SIGTERM or SIGINT comes, and prints {"units":N,"elapsed_ns":N,"cpu_ns":N,"notes":{}}. The specimen is
 * in the other file.
 */
final class Harness {
    /** Whether the time is up. */
    static volatile boolean over;

    private static final CountDownLatch ENDED = new CountDownLatch(1);
    private static final long NS_PER_S = 1_000_000_000L;
    /** The shutdown hook waits this long for the last line. */
    private static final long LAST_LINE_S_MAX = 5;

    private final long startNs;
    private final long startCpuNs;
    private final StringBuilder notes = new StringBuilder();

    /** Preparations are over: from here on units, time and CPU count. */
    Harness(String[] words) {
        double seconds = words.length > 2 ? Double.parseDouble(words[2]) : 0;
        if (seconds > 0) {
            long ms = Math.round(seconds * 1e3);
            Thread timer = new Thread(() -> endAfter(ms), "timer");
            timer.setDaemon(true);
            timer.start();
        }
        Runtime.getRuntime().addShutdownHook(new Thread(Harness::endNow));
        System.out.println("ready");
        startNs = System.nanoTime();
        startCpuNs = cpuNs();
    }

    /** One more figure for the last line. */
    void note(String name, long value) {
        notes.append(notes.length() > 0 ? "," : "").append('"').append(name).append("\":").append(value);
    }

    /** The last line. */
    void end(long units) {
        long elapsed = System.nanoTime() - startNs;
        long cpu = cpuNs() - startCpuNs;
        System.out.printf(
                "{\"units\":%d,\"elapsed_ns\":%d,\"cpu_ns\":%d,\"notes\":{%s}}%n", units, elapsed, cpu, notes);
        ENDED.countDown();
    }

    private static void endAfter(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException ignored) {
            // Nobody interrupts it; if somebody does, the run is over a little early.
        }
        over = true;
    }

    /** SIGTERM and SIGINT run the hooks: the program gets the time to print its last line. */
    private static void endNow() {
        over = true;
        try {
            ENDED.await(LAST_LINE_S_MAX, TimeUnit.SECONDS);
        } catch (InterruptedException ignored) {
            // The line is missing then, and the runner says so.
        }
    }

    private static long cpuNs() {
        var bean = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        return bean.getProcessCpuTime();
    }
}
