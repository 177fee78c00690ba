public import Foundation

/// A link by which this app signs a browser in as its user.
///
/// Anyone who opens it and agrees is signed in as the user: give it to the user's own browser, and to nobody else. It
/// is good once.
public struct WebLink: Sendable, Hashable, CustomStringConvertible, CustomReflectable {
    /// What the browser opens.
    public let url: String

    /// Until when the browser may use it.
    public let expiresAt: Date

    /// Nothing of the URL.
    public var description: String { "WebLink(until \(expiresAt))" }

    /// A mirror without children, so that `dump` shows nothing.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
