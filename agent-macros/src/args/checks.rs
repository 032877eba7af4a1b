//! Expands `#[arg(validate = …)]` to an impl of `CheckedType`, which calls the user's check functions.

use super::attr::{ArgItem, TypeOptions, parse};
use super::foreign::Serde;
use crate::diag::Errors;
use crate::path::{Private, hidden, ours};
use crate::types;
use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::{Attribute, Data, DeriveInput, Fields, Member, Path};

/// The checks of a type: those of the whole value, and those of its fields.
#[derive(Default)]
pub(crate) struct Checks {
    whole: Vec<Path>,
    fields: Vec<Field>,
}

struct Field {
    variant: Option<Ident>,
    member: Member,
    steps: Vec<Step>,
    checks: Vec<TokenStream>,
    cfgs: Vec<Attribute>,
}

enum Step {
    Name(String),
    Payload,
}

impl Checks {
    /// Reads the checks of a type. Does not report mistakes in the options of fields, because `FieldLowering` reports them.
    pub(super) fn of(input: &DeriveInput, options: TypeOptions) -> Self {
        let mut fields = Vec::new();
        match &input.data {
            Data::Struct(data) => add_fields(&data.fields, None, &[], &mut fields),
            Data::Enum(data) => {
                let serde = Serde::of(&input.attrs);
                let content = serde.texts("content").next().map(|content| content.value());
                for variant in &data.variants {
                    let flat = serde.has("untagged") || Serde::of(&variant.attrs).has("untagged");
                    let before = match &content {
                        _ if flat => None,
                        Some(content) => Some(Step::Name(content.clone())),
                        None if serde.has("tag") => None,
                        None => Some(Step::Payload),
                    };
                    let before: Vec<Step> = before.into_iter().collect();
                    add_fields(&variant.fields, Some(&variant.ident), &before, &mut fields);
                }
            }
            Data::Union(_) => {}
        }
        Self { whole: options.checks, fields }
    }

    pub(crate) fn of_parameters<'a>(
        parameters: impl Iterator<Item = (&'a Ident, &'a [Attribute], Vec<TokenStream>)>,
    ) -> Self {
        let checked = parameters.filter(|(_, _, checks)| !checks.is_empty());
        let fields = checked.map(|(ident, cfgs, checks)| Field {
            variant: None,
            member: Member::Named(ident.clone()),
            steps: vec![Step::Name(ident.unraw().to_string())],
            checks,
            cfgs: cfgs.to_vec(),
        });
        Self { whole: Vec::new(), fields: fields.collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_empty() && self.fields.is_empty()
    }

    /// Returns the statements that run the checks on `self`. `lend` converts `&self.field` to the reference that a check gets, because the
    /// field may have the type `StandIn`.
    pub(crate) fn run(
        &self,
        private: &Private,
        lend: impl Fn(&Member, TokenStream) -> TokenStream,
    ) -> TokenStream {
        let findings = hidden("findings");
        let (value, whole_value) = (hidden("value"), hidden("whole"));
        // The names get the span of the check, so that the compiler's errors point to the check.
        let placed = |name: &Ident, check: &TokenStream| {
            let mut name = name.clone();
            name.set_span(ours(types::span(check)));
            name
        };
        let run = |field: &Field| {
            let steps = field.steps.iter().map(|step| step.tokens(private));
            let steps = quote!(&[#(#steps),*]);
            let calls = field.checks.iter().map(|check| {
                let (at, value) = (ours(types::span(check)), placed(&value, check));
                quote_spanned!(at=> #findings.field(#steps, #value, #check);)
            });
            quote!(#(#calls)*)
        };
        let fields = self.fields.iter().map(|field| {
            let (member, cfgs, run) = (&field.member, &field.cfgs, run(field));
            match &field.variant {
                None => {
                    let reference = lend(member, quote!(&self.#member));
                    quote!(#(#cfgs)* { let #value = #reference; #run })
                }
                Some(variant) => quote!(if let Self::#variant { #member: #value, .. } = self { #run }),
            }
        });
        let whole = self.whole.iter().map(ToTokens::to_token_stream).map(|check| {
            let (at, whole) = (ours(types::span(&check)), placed(&whole_value, &check));
            quote_spanned!(at=> #findings.whole(#whole, #check);)
        });
        let bound = (!self.whole.is_empty()).then(|| quote!(let #whole_value = self;));
        quote!(#(#fields)* #bound #(#whole)*)
    }
}

impl Step {
    fn tokens(&self, private: &Private) -> TokenStream {
        match self {
            Step::Name(name) => quote!(#private::FindingStep::Name(#name)),
            Step::Payload => quote!(#private::FindingStep::Payload),
        }
    }
}

fn add_fields(fields: &Fields, variant: Option<&Ident>, before: &[Step], found: &mut Vec<Field>) {
    let mut sent = 0_usize;
    for (n, field) in fields.iter().enumerate() {
        let mut quiet = Errors::default();
        let options = parse(&field.attrs, ArgItem::Field, &mut quiet);
        drop(quiet.finish());
        let is_skipped = options.is_skipped(&Serde::of(&field.attrs));
        let index = sent;
        sent += usize::from(!is_skipped);
        if options.checks.is_empty() {
            continue;
        }
        let own = match &field.ident {
            Some(ident) => Some(ident.unraw().to_string()),
            // A newtype is written as its field in JSON, so the field adds no step to the path. A skipped field has no place in JSON.
            None => (fields.len() > 1 && !is_skipped).then(|| index.to_string()),
        };
        let before = before.iter().map(|step| match step {
            Step::Name(name) => Step::Name(name.clone()),
            Step::Payload => Step::Payload,
        });
        let member = field.ident.clone().map_or_else(|| Member::from(n), Member::Named);
        let steps = before.chain(own.map(Step::Name)).collect();
        let checks = options.checks.iter().map(ToTokens::to_token_stream).collect();
        found.push(Field { variant: variant.cloned(), member, steps, checks, cfgs: Vec::new() });
    }
}

/// Returns the schema extension that states the name of a field in Rust. Functions of `#[arg(validate)]` refer to fields by this name,
/// which may differ from the name in JSON.
pub(super) fn field_name(ident: Option<&Ident>) -> Option<TokenStream> {
    let name = ident?.unraw().to_string();
    Some(quote!("x-field" = #name))
}

/// Returns the impl with the given header, such as `impl CheckedType for NAME`. `read` is the code that reads
/// a value without running the checks.
pub(crate) fn implementation(
    header: &TokenStream,
    clause: &TokenStream,
    read: &TokenStream,
    checks: &TokenStream,
    private: &Private,
) -> TokenStream {
    let (findings, deserializer) = (hidden("findings"), format_ident!("deserializer"));
    quote! {
        #[automatically_derived]
        #header #clause {
            fn read<__D>(#deserializer: __D) -> #private::Result<Self, __D::Error>
            where
                __D: #private::serde::Deserializer<'de>,
            {
                #read
            }
            fn check(&self, #findings: &mut #private::FindingList) {
                #checks
            }
        }
    }
}
