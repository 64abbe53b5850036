//! The requests that the cost of parsing is quoted for: what well-known clients send, and a mix that no processor can learn.
//! The bench and the example `parse_cost` read them.

/// wrk: one field.
pub(crate) const WRK: &[u8] = b"GET /json HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";

/// The well-known framework benchmark's client: three fields.
pub(crate) const FRAMEWORKS: &[u8] =
    b"GET /json HTTP/1.1\r\nHost: tfb-server:8080\r\nAccept: application/json,text/html;q=0.9,\
application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7\r\nConnection: keep-alive\r\n\r\n";

/// A browser that follows a link: twelve fields.
pub(crate) const BROWSER: &[u8] = b"GET /articles/2024/index.html?page=2&sort=date HTTP/1.1\r\nHost: www.example.org\r\n\
User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\nAccept: text/html,application/\
xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8\r\nAccept-Language: en-GB,en;q=0.7,de;q=0.3\r\n\
Accept-Encoding: gzip, deflate, br, zstd\r\nReferer: https://www.example.org/articles/2024/\r\nConnection: keep-alive\
\r\nCookie: session=0123456789abcdef0123456789abcdef; theme=dark; consent=1\r\nUpgrade-Insecure-Requests: 1\r\n\
Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: same-origin\r\n\r\n";

/// curl.
pub(crate) const CURL: &[u8] =
    b"GET /json HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n";

/// curl with a body.
pub(crate) const POST: &[u8] =
    b"POST /echo HTTP/1.1\r\nHost: localhost:8080\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\
Content-Type: application/json\r\nContent-Length: 17\r\n\r\n{\"message\":\"abc\"}";

/// Names of fields of the mix, short and long ones.
const NAMES: [&str; 16] = [
    "User-Agent",
    "Accept",
    "Accept-Language",
    "Accept-Encoding",
    "Referer",
    "Cookie",
    "Upgrade-Insecure-Requests",
    "Sec-Fetch-Dest",
    "Sec-CH-UA-Platform",
    "X-Request-Id",
    "Cache-Control",
    "If-None-Match",
    "DNT",
    "Origin",
    "X-Forwarded-For",
    "Content-Type",
];
const VALUE: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8";
const PATH: &str = "/articles/2024/of-some-length/index.html";
const HOST: &str = "www.example.org:8080";

/// So many different requests of one to fourteen fields: their lengths and their order cannot be predicted.
pub(crate) fn mix(count: usize) -> Vec<Vec<u8>> {
    let mut state = 0x5eed_u64;
    // Xorshift (Marsaglia 2003): small, and good enough to choose lengths.
    let mut below = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    (0..count).map(|_| one_of_mix(&mut below)).collect()
}

fn one_of_mix(below: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut request = format!("GET {} HTTP/1.1\r\n", &PATH[..1 + below(PATH.len())]);
    let (fields, first_name) = (below(14), below(NAMES.len()));
    let host_at = below(fields + 1);
    for field in 0..=fields {
        if field == host_at {
            request += &format!("Host: {}\r\n", &HOST[below(8)..]);
        } else {
            let name = NAMES[(first_name + 5 * field) % NAMES.len()];
            // Half of all values are short.
            let bytes_max = if below(2) == 0 { 16 } else { VALUE.len() };
            request += &format!("{name}: {}\r\n", &VALUE[..1 + below(bytes_max)]);
        }
    }
    request += "\r\n";
    request.into_bytes()
}
