/// Which client this is, and where the key is that proves it.
struct TokenClient: Sendable {
    /// The client's id.
    let id: String

    /// `nil` for a public client.
    let key: ClientKey.Place?

    /// Whether the id came from a registration, which the server can end.
    var isRegistered = false
}
