//! `cargo xtask bench content`: server CPU per reply with files, beside the floor, nginx and h2o.
//!
//! Pre-compressed files of 1 to 100 kB, and some of 300 kB to 10 MB that nobody compresses. All servers send the same bytes,
//! which is checked. The floor sends head and body from memory by one writev; large files leave it by sendfile. A second
//! floor has head and body in one place and sends them by one send: no server does, since a body has many heads.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use dyno_measure::Prng;

use super::arms::{Arm, Stable, built_in_c};
use super::options::Options;
use super::series::{Part, Series, interleaved};
use super::slice::{dyno_load, of_server};
use super::{history, table};
use crate::client::fetch;
use crate::command::{command, find_program, output};
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

const YARDSTICKS: [&str; 2] = ["floor", "dyno"];

/// What is asked for in every request beside the file.
const ACCEPTS: &str = "Accept-Encoding: gzip";

/// The seed of what stands in the files.
const SEED: u64 = 7;

/// A file that is served.
struct Item {
    name: &'static str,
    /// What is sent, to within a few percent.
    sent_bytes: usize,
    form: Form,
    connections: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// With a `.gz` beside it, which is sent.
    Compressed,
    /// As it is, by sendfile.
    Large,
}

const ITEMS: [Item; 7] = [
    Item { name: "1kB.html", sent_bytes: 1_000, form: Form::Compressed, connections: 64 },
    Item { name: "15kB.html", sent_bytes: 15_000, form: Form::Compressed, connections: 64 },
    Item { name: "40kB.html", sent_bytes: 40_000, form: Form::Compressed, connections: 64 },
    Item { name: "100kB.html", sent_bytes: 98_000, form: Form::Compressed, connections: 64 },
    Item { name: "300kB.bin", sent_bytes: 300_000, form: Form::Large, connections: 32 },
    Item { name: "1MB.bin", sent_bytes: 1_000_000, form: Form::Large, connections: 16 },
    Item { name: "10MB.bin", sent_bytes: 10_000_000, form: Form::Large, connections: 8 },
];

/// dyno with every body sent from memory, and with every body by sendfile: where the one becomes dearer than the other.
const WAYS: [(&str, &str); 2] = [("dyno-copy", "1000000000"), ("dyno-sendfile", "1")];

/// From which size on all ways in which a file can leave are measured, each in the smallest loop (`bench/sender`).
const SENDERS_FROM: usize = 98_000;
const SENDERS: [&str; 5] = ["read", "memory", "sendfile", "splice", "zerocopy"];

/// Runs the bench.
pub(crate) fn run(repo: &Repo, options: &Options) -> Result<Outcome, Trouble> {
    let dyno = repo.release_dyno()?;
    let stable = Stable::new(repo, options)?;
    let root = repo.scratch("bench/content")?;
    let files: Vec<PathBuf> = ITEMS.iter().map(|item| item.write(&root)).collect::<Result<_, _>>()?;
    let content = root.to_string_lossy();
    let mut arms = vec![stable.dyno(&dyno, "dyno", &["--content-root", &content])?];
    for (name, sendfile_bytes) in WAYS {
        if options.wants(name) {
            let flags = ["--content-root", &content, "--sendfile-bytes", sendfile_bytes];
            arms.push(stable.dyno(&dyno, name, &flags)?);
        }
    }
    arms.extend(peers(repo, options, &stable, &root)?);
    let sender = built_in_c(repo, "bench/sender/sender.c")?;
    let mut results = Vec::new();
    for (item, sent) in ITEMS.iter().zip(&files) {
        let mut floors = item.floors(&stable, &dyno, &arms[0], sent)?;
        floors.extend(item.senders(options, &stable, &sender, &arms[0], sent)?);
        let all: Vec<&Arm> = floors.iter().chain(&arms).collect();
        all.iter().try_for_each(|arm| item.check(arm, sent))?;
        let names: Vec<String> = all.iter().map(|arm| arm.name.clone()).collect();
        let measured = interleaved(&names, options.cycles, options.seed, &mut |at| {
            of_server(item.generator(&dyno, options, all[at], sent), all[at].server.pid())
        })?;
        item.print(options, &measured, sent)?;
        results.push((item.name.to_owned(), measured));
    }
    history::append(repo, options, "content", &results)?;
    Ok(Outcome::Done)
}

/// nginx and h2o, where they are wanted and there.
fn peers(repo: &Repo, options: &Options, stable: &Stable<'_>, root: &Path) -> Result<Vec<Arm>, Trouble> {
    let mut arms = Vec::new();
    for name in ["nginx", "h2o"] {
        if !options.wants(name) {
            continue;
        }
        let Some(program) = find_program(name) else {
            eprintln!("not measured: {name} is not installed");
            continue;
        };
        let template = repo.read(&format!("bench/peers/{name}-content.conf"))?;
        let folder = repo.scratch(&format!("bench/{name}-content"))?;
        let addr = crate::server::free_addr()?;
        let text = template.replace("@PORT@", &addr.port().to_string());
        let file = folder.join("conf");
        std::fs::write(&file, text.replace("@ROOT@", &root.to_string_lossy()))
            .map_err(Trouble::cannot(format!("write {}", file.display())))?;
        let words = [&program, Path::new("-c"), &file].map(|word| word.to_string_lossy().into_owned());
        let prefix = ["-p".to_owned(), folder.to_string_lossy().into_owned()];
        let prefix = if name == "nginx" { &prefix[..] } else { &[] };
        arms.push(stable.start_at(name, addr, [&words[..], prefix].concat())?);
    }
    Ok(arms)
}

impl Item {
    /// Writes the file, and what is sent of it: their bytes are the same in every run.
    fn write(&self, root: &Path) -> Result<PathBuf, Trouble> {
        let file = root.join(self.name);
        let put = |bytes: &[u8]| {
            std::fs::write(&file, bytes).map_err(Trouble::cannot(format!("write {}", file.display())))
        };
        if self.form == Form::Large {
            put(&noise(self.sent_bytes))?;
            return Ok(file);
        }
        // Text of hexadecimal digits becomes a little more than half of itself; the second try is close.
        let sent = root.join(format!("{}.gz", self.name));
        let mut text_bytes = self.sent_bytes * 2;
        for _ in 0..3 {
            put(&digits(text_bytes))?;
            output(command(["gzip", "-9", "-n", "-k", "-f"]).arg(&file))?;
            let packed = std::fs::metadata(&sent).map_err(Trouble::cannot("see what gzip made"))?.len();
            text_bytes = text_bytes * self.sent_bytes / (packed as usize).max(1);
        }
        Ok(sent)
    }

    fn request(&self, addr: SocketAddr) -> String {
        format!("GET /{} HTTP/1.1\r\nHost: {addr}\r\n{ACCEPTS}\r\n\r\n", self.name)
    }

    /// What a server answers, and how many bytes of it are its head.
    fn answer_of(&self, arm: &Arm) -> Result<(Vec<u8>, usize), Trouble> {
        let answer = fetch(arm.server.addr(), &self.request(arm.server.addr()))?;
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n").map_or(answer.len(), |at| at + 4);
        Ok((answer, head))
    }

    /// The ways in which the file can leave, with the head that `model` sends.
    fn senders(
        &self,
        options: &Options,
        stable: &Stable<'_>,
        sender: &Path,
        model: &Arm,
        sent: &Path,
    ) -> Result<Vec<Arm>, Trouble> {
        if self.sent_bytes < SENDERS_FROM {
            return Ok(Vec::new());
        }
        let (answer, head) = self.answer_of(model)?;
        let head = stable.file("sender.head", &answer[..head])?;
        let start = |way: &&str| {
            stable.start(&format!("by-{way}"), |addr| {
                let port = addr.port().to_string();
                let words = [
                    &sender.to_string_lossy(),
                    *way,
                    &port,
                    &head.to_string_lossy(),
                    &sent.to_string_lossy(),
                ];
                words.map(str::to_owned).to_vec()
            })
        };
        let wanted = SENDERS.iter().filter(|way| options.wants(&format!("by-{way}")));
        wanted.map(start).collect()
    }

    /// The floors that send what `model` sends, byte for byte.
    fn floors(
        &self,
        stable: &Stable<'_>,
        dyno: &Path,
        model: &Arm,
        sent: &Path,
    ) -> Result<Vec<Arm>, Trouble> {
        let (answer, head) = self.answer_of(model)?;
        let by_file = self.form == Form::Large;
        let given = if by_file { &answer[..head] } else { &answer[..] };
        let file = stable.file("floor.answer", given)?.to_string_lossy().into_owned();
        let request_bytes = self.request(model.server.addr()).len().to_string();
        let start = |name: &str, how: &[String]| {
            stable.start(name, |addr| {
                let mut words = vec![dyno.to_string_lossy().into_owned(), "floor".to_owned()];
                words.extend(["--listen".to_owned(), addr.to_string(), "--answer".to_owned(), file.clone()]);
                words.extend(["--request-bytes".to_owned(), request_bytes.clone()]);
                words.extend_from_slice(how);
                words
            })
        };
        if by_file {
            let how = ["--sendfile".to_owned(), sent.to_string_lossy().into_owned()];
            return Ok(vec![start("floor", &how)?]);
        }
        Ok(vec![start("floor", &["--gather".to_owned()])?, start("floor-joined", &[])?])
    }

    /// Only equal work is compared.
    fn check(&self, arm: &Arm, sent: &Path) -> Result<(), Trouble> {
        let answer = fetch(arm.server.addr(), &self.request(arm.server.addr()))?;
        let body = std::fs::read(sent).map_err(Trouble::cannot(format!("read {}", sent.display())))?;
        if answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(&[b"\r\n\r\n", &body[..]].concat()) {
            eprintln!("{:<8} {}: head of {} bytes", arm.name, self.name, answer.len() - body.len());
            return Ok(());
        }
        let told = String::from_utf8_lossy(&answer[..answer.len().min(300)]).into_owned();
        Err(Trouble::new(format!("{} does not answer with {}: {told:?}", arm.name, sent.display())))
    }

    fn generator(&self, dyno: &Path, options: &Options, arm: &Arm, sent: &Path) -> Command {
        let mut generator =
            dyno_load(dyno, options, &arm.server, &format!("/{}", self.name), self.connections);
        generator.args(["-H", ACCEPTS, "--expect", "status=200"]);
        generator.args(["--expect", &format!("body=@{}", sent.display())]);
        generator
    }

    fn print(&self, options: &Options, measured: &[Series], sent: &Path) -> Result<(), Trouble> {
        let bytes = std::fs::metadata(sent).map_err(Trouble::cannot("see what is sent"))?.len();
        println!(
            "\n{}: {bytes} bytes of body, {} connections, {} cycles of {:?}, 95 % intervals",
            self.name, self.connections, options.cycles, options.slice
        );
        for part in Part::ALL {
            table::lines(measured, &YARDSTICKS, part).iter().for_each(|line| println!("{line}"));
        }
        for series in measured {
            let gigabytes = bytes as f64 / 1e3 / series.cpu_us(Part::Total);
            println!("{:<14} {gigabytes:>11.2} GB for each second of CPU", series.name);
        }
        Ok(())
    }
}

fn noise(bytes: usize) -> Vec<u8> {
    let mut chance = Prng::new(SEED);
    let mut noise: Vec<u8> = (0..bytes.div_ceil(8)).flat_map(|_| chance.next_u64().to_le_bytes()).collect();
    noise.truncate(bytes);
    noise
}

fn digits(bytes: usize) -> Vec<u8> {
    noise(bytes).into_iter().map(|byte| b"0123456789abcdef"[usize::from(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_sent_has_the_size_that_its_name_says() {
        let root = std::env::temp_dir().join(format!("dyno-items-{}", std::process::id()));
        std::fs::create_dir_all(&root).unwrap();
        for item in &ITEMS {
            let sent = std::fs::metadata(item.write(&root).unwrap()).unwrap().len() as usize;
            let wanted = item.sent_bytes;
            assert!(sent.abs_diff(wanted) <= wanted / 20, "{}: {sent} of {wanted}", item.name);
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
