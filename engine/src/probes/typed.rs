//! Resolves values by the names and types of debug information.
//!
//! Types are taken from these files, in this order:
//!
//! 1. the probed file, or its debug file
//! 2. a file that the user specified: of the same build, or of another one whose structures are
//!    assumed to have the same layout

use super::expression::{Known, KnownParameter, Values};
use super::modules::Module;
use probe::files;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use symbolize::dwarf::{Convention, LeftOut, NoSignature, Parameter, Signature};
use symbolize::opener;
use symbolize::parser::{FileSites, FileTypes};
use symbolize::sites::{Function, Language};
use symbolize::{FileSource, Reason, Symbolizer};

/// A file that the user specified for its types.
#[derive(Debug)]
pub struct TypesFile {
    /// Its name as specified, safe to print.
    name: String,
    sites: Arc<FileSites>,
}

impl TypesFile {
    /// Opens the file. The error is a sentence.
    pub fn open(path: &Path) -> Result<TypesFile, String> {
        let bytes = path.as_os_str().as_encoded_bytes();
        let name = symbolize::sanitize(bytes).into_owned();
        let failed = |why: &str| format!("no types from {name}: {why}");
        let path = std::path::absolute(path).map_err(|error| failed(&error.to_string()))?;
        let way = files::named_by_user();
        let root =
            opener::our_root().ok_or_else(|| failed("this system's root cannot be opened"))?;
        let file = way
            .open_beneath(root, &path)
            .map_err(|reason| match reason {
                Reason::FileGone => failed("there is no such file, or it cannot be opened"),
                reason => failed(&lower(reason.explain())),
            })?;
        let descriptor = OwnedFd::from(file);
        let source = FileSource {
            file: Some(&descriptor),
            ..FileSource::new(&path)
        };
        let unread = |reason: Reason| failed(&lower(reason.explain()));
        let sites = Symbolizer::new().with_files(way).file_sites(source);
        let sites = sites.map_err(unread)?;
        if FileTypes::of(&sites).map_err(unread)?.is_none() {
            return Err(failed(
                "it has no debug information, nor is there a debug file of it",
            ));
        }
        Ok(TypesFile { name, sites })
    }

    /// Describes the file, and whether it is the same build as the probed file.
    pub fn explain(&self, module: &Module) -> String {
        let of = |id: &[u8]| {
            if id.is_empty() {
                "without a build-id".to_string()
            } else {
                format!("of build-id {}", hex(id))
            }
        };
        let (its, own) = (self.build_id(), module.build_id());
        if self.is_of(module) {
            return format!(
                "types are those of {}, {}: the same build",
                self.name,
                of(its)
            );
        }
        format!(
            "types are those of {}, {}; {} is {}: values are right if its structures lie alike",
            self.name,
            of(its),
            module.name(),
            of(own)
        )
    }

    fn is_of(&self, module: &Module) -> bool {
        let own = module.build_id();
        !own.is_empty() && own == self.build_id()
    }

    fn build_id(&self) -> &[u8] {
        &self.sites.facts().build_id
    }
}

/// Converts a sentence to the end of another one.
fn lower(sentence: &str) -> String {
    let sentence = sentence.trim_end_matches('.');
    let mut letters = sentence.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Resolved values, and whether types of the user's file were needed.
pub struct Typed {
    /// The values, with offsets in place of names.
    pub values: Values,
    /// Whether types of the user's file were needed.
    pub by_file: bool,
}

/// Resolves the values for a function. The error is a sentence: a name is unknown.
pub fn typed(
    values: &Values,
    module: &Module,
    function: &Function,
    given: Option<&Arc<TypesFile>>,
) -> Result<Typed, String> {
    let as_typed = |values: &Values| Typed {
        values: values.clone(),
        by_file: false,
    };
    if values.is_empty() || function.inside.is_some() {
        return match values.iter().find(|value| value.has_names()) {
            Some(value) => Err(format!(
                "`{}`: parameters are only known where a function begins",
                value.text
            )),
            None => Ok(as_typed(values)),
        };
    }
    let given = given.map(|given| &**given);
    let is_own = given.is_some_and(|given| given.is_of(module));
    let mut failure = None;
    let mut types_of = |sites| match read_types(sites) {
        Ok(types) => types,
        Err(why) => {
            failure = Some(why);
            None
        }
    };
    let own = (!is_own).then(|| types_of(&module.sites)).flatten();
    let others = given.and_then(|given| types_of(&given.sites));
    if let Some(types) = &own {
        match with(types, at(types, function), values) {
            Ok(values) => {
                return Ok(Typed {
                    values,
                    by_file: false,
                });
            }
            Err(why) => failure = Some(why),
        }
    }
    if let Some(types) = &others {
        let signature = if is_own {
            at(types, function)
        } else {
            types.signature_of(&function.raw, convention(function))
        };
        match with(types, signature, values) {
            Ok(values) => {
                return Ok(Typed {
                    values,
                    by_file: true,
                });
            }
            Err(why) => failure = Some(why),
        }
    }
    match values.iter().find(|value| value.has_names()) {
        // Registers need no types.
        None => Ok(as_typed(values)),
        Some(value) => Err(failure.unwrap_or_else(|| {
            format!(
                "`{}` needs debug information, which {} has not: without, values are arg1 to arg9, \
                 ret, this, %r8 …",
                value.text,
                module.name()
            )
        })),
    }
}

/// Returns the types of a file; `None` if it has none. The error is a sentence.
fn read_types(sites: &FileSites) -> Result<Option<FileTypes<'_>>, String> {
    let failed = |reason: Reason| format!("its types cannot be read: {}", lower(reason.explain()));
    FileTypes::of(sites).map_err(failed)
}

/// Resolves values with these types. A value without names stays as typed if the types do not help.
fn with(
    types: &FileTypes<'_>,
    signature: Result<Signature, NoSignature>,
    values: &Values,
) -> Result<Values, String> {
    let why = signature.as_ref().err().copied();
    let (parameters, returns) = match signature {
        Ok(signature) => (signature.parameters, signature.returns),
        Err(_) => (Vec::new(), None),
    };
    let parameters: Vec<KnownParameter> = parameters.into_iter().map(known).collect();
    let known = Known {
        types,
        parameters: &parameters,
        returns,
    };
    let typed = values.iter().map(|value| match value.at_function(known) {
        Ok(typed) => Ok(typed),
        Err(_) if !value.has_names() => Ok(value.clone()),
        Err(clause) => {
            let about = match why {
                None => String::new(),
                Some(NoSignature::NoSuchFunction) => {
                    "; the debug information does not tell of this function, but may of its \
                     structures: arg1:TYPE.member"
                        .into()
                }
                Some(NoSignature::Several) => {
                    "; the debug information tells of several functions of this name".into()
                }
                Some(NoSignature::IsChanged) => {
                    "; the compiler changed the parameters of this copy of the function".into()
                }
            };
            let elsewhere = match types.left_out() {
                None => "",
                Some(LeftOut::InSplitFiles) => {
                    "; types of this build lie in .dwo files (-gsplit-dwarf), which are not read"
                }
                Some(LeftOut::InTypeUnits) => {
                    "; types of this build lie in .debug_types (-fdebug-types-section with DWARF \
                     4), which is not read"
                }
            };
            Err(format!("`{}`: {clause}{about}{elsewhere}", value.text))
        }
    });
    typed.collect::<Result<Vec<_>, _>>().and_then(Values::new)
}

/// Returns the signature of a function in its own file.
fn at(types: &FileTypes<'_>, function: &Function) -> Result<Signature, NoSignature> {
    types.signature_at(function.start, &function.raw, convention(function))
}

/// Returns the calling convention of a function.
fn convention(function: &Function) -> Convention {
    match function.language {
        Language::C | Language::Cpp => Convention::C,
        Language::Rust => Convention::Rust,
        Language::Go => Convention::Go,
    }
}

fn known(parameter: Parameter) -> KnownParameter {
    KnownParameter {
        name: parameter.name,
        kind: parameter.kind,
        place: parameter.place,
    }
}
