import AssentCore

/// Asks by whom the user wants to be signed in: by the server itself, or by another provider.
///
/// What the server asks after another provider was picked (`RedirectCallback`, `IdPCallback`) comes as an
/// ``UnknownCallback``; the server's own page does all of it (a sign-in in a browser).
public struct SelectIdPCallback: JourneyCallback {
    /// `SelectIdPCallback`
    public static let type = "SelectIdPCallback"

    /// One of those who can sign the user in.
    public struct Provider: Hashable, Sendable {
        /// What goes back when it is picked, for example `google`.
        public let name: String

        /// What to write on its button; the name when the server sent nothing else.
        public let title: String

        /// Whether it is the server itself, which asks for the rest of the page.
        public var isLocal: Bool { name == "localAuthentication" }
    }

    /// The callback as it came. Its output `providers` has what else there is to draw their buttons.
    public let fields: CallbackFields

    /// The ``Provider/name`` of the one that was picked; `nil` until one was.
    public var selected: String?

    /// Reads the callback.
    public init(_ fields: CallbackFields) { self.fields = fields }

    /// What there is to pick from.
    public var providers: [Provider] {
        (fields.output("providers")?.array ?? []).compactMap { provider in
            guard let name = provider["provider"]?.string, !name.isEmpty else { return nil }
            let title = provider["uiConfig"]?["buttonDisplayName"]?.string ?? ""
            return Provider(name: name, title: title.isEmpty ? name : title)
        }
    }

    /// The one that was picked.
    public var answers: [CallbackAnswer?] { [selected.map { .text(Secret($0)) }] }

    /// Whether none was picked.
    public var needsAnswer: Bool { selected == nil }
}
