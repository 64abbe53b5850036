//! The account of bytes before serving is what then comes over a socket.

use super::common::{Client, addr, one_worker, patient};
use super::folder::{Folder, noise, text};
use dyno_engine::{Content, Host, Mount, Security, Server, account};

#[test]
fn what_is_accounted_is_what_comes() {
    let folder = Folder::new("account")
        .with("index.html", text(5_000))
        .with("a b.png", noise(3_000))
        .with("deep/large.bin", noise(300_000))
        .with("small.txt", "x");
    let hosts = || {
        let lines = Host::any().security(Security::Preset).header("X-Own", "some bytes").unwrap();
        vec![lines, Host::new(["two"]).unwrap().content("/", &folder.path).unwrap()]
    };
    let mount = || Mount::new("/in", Content::new(&folder.path)).unwrap();
    let replies = account(vec![mount()], hosts()).unwrap();
    let paths: Vec<(&str, &str)> =
        replies.iter().map(|reply| (reply.host.as_str(), reply.path.as_str())).collect();
    let of_two = ["/a%20b.png", "/deep/large.bin", "/index.html", "/small.txt"].map(|path| ("two", path));
    let of_all =
        ["/in/a%20b.png", "/in/deep/large.bin", "/in/index.html", "/in/small.txt"].map(|path| ("*", path));
    assert_eq!(paths, [of_all, of_two].concat());
    let server = Server::new().listen("127.0.0.1:0").dials(one_worker()).limits(patient());
    let server = server.content("/in", Content::new(&folder.path));
    let running = hosts().into_iter().fold(server, Server::host).start().unwrap();
    for reply in &replies {
        let mut client = Client::connect(addr(&running));
        let all = "Accept-Encoding: gzip, deflate, br, zstd\r\n";
        let came = client.ask(format!("GET {} HTTP/1.1\r\nHost: {}\r\n{all}\r\n", reply.path, reply.host));
        assert_eq!(
            (came.status, came.head.len() as u64),
            (200, reply.head_bytes()),
            "{reply:?}\n{}",
            came.head
        );
        assert_eq!(came.body.len() as u64, reply.body_bytes, "{reply:?}");
        assert_eq!(came.header("content-encoding").unwrap_or("identity"), reply.coding);
        let lines = came.head.split_inclusive('\n').map(|line| line.len() as u64);
        assert!(lines.eq(reply.lines.iter().map(|(_, bytes)| *bytes)), "{reply:?}\n{}", came.head);
    }
    assert!(replies.iter().any(|reply| reply.lines.iter().any(|(name, _)| name == "X-Own")));
}
