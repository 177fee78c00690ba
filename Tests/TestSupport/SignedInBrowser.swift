import AssentCore

/// A browser in which somebody has signed in: the answer comes at once.
package struct SignedInBrowser: RedirectReceiver {
    package let redirectURI = "app:/cb"

    package init() {}

    package func receive(
        opening url: String, accepting accepts: @escaping @Sendable (String) -> Bool
    ) async throws -> String {
        "\(redirectURI)?code=c&state=\(URLText.query(of: url)?[all: "state"].first ?? "")"
    }
}
