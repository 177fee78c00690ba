package import AssentCore
import HTTPTypes

/// What a server presents in a TLS handshake, and whether this client accepts it. No request is ever sent.
package struct ServedChain: Sendable {
    /// The validated path, leaf first: one with a pinned key if there is one, else any. Empty when no path is valid.
    package let path: [CertificateKey]

    /// The certificates that the server sent, leaf first. They are not validated.
    package let presented: [CertificateKey]

    /// Why the transport would not send a request there; `nil` when it would.
    package let refusal: HTTPTransportError?

    /// Opens a connection, and ends it after the server has presented its certificates.
    ///
    /// - Parameters:
    ///   - origin: the server, `https`.
    ///   - configuration: whom to trust, and the pins.
    ///   - limit: how long the connection may take.
    ///   - clock: says when "now" is, for the certificates' validity.
    /// - Returns: what it presented.
    /// - Throws: `HTTPTransportError` when it presented nothing: `nameNotResolved`, `connectFailed`, `timedOut`,
    ///   `tlsFailed`; `notPinned` when the configuration does not name the host. ``NIOTransportError`` when the
    ///   configuration cannot be used.
    package static func look(
        at origin: Origin, configuration: NIOTransportConfiguration, limit: Duration = .seconds(5),
        clock: any WallClock = SystemClock()
    ) async throws -> ServedChain {
        let looker = Looker(evaluator: try PinnedChainEvaluator(roots: configuration.trustRoots, clock: clock))
        let transport = try NIOTransport(configuration: configuration, trust: looker, clock: clock)
        let request = HTTPRequest(method: .get, scheme: origin.scheme, authority: origin.authority, path: "/")
        let limits = HTTPLimits(connect: limit, read: limit, total: limit, replyBytes: 0)
        do {
            _ = try await transport.send(HTTPCall(request, limits: limits))
        } catch {
            await transport.shutdown()
            guard let seen = looker.seen.withLock({ $0 }) else { throw error }
            return seen
        }
        await transport.shutdown()
        throw HTTPTransportError(.tlsFailed, "The server's certificates were not checked.")
    }

    /// Remembers what was presented and refuses it, so that nothing is sent.
    private struct Looker: ServerTrustEvaluator {
        let evaluator: PinnedChainEvaluator
        let seen = Locked<ServedChain?>(nil)

        func evaluate(_ question: ServerTrustQuestion) async -> ServerTrustVerdict {
            var path: [[UInt8]] = []
            var refusal: HTTPTransportError?
            switch await evaluator.evaluate(question) {
            case .trusted(let validated): path = validated
            case .refused(let error):
                refusal = error
                let unpinned = ServerTrustQuestion(
                    host: question.host, isAddress: question.isAddress, port: question.port,
                    presented: question.presented, pins: nil)
                if case .trusted(let validated) = await evaluator.evaluate(unpinned) { path = validated }
            }
            let found = ServedChain(
                path: path.compactMap(CertificateKey.init(der:)),
                presented: question.presented.prefix(PinnedChainEvaluator.maximumCertificates).compactMap(
                    CertificateKey.init(der:)), refusal: refusal)
            seen.withLock { $0 = found }
            return .refused(HTTPTransportError(.cancelled, "The connection was only for a look at the certificates."))
        }
    }
}
