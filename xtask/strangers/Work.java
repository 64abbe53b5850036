import com.sun.net.httpserver.HttpServer;
import java.io.*;
import java.net.InetSocketAddress;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.locks.ReentrantLock;

/** Small programs on Java's own library, one for each word. */
public class Work {
    static volatile long sum;

    static void count(int rounds) {
        long total = sum;
        for (int at = 0; at < rounds; at++) total = total * 31 + (total >> 7) + at;
        sum = total;
    }

    static void threads(int many, Runnable step) {
        for (int n = 0; n < many; n++) {
            new Thread(() -> { while (true) step.run(); }, "worker-" + n).start();
        }
    }

    static void monitor() {
        Object gate = new Object();
        threads(4, () -> {
            synchronized (gate) { sleep(1); }
            count(20_000);
        });
    }

    static void locked() {
        ReentrantLock gate = new ReentrantLock(true);
        threads(4, () -> {
            gate.lock();
            try { sleep(1); } finally { gate.unlock(); }
            count(20_000);
        });
    }

    static void turns(boolean fair) {
        ReentrantLock gate = new ReentrantLock(fair);
        threads(4, () -> {
            gate.lock();
            try { count(200_000); } finally { gate.unlock(); }
        });
    }

    static void pool() {
        ExecutorService pool = Executors.newFixedThreadPool(4);
        while (true) {
            pool.submit(() -> count(500_000));
            sleep(5);
        }
    }

    static void churn() {
        List<byte[]> kept = new ArrayList<>();
        for (int n = 0; n < 38_000; n++) kept.add(new byte[1000]);
        Random random = new Random(7);
        threads(1, () -> kept.set(random.nextInt(kept.size()), new byte[1000]));
    }

    static void force() throws IOException {
        FileOutputStream out = new FileOutputStream("log");
        Object gate = new Object();
        threads(4, () -> {
            synchronized (gate) {
                try {
                    out.write("a line\n".getBytes());
                    out.getFD().sync();
                } catch (IOException trouble) {
                    throw new UncheckedIOException(trouble);
                }
            }
        });
    }

    static void http(int port, int workers) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 64);
        if (workers > 0) server.setExecutor(Executors.newFixedThreadPool(workers));
        server.createContext("/", exchange -> {
            byte[] body = "hello".getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }

    static void sleep(int millis) {
        try { Thread.sleep(millis); } catch (InterruptedException end) { throw new RuntimeException(end); }
    }

    public static void main(String[] words) throws Exception {
        switch (words[0]) {
            case "monitor" -> monitor();
            case "locked" -> locked();
            case "fair" -> turns(true);
            case "monitor-cpu" -> {
                Object gate = new Object();
                threads(4, () -> { synchronized (gate) { count(200_000); } });
            }
            case "pool" -> pool();
            case "churn" -> churn();
            case "force" -> force();
            case "http" -> http(Integer.parseInt(words[1]), 4);
            case "http-direct" -> http(Integer.parseInt(words[1]), 0);
            case "apart" -> threads(2, () -> { count(2_000_000); sleep(2); });
            default -> throw new IllegalArgumentException(words[0]);
        }
    }
}
