public import AssentCore

/// Decides whether a TLS server is the intended one. It is asked on every connection, before a byte of a request is
/// written, and its answer replaces every check of the TLS library.
public protocol ServerTrustEvaluator: Sendable {
    /// Validates what the server presented.
    func evaluate(_ question: ServerTrustQuestion) async -> ServerTrustVerdict
}

/// What a server presented, and what it must prove.
public struct ServerTrustQuestion: Sendable {
    /// The host of the URL, normalised: lower case, no trailing dot.
    public let host: String

    /// Whether ``host`` is an IP address; then only an IP subject alternative name can match.
    public let isAddress: Bool

    /// The port of the URL.
    public let port: Int

    /// The certificates as the server sent them, in DER, its own first. Nothing about them is known yet.
    public let presented: [[UInt8]]

    /// The keys of which the validated chain must contain one; `nil` when the configuration says that this host is
    /// unpinned.
    public let pins: Set<Pin>?

    /// A question; the transport asks, a test of an evaluator may.
    public init(host: String, isAddress: Bool, port: Int, presented: [[UInt8]], pins: Set<Pin>?) {
        self.host = host
        self.isAddress = isAddress
        self.port = port
        self.presented = presented
        self.pins = pins
    }
}

/// The answer of a ``ServerTrustEvaluator``.
public enum ServerTrustVerdict: Sendable {
    /// The path from the server's certificate to a trusted root as it was validated, in DER. The transport compares the
    /// pins on it once more; it must never be what the server presented.
    case trusted(validated: [[UInt8]])

    /// Why not.
    case refused(HTTPTransportError)
}
