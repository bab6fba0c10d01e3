//! Guesses the module of a file by its path, as code objects do not contain it.

/// Directories that packages are imported from. The path after the last one is the path of the
/// module.
const ROOTS: [&str; 2] = ["/site-packages/", "/dist-packages/"];

/// Returns the module of a file: `json.decoder` for `/usr/lib/python3.11/json/decoder.py`. For a
/// file that is not in a library, the file name alone; what is not a file (`<string>`) is returned
/// as it is.
pub fn module_of(file: &str) -> String {
    if let Some(frozen) = file
        .strip_prefix("<frozen ")
        .and_then(|rest| rest.strip_suffix('>'))
    {
        return frozen.to_string();
    }
    let stem = file.strip_suffix(".py").unwrap_or(file);
    let path = match below_library(stem) {
        Some(path) => path.to_string(),
        None => {
            let mut parts = stem.rsplit('/');
            let last = parts.next().unwrap_or(stem);
            match parts.next() {
                Some(package) if last.starts_with("__") && !package.is_empty() => {
                    format!("{package}/{last}")
                }
                _ => last.to_string(),
            }
        }
    };
    let path = path.strip_suffix("/__init__").unwrap_or(&path);
    path.replace('/', ".")
}

/// The path below a library's directory.
fn below_library(stem: &str) -> Option<&str> {
    let roots = ROOTS
        .iter()
        .filter_map(|root| Some(stem.rfind(root)? + root.len()));
    if let Some(start) = roots.max() {
        return stem.get(start..);
    }
    // `lib/python3.11/…`, `lib/python311.zip/…`
    let start = stem.rfind("/python")? + "/python".len();
    let (directory, path) = stem.get(start..)?.split_once('/')?;
    let version = directory.strip_suffix(".zip").unwrap_or(directory);
    let is_version = version.starts_with('3')
        && version
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b't');
    is_version.then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_of_files() {
        for (file, module) in [
            ("/usr/lib/python3.11/json/decoder.py", "json.decoder"),
            (
                "/root/.pyenv/versions/3.12.1/lib/python3.12/asyncio/__init__.py",
                "asyncio",
            ),
            (
                "/venv/lib/python3.9/site-packages/django/http/request.py",
                "django.http.request",
            ),
            ("/usr/lib/python3/dist-packages/apt/cache.py", "apt.cache"),
            ("/usr/lib/python311.zip/re.py", "re"),
            ("/srv/python/app.py", "app"),
            ("/srv/shop/__init__.py", "shop"),
            ("/srv/shop/__main__.py", "shop.__main__"),
            ("__init__.py", "__init__"),
            ("app.py", "app"),
            ("/srv/run", "run"),
            ("<string>", "<string>"),
            ("<frozen importlib._bootstrap>", "importlib._bootstrap"),
            ("", ""),
            ("/", ""),
        ] {
            assert_eq!(module_of(file), module, "{file}");
        }
    }
}
