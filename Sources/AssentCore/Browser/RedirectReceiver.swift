/// Receives the redirect that ends a sign-in in a browser (RFC 8252).
public protocol RedirectReceiver: Sendable {
    /// The redirect URI to name in the authorization request; known once the receiver is ready.
    var redirectURI: String { get }

    /// Opens `url` for the user (or shows it) and waits for the redirect.
    ///
    /// Anybody who knows the address can send something there, other sites and programs too. What `accepts` refuses is
    /// answered as an error and does not end the wait.
    ///
    /// - Parameters:
    ///   - url: where the user signs in.
    ///   - accepts: whether a redirect is the answer to this very request.
    /// - Returns: the whole redirect URL, unchanged.
    /// - Throws: `CancellationError`, and the receiver's own errors, for example when nothing came in time.
    func receive(opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool) async throws -> String
}
