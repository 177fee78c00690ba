public import AssentCore
import SwiftASN1
import X509

/// RFC 5280 path validation to the configured roots, with the host's name, the server purpose, key and signature
/// strength, and the pins as conditions of the path that is looked for.
///
/// Only the validated path matters: a server is refused when the pinned certificate was sent but is not part of that
/// path. A server with two possible paths is accepted when one of them contains a pinned key. Revocation is not
/// checked.
public struct PinnedChainEvaluator: ServerTrustEvaluator {
    /// Certificates that a server may send.
    static let maximumCertificates = 10
    /// Bytes of all certificates that a server may send.
    private static let maximumBytes = 64 << 10

    /// `nil` for the system's, which are read when the first chain comes: a server that calls nobody needs none.
    private let roots: CertificateStore?
    private let clock: any WallClock

    /// An evaluator.
    ///
    /// - Parameters:
    ///   - roots: the authorities that a chain must end in.
    ///   - clock: says when "now" is, for the certificates' validity.
    /// - Throws: ``NIOTransportError`` when the roots cannot be read.
    public init(roots: TrustRoots, clock: any WallClock = SystemClock()) throws(NIOTransportError) {
        self.roots = roots == .system ? nil : try roots.load()
        self.clock = clock
    }

    /// Looks for a path that meets every condition.
    ///
    /// - Returns: the path, or `pinMismatch` when a path was right but for the pins, else `untrustedServer` with the
    ///   reason.
    public func evaluate(_ question: ServerTrustQuestion) async -> ServerTrustVerdict {
        guard let presented = Self.parse(question.presented), let leaf = presented.first else {
            return .refused(
                .init(.untrustedServer, "\(question.host): the server sent too many certificates, or unreadable ones."))
        }
        let intermediates = Array(presented.dropFirst())
        guard Self.pathsAreFew(intermediates) else {
            return .refused(
                .init(.untrustedServer, "\(question.host): the server sent one key under several alternative names."))
        }
        let policy = ServerPathPolicy(question, now: clock.now)
        var verifier = Verifier(rootCertificates: roots ?? .systemTrustRoots) { policy }
        switch await verifier.validate(leaf: leaf, intermediates: CertificateStore(intermediates)) {
        case .validCertificate(let chain):
            let encoded = chain.compactMap(\.derBytes)
            guard encoded.count == chain.count else {
                return .refused(.init(.untrustedServer, "\(question.host): a certificate cannot be encoded."))
            }
            return .trusted(validated: encoded)
        case .couldNotValidate(let refused):
            // The library keeps only a sentence of each reason, so the same conditions are asked once more.
            let failures = refused.compactMap { policy.failure(of: $0.chain) }
            return .refused(Self.refusal(failures, host: question.host))
        }
    }

    private static func refusal(_ failures: [TrustFailure], host: String) -> HTTPTransportError {
        guard !failures.contains(.noPinnedKey) else { return .unpinned(host: host) }
        let reason = failures.first?.description ?? "no path leads to a trusted root"
        return HTTPTransportError(.untrustedServer, "\(host): \(reason).", suggestion: failures.first?.suggestion)
    }

    private static func parse(_ encoded: [[UInt8]]) -> [Certificate]? {
        guard encoded.count <= maximumCertificates, encoded.reduce(0, { $0 + $1.count }) <= maximumBytes else {
            return nil
        }
        var certificates: [Certificate] = []
        for der in encoded {
            guard let certificate = try? Certificate(derEncoded: der) else { return nil }
            certificates.append(certificate)
        }
        return certificates
    }

    /// The path building takes a key that appears under one subject with different alternative names for a different
    /// step each time, so that ten certificates give 9! paths. Without that each key is passed once.
    private static func pathsAreFew(_ intermediates: [Certificate]) -> Bool {
        struct Key: Hashable {
            let subject: DistinguishedName
            let key: Certificate.PublicKey
        }
        struct Step: Hashable {
            let key: Key
            let alternativeNames: Certificate.Extension?
        }
        let steps = Set(
            intermediates.map { certificate in
                Step(
                    key: Key(subject: certificate.subject, key: certificate.publicKey),
                    alternativeNames: certificate.extensions[oid: .X509ExtensionID.subjectAlternativeName])
            })
        return Set(steps.map(\.key)).count == steps.count
    }
}

extension HTTPTransportError {
    /// No key of the validated path is pinned.
    static func unpinned(host: String) -> HTTPTransportError {
        HTTPTransportError(.pinMismatch, "\(host): \(TrustFailure.noPinnedKey).")
    }
}
