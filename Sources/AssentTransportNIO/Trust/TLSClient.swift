import AssentCore
import NIOCore
import NIOSSL

/// The TLS settings of this transport. One context serves all connections: nothing in it depends on the host.
struct TLSClient: Sendable {
    private let context: NIOSSLContext
    private let evaluator: any ServerTrustEvaluator

    init(identity: ClientIdentity?, evaluator: any ServerTrustEvaluator) throws(NIOTransportError) {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.minimumTLSVersion = .tlsv12
        tls.cipherSuites = "ECDH+AESGCM:ECDH+CHACHA20"
        tls.verifySignatureAlgorithms = [
            .ecdsaSecp256R1Sha256, .ecdsaSecp384R1Sha384, .ecdsaSecp521R1Sha512, .ed25519,
            .rsaPssRsaeSha256, .rsaPssRsaeSha384, .rsaPssRsaeSha512, .rsaPkcs1Sha256, .rsaPkcs1Sha384, .rsaPkcs1Sha512,
        ]
        tls.applicationProtocols = [Self.applicationProtocol]
        tls.renegotiationSupport = .none
        tls.keyLogCallback = nil
        tls.shutdownTimeout = .seconds(1)
        // With `.none` the evaluator would never be asked. The roots are empty, so that the library's own check would
        // refuse every server if the evaluator were not asked.
        tls.certificateVerification = .fullVerification
        tls.trustRoots = .certificates([])
        do {
            if let identity {
                tls.certificateChain = try NIOSSLCertificate.fromPEMBytes(Array(identity.certificateChain.utf8)).map {
                    .certificate($0)
                }
                let key = try NIOSSLPrivateKey(bytes: identity.privateKey.revealBytes(), format: .pem)
                tls.privateKey = .privateKey(key)
            }
            context = try NIOSSLContext(configuration: tls)
        } catch {
            throw NIOTransportError(.invalidClientIdentity, "The client's certificate chain or its key cannot be used.")
        }
        self.evaluator = evaluator
    }

    static let applicationProtocol = "http/1.1"

    /// What a handshake has shown.
    struct Finding: Sendable {
        /// Why the server was refused, if it was.
        var refusal: HTTPTransportError?
        /// The pins of the validated chain's keys; `nil` before there is one.
        var pins: Set<Pin>?
    }

    /// The handler that does the handshake; `finding` then holds what it has shown.
    func makeHandler(
        for origin: Origin, keys: AcceptableKeys, finding: Locked<Finding>
    ) throws -> NIOSSLClientHandler {
        // An address must not stand in SNI (RFC 6066 §3).
        let name = origin.host.isIPAddress ? nil : origin.host.text
        let evaluator = evaluator
        return try NIOSSLClientHandler(context: context, serverHostname: name) { presented, promise in
            promise.completeWithTask {
                let pins: Set<Pin>? = if case .oneOf(let pins) = keys { pins } else { nil }
                let question = ServerTrustQuestion(
                    host: origin.host.text, isAddress: origin.host.isIPAddress, port: origin.port,
                    presented: try presented.map { try $0.toDERBytes() }, pins: pins)
                switch await evaluator.evaluate(question) {
                case .refused(let error):
                    finding.withLock { $0.refusal = error }
                    return .failed
                case .trusted(let validated):
                    let found = SubjectPublicKeyInfo.pins(of: validated)
                    if let pins, pins.isDisjoint(with: found) {
                        finding.withLock { $0.refusal = .unpinned(host: origin.host.text) }
                        return .failed
                    }
                    finding.withLock { $0.pins = found }
                    return .certificateVerified
                }
            }
        }
    }
}
