//! A PostgreSQL server of a test's own, from the programs of this machine: to be restarted, to be filled up, to
//! speak TLS.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A server on loopback, in a folder of its own. It stops when this is dropped.
pub(crate) struct OwnServer {
    programs: Programs,
    folder: TempDir,
    port: u16,
    password: Option<&'static str>,
}

/// Where the server's programs are, and as whom they run: the server refuses root.
#[derive(Clone, Debug)]
pub(crate) struct Programs {
    folder: PathBuf,
    user: Option<(u32, u32)>,
}

impl Programs {
    /// Those of this machine; none if they are not there, or nobody can run them.
    pub(crate) fn find() -> Option<Self> {
        let on_path = std::env::var_os("PATH")
            .map(|path| std::env::split_paths(&path).collect::<Vec<_>>())
            .unwrap_or_default();
        let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
        let packaged = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
        let folder = on_path
            .into_iter()
            .chain(packaged)
            .find(|folder| folder.join("initdb").is_file() && folder.join("pg_ctl").is_file())?;
        let is_root = fs::metadata("/proc/self").ok()?.uid() == 0;
        let user = if is_root {
            Some(postgres_user()?)
        } else {
            None
        };
        Some(Self { folder, user })
    }

    fn run(&self, program: &str, arguments: &[&str], within: &Path) {
        let mut command = Command::new(self.folder.join(program));
        command
            .args(arguments)
            .current_dir(within)
            .env("HOME", within)
            // A server that was started keeps them open.
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        let status = command.status().expect("it can be run");
        let log = fs::read_to_string(within.join("log")).unwrap_or_default();
        assert!(status.success(), "{program} {arguments:?}: {log}");
    }
}

/// The one whom the distribution's packages make.
fn postgres_user() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.starts_with("postgres:"))?;
    let mut fields = line.split(':').skip(2);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

impl OwnServer {
    /// Starts one with these settings, `name=value`, and these files in its folder of data.
    pub(crate) fn start(programs: &Programs, settings: &[&str], files: &[(&str, &str)]) -> Self {
        Self::start_as(programs, None, settings, files)
    }

    /// Starts one whose user has a password.
    pub(crate) fn start_with_password(
        programs: &Programs,
        password: &'static str,
        settings: &[&str],
        files: &[(&str, &str)],
    ) -> Self {
        Self::start_as(programs, Some(password), settings, files)
    }

    fn start_as(
        programs: &Programs,
        password: Option<&'static str>,
        settings: &[&str],
        files: &[(&str, &str)],
    ) -> Self {
        let server = Self {
            programs: programs.clone(),
            folder: tempfile::tempdir().expect("a folder"),
            port: free_port(),
            password,
        };
        server.give_away(server.folder.path());
        server.write("password", password.unwrap_or("none"));
        let initdb = [
            "-D",
            "data",
            "-U",
            "raf",
            "--no-sync",
            "--auth=trust",
            "--pwfile=password",
        ];
        server.run("initdb", &initdb);
        for (name, text) in files {
            server.write(&format!("data/{name}"), text);
        }
        let mut options = format!(
            "-c listen_addresses=localhost -c port={} -c unix_socket_directories=",
            server.port
        );
        for setting in settings {
            options.push_str(" -c ");
            options.push_str(setting);
        }
        server.run(
            "pg_ctl",
            &["-D", "data", "-l", "log", "-w", "-o", &options, "start"],
        );
        server
    }

    /// Its address, by number.
    pub(crate) fn url(&self) -> String {
        self.url_of("127.0.0.1")
    }

    /// Its address, by this name of the machine.
    pub(crate) fn url_of(&self, host: &str) -> String {
        let password = self.password.map(|password| format!(":{password}"));
        let password = password.unwrap_or_default();
        format!("postgres://raf{password}@{host}:{}/postgres", self.port)
    }

    /// A file that nobody but the server may read.
    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("its mode");
        self.give_away(&path);
    }

    /// Ends it as a crash would, and starts it again.
    pub(crate) fn crash_and_restart(&self) {
        self.run(
            "pg_ctl",
            &[
                "-D",
                "data",
                "-l",
                "log",
                "-w",
                "-m",
                "immediate",
                "restart",
            ],
        );
    }

    /// A folder that the server may write to.
    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::create_dir(&path).expect("a folder");
        self.give_away(&path);
        path
    }

    /// Makes the server's user the owner.
    pub(crate) fn give_away(&self, path: &Path) {
        if let Some((user, group)) = self.programs.user {
            chown(path, Some(user), Some(group)).expect("its owner");
        }
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        self.programs.run(program, arguments, self.folder.path());
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        if self.folder.path().join("data/postmaster.pid").is_file() {
            self.run("pg_ctl", &["-D", "data", "-m", "immediate", "-w", "stop"]);
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("its address").port()
}
