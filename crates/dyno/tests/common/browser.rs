//! A headless Chromium that tests ask what a page looks like: over its own pipe, one page at a time.
//!
//! It speaks the browser's debugging protocol: texts of JSON, each ended by a zero byte. It asks no network.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// How a reader's window is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// `light` or `dark`.
    pub(crate) theme: &'static str,
    /// `screen` or `print`.
    pub(crate) medium: &'static str,
}

/// The browser. Dropping it ends it.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    folder: PathBuf,
    session: String,
    last: u64,
    /// What happened while an answer was waited for.
    events: VecDeque<Value>,
}

impl Browser {
    /// Starts it with an empty page.
    pub(crate) fn start(name: &str) -> Browser {
        let folder =
            Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("browser-{name}-{}", std::process::id()));
        let flags = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --hide-scrollbars \
                     --disable-background-networking --disable-component-update --remote-debugging-pipe";
        // It reads from descriptor 3 and writes to 4; what it says besides is not part of it.
        let script = format!(
            "exec chromium {flags} --user-data-dir=\"$1\" about:blank 3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh"]).arg(&folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let events = VecDeque::new();
        let mut browser = Browser { child, to, from, folder, session: String::new(), last: 0, events };
        let target = browser.ask("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.ask("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.ask(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Opens a file in a window; what the page complained of, and what it asked a network for.
    pub(crate) fn open(&mut self, page: &Path, window: Window) -> Vec<String> {
        let Window { width, height, theme, medium } = window;
        let mobile = width < 600;
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile });
        self.ask("Emulation.setDeviceMetricsOverride", size);
        self.ask("Emulation.setTouchEmulationEnabled", json!({ "enabled": mobile }));
        let scheme = json!([{ "name": "prefers-color-scheme", "value": theme }]);
        self.ask("Emulation.setEmulatedMedia", json!({ "media": medium, "features": scheme }));
        self.events.clear();
        self.ask("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        while self.next_event()["method"] != "Page.loadEventFired" {}
        // Whatever is drawn with the next frame is drawn.
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))");
        self.events.iter().filter_map(complaint).collect()
    }

    /// The value of an expression in the page; what it throws is a panic.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let told = self.ask("Runtime.evaluate", asked);
        assert!(told["exceptionDetails"].is_null(), "{expression}: {told:#}");
        told["result"]["value"].clone()
    }

    /// Moves the pointer, or presses with it (`mouseMoved`, `mousePressed`, `mouseReleased`).
    pub(crate) fn point(&mut self, kind: &str, at: [f64; 2]) {
        let [x, y] = at;
        let buttons = if kind == "mouseMoved" { "none" } else { "left" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": buttons, "clickCount": 1 });
        self.ask("Input.dispatchMouseEvent", event);
    }

    /// Sheets of A4 that the page takes on paper.
    pub(crate) fn sheets(&mut self) -> usize {
        let a4 = json!({ "paperWidth": 8.27, "paperHeight": 11.69, "preferCSSPageSize": true });
        let told = self.ask("Page.printToPDF", a4);
        let pdf = from_base64(told["data"].as_str().unwrap());
        let sheets = pdf.windows(SHEET.len()).filter(|bytes| *bytes == SHEET).count();
        assert!(sheets > 0, "a page takes a sheet at least");
        sheets
    }

    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let told = self.read();
            if told["id"] == self.last {
                assert!(told["error"].is_null(), "{method}: {told:#}");
                return told["result"].clone();
            }
            self.events.push_back(told);
        }
    }

    fn next_event(&mut self) -> Value {
        // Those that came while an answer was waited for stay: they are read again for what they complain of.
        let loaded = self.events.iter().find(|event| event["method"] == "Page.loadEventFired").cloned();
        loaded.unwrap_or_else(|| {
            let told = self.read();
            self.events.push_back(told.clone());
            told
        })
    }

    fn read(&mut self) -> Value {
        let mut text = Vec::new();
        self.from.read_until(0, &mut text).unwrap();
        assert_eq!(text.pop(), Some(0), "the browser ended");
        serde_json::from_slice(&text).unwrap()
    }
}

/// What begins a sheet in a PDF of this browser's.
const SHEET: &[u8] = b"/Type /Page\n";

/// What the browser packs bytes into (RFC 4648, section 4).
fn from_base64(text: &str) -> Vec<u8> {
    let value = |letter: u8| match letter {
        b'A'..=b'Z' => letter - b'A',
        b'a'..=b'z' => letter - b'a' + 26,
        b'0'..=b'9' => letter - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let letters: Vec<u8> = text.bytes().filter(|letter| *letter != b'=').collect();
    let group = |four: &[u8]| {
        let bits = four.iter().fold(0_u32, |bits, letter| bits << 6 | u32::from(value(*letter)));
        let bits = bits << (6 * (4 - four.len()));
        bits.to_be_bytes()[1..four.len()].to_vec()
    };
    letters.chunks(4).flat_map(group).collect()
}

/// What of an event is a fault of the page's.
fn complaint(event: &Value) -> Option<String> {
    let told = &event["params"];
    let url = told["request"]["url"].as_str().unwrap_or_default();
    let is_fault = match event["method"].as_str()? {
        "Runtime.exceptionThrown" => true,
        "Runtime.consoleAPICalled" => matches!(told["type"].as_str(), Some("error" | "warning" | "assert")),
        "Log.entryAdded" => matches!(told["entry"]["level"].as_str(), Some("error" | "warning")),
        "Network.requestWillBeSent" => !url.starts_with("file:") && !url.starts_with("data:"),
        _ => false,
    };
    is_fault.then(|| told.to_string())
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its other processes end with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
