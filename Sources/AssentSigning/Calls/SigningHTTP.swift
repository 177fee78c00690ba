import AssentCore
import AssentSigningProtocol
import HTTPTypes

/// Sends requests of a device and reads what comes back, without judging it.
struct SigningHTTP: Sendable {
    let transport: any HTTPTransport
    let limits: HTTPLimits

    /// What came back.
    struct Reply {
        let body: String
        let nonce: String?
        /// What went wrong; `nil` for a reply that is to be verified. It is not signed, so it is only a hint.
        let problem: SigningError?
    }

    /// What asks for an issuer's configuration.
    func configurationCall(of issuer: String) throws(WireError) -> HTTPCall {
        try HTTPCall(.get, url: issuer + IssuerPath.configuration.path(), limits: limits)
    }

    /// The configuration in a reply, and the nonce that comes with it.
    static func configuration(in reply: Reply) throws(SigningError) -> (
        configuration: IssuerConfiguration, nonce: String?
    ) {
        if let problem = reply.problem { throw problem }
        do {
            return (try IssuerConfiguration(reading: Array(reply.body.utf8)), reply.nonce)
        } catch {
            throw SigningError(error)
        }
    }

    /// Sends a request; every status but the one that is `expected` is a problem.
    func send(_ call: HTTPCall, expecting expected: Int = 200) async throws -> Reply {
        do {
            return try await read(transport.send(call), expecting: expected)
        } catch {
            throw Self.said(error)
        }
    }

    func read(_ reply: HTTPReply, expecting expected: Int = 200) async throws -> Reply {
        let bytes = try await reply.body.collect(upTo: limits.replyBytes)
        guard let body = String(validating: bytes, as: UTF8.self) else {
            throw SigningError(.serverAuthentication, "The server's reply is not text.")
        }
        let nonce = reply.response.headerFields[.signingNonce].flatMap { text in
            (1...64).contains(text.utf8.count) && text.utf8.allSatisfy(\.isASCIIVisible) ? text : nil
        }
        let problem = reply.status == expected ? nil : Self.problem(status: reply.status, bytes)
        return Reply(body: body, nonce: nonce, problem: problem)
    }

    /// The transport's errors as the app hears them.
    static func said(_ error: any Error) -> any Error {
        guard let error = error as? HTTPTransportError else { return error }
        if error.code == .cancelled { return CancellationError() }
        if error.code == .integrityFailed { return SigningError(.integrityFailed, error.detail) }
        return SigningError(.remote, "The server could not be asked. \(error.detail)")
    }

    /// Reads a problem document (RFC 9457). The server's own sentences are not taken over: nobody has signed them.
    static func problem(status: Int, _ bytes: [UInt8]) -> SigningError {
        let limits = JSONLimits(bytes: 16 << 10, depth: 8, values: 200)
        let object = (try? JSONValue.parse(bytes, limits: limits))?.object
        let name = object?["code"]?.string.flatMap { text in
            (1...64).contains(text.utf8.count)
                && text.utf8.allSatisfy { $0.isASCIIAlphanumeric || $0 == UInt8(ascii: "_") } ? text : nil
        }
        guard let name else {
            return status >= 500
                ? SigningError(.unavailable) : SigningError(.remote, "The server answers with HTTP status \(status).")
        }
        var error = SigningError(SigningError.Code(rawValue: name))
        let bounded = { (name: String) in
            object?[name]?.integer.flatMap { (0...86400).contains($0) ? Int($0) : nil }
        }
        error.remaining = bounded("remaining")
        error.retryAfter = bounded("retryAfter")
        return error
    }
}
