//! Reads `~/.aws/credentials` and `~/.aws/config`, which `aws configure` writes: keys, the region and
//! the address of a profile.

use crate::failure::{Failure, safe, shown};
use object_store::aws::AmazonS3Builder;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum length of a file.
const BYTES_MAX: u64 = 1 << 20;

/// Variables with credentials, which count more than files.
const CREDENTIALS: [&str; 2] = ["AWS_ACCESS_KEY_ID", "AWS_WEB_IDENTITY_TOKEN_FILE"];
const REGIONS: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"];

/// Ways to get credentials that are not spoken here.
const ELSEWHERE: [&str; 5] = [
    "sso_session",
    "sso_start_url",
    "role_arn",
    "credential_process",
    "login_session",
];

/// What the files say of a profile.
#[derive(Debug, Default, PartialEq, Eq)]
struct Profile {
    /// Keys and values, those of the file with credentials first.
    values: Vec<(String, String)>,
}

/// The environment: the value of a variable, `None` if it is empty or not set.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Adds to a builder what the files of this user say, and variables do not.
pub fn apply(builder: AmazonS3Builder) -> Result<AmazonS3Builder, Failure> {
    let variable = |name: &str| std::env::var(name).ok().filter(|it| !it.is_empty());
    apply_of(&variable, builder)
}

fn apply_of(
    variables: Variables,
    mut builder: AmazonS3Builder,
) -> Result<AmazonS3Builder, Failure> {
    let has = |names: &[&str]| names.iter().any(|it| variables(it).is_some());
    let wanted = variables("AWS_PROFILE");
    let name = wanted.as_deref().unwrap_or("default");
    let Some(profile) = find(variables, name)? else {
        return match wanted {
            Some(_) => Err(Failure::usage(format!(
                "no file has the profile {} of AWS_PROFILE: `aws configure list-profiles` has their names",
                safe(name)
            ))),
            None => Ok(builder),
        };
    };
    if !has(&CREDENTIALS) {
        match (
            profile.get("aws_access_key_id"),
            profile.get("aws_secret_access_key"),
        ) {
            (Some(id), Some(secret)) => {
                builder = builder
                    .with_access_key_id(id)
                    .with_secret_access_key(secret);
                if let Some(token) = profile.get("aws_session_token") {
                    builder = builder.with_token(token);
                }
            }
            _ => {
                if let Some(key) = ELSEWHERE.iter().find(|it| profile.get(it).is_some()) {
                    let name = safe(name);
                    return Err(Failure::usage(format!(
                        "the profile {name} has credentials by {key}, which proftop-fleet does not read: \
                         `eval \"$(aws configure export-credentials --profile {name} --format env)\"` sets them"
                    )));
                }
            }
        }
    }
    if let Some(region) = profile.get("region").filter(|_| !has(&REGIONS)) {
        builder = builder.with_region(region);
    }
    if let Some(url) = profile.get("endpoint_url").filter(|_| !has(&ENDPOINTS)) {
        builder = builder.with_endpoint(url);
    }
    Ok(builder)
}

impl Profile {
    fn get(&self, key: &str) -> Option<&str> {
        let found = self.values.iter().find(|it| it.0 == key);
        found.map(|it| &*it.1).filter(|it| !it.is_empty())
    }
}

/// Returns what both files say of a profile; `None` if none of them has it.
fn find(variables: Variables, name: &str) -> Result<Option<Profile>, Failure> {
    let in_config = match name {
        "default" => "default".into(),
        name => format!("profile {name}"),
    };
    let mut found = None;
    for (variable, file, section) in [
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", name),
        ("AWS_CONFIG_FILE", "config", &in_config),
    ] {
        let (path, is_named) = match (variables(variable), variables("HOME")) {
            (Some(path), _) => (PathBuf::from(path), true),
            (None, Some(home)) => (Path::new(&home).join(".aws").join(file), false),
            (None, None) => continue,
        };
        let text = match read(&path) {
            Ok(text) => text,
            // `HOME` may be that of another user.
            Err(error) if !is_named && is_nothing(&error) => continue,
            Err(error) => {
                let path = shown(&path);
                return Err(Failure::usage(format!("cannot read {path}: {error}")));
            }
        };
        if let Some(values) = section_of(&text, section) {
            let profile: &mut Profile = found.get_or_insert_default();
            profile.values.extend(values);
        }
    }
    Ok(found)
}

fn read(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?
        .take(BYTES_MAX)
        .read_to_string(&mut text)?;
    Ok(text)
}

fn is_nothing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied | io::ErrorKind::NotADirectory
    )
}

/// Returns keys and values of a section; `None` if the text does not have it. Lines that are further
/// in are parts of a value, none of which is needed.
fn section_of(text: &str, section: &str) -> Option<Vec<(String, String)>> {
    let mut found = None;
    let mut is_inside = false;
    for line in text.lines() {
        if line.starts_with(['#', ';', ' ', '\t']) {
            continue;
        }
        if let Some(name) = line.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default();
            let words: Vec<&str> = name.split_whitespace().collect();
            is_inside = words.join(" ") == section;
            if is_inside {
                found.get_or_insert_with(Vec::new);
            }
        } else if let (Some(values), Some((key, value))) = (&mut found, line.split_once('='))
            && is_inside
        {
            values.push((key.trim().to_ascii_lowercase(), value.trim().into()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::aws::AmazonS3ConfigKey as Key;
    use std::fs;

    const CREDENTIALS_TEXT: &str = "# of aws configure\n[default]\naws_access_key_id = ID\n\
        aws_secret_access_key=SECRET=\n\n[ other ]\nAWS_ACCESS_KEY_ID = OTHER\naws_secret_access_key = S2\n\
        aws_session_token = T2\n";
    const CONFIG_TEXT: &str = "[default]\nregion = eu-central-1\ns3 =\n  region = wrong\n\
        [profile  other]\nregion = eu-west-1\nendpoint_url = https://store.example\n\
        [profile sso]\nsso_session = mine\n[sso-session mine]\nregion = us-west-2\n";

    /// What a builder has with these files and variables.
    fn built(variables: &[(&str, &str)]) -> Result<[Option<String>; 5], String> {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".aws");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("credentials"), CREDENTIALS_TEXT).unwrap();
        fs::write(folder.join("config"), CONFIG_TEXT).unwrap();
        let home = home.path().to_str().unwrap();
        let variable = |name: &str| {
            let found = variables.iter().find(|it| it.0 == name).map(|it| it.1);
            let value = found.or((name == "HOME").then_some(home));
            value.filter(|it| !it.is_empty()).map(String::from)
        };
        let builder = apply_of(&variable, AmazonS3Builder::new());
        let builder = builder.map_err(|failure| failure.to_string())?;
        Ok([
            Key::AccessKeyId,
            Key::SecretAccessKey,
            Key::Token,
            Key::Region,
            Key::Endpoint,
        ]
        .map(|key| builder.get_config_value(&key)))
    }

    fn texts(values: [&str; 5]) -> Result<[Option<String>; 5], String> {
        Ok(values.map(|it| (!it.is_empty()).then(|| it.into())))
    }

    #[test]
    fn a_profile_is_read_from_both_files() {
        let default = texts(["ID", "SECRET=", "", "eu-central-1", ""]);
        assert_eq!(built(&[]), default);
        let other = texts(["OTHER", "S2", "T2", "eu-west-1", "https://store.example"]);
        assert_eq!(built(&[("AWS_PROFILE", "other")]), other);
    }

    #[test]
    fn variables_count_more_than_files() {
        let id = [("AWS_ACCESS_KEY_ID", "X")];
        assert_eq!(built(&id), texts(["", "", "", "eu-central-1", ""]));
        let region = [("AWS_REGION", "x"), ("AWS_PROFILE", "other")];
        let expected = texts(["OTHER", "S2", "T2", "", "https://store.example"]);
        assert_eq!(built(&region), expected);
    }

    #[test]
    fn without_files_there_is_nothing_and_what_is_named_has_to_be_there() {
        let home = [("HOME", "/nowhere")];
        assert_eq!(built(&home), texts(["", "", "", "", ""]));
        assert_eq!(built(&[("HOME", "")]), built(&home));
        let said = built(&[("AWS_PROFILE", "absent")]).unwrap_err();
        assert!(said.contains("no file has the profile absent"), "{said}");
        let said = built(&[("AWS_CONFIG_FILE", "/nowhere")]).unwrap_err();
        assert!(said.contains("cannot read /nowhere"), "{said}");
    }

    #[test]
    fn other_ways_to_get_credentials_are_named() {
        let said = built(&[("AWS_PROFILE", "sso")]).unwrap_err();
        assert!(said.contains("has credentials by sso_session"), "{said}");
        // With keys in variables it is not asked for them.
        let both = [("AWS_PROFILE", "sso"), ("AWS_ACCESS_KEY_ID", "X")];
        assert_eq!(built(&both), texts(["", "", "", "", ""]));
    }
}
