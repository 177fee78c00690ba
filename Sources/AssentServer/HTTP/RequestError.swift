/// A request that cannot be read: what is wrong with it as an HTTP request, before anybody asks the engine.
struct RequestError: Error, Hashable, Sendable {
    /// The HTTP status.
    let status: Int

    /// What is wrong, for the client; never a secret.
    let message: String

    /// An error.
    init(_ status: Int, _ message: String) {
        self.status = status
        self.message = message
    }
}
