package import AssentCore

/// What a listener says, in plain words, when it does not open a handshake or a message
/// (docs/payload-encryption.md, "Refusals"). Nobody has sealed it, so a client takes it as a hint.
package enum PayloadRefusal: String, Error, Hashable, Sendable, CaseIterable {
    /// The bytes are not what the page says.
    case malformed = "pe_malformed"
    /// The handshake names a static key that the server does not have, or not any more.
    case unknownKey = "pe_unknown_key"
    /// The proof of a handshake for a device is missing, spent, or not one of this key and body.
    case badProof = "pe_bad_proof"
    /// The proof needs the nonce that comes with the refusal (RFC 9449 §8).
    case useNonce = "use_dpop_nonce"
    /// The server has switched payload encryption off for this version of the app.
    case off = "pe_off"
    /// There are too many handshakes; or the listener has failed at a message, perhaps after it had its effect.
    case busy = "pe_busy"
    /// There is no such session, or it has ended.
    case unknownSession = "pe_unknown_session"
    /// The number was used before, or is too old to tell.
    case repeated = "pe_repeated"

    /// The most bytes of a refusal that a client reads.
    package static let sizeLimit = 4096

    /// The status of the answer.
    package var status: Int {
        switch self {
        case .malformed, .unknownKey: 400
        case .badProof, .useNonce: 401
        case .off: 403
        case .unknownSession: 404
        case .repeated: 409
        case .busy: 503
        }
    }

    /// The answer's JSON.
    package var body: JSONValue { ["error": .string(rawValue)] }

    /// The refusal in an answer that is not sealed; `nil` for any other answer.
    package init?(status: Int, body: [UInt8]) {
        let limits = JSONLimits(bytes: Self.sizeLimit, depth: 4, values: 64)
        guard let value = try? JSONValue.parse(body, limits: limits), let name = value["error"]?.string,
            let refusal = Self(rawValue: name), refusal.status == status
        else { return nil }
        self = refusal
    }
}

extension PayloadError {
    /// What a peer is told of it.
    package var refusal: PayloadRefusal { .malformed }
}
