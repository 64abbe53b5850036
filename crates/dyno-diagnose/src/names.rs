//! Functions by what they do: the C library's, allocators', the kernel's, Go's, Rust's and Java's run-time functions.
//!
//! Never the names of a program under test: a rule that knew them would find what it was given. Used by `facts`.

mod kernel;
mod memory;

use std::cell::RefCell;
use std::collections::HashMap;

pub(super) use kernel::*;
pub(super) use memory::*;

/// Names that belong together. A `*` in an entry stands for anything, for nothing too: in names of Go's methods for itself.
pub(super) type Table = &'static [&'static str];

/// Whether `name` is in `table`.
pub(super) fn is(name: &str, table: Table) -> bool {
    match table.len() {
        0..SHORT => is_in(name, table),
        _ => KNOWN.with_borrow_mut(|known| known.is(name, table)),
    }
}

/// Tables of fewer entries are read sooner than answers are looked up.
const SHORT: usize = 6;

thread_local! {
    static KNOWN: RefCell<Known> = RefCell::default();
}

/// Answers that were given before. Each stack that a function stands in has the same questions asked of its name, some hundred
/// thousand times in a diagnosis, and what is in a table never changes.
#[derive(Default)]
struct Known {
    /// By where a table lies and how long it is: its place in the answers.
    tables: HashMap<(usize, usize), usize>,
    names: HashMap<Box<str>, Vec<Option<bool>>>,
}

impl Known {
    fn is(&mut self, name: &str, table: Table) -> bool {
        let next = self.tables.len();
        let at = *self.tables.entry((table.as_ptr().addr(), table.len())).or_insert(next);
        if let Some(Some(known)) = self.names.get(name).and_then(|answers| answers.get(at)) {
            return *known;
        }
        let answer = is_in(name, table);
        let answers = self.names.entry(name.into()).or_default();
        answers.resize(answers.len().max(at + 1), None);
        answers[at] = Some(answer);
        answer
    }
}

fn is_in(name: &str, table: &[&str]) -> bool {
    let name = bare(name);
    if table.iter().any(|entry| fits(name, entry)) {
        return true;
    }
    // The C library calls its own functions by names of its own, where its symbols are there.
    if let Some(plain) = name.strip_prefix("__GI_") {
        return table.iter().any(|entry| fits(plain, entry));
    }
    // Rust writes a type's own function as `<path::Type>::function` or as `path::Type::function`.
    without_brackets(name).is_some_and(|name| table.iter().any(|entry| fits(&name, entry)))
}

/// `<path::Type>::function` without the brackets round the type; none for what a trait does for a type, and for other names.
fn without_brackets(name: &str) -> Option<String> {
    let inner = name.strip_prefix('<')?;
    let mut depth = 1;
    let end = inner.char_indices().find_map(|(at, letter)| {
        depth += match letter {
            '<' => 1,
            '>' if !inner[..at].ends_with('-') => -1,
            _ => 0,
        };
        (depth == 0).then_some(at)
    })?;
    let (of_type, function) = (&inner[..end], &inner[end + 1..]);
    (!of_type.contains(" as ")).then(|| format!("{of_type}{function}"))
}

/// Whether the parts between the stars of `entry` come one after another in `name`, the first at its beginning and the last
/// at its end.
fn fits(name: &str, entry: &str) -> bool {
    // A name is held against hundreds of entries, of which nearly all begin with another letter.
    let begins = entry.as_bytes().first();
    if begins != Some(&b'*') && begins != name.as_bytes().first() {
        return false;
    }
    let Some((beginning, mut parts)) = entry.split_once('*') else { return name == entry };
    let Some(mut left) = name.strip_prefix(beginning) else { return false };
    while let Some((part, more)) = parts.split_once('*') {
        let Some((_, behind)) = left.split_once(part) else { return false };
        (left, parts) = (behind, more);
    }
    left.ends_with(parts)
}

/// What compilers hang on a function's name that they made another of.
const MARKS: [&str; 6] = [".isra", ".constprop", ".part", ".cold", ".llvm", ".lto_priv"];

/// A name without what linkers and compilers hang on it: `free@GLIBC_2.2.5`, `unlink_chunk.constprop.0`, `f(int) [clone .isra.0]`.
pub(super) fn bare(name: &str) -> &str {
    let name = name.find('@').map_or(name, |at| &name[..at]);
    // Each name is asked for a thousand times, and six searches of the whole of it were half of a diagnosis.
    let mut from = 0;
    while let Some(dot) = name[from..].find('.') {
        if MARKS.iter().any(|mark| is_hung_on(&name[from + dot..], mark)) {
            let before = &name[..from + dot];
            return before.strip_suffix(" [clone ").unwrap_or(before);
        }
        from += dot + 1;
    }
    name
}

/// Whether a compiler's mark stands here: a number comes behind it, but for that of a cold part, which needs none. Another language has
/// words behind a point: Go's `main.partition`.
fn is_hung_on(name: &str, mark: &str) -> bool {
    let Some(behind) = name.strip_prefix(mark) else { return false };
    let ends = |rest: &str| rest.is_empty() || rest.starts_with(']');
    let Some(number) = behind.strip_prefix('.') else { return mark == ".cold" && ends(behind) };
    let rest = number.trim_start_matches(|digit: char| digit.is_ascii_digit());
    ends(rest) || rest.starts_with('.')
}

/// Numbers become text.
pub(super) const FORMAT: &[&str] = &[
    "printf",
    "fprintf",
    "sprintf",
    "snprintf",
    "dprintf",
    "vprintf",
    "vfprintf",
    "vsnprintf",
    "vsprintf",
    "asprintf",
    "vasprintf",
    "__snprintf*",
    "__sprintf*",
    "__fprintf*",
    "__vfprintf_internal",
    "__vsnprintf*",
    "__vsprintf*",
    "__printf*",
    "___printf*",
    "___snprintf*",
    "___vsnprintf*",
    "_itoa*",
    "_IO_vfprintf*",
    "_IO_vsnprintf*",
    // By its name, a program's or library's own way to the same: `sdscatprintf`, `g_strdup_printf`, `apr_psprintf`.
    "*printf",
    "*printf_internal",
    "*printf_chk",
    "pg_*printf",
    "dopr",
    "PyUnicode_Format*",
    "_PyUnicode_Format*",
    "_PyBytes_Format*",
    "_PyLong_Format*",
    "_PyLong_UnicodeWriter*",
    "_PyFloat_Format*",
    "float_repr",
    "PyOS_double_to_string",
    "_Py_dg_dtoa",
    "Perl_sv_vcatpvfn*",
    "Perl_do_sprintf",
    "rb_str_format*",
    "rb_flo_to_s",
    "flo_to_s",
    "rb_int2str",
    "rb_fix2str",
    "php_formatted_print*",
    "php_gcvt",
    "php_spintf_append*",
    "php_sprintf_append*",
    "smart_str_append_double*",
    "zend_gcvt",
    "zend_dtoa",
    "str_format",
    "luaO_pushvfstring",
    "lua_pushfstring",
    "luaO_tostring*",
    "Tcl_AppendFormatToObj",
    "v8::internal::DoubleToCString*",
    "v8::internal::DoubleToFixedCString*",
    "v8::internal::IntToCString*",
    "v8::base::*dtoa*",
    "v8::internal::DoubleToAscii*",
    "java.lang.Integer.toString*",
    "java.lang.Long.toString*",
    "java.lang.Double.toString*",
    "java.lang.String.format*",
    "jdk.internal.math.FloatingDecimal.*",
    "jdk.internal.math.FloatingDecimal$BinaryToASCIIBuffer*",
    "jdk.internal.math.DoubleToDecimal*",
    "time.Time.Format*",
    "time.Time.AppendFormat*",
    "time.Time.appendFormat*",
    "ryu::*",
    "itoa::*",
    "folly::to<*",
    "absl::*str_format_internal::*",
    "QString::number*",
    "QString::arg*",
    "g_string_append_vprintf",
    "std::ostream::*",
    "std::basic_ostream<*",
    "std::num_put<*",
    "std::__ostream_insert*",
    "*basic_ostringstream<*",
    "*basic_stringstream<*",
    "*basic_stringbuf<*",
    "*ostringstream::*",
    "*stringbuf::*",
    "std::operator<<*",
    "std::locale::*",
    "std::ios_base::*",
    "std::basic_ios<*",
    "std::ios::*",
    "*::to_string*",
    "std::__ostream_*",
    "std::vformat*",
    "std::format*",
    "std::__format::*",
    "fmt::v*",
    "core::fmt::*",
    "alloc::fmt::format*",
    "*as core::fmt::*",
    "*core::fmt::num::*",
    "fmt.Sprint*",
    "fmt.Fprint*",
    "fmt.Append*",
    "fmt.(*pp)*",
    "fmt.(*fmt)*",
    "strconv.Format*",
    "strconv.Append*",
    "strconv.format*",
    "java.util.Formatter*",
    "java.text.*Format.format*",
    "strftime*",
    "__strftime*",
    "encoding/json.Marshal*",
    "encoding/json.append*",
    "encoding/json.*ncode*",
    "encoding/xml.Marshal*",
    "encoding/xml.(*printer)*",
    "encoding/xml.*ncode*",
];

/// Objects become bytes for another process or a file, or are made of them: Python's pickle, Java's, Ruby's, PHP's, V8's.
pub(super) const PICKLES: &[&str] = &[
    "_pickle_*",
    "_Pickle_*",
    "_Unpickler_*",
    "_Pickler_*",
    "py::*ForkingPickler.*:*",
    "py::*:*/pickle.py",
    "*java.io.ObjectOutputStream.write*",
    "*java.io.ObjectInputStream.read*",
    "rb_marshal_dump*",
    "rb_marshal_load*",
    "php_var_serialize*",
    "php_var_unserialize*",
    "v8::internal::ValueSerializer::*",
    "v8::internal::ValueDeserializer::*",
    "encoding/gob.*",
];

/// A run-time finds out who called whom, and names it.
pub(super) const TRACES: &[&str] = &[
    "java.lang.Throwable.getOurStackTrace*",
    "java.lang.Throwable.fillInStackTrace*",
    "java.lang.StackTraceElement.*",
    "java.lang.StackStreamFactory*",
    "JVM_FillInStackTrace",
    "JVM_InitStackTraceElement*",
    "JVM_CallStackWalk",
    "java_lang_Throwable::fill_in_stack_trace*",
    "java_lang_Throwable::get_stack_trace_elements*",
    "runtime.Callers*",
    "runtime.Caller",
    "runtime.(*Frames).Next",
    "runtime/debug.Stack",
    "v8::internal::Isolate::CaptureAndSetErrorStack*",
    "v8::internal::Isolate::CaptureSimpleStackTrace*",
    "v8::internal::ErrorUtils::*",
    "rb_ec_partial_backtrace_object*",
    "rb_ec_backtrace*",
    "rb_vm_backtrace*",
    "zend_fetch_debug_backtrace",
    "std::backtrace::*",
];

/// Takes bytes that were made, and does with them what it is for.
pub(super) const WRITER: &[&str] = &[
    "*).Write",
    "*).WriteString",
    "*as std::io::Write>::*",
    "*as core::io::Write>::*",
    "*as tokio::io::AsyncWrite>::*",
];

/// Keeps them as they are.
pub(super) const BUFFER: &[&str] = &[
    "bytes.(*Buffer)*",
    "strings.(*Builder)*",
    "bufio.(*Writer)*",
    "*Vec<u8*",
    "*BufWriter*",
    "*LineWriter*",
    "*Cursor*",
    "*BytesMut*",
];

/// Bytes are moved as they are.
pub(super) const COPY: &[&str] = &[
    "memcpy",
    "memmove",
    "mempcpy",
    "bcopy",
    "__memcpy*",
    "__memmove*",
    "__mempcpy*",
    "__wmemcpy*",
    "strcpy",
    "strncpy",
    "stpcpy",
    "__strcpy*",
    "__strncpy*",
    "__stpcpy*",
    "runtime.memmove",
    "runtime.copystack",
    "runtime.slicecopy",
    "zend_array_dup",
    "zend_hash_copy",
];

/// Bytes are compared, or one is looked for among them, in the C library: what for, its caller knows.
pub(super) const COMPARE: &[&str] = &[
    "memcmp",
    "__memcmp*",
    "bcmp",
    "__bcmp*",
    "strcmp",
    "__strcmp*",
    "strncmp",
    "__strncmp*",
    "strcasecmp",
    "__strcasecmp*",
    "strncasecmp",
    "__strncasecmp*",
    "memchr",
    "__memchr*",
    "memrchr",
    "__memrchr*",
    "rawmemchr",
    "__rawmemchr*",
    "strchr",
    "__strchr*",
    "strrchr",
    "__strrchr*",
    "strlen",
    "__strlen*",
    "strnlen",
    "__strnlen*",
];

/// The clock is read: by the C library and the kernel's page of code, by run-times.
pub(super) const READS_CLOCK: &[&str] = &[
    "clock_gettime",
    "__clock_gettime*",
    "gettimeofday",
    "__gettimeofday*",
    "__vdso_clock_gettime",
    "__vdso_gettimeofday",
    "__vdso_time",
    "__kernel_clock_gettime",
    "std::chrono::_V2::*clock::now*",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "time.Now",
    "time.now",
    "runtime.nanotime*",
    "runtime.walltime*",
    "os::javaTimeNanos*",
    "os::javaTimeMillis*",
    "java.lang.System.nanoTime",
    "java.lang.System.currentTimeMillis",
];

/// Where a program begins: all of it is in there.
pub(super) const FIRST: &[&str] = &["main", "main.main", "*::main", "_start", "main._omp_fn.*"];

/// A goroutine's stack is made larger: the old one is copied.
pub(super) const STACK_GROWTH: &[&str] = &[
    "runtime.newstack",
    "runtime.copystack",
    "runtime.morestack*",
    "runtime.adjustframe*",
    "runtime.stackalloc*",
];

/// A name server is asked.
pub(super) const RESOLVER: &[&str] = &[
    "getaddrinfo",
    "gethostbyname*",
    "__res_context_send*",
    "__libc_res_nsend",
    "res_nsend",
    "__res_msend*",
    "send_dg",
];

/// Whether there is something is looked at, and what is not there is not waited for.
pub(super) const LOOKS: &[&str] = &[
    "runtime.selectnbrecv",
    "runtime.selectnbsend",
    "pthread_mutex_trylock",
    "__pthread_mutex_trylock",
    "___pthread_mutex_trylock",
    "pthread_spin_trylock",
    "sem_trywait",
    "*mpsc::Receiver<*>::try_recv",
    "crossbeam_channel::*::try_recv",
];

/// Threads of virtual machines that serve nobody, by name.
pub(super) const KEEPERS: &[&str] =
    &["C1 Compiler*", "C2 Compiler*", "VM Thread", "VM Periodic*", "G1 *", "GC Thread*", "V8 DefaultWorke*"];

/// Of those, the ones that compile: a program that has just begun keeps one of them busy, and nobody waits for it.
pub(super) const COMPILERS: &[&str] = &["C1 Compiler*", "C2 Compiler*"];

/// What one writes into to wake who waits at a descriptor.
pub(super) const WRITES_DESCRIPTOR: &[&str] = &["eventfd_write*", "pipe_write", "anon_pipe_write"];

/// The kernel's side of bytes that go from process to process on one machine: who sends wakes who reads, and who takes them wakes all
/// that wait at the other end.
pub(super) const UNIX_SOCKETS: &[&str] = &["unix_stream_*", "unix_dgram_*"];

/// A lock is waited for by looking again after a sleep: SQLite's busy handlers.
pub(super) const LOOKS_AGAIN: &[&str] =
    &["sqliteDefaultBusyCallback*", "sqlite3InvokeBusyHandler*", "btreeInvokeBusyHandler*", "unixSleep"];

/// Modules that sleep for nothing else.
pub(super) const LOOKS_AGAIN_MODULES: &[&str] = &["*/libsqlite3*"];

/// Of those that take a lock, those that run the caller's own code under it: what lies far inside of them is that code.
pub(super) const RUNS_UNDER_LOCK: &[&str] = &["rb_mutex_synchronize*"];

/// A lock is taken.
pub(super) const ACQUIRE: &[&str] = &[
    "rb_mutex_lock*",
    "rb_mutex_synchronize*",
    "pthread_mutex_lock",
    "pthread_mutex_timedlock",
    "pthread_mutex_clocklock",
    "__pthread_mutex_lock*",
    "___pthread_mutex_lock*",
    "__lll_lock_wait*",
    "__lll_lock*",
    "pthread_rwlock_rdlock*",
    "pthread_rwlock_wrlock*",
    "__pthread_rwlock_*",
    "___pthread_rwlock_*",
    "pthread_spin_lock",
    "*Mutex::lock_contended*",
    "*RwLock::read_contended*",
    "*RwLock::write_contended*",
    "_PyMutex_Lock*",
    "PyMutex_Lock*",
    "parking_lot::raw_mutex::*",
    "parking_lot::raw_rwlock::*",
    "runtime.lock2",
    "runtime.lockWithRank",
    "sync.(*Mutex).lockSlow",
    "internal/sync.(*Mutex).lockSlow",
    "sync.(*RWMutex)*",
    "sync.runtime_SemacquireMutex",
    "sync.runtime_SemacquireRWMutex*",
    "internal/sync.runtime_SemacquireMutex",
    "ObjectMonitor::enter*",
    "ObjectMonitor::EnterI*",
    "ObjectSynchronizer::enter*",
    "SharedRuntime::complete_monitor_locking*",
];

/// A lock is given back.
pub(super) const RELEASE: &[&str] = &[
    "pthread_mutex_unlock",
    "__pthread_mutex_unlock*",
    "___pthread_mutex_unlock*",
    "__lll_lock_wake*",
    "__lll_unlock*",
    "pthread_rwlock_unlock",
    "__pthread_rwlock_unlock",
    "*Mutex::unlock*",
    "*Mutex::wake*",
    "<std::sync::poison::mutex::MutexGuard*",
    "<std::sync::mutex::MutexGuard*",
    "*RwLock::wake*",
    "core::ptr::drop_in_place<std::sync::poison::mutex::MutexGuard*",
    "core::ptr::drop_in_place<std::sync::mutex::MutexGuard*",
    "runtime.unlock2",
    "runtime.unlockWithRank",
    "runtime.futexwakeup",
    "ObjectMonitor::exit*",
];

/// A thread is woken, after a lock or for other reasons.
pub(super) const WAKES: &[&str] = &["runtime.futexwakeup"];

/// A thread waits until there is something to do: no lock.
pub(super) const AWAIT: &[&str] = &[
    "pthread_cond_*",
    "__pthread_cond_*",
    "___pthread_cond_*",
    "pthread_barrier_wait",
    "__pthread_barrier_wait*",
    "___pthread_barrier_wait*",
    "pthread_join*",
    "__pthread_clockjoin*",
    "__pthread_timedjoin*",
    "*Condvar::wait*",
    "std::thread::park*",
    "*Parker::park*",
    "*thread::parking*",
    "std::condition_variable*",
    "runtime.notesleep*",
    "runtime.notetsleep*",
    "runtime.stopm*",
    "runtime.mPark*",
    "ObjectMonitor::wait*",
    "ObjectMonitor::Wait*",
    "Unsafe_Park",
    "*Monitor::wait*",
    "sem_wait*",
    "sem_timedwait*",
    "__new_sem_wait*",
    "sigwait*",
    "runtime.notewakeup*",
    "runtime.startm*",
    "runtime.wakep*",
    "runtime.findRunnable*",
    "Parker::park*",
    "JVM_MonitorWait",
    "ObjectSynchronizer::wait*",
    "Semaphore::wait*",
    "PosixSemaphore::*",
];

/// Threads of run-times that have nothing to run, or wait for a time: they wake each other when there is something.
pub(super) const IDLE_RUN_TIME: &[&str] = &[
    "runtime.stopm*",
    "runtime.mPark*",
    "runtime.notesleep*",
    "runtime.notetsleep*",
    "rayon_core::sleep::*",
    "rayon_core::registry::WorkerThread::wait_until*",
    "tokio::runtime::*park*",
    "*multi_thread::park::*",
    "GangWorker::*",
    "CompileQueue::get*",
    "*ForkJoinPool*awaitWork*",
];

/// Threads wait until all have come, or for one another's end: no lock.
pub(super) const TOGETHER: &[&str] = &[
    "pthread_barrier_wait*",
    "__pthread_barrier_wait*",
    "___pthread_barrier_wait*",
    "pthread_join*",
    "__pthread_clockjoin*",
    "__pthread_timedjoin*",
    "*Barrier::wait*",
    "*barrier<*",
    "gomp_*barrier*",
    "GOMP_barrier",
    "__kmp*barrier*",
];

/// A process or thread is woken by a signal.
pub(super) const SIGNAL: &[&str] = &["kill", "__kill", "tgkill", "pthread_kill*", "__pthread_kill*"];

/// The kernel's clock ends a wait.
pub(super) const CLOCK: &[&str] =
    &["hrtimer_wakeup", "hrtimer_interrupt", "process_timeout", "call_timer_fn"];

/// The kernel's side of giving bytes to another process.
pub(super) const SENDS: &[&str] = &[
    "unix_stream_sendmsg",
    "unix_dgram_sendmsg",
    "tcp_sendmsg*",
    "udp_sendmsg",
    "udpv6_sendmsg",
    "pipe_write",
    "anon_pipe_write",
    "eventfd_write",
    "sock_sendmsg",
    "__sock_sendmsg",
    "sock_write_iter",
    "__sys_sendto",
    "fifo_*",
];

/// The one lock under which an interpreter runs programs.
pub(super) const INTERPRETER_LOCK: &[&str] =
    &["take_gil", "gvl_acquire*", "thread_sched_to_running*", "thread_sched_wait_running*"];

/// The loop of an interpreter: what it runs is somebody else's code.
pub(super) const INTERPRETER: &[&str] = &[
    "_PyEval_EvalFrame*",
    "PyEval_EvalFrame*",
    "vm_exec_core*",
    "rb_vm_exec*",
    "luaV_execute*",
    "lj_vm_*",
    "execute_ex*",
    "Perl_runops*",
    "Builtins_Interpreter*",
    "Interpreter*",
    "sqlite3VdbeExec*",
    "caml_interprete*",
    "JS_CallInternal*",
    "bcEval*",
    "mrb_vm_exec*",
    "TEBCresume*",
    "r_interpret*",
];

/// CPython makes a lock for programs: `threading.Lock`, and what is made of it (`RLock`, `Condition`, `queue.Queue`).
pub(super) const PYTHON_LOCK: &[&str] = &[
    "PyThread_acquire_lock*",
    "lock_PyThread_acquire_lock*",
    "rlock_acquire*",
    "acquire_timed*",
    "_PyMutex_Lock*",
    "PyMutex_Lock*",
];

/// Ruby does.
pub(super) const RUBY_MUTEX: &[&str] = &["rb_mutex_lock*", "rb_mutex_synchronize*"];

/// Callers of `take_gil`, where a build hides its name.
pub(super) const CALLS_INTERPRETER_LOCK: &[&str] = &[
    "_PyEval_EvalFrame*",
    "PyEval_RestoreThread",
    "PyEval_AcquireThread",
    "PyEval_AcquireLock",
    "PyGILState_Ensure",
    "_PyEval_RestoreThread",
];

/// Where Java's threads wait for each other, with a limit or without one.
pub(super) const PARK: &[&str] = &["Unsafe_Park"];

/// The functions of Java by which all of them come there; and what stands between Java's code and the machine's.
pub(super) const PARKED: &[&str] = &[
    "Unsafe_Park",
    "jdk.internal.misc.Unsafe.park*",
    "sun.misc.Unsafe.park*",
    "java.util.concurrent.locks.LockSupport.park*",
];
pub(super) const ENTERS_JAVA: &[&str] = &["StubRoutines*", "JavaCalls::*", "call_stub"];
/// How a map of such code calls what it interprets: all of it alike.
pub(super) const INTERPRETED: &str = "Interpreter";

/// The run-time's side of locks of Java and Ruby: between a program's own code and the C library.
pub(super) const VIRTUAL_MACHINE: &[&str] = &[
    "rb_native_cond_*",
    "os::Platform*",
    "ObjectMonitor::*",
    "ObjectSynchronizer::*",
    "SharedRuntime::*",
    "Parker::*",
    "Unsafe_Park",
    "Unsafe_Unpark",
    "JavaThread::*",
    "Thread::call_run*",
    "thread_native_entry*",
    "PyThread_*",
    "PyCOND_*",
    "PyMUTEX_*",
    "lock_PyThread_*",
    "rlock_acquire*",
    "acquire_timed*",
    "create_gil*",
    "drop_gil*",
    "_PyMutex_*",
    "PyMutex_*",
    "_PyParkingLot_*",
    "_PySemaphore_*",
    "futex_*",
    "lll_mutex_*",
    "__new_sem_*",
    "sem_post*",
    "__libc_*",
    "__GI_*",
];

/// Functions in which threads wait for whatever it is: the kernel's call, and what standard libraries make of it.
pub(super) const WAITS_FOR_ANYBODY: &[&str] = &[
    "syscall",
    "__syscall*",
    "*futex::futex_wait*",
    "std::*",
    "core::*",
    "crossbeam_channel::*",
    "flume::*",
];

/// What rules of their own tell of: no such function is the program's own work.
pub(super) const TOLD_BY_OTHERS: [&[&str]; 8] =
    [ALLOCATOR, COPY, FORMAT, PICKLES, ACQUIRE, RELEASE, AWAIT, WRAPPERS];

/// Wrappers between a program and the kernel: never the place in the code that a finding names.
pub(super) const WRAPPERS: &[&str] = &[
    "syscall",
    "__syscall*",
    "write",
    "__write*",
    "pwrite*",
    "__libc_pwrite*",
    "writev",
    "__writev*",
    "fsync",
    "__fsync*",
    "fdatasync",
    "__fdatasync*",
    "read",
    "__read*",
    "pread*",
    "__libc_pread*",
    "__libc_write*",
    "__libc_read*",
    "futex_*",
    "__futex*",
    "*futex::futex_wake*",
    "*futex::futex_wait*",
    "internal/runtime/syscall.*",
    "runtime/internal/syscall.*",
    "syscall.*",
    "runtime.futex*",
];

/// Run a whole program, or all of a thread: where it is slow they do not say.
pub(super) const RUNS_PROGRAMS: &[&str] = &[
    "_PyRun_*",
    "PyRun_*",
    "Py_RunMain",
    "Py_BytesMain",
    "Py_Main",
    "pymain_*",
    "run_mod",
    "run_eval_code_obj",
    "ruby_run_node",
    "ruby_exec_node",
    "rb_ec_exec_node*",
    "rb_ec_cleanup*",
    "perl_run",
    "S_run_body",
    "php_execute_script*",
    "zend_execute_scripts*",
    "zend_execute",
    "node::Start*",
    "node::NodeMainInstance*",
    "node::SpinEventLoop*",
    "node::LoadEnvironment*",
    "v8::internal::Execution::*",
    "v8::internal::*::Invoke(*",
    "v8::Function::Call*",
    "v8::Script::Run*",
    "JavaMain",
    "JLI_*",
    "CallJavaMain*",
    "JavaCalls::*",
    "lua_pcall*",
    "luaD_*",
    "docall",
    "dochunk",
];

/// Go's standard library, and what its compiler makes of a call in a new goroutine.
pub(super) const STANDARD: &[&str] = &[
    "*.gowrap*",
    "bufio.*",
    "bytes.*",
    "compress/*",
    "crypto/*",
    "database/sql.*",
    "encoding/*",
    "fmt.*",
    "html/template.*",
    "io.*",
    "log.*",
    "log/*",
    "net.*",
    "net/*",
    "os.*",
    "reflect.*",
    "regexp.*",
    "regexp/*",
    "sort.*",
    "slices.*",
    "strconv.*",
    "strings.*",
    "text/template*",
];

/// Timers of Go wake sleepers.
pub(super) const TIMED: &[&str] = &[
    "time.Sleep",
    "runtime.timeSleep*",
    "runtime.resetForSleep*",
    "runtime.goroutineReady*",
    "runtime.(*timers)*",
    "runtime.(*timer)*",
];

/// Goroutines hand work to each other.
pub(super) const HANDED: &[&str] = &[
    "runtime.chansend*",
    "runtime.chanrecv*",
    "runtime.selectgo*",
    "runtime.send",
    "runtime.recv",
    "runtime.semacquire*",
];

/// Sleeping for a time, by a wait with a time limit that nobody ends.
pub(super) const SLEEP: &[&str] = &[
    "JVM_Sleep",
    "JavaThread::sleep*",
    "os::sleep*",
    "os::naked_*sleep*",
    "rb_thread_sleep*",
    "rb_thread_wait_for",
    "sleep_hrtime*",
    "sleep_timespec*",
    "native_sleep",
    "usleep",
    "sleep",
    "*nanosleep*",
    "std::thread::sleep*",
    "std::this_thread::sleep*",
    "pysleep",
    "time_sleep",
    "SystemNative_*Sleep*",
];

/// Libraries that every program has: not its own code.
pub(super) const LIBRARIES: &[&str] = &[
    "*/libc.so*",
    "*/libc-2*",
    "*/ld-linux*",
    "*/libstdc++*",
    "*/libpthread*",
    "*/libm.so*",
    "*/libgcc_s*",
    "*/ld-musl*",
];

/// Virtual machines: their code is nobody's own, and code that they make lies in no file.
pub(super) const MACHINES: &[&str] =
    &["*/libjvm.so", "*/libcoreclr.so", "*/libclrjit.so", "*/libclrgc*.so", "*/libmonosgen*"];

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
