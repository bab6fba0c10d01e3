//! The types of a file, on the asking side.

use super::file_sites::FileSites;
use super::sites_order::SitesQuestion;
use super::types_order::{
    self, TypesQuestion, read_id, read_left_out, read_member, read_shape, read_signature,
    read_variants,
};
use crate::dwarf::{Convention, LeftOut, NoSignature, Signature};
use crate::types::{Member, NoMember, Shape, TypeId, Types, Variants};
use crate::wire::Taken;
use crate::{LinkAddr, Reason};

/// The types that a file or its debug file describes. Each question is answered by the process that
/// reads the file; what it cannot answer is unknown.
#[derive(Debug, Clone, Copy)]
pub struct FileTypes<'f>(&'f FileSites);

impl<'f> FileTypes<'f> {
    /// The types of a file; `None` if there are none, or too many.
    pub fn of(file: &'f FileSites) -> Result<Option<FileTypes<'f>>, Reason> {
        let types = FileTypes(file);
        let is_there = types.told(TypesQuestion::IsThere, |_| Some(()))?;
        Ok(is_there.map(|()| types))
    }

    /// The parameters of the function of this file that starts there. `raw` is its mangled name, if
    /// it has one.
    pub fn signature_at(
        &self,
        start: LinkAddr,
        raw: &[u8],
        convention: Convention,
    ) -> Result<Signature, NoSignature> {
        self.signature(TypesQuestion::SignatureAt(start, raw.to_vec(), convention))
    }

    /// The parameters of the function of another build, found by its name.
    pub fn signature_of(
        &self,
        raw: &[u8],
        convention: Convention,
    ) -> Result<Signature, NoSignature> {
        self.signature(TypesQuestion::SignatureOf(raw.to_vec(), convention))
    }

    /// Where there are types that are not read; `None` if all are read.
    pub fn left_out(&self) -> Option<LeftOut> {
        self.told(TypesQuestion::LeftOut, read_left_out).ok()??
    }

    fn signature(&self, question: TypesQuestion) -> Result<Signature, NoSignature> {
        let told = self.told(question, read_signature);
        told.ok()
            .flatten()
            .unwrap_or(Err(NoSignature::NoSuchFunction))
    }

    /// `None` if the file has no types.
    fn told<T>(
        &self,
        question: TypesQuestion,
        read: impl FnOnce(&mut Taken<'_>) -> Option<T>,
    ) -> Result<Option<T>, Reason> {
        let bytes = self.0.ask(&SitesQuestion::Types(question))?;
        match types_order::told(&bytes).ok_or(Reason::Refused)? {
            None => Ok(None),
            Some(mut answer) => read(&mut answer).map(Some).ok_or(Reason::Refused),
        }
    }
}

impl Types for FileTypes<'_> {
    fn shape(&self, of: TypeId) -> Option<Shape> {
        self.told(TypesQuestion::Shape(of), read_shape).ok()??
    }

    fn member(&self, of: TypeId, name: &str) -> Result<Member, NoMember> {
        let told = self.told(TypesQuestion::Member(of, name.into()), read_member);
        told.ok().flatten().unwrap_or(Err(NoMember::NoSuchName))
    }

    fn variants(&self, of: TypeId) -> Option<Variants> {
        self.told(TypesQuestion::Variants(of), read_variants)
            .ok()??
    }

    fn named(&self, name: &str) -> Option<TypeId> {
        self.told(TypesQuestion::Named(name.into()), read_id)
            .ok()??
    }
}
