//! A server on tokio that sums 64 KiB so many times (crc32fast) and hashes them so many times (SHA-256) for each request, and
//! its client: four connections, each of which asks when it is answered, and writes how many answers came into a file.
use sha2::Digest;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let address = format!("127.0.0.1:{}", words[2]);
    match words[1].as_str() {
        "serve" => serve(&address, words[3].parse().unwrap(), words[4].parse().unwrap()).await,
        _ => ask(&address, &words[3]).await,
    }
}

async fn serve(address: &str, first: usize, second: usize) {
    let listener = TcpListener::bind(address).await.unwrap();
    let text: &'static [u8] = Vec::leak(vec![7; 64 << 10]);
    while let Ok((mut peer, _)) = listener.accept().await {
        tokio::spawn(async move {
            let mut request = [0; 64];
            while peer.read_exact(&mut request).await.is_ok() {
                let sum = (0..first).map(|_| u64::from(crc32fast::hash(text))).sum::<u64>();
                let hash = (0..second).map(|_| u64::from(sha2::Sha256::digest(text)[0])).sum::<u64>();
                request[..8].copy_from_slice(&(sum + hash).to_le_bytes());
                if peer.write_all(&request).await.is_err() {
                    return;
                }
            }
        });
    }
}

async fn ask(address: &str, path: &str) {
    let (out, done) = (Arc::new(std::fs::File::create(path).unwrap()), Arc::new(AtomicU64::new(0)));
    let mut all = Vec::new();
    for _ in 0..4 {
        let mut peer = TcpStream::connect(address).await.unwrap();
        let (out, done) = (out.clone(), done.clone());
        all.push(tokio::spawn(async move {
            let mut answer = [0; 64];
            loop {
                peer.write_all(&[1; 64]).await.unwrap();
                peer.read_exact(&mut answer).await.unwrap();
                let count = done.fetch_add(1, Ordering::Relaxed) + 1;
                out.write_all_at(format!("{count:12}\n").as_bytes(), 0).unwrap();
            }
        }));
    }
    for one in all {
        one.await.unwrap();
    }
}
