//! What stands in the parentheses of `#[tool(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Ident, LitStr, Path, Result, Token};

/// The settings, each at most once.
#[derive(Default)]
pub(crate) struct Settings {
    pub(crate) name: Option<LitStr>,
    pub(crate) description: Option<LitStr>,
    pub(crate) crate_path: Option<Path>,
    pub(crate) approval: bool,
    pub(crate) idempotent: bool,
    pub(crate) exclusive: bool,
}

const KNOWN: &str = "`name = \"…\"`, `description = \"…\"`, `approval`, `idempotent`, `exclusive` and \
                     `crate = path`";

impl Parse for Settings {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let mut settings = Self::default();
        for setting in Punctuated::<Setting, Token![,]>::parse_terminated(input)? {
            settings.apply(setting)?;
        }
        Ok(settings)
    }
}

impl Settings {
    fn apply(&mut self, setting: Setting) -> Result<()> {
        let key = &setting.key;
        let is_again = match setting.value {
            Value::Name(name) => {
                check_name(&name)?;
                self.name.replace(name).is_some()
            }
            Value::Description(description) => self.description.replace(description).is_some(),
            Value::Crate(path) => self.crate_path.replace(path).is_some(),
            Value::Flag => {
                let flag = match key.to_string().as_str() {
                    "approval" => &mut self.approval,
                    "idempotent" => &mut self.idempotent,
                    "exclusive" => &mut self.exclusive,
                    _ => return Err(unknown(key)),
                };
                std::mem::replace(flag, true)
            }
        };
        if is_again {
            return Err(syn::Error::new(key.span(), format!("`{key}` is set twice")));
        }
        Ok(())
    }
}

struct Setting {
    key: Ident,
    value: Value,
}

enum Value {
    Flag,
    Name(LitStr),
    Description(LitStr),
    Crate(Path),
}

impl Parse for Setting {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        use syn::ext::IdentExt as _;
        let key = Ident::parse_any(input)?;
        if !input.peek(Token![=]) {
            return Ok(Self {
                key,
                value: Value::Flag,
            });
        }
        input.parse::<Token![=]>()?;
        let value = match key.to_string().as_str() {
            "name" => Value::Name(input.parse()?),
            "description" => Value::Description(input.parse()?),
            "crate" if input.peek(LitStr) => Value::Crate(input.parse::<LitStr>()?.parse()?),
            "crate" => Value::Crate(input.parse()?),
            _ => return Err(unknown(&key)),
        };
        Ok(Self { key, value })
    }
}

fn unknown(key: &Ident) -> syn::Error {
    syn::Error::new(
        key.span(),
        format!("`{key}` is no setting of a tool: there are {KNOWN}"),
    )
}

/// Which names every provider takes: the rule of `raf_tools::name`.
fn check_name(name: &LitStr) -> Result<()> {
    let text = name.value();
    let is_valid = (1..=64).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if is_valid {
        return Ok(());
    }
    Err(syn::Error::new(
        name.span(),
        "no tool name that every provider takes: use 1 to 64 of a-z, A-Z, 0-9, _ and -",
    ))
}
