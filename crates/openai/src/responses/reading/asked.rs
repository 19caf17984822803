//! What the reading must know of the request.

/// What the reading must know of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Whose opaque data the reply holds: the dialect's name.
    pub(crate) provider: String,
    /// The model that was asked.
    pub(crate) model: String,
    /// The names of the tools that were declared; none if there were none.
    pub(crate) tools: Option<Vec<String>>,
    /// The server keeps the response, so that the next request can name it.
    pub(crate) is_stored: bool,
    /// The conversation that the server holds, where it has a name.
    pub(crate) conversation: Option<String>,
    /// The response that is taken up, where it is known before it says so.
    pub(crate) response_id: Option<String>,
    /// A stream that breaks off can be taken up again.
    pub(crate) can_resume: bool,
}
