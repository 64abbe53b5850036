//! The servers of a bench: built, started on the server's CPU, their answers checked before anything is measured.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::options::Options;
use crate::client::fetch;
use crate::command::{cargo, command, find_program, run as run_command};
use crate::repo::Repo;
use crate::server::{Server, free_addr};
use crate::shapes::Shape;
use crate::trouble::{Outcome, Trouble};

/// A server that is measured.
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) server: Server,
}

/// A program in C that the bench brings along, built by its name without an ending.
pub(crate) fn built_in_c(repo: &Repo, source: &str) -> Result<PathBuf, Trouble> {
    let source = repo.path(source);
    let program = repo.scratch("bench")?.join(source.file_stem().unwrap_or_default());
    let mut build = command(["cc", "-O2", "-Wall", "-Wextra", "-o"]);
    built(build.arg(&program).arg(&source))?;
    Ok(program)
}

/// Starts servers for one bench.
pub(crate) struct Stable<'b> {
    repo: &'b Repo,
    options: &'b Options,
    folder: PathBuf,
}

impl<'b> Stable<'b> {
    pub(crate) fn new(repo: &'b Repo, options: &'b Options) -> Result<Stable<'b>, Trouble> {
        Ok(Stable { repo, options, folder: repo.scratch("bench")? })
    }

    /// Writes a file that lives as long as the folder of the bench.
    pub(crate) fn file(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Trouble> {
        let path = self.folder.join(name);
        std::fs::write(&path, bytes).map_err(Trouble::cannot(format!("write {}", path.display())))?;
        Ok(path)
    }

    /// Starts one on the server's CPU; `words` are its command for an address.
    pub(crate) fn start(
        &self,
        name: &str,
        words: impl FnOnce(SocketAddr) -> Vec<String>,
    ) -> Result<Arm, Trouble> {
        let addr = free_addr()?;
        self.start_at(name, addr, words(addr))
    }

    /// The same for an address that is chosen already.
    pub(crate) fn start_at(&self, name: &str, addr: SocketAddr, words: Vec<String>) -> Result<Arm, Trouble> {
        let mut program = command(["taskset", "-c", &self.options.server_cpu.to_string()]);
        program.args(words);
        let said = self.folder.join(format!("{name}.log"));
        Ok(Arm { name: name.to_owned(), server: Server::start(program, addr, &said)? })
    }

    /// `dyno serve` with these flags.
    pub(crate) fn dyno(&self, dyno: &Path, name: &str, flags: &[&str]) -> Result<Arm, Trouble> {
        let words = |addr: SocketAddr| {
            let serve = [&dyno.to_string_lossy(), "serve", "--workers", "1", "--listen", &addr.to_string()];
            serve.iter().chain(flags).map(|word| (*word).to_owned()).collect()
        };
        self.start(name, words)
    }

    /// The start of a climb, with its access log in a file, as there.
    pub(crate) fn naive(&self, dyno: &Path) -> Result<Arm, Trouble> {
        self.dyno(dyno, "naive", &["--naive", "--log-file", &self.access_log().to_string_lossy()])
    }

    fn access_log(&self) -> PathBuf {
        self.folder.join("naive-access.log")
    }

    /// `dyno floor`, giving back what `model` answers to this shape, byte for byte.
    ///
    /// It is given the mean length of the requests: a batch, which one read brings, divided by it is as many requests,
    /// whether they are equal or not. So it counts different ones at no cost.
    pub(crate) fn floor(&self, dyno: &Path, model: &Arm, shape: &Shape) -> Result<Arm, Trouble> {
        let name = format!("floor-{}", shape.name);
        let bytes = fetch(model.server.addr(), &shape.requests[0])?;
        let answer = self.file(&format!("{name}.answer"), &bytes)?;
        self.start(&name, |addr| {
            let (file, bytes) = (answer.to_string_lossy(), shape.request_bytes().to_string());
            let words = [&dyno.to_string_lossy(), "floor", "--listen", &addr.to_string(), "--answer", &file];
            words.into_iter().chain(["--request-bytes", &bytes]).map(str::to_owned).collect()
        })
    }

    /// The servers of other people that are wanted and can be had here; the others are named with the reason.
    pub(crate) fn peers(&self) -> Result<Vec<Arm>, Trouble> {
        let mut arms = self.rust_peers()?;
        for (name, program) in [("go", "go"), ("nginx", "nginx")] {
            if !self.options.wants(name) {
                continue;
            }
            match find_program(program) {
                Some(_) if name == "go" => arms.push(self.go()?),
                Some(nginx) => arms.push(self.nginx(&nginx)?),
                None => eprintln!("not measured: {name}: {program} is not installed (cargo xtask test)"),
            }
        }
        Ok(arms)
    }

    fn rust_peers(&self) -> Result<Vec<Arm>, Trouble> {
        let wanted: Vec<&str> =
            ["hyper", "actix", "may"].into_iter().filter(|name| self.options.wants(name)).collect();
        if wanted.is_empty() {
            return Ok(vec![]);
        }
        let target = self.repo.target().join("peers");
        let manifest = self.repo.path("bench/peers/Cargo.toml");
        let mut build = cargo(["build", "--release", "--locked", "--manifest-path"]);
        built(build.arg(manifest).arg("--target-dir").arg(&target))?;
        let program = |name: &str| target.join(format!("release/peer-{name}")).to_string_lossy().into_owned();
        wanted.iter().map(|name| self.start(name, |addr| vec![program(name), addr.to_string()])).collect()
    }

    fn go(&self) -> Result<Arm, Trouble> {
        let program = self.folder.join("peer-go");
        let mut build = command(["go", "build", "-o"]);
        built(build.arg(&program).arg(".").current_dir(self.repo.path("bench/peers/go")))?;
        self.start("go", |addr| vec![program.to_string_lossy().into_owned(), addr.to_string()])
    }

    fn nginx(&self, nginx: &Path) -> Result<Arm, Trouble> {
        let prefix = self.folder.join("nginx");
        let template = self.repo.read("bench/peers/nginx.conf")?;
        std::fs::create_dir_all(&prefix).map_err(Trouble::cannot(format!("make {}", prefix.display())))?;
        let file = prefix.join("nginx.conf");
        let arm = |addr: SocketAddr| -> Result<Vec<String>, Trouble> {
            let text = template.replace("@PORT@", &addr.port().to_string());
            std::fs::write(&file, text).map_err(Trouble::cannot(format!("write {}", file.display())))?;
            let words =
                [&nginx.to_string_lossy(), "-p", &prefix.to_string_lossy(), "-c", &file.to_string_lossy()];
            Ok(words.map(str::to_owned).to_vec())
        };
        let mut refused = None;
        let started = self.start("nginx", |addr| {
            arm(addr).unwrap_or_else(|trouble| {
                refused = Some(trouble);
                vec!["true".to_owned()]
            })
        });
        refused.map_or(started, Err)
    }
}

impl Drop for Stable<'_> {
    fn drop(&mut self) {
        // A hundred bytes for each of millions of requests; it may not be there.
        let _ = std::fs::remove_file(self.access_log());
    }
}

fn built(build: &mut Command) -> Result<(), Trouble> {
    match run_command(build)? {
        Outcome::Done => Ok(()),
        Outcome::No => Err(Trouble::new("a program to compare with does not build")),
    }
}

/// Only equal work is compared: the same status and body from everybody, to each request. Lengths differ by heads, and
/// are printed.
pub(crate) fn check(arms: &[&Arm], shape: &Shape) -> Result<(), Trouble> {
    for arm in arms {
        let mut bytes = 0;
        for request in &shape.requests {
            let answer = fetch(arm.server.addr(), request)?;
            if !is_right(&answer, shape.body) {
                let got = String::from_utf8_lossy(&answer).into_owned();
                return Err(Trouble::new(format!("{} answers {request:?} with {got:?}", arm.name)));
            }
            bytes = answer.len();
        }
        eprintln!("{:<20} {}: {bytes} bytes", arm.name, shape.name);
    }
    Ok(())
}

fn is_right(answer: &[u8], body: &str) -> bool {
    answer.starts_with(b"HTTP/1.1 200 ") && answer.ends_with(format!("\r\n\r\n{body}").as_bytes())
}
