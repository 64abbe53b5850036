//! Functions that make what could be kept, by what they make: known to whoever sorts CPU time, and to the rule about it (`set_up`).

use super::names;

/// Something that can be kept.
pub(super) struct Kind {
    /// What the CPU does.
    pub(super) does: &'static str,
    /// The functions that make it.
    pub(super) makes: &'static [&'static str],
    pub(super) next: &'static str,
}

pub(super) const KINDS: [Kind; 7] = [
    Kind {
        does: "compiles regular expressions",
        makes: &[
            "regcomp",
            "__regcomp",
            "rpl_regcomp",
            "re_compile_*",
            "__re_compile_*",
            "pcre_compile*",
            "pcre2_compile_*",
            "std::__cxx11::basic_regex<*::_M_compile(*",
            "std::__cxx11::basic_regex<*::basic_regex(*",
            "std::__detail::_Compiler<*",
            "boost::re_detail*::basic_regex_creator<*",
            "boost::re_detail*::basic_regex_parser<*",
            "re2::RE2::Init(*",
            "hs_compile*",
            "regexp.compile",
            "regexp.Compile*",
            "regexp.MustCompile*",
            "regex::regex::*::Regex::new",
            "regex::builders::*",
            "regex_automata::meta::*::Builder::build*",
            "regex_automata::meta::*::Regex::new*",
            "regex_syntax::*",
            "fancy_regex::*::new",
            "*java.util.regex.Pattern.compile*",
            "*java.util.regex.Pattern.<init>*",
            "v8::internal::RegExp::Compile*",
            "v8::internal::RegExpImpl::Compile*",
            "Perl_re_op_compile",
            "onig_new*",
            "onigmo_new*",
            "py::compile:*/re/_compiler.py",
            "py::compile:*/sre_compile.py",
        ],
        next: "compile each expression once and keep it: a static or a member where the pattern is known, a small cache where it is not",
    },
    Kind {
        does: "makes keys for new connections (TLS handshakes)",
        makes: &[
            "SSL_do_handshake",
            "SSL_accept",
            "SSL_connect",
            "ossl_statem_accept",
            "ossl_statem_connect",
            "gnutls_handshake",
            "mbedtls_ssl_handshake*",
            "wolfSSL_accept*",
            "crypto/tls.(*Conn).handshake*",
            "crypto/tls.(*Conn).clientHandshake",
            "crypto/tls.(*Conn).serverHandshake",
            "*sun.security.ssl.SSLHandshake*",
            "*sun.security.ssl.HandshakeContext*",
        ],
        next: "keep connections open and use them again; resume sessions (tickets); a key of an elliptic curve in place of RSA",
    },
    Kind {
        does: "reads certificates and makes contexts of TLS",
        makes: &[
            "SSL_CTX_new*",
            "SSL_CTX_load_verify*",
            "SSL_CTX_set_default_verify*",
            "X509_STORE_load*",
            "X509_load_*",
            "X509_STORE_set_default_paths*",
            "gnutls_certificate_set_x509_*",
            "crypto/x509.loadSystemRoots",
        ],
        next: "make one context when the program begins, and share it",
    },
    Kind {
        does: "prepares SQL statements",
        makes: &["sqlite3_prepare*", "sqlite3LockAndPrepare", "sqlite3Prepare", "sqlite3RunParser"],
        next: "prepare each statement once and bind its values",
    },
    Kind {
        does: "compiles sources",
        makes: &[
            "compile_file",
            "compile_string",
            "zendparse",
            "zend_compile*",
            "Perl_yyparse",
            "_PyAST_Compile",
            "_PyParser_*",
            "_PyPegen_run_parser*",
            "ruby_yyparse",
            "luaL_loadbufferx",
            "luaL_loadfilex",
            "lua_load",
            "text/template.(*Template).Parse",
            "html/template.(*Template).Parse",
            "text/template/parse.Parse",
        ],
        next: "keep what was compiled: a cache of compiled code (opcache), a template or a function that is parsed once",
    },
    Kind {
        does: "loads libraries, locales, encodings and time zones",
        makes: &[
            "dlopen*",
            "__dlopen*",
            "_dl_open",
            "iconv_open",
            "setlocale",
            "newlocale",
            "__newlocale",
            "std::locale::locale(char const*)",
            "tzset",
            "tzset_internal",
            "__tzfile_read",
            "ucol_open*",
            "ucnv_open*",
            "time.LoadLocation",
        ],
        next: "load it once when the program begins; set TZ, so that the zone's file is not looked at for each time of day",
    },
    Kind {
        does: "looks users and names up",
        makes: &[
            "getpwnam*",
            "getpwuid*",
            "getgrnam*",
            "getgrgid*",
            "getgrouplist*",
            "initgroups*",
            "getaddrinfo*",
            "gethostbyname*",
            "os/user.*",
        ],
        next: "look it up once and keep the answer for a while (nscd, systemd-resolved, a table of the program's own)",
    },
];

/// Whether a function makes what could be kept.
pub(super) fn is(name: &str) -> bool {
    KINDS.iter().any(|kind| names::is(name, kind.makes))
}
