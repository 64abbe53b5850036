//! What lies where in a process's address space (/proc/PID/maps), and what it calls itself.

use super::folder;
use crate::tasks::numbers_in;
use crate::{Pid, Tid};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};

/// One line of /proc/PID/maps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// The address after the last.
    pub end: u64,
    /// Whether code in it may run.
    pub executable: bool,
    /// Whether what is written there reaches others that have it mapped (`MAP_SHARED`).
    pub shared: bool,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file's inode; 0 for what is no file.
    pub inode: u64,
    /// The file as the process sees it, ` (deleted)` at its end when it is gone; `[vdso]` and such; or nothing.
    pub path: String,
}

/// Whether a process that is none of these runs code of a file. What may not be looked into counts as if it did not.
pub fn is_run_by_others(inode: u64, own: &[Pid]) -> bool {
    let runs = |pid: Pid| {
        let all = mappings(pid).unwrap_or_default();
        all.iter().any(|mapping| mapping.executable && mapping.inode == inode)
    };
    numbers_in("/proc").into_iter().any(|pid| !own.contains(&pid) && runs(pid))
}

/// The address space of `pid` as it is now. Needs the right to trace the process (`EACCES`).
pub fn mappings(pid: Pid) -> io::Result<Vec<Mapping>> {
    let raw = fs::read(format!("{}/maps", folder(pid)))?;
    Ok(parse_mappings(&String::from_utf8_lossy(&raw)))
}

/// The lines of /proc/PID/maps; what has another shape is passed over.
pub fn parse_mappings(text: &str) -> Vec<Mapping> {
    text.lines().filter_map(mapping).collect()
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut columns = line.splitn(6, ' ');
    let mut next = || columns.next();
    let (range, rights, offset, _device, inode) = (next()?, next()?, next()?, next()?, next()?);
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(Mapping {
        start: number(start)?,
        end: number(end)?,
        executable: rights.contains('x'),
        shared: rights.ends_with('s'),
        offset: number(offset)?,
        inode: inode.parse().ok()?,
        // The kernel pads with blanks before a name and writes a line's end within it as \012.
        path: next().unwrap_or_default().trim_start().replace("\\012", "\n"),
    })
}

/// A file as the kernel itself knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    /// Its number within its file system.
    pub inode: u64,
    /// Major and minor number of the file system's device. stat(2) tells another one on btrfs.
    pub device: (u32, u32),
}

/// The file at an absolute path as `pid` sees it.
pub fn file_id(pid: Pid, path: &str) -> io::Result<FileId> {
    let folder = folder(pid);
    let opened =
        fs::OpenOptions::new().read(true).custom_flags(libc::O_PATH).open(format!("{folder}/root{path}"))?;
    let odd = || io::Error::new(io::ErrorKind::InvalidData, "the mount of this file is not known");
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", opened.as_raw_fd()))?;
    let mount = super::parse_status_field(&about, "mnt_id").ok_or_else(odd)?;
    let mounts = fs::read(format!("{folder}/mountinfo"))?;
    let device = parse_mount_device(&String::from_utf8_lossy(&mounts), mount).ok_or_else(odd)?;
    Ok(FileId { inode: opened.metadata()?.ino(), device })
}

/// Major and minor number of the device of a mount, from /proc/PID/mountinfo.
pub fn parse_mount_device(text: &str, mount: &str) -> Option<(u32, u32)> {
    let mut lines = text.lines().map(|line| line.split(' '));
    let mut fields = lines.find_map(|mut fields| (fields.next() == Some(mount)).then_some(fields))?;
    // Its parent's number stands between.
    let (major, minor) = fields.nth(1)?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// The name of thread `tid` (`comm`), at most 15 bytes.
pub fn name(tid: Tid) -> io::Result<String> {
    let raw = fs::read(format!("/proc/{tid}/comm"))?;
    Ok(String::from_utf8_lossy(&raw).trim_end_matches('\n').to_owned())
}

/// The command line of `pid`; empty for kernel threads and zombies.
pub fn command_line(pid: Pid) -> io::Result<Vec<String>> {
    let raw = fs::read(format!("{}/cmdline", folder(pid)))?;
    let text = String::from_utf8_lossy(&raw).into_owned();
    Ok(text.split_terminator('\0').map(str::to_owned).collect())
}

/// The number of `pid` within its own PID namespace: how a program in a container knows itself.
pub fn innermost_pid(pid: Pid) -> io::Result<Pid> {
    let raw = fs::read(format!("/proc/{pid}/status"))?;
    let text = String::from_utf8_lossy(&raw).into_owned();
    let last = super::parse_status_field(&text, "NSpid").and_then(|field| field.split_whitespace().last());
    Ok(last.and_then(|number| number.parse().ok()).unwrap_or(pid))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::child::this;

    #[test]
    fn lines_of_maps_become_values_whatever_their_names() {
        let text = "55d0-55d1 r-xp 00001000 08:01 12                    /usr/bin/a b (deleted)\n\
                    7f00-7f01 rw-s 00000000 00:00 0 \n7ffe-7fff r-xp 00000000 00:00 0    [vdso]\nnonsense\n";
        let found = parse_mappings(text);
        assert_eq!(found.len(), 3);
        let first = Mapping {
            start: 0x55d0,
            end: 0x55d1,
            executable: true,
            shared: false,
            offset: 0x1000,
            inode: 12,
            path: "/usr/bin/a b (deleted)".to_owned(),
        };
        assert_eq!(found[0], first);
        assert_eq!((found[1].executable, found[1].shared, found[1].path.as_str()), (false, true, ""));
        assert_eq!((found[2].executable, found[2].path.as_str()), (true, "[vdso]"));
    }

    #[test]
    fn a_file_is_known_by_its_number_and_the_device_of_its_mount() {
        let text =
            "28 1 254:0 / / rw - ext4 /dev/vda rw\n31 28 0:42 /sub /data rw shared:7 - btrfs /dev/vdb rw\n";
        assert_eq!(parse_mount_device(text, "31"), Some((0, 42)));
        assert_eq!(parse_mount_device(text, "28"), Some((254, 0)));
        assert_eq!((parse_mount_device(text, "1"), parse_mount_device("31 28\n", "31")), (None, None));
        let program = std::env::current_exe().unwrap();
        let found = file_id(this(), program.to_str().unwrap()).unwrap();
        assert_eq!(found.inode, fs::metadata(&program).unwrap().ino());
        assert!(file_id(this(), "/no/such").is_err());
    }

    #[test]
    fn this_process_has_code_a_name_and_arguments() {
        let here = this_process_has_code_a_name_and_arguments as *const () as usize as u64;
        let holds = |mapping: &Mapping| mapping.executable && (mapping.start..mapping.end).contains(&here);
        assert!(mappings(this()).unwrap().iter().any(holds));
        assert!(!name(this()).unwrap().is_empty() && !command_line(this()).unwrap().is_empty());
        assert!(innermost_pid(this()).unwrap() > 0);
        assert!(mappings(i32::MAX - 1).is_err() && name(i32::MAX - 1).is_err());
    }
}
