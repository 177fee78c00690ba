package import AssentCore

/// Sends calls by what the trust file in force allows, and looks for a later one when a server's keys have changed.
package struct TrustedTransport: HTTPTransport {
    private let keeper: TrustKeeper
    private let network: any HTTPTransport

    /// - Parameters:
    ///   - keeper: says what is in force, and gives `network` its pins.
    ///   - network: compares them.
    package init(_ keeper: TrustKeeper, over network: any HTTPTransport) {
        (self.keeper, self.network) = (keeper, network)
    }

    /// It waits for a later file no longer than the call may take, or connect and be silent where it has no limit.
    ///
    /// - Throws: `HTTPTransportError`, with `trustExpired` when no pin of the host is valid. A call whose server shows
    ///   no pinned key stays failed, also when a later file has just come in.
    @concurrent package func send(_ call: HTTPCall) async throws -> HTTPReply {
        let deadline = keeper.deadline(of: call)
        if let origin = try? call.origin, origin.isSecure { try await keeper.prepare(origin, until: deadline) }
        do {
            return try await network.send(call)
        } catch let error as HTTPTransportError where error.code == .pinMismatch {
            await keeper.pinFailed(until: deadline)
            throw error
        }
    }
}
