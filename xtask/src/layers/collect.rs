//! Collects what the code of one module defines, imports and names.
//!
//! Macros are not expanded: in the tokens of a call or a definition, everything that looks like a
//! path is treated as one. Uses only through values (methods, fields, inferred types) do not count
//! as imports and are not seen here.

use super::cfg::is_only_for_tests;
use super::item::{attributes, name, plain};
use super::tree::{Crate, Import, PathInCode};
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree};

/// Adds what one item defines, imports and names to `module`, unless it is only for tests. An item
/// that is a module adds only its name: see [`super::read`].
pub fn add(tree: &mut Crate, module: usize, item: &Item) {
    if is_only_for_tests(attributes(item)) {
        return;
    }
    if let Some(name) = name(item) {
        if matches!(item, Item::Macro(_)) {
            tree.macros.entry(name.clone()).or_default().insert(module);
        }
        tree.modules[module].items.insert(name);
    }
    Collector { tree, module }.visit_item(item);
}

/// Adds what it visits to the lists of one module.
struct Collector<'a> {
    tree: &'a mut Crate,
    module: usize,
}

impl Collector<'_> {
    fn add_path(&mut self, names: Vec<String>, line: usize) {
        let path = PathInCode { names, line };
        self.tree.modules[self.module].paths.push(path);
    }

    fn add_imports(&mut self, tree: &UseTree, before: &[String]) {
        let add = |this: &mut Self, name: Option<&Ident>, last: Option<&Ident>, line| {
            let mut names = before.to_vec();
            // `a::{self}` is `a`.
            names.extend(
                last.map(plain)
                    .filter(|last| last != "self" || before.is_empty()),
            );
            let name = match name.map(plain) {
                Some(name) if name == "self" => names.last().cloned(),
                name => name,
            };
            let path = PathInCode { names, line };
            this.tree.modules[this.module]
                .imports
                .push(Import { name, path });
        };
        match tree {
            UseTree::Path(path) => {
                let mut names = before.to_vec();
                names.push(plain(&path.ident));
                self.add_imports(&path.tree, &names);
            }
            UseTree::Group(group) => group
                .items
                .iter()
                .for_each(|item| self.add_imports(item, before)),
            UseTree::Name(it) => add(self, Some(&it.ident), Some(&it.ident), line(&it.ident)),
            UseTree::Rename(it) => add(self, Some(&it.rename), Some(&it.ident), line(&it.ident)),
            UseTree::Glob(it) => {
                add(self, None, None, it.star_token.spans[0].start().line);
            }
        }
    }

    /// Treats everything in `tokens` that looks like a path as one, after the names `before`.
    fn add_tokens(&mut self, tokens: TokenStream, before: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at += 1;
            match token {
                TokenTree::Group(group) => self.add_tokens(group.stream(), before),
                TokenTree::Ident(first) => {
                    let is_after_colons = is_colons(&tokens[..at - 1], at.saturating_sub(3));
                    let mut names = [before, &[plain(first)]].concat();
                    while is_colons(&tokens, at) {
                        at += 2;
                        match tokens.get(at) {
                            Some(TokenTree::Ident(name)) => names.push(plain(name)),
                            Some(TokenTree::Group(list))
                                if list.delimiter() == Delimiter::Brace =>
                            {
                                self.add_tokens(list.stream(), &names);
                            }
                            _ => break,
                        }
                        at += 1;
                    }
                    // `::name` is a path of another crate, and `<T>::name` is not a path of
                    // modules.
                    if !is_after_colons {
                        self.add_path(names, line(first));
                    }
                }
                _ => {}
            }
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !is_only_for_tests(attributes(item)) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        // A path that begins with `::` leads to another crate.
        if item.leading_colon.is_none() {
            self.add_imports(&item.tree, &[]);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            let names = path.segments.iter().map(|part| plain(&part.ident));
            let first = path.segments.first();
            let at = first.map_or(0, |part| line(&part.ident));
            self.add_path(names.collect(), at);
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        if let Some(name) = call.path.get_ident() {
            let (names, line) = (vec![plain(name)], line(name));
            let call = PathInCode { names, line };
            self.tree.modules[self.module].macro_calls.push(call);
        }
        self.add_tokens(call.tokens.clone(), &[]);
        visit::visit_macro(self, call);
    }

    fn visit_meta_list(&mut self, list: &'ast syn::MetaList) {
        self.add_tokens(list.tokens.clone(), &[]);
        visit::visit_meta_list(self, list);
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        use syn::ImplItem as I;
        let attributes: &[Attribute] = match item {
            I::Const(it) => &it.attrs,
            I::Fn(it) => &it.attrs,
            I::Type(it) => &it.attrs,
            I::Macro(it) => &it.attrs,
            _ => &[],
        };
        if !is_only_for_tests(attributes) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_trait_item(&mut self, item: &'ast syn::TraitItem) {
        use syn::TraitItem as T;
        let attributes: &[Attribute] = match item {
            T::Const(it) => &it.attrs,
            T::Fn(it) => &it.attrs,
            T::Type(it) => &it.attrs,
            T::Macro(it) => &it.attrs,
            _ => &[],
        };
        if !is_only_for_tests(attributes) {
            visit::visit_trait_item(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if !is_only_for_tests(&field.attrs) {
            visit::visit_field(self, field);
        }
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        if !is_only_for_tests(&variant.attrs) {
            visit::visit_variant(self, variant);
        }
    }

    fn visit_arm(&mut self, arm: &'ast syn::Arm) {
        if !is_only_for_tests(&arm.attrs) {
            visit::visit_arm(self, arm);
        }
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        if !is_only_for_tests(&local.attrs) {
            visit::visit_local(self, local);
        }
    }
}

/// Returns whether there are two colons at that index.
fn is_colons(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if p.as_char() == ':');
    tokens
        .get(at..at.saturating_add(2))
        .is_some_and(|two| two.iter().all(is_colon))
}

fn line(name: &Ident) -> usize {
    name.span().start().line
}
