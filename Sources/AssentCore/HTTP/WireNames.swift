package import HTTPTypes

/// Names that the SDK and the server must spell alike, and that have no type of their own.
public enum WireName {
    /// AM's usual name for the cookie that carries a session, and for the header field that may carry it instead.
    public static let sessionCookie = "iPlanetDirectoryPro"

    /// The query parameter that names the transaction of a repeated request, for clients that cannot set
    /// `X-TxID`.
    package static let transactionParameter = "_txid"

    /// The query parameter in which the vendor's SDKs send an ID token with a repeated request.
    package static let idTokenParameter = "_idtoken"
}

/// Header fields that the SDK and the server must spell alike.
extension HTTPField.Name {
    /// `X-TxID`: the transaction that a repeated request was approved by.
    package static let transactionID = constant("X-TxID")

    /// `Idempotency-Key`: the same for every try of one request (draft-ietf-httpapi-idempotency-key-header).
    package static let idempotencyKey = constant("Idempotency-Key")

    /// `x-authenticate-response`: the form in which a client wants PingGateway's advice, `header` or `body`.
    package static let authenticateResponse = constant("x-authenticate-response")

    /// `Accept-API-Version`: the version of AM's REST interface that a client speaks.
    package static let acceptAPIVersion = constant("Accept-API-Version")

    /// `Content-API-Version`: the version that AM's REST interface answers in.
    package static let contentAPIVersion = constant("Content-API-Version")

    /// `X-Requested-With`: a browser does not let another site set it without asking first.
    package static let requestedWith = constant("X-Requested-With")

    /// `Sec-Fetch-Site`: whether a browser sends a request for a page of the same site (Fetch Metadata §2.3).
    package static let secFetchSite = constant("Sec-Fetch-Site")

    /// `Sec-Fetch-Mode`: whether a browser's request is a navigation (Fetch Metadata §2.2).
    package static let secFetchMode = constant("Sec-Fetch-Mode")

    /// `TSP-Proof`: a device's proof of one call (docs/transaction-signing.md, "Calls of a device").
    package static let signingProof = constant("TSP-Proof")

    /// `TSP-Nonce`: a nonce for a device's next proof.
    package static let signingNonce = constant("TSP-Nonce")

    /// `DPoP`: the proof that goes with a request (RFC 9449 §4.1).
    package static let dpop = constant("DPoP")

    /// `DPoP-Nonce`: the nonce for the next proofs (RFC 9449 §8).
    package static let dpopNonce = constant("DPoP-Nonce")

    /// `Pragma`: `no-cache` for caches of HTTP/1.0 (RFC 9111 §5.4).
    package static let pragma = constant("Pragma")

    /// A name that is written here and therefore known to be a token.
    private static func constant(_ name: String) -> HTTPField.Name { HTTPField.Name(name)! }
}
