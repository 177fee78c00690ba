public import Foundation

/// Receives the redirect that ends a sign-in in a browser (RFC 8252).
public protocol RedirectReceiver: Sendable {
    /// The redirect URI to register in the authorization request; known once the receiver is ready.
    var redirectURI: URL { get }

    /// Opens `url` for the user (or shows it) and waits for the redirect; returns the whole redirect URL.
    func receive(opening url: URL) async throws -> URL
}
