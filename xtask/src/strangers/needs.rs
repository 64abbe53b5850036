//! The programs from the distribution that are met, and what asks them.

use crate::packages::{Package, Seen};

/// Beside what the tests need. A program that has no package here (a compiler, a run-time of the tests) is one of theirs.
pub(super) const PACKAGES: [Package; 18] = [
    program("redis-server", "redis-server", "is met"),
    program("redis-tools", "redis-benchmark", "asks redis"),
    program("memcached", "memcached", "is met"),
    Package {
        name: "postgresql",
        // With its own path in every version; this is what starts them.
        seen: Seen::Program("pg_createcluster"),
        reason: "is met, and asked by its pgbench",
    },
    program("haproxy", "haproxy", "is met"),
    program("pgbouncer", "pgbouncer", "is met"),
    program("lighttpd", "lighttpd", "is met"),
    program("caddy", "caddy", "is met"),
    Package { name: "gunicorn", seen: Seen::File("/usr/bin/gunicorn"), reason: "is met" },
    Package { name: "python3", seen: Seen::File("/usr/bin/python3"), reason: "is met, and asks memcached" },
    program("nodejs", "node", "is met"),
    program("sysbench", "sysbench", "is met"),
    program("stress-ng", "stress-ng", "is met"),
    program("tcpdump", "tcpdump", "hears the packets of redis"),
    program("apache2-utils", "ab", "asks gunicorn"),
    Package {
        name: "libdbd-sqlite3-perl",
        seen: Seen::File("/usr/share/doc/libdbd-sqlite3-perl/copyright"),
        reason: "is met below Perl",
    },
    program("php-cli", "php", "is met"),
    program("erlang-base", "erl", "is met"),
];

/// What those with twins need, and nothing else that tests do.
pub(super) const OF_TWINS: [Package; 8] = [
    program("redis-server", "redis-server", "is met"),
    program("redis-tools", "redis-benchmark", "asks redis"),
    Package { name: "python3", seen: Seen::File("/usr/bin/python3"), reason: "is met" },
    program("php-cli", "php", "is met"),
    program("ruby", "ruby", "is met"),
    program("hey", "hey", "asks PHP so many times in a second"),
    program("golang-go", "go", "builds those in Go"),
    program("gcc", "cc", "links those in Rust"),
];

const fn program(name: &'static str, file: &'static str, reason: &'static str) -> Package {
    Package { name, seen: Seen::Program(file), reason }
}
