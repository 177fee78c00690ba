import AssentCore

extension AuthorizationPolicy {
    /// The call with content that can be sent twice. Nothing has been sent when this throws.
    ///
    /// - Throws: ``AuthorizationError`` with code `bodyNotReplayable` for a stream that can be read once and has more
    ///   than ``bufferLimit`` bytes, or another number than it says; what reading it throws.
    func repeatable(_ original: HTTPCall) async throws -> HTTPCall {
        guard let body = original.body, !body.isReplayable else { return original }
        let bytes: [UInt8]
        do {
            bytes = try await body.collect(upTo: bufferLimit)
        } catch let error as HTTPTransportError where error.code == .bodyTooLarge {
            throw AuthorizationError(
                .bodyNotReplayable,
                "The request's content can be sent only once and has more than \(bufferLimit) bytes, so it could not "
                    + "wait for an approval. Nothing was sent.")
        }
        guard body.length == nil || body.length == bytes.count else {
            throw AuthorizationError(
                .bodyNotReplayable, "The request's content has another length than it says. Nothing was sent.")
        }
        var call = original
        call.body = HTTPBody(bytes)
        return call
    }
}
