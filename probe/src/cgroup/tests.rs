use super::*;

const ID: &str = "3f2c8a1b9d4e5f60718293a4b5c6d7e8f90123456789abcdef0123456789abcd";

fn hierarchy(directories: &[&str]) -> (tempfile::TempDir, Hierarchy) {
    let dir = tempfile::tempdir().unwrap();
    for directory in directories {
        fs::create_dir_all(dir.path().join(directory)).unwrap();
    }
    let root = dir.path().to_path_buf();
    (dir, Hierarchy { root })
}

fn path_of(hierarchy: &Hierarchy, name: &str) -> String {
    hierarchy.resolve(name).unwrap().path.display().to_string()
}

#[test]
fn finds_paths_however_they_are_written() {
    let (dir, groups) = hierarchy(&["system.slice/nginx.service"]);
    let absolute = dir.path().join("system.slice/nginx.service");
    for name in [
        "system.slice/nginx.service",
        "/system.slice/nginx.service",
        "/system.slice/nginx.service/",
        absolute.to_str().unwrap(),
    ] {
        let group = groups.resolve(name).unwrap();
        assert_eq!(group.path, Path::new("/system.slice/nginx.service"));
        assert_eq!(group.level, 2);
        assert_eq!(group.id, fs::metadata(&absolute).unwrap().ino());
    }
    let root = groups.resolve("/").unwrap();
    assert_eq!((root.level, root.path), (0, PathBuf::from("/")));
    assert!(groups.resolve("../etc").is_err());
    assert!(groups.resolve("").is_err());
}

#[test]
fn finds_units_by_name() {
    let (_dir, groups) = hierarchy(&[
        "system.slice/nginx.service",
        "user.slice/user-1000.slice/user@1000.service/app.slice/shell.scope",
    ]);
    assert_eq!(
        path_of(&groups, "nginx.service"),
        "/system.slice/nginx.service"
    );
    assert_eq!(path_of(&groups, "nginx"), "/system.slice/nginx.service");
    assert_eq!(groups.resolve("shell.scope").unwrap().level, 5);
    assert!(matches!(
        groups.resolve("ngin"),
        Err(CgroupError::NotFound(_))
    ));
}

#[test]
fn finds_containers_by_the_start_of_their_id() {
    for parent in [
        "docker-{}.scope",
        "cri-containerd-{}.scope",
        "{}",
        "libpod-{}.scope",
    ] {
        let name = format!("kubepods.slice/pod7/{}", parent.replace("{}", ID));
        let (_dir, groups) = hierarchy(&[&name]);
        assert_eq!(path_of(&groups, &ID[..12]), format!("/{name}"));
        assert_eq!(
            path_of(&groups, &ID[..8].to_uppercase()),
            format!("/{name}")
        );
        assert!(groups.resolve(&ID[..7]).is_err(), "too short");
        assert!(groups.resolve(&ID[8..20]).is_err(), "not the start");
    }
}

#[test]
fn the_keeper_of_a_container_is_not_the_container() {
    let (_dir, groups) = hierarchy(&[
        &format!("machine.slice/libpod-{ID}.scope/container"),
        &format!("machine.slice/libpod-conmon-{ID}.scope"),
    ]);
    let found = path_of(&groups, &ID[..10]);
    assert_eq!(found, format!("/machine.slice/libpod-{ID}.scope"));
}

#[test]
fn ambiguous_names_list_their_candidates() {
    let (_dir, groups) = hierarchy(&["a/app.service", "b/app.service", "b/app.service/app"]);
    let error = groups.resolve("app").unwrap_err();
    assert!(matches!(&error, CgroupError::Ambiguous { candidates, .. } if candidates.len() == 2));
    let text = error.to_string();
    assert!(
        text.contains("/a/app.service") && text.contains("/b/app.service"),
        "{text}"
    );
}

#[test]
fn reads_the_mount_table() {
    let hybrid = b"31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        40 31 0:37 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,name=systemd\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw shared:9 master:1 - cgroup2 cgroup2 rw\n";
    let found = find_cgroup2_mount(hybrid).unwrap();
    assert_eq!(found, Path::new("/sys/fs/cgroup/unified"));
    assert_eq!(
        find_cgroup2_mount(b"1 2 0:3 / /a\\040b rw - cgroup2 x rw\n").unwrap(),
        Path::new("/a b")
    );
    assert_eq!(find_cgroup2_mount(b"nonsense\n1 2 3 4 5 6\n"), None);
}

#[test]
fn a_real_group_has_the_inode_as_its_id() {
    let Ok(groups) = Hierarchy::mounted() else {
        test_support::skip("no cgroup2 file system is mounted");
        return;
    };
    let name = format!("proftop-test-{}", std::process::id());
    let inner = groups.root().join(&name).join("inner");
    if fs::create_dir_all(&inner).is_err() {
        test_support::skip("needs root");
        return;
    }
    let by_name = groups.resolve(&name);
    let by_path = groups.resolve(&format!("{name}/inner"));
    fs::remove_dir(&inner).unwrap();
    fs::remove_dir(inner.parent().unwrap()).unwrap();
    assert_eq!(by_name.unwrap().level, 1);
    assert_eq!(by_path.unwrap().level, 2);
}
