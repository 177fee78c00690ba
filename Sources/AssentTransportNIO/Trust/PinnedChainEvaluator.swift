public import AssentCore
import Foundation
import SwiftASN1
@_spi(FixedExpiryValidationTime) import X509

/// RFC 5280 path validation to the configured roots, with the host's name, the server purpose, key and signature strength,
/// and the pins as conditions of the path that is looked for.
///
/// A server that sends a valid chain with a pinned certificate that is not part of it is refused: only the validated path
/// counts. A server with two possible paths of which one holds a pin is accepted. Revocation is not checked.
public struct PinnedChainEvaluator: ServerTrustEvaluator {
    /// Certificates that a server may send.
    static let maximumCertificates = 10
    /// Bytes of all certificates that a server may send.
    static let maximumBytes = 64 << 10

    private let roots: CertificateStore
    private let clock: any WallClock

    /// An evaluator.
    ///
    /// - Parameters:
    ///   - roots: the authorities that a chain must end in.
    ///   - clock: says when "now" is, for the certificates' validity.
    /// - Throws: ``NIOTransportError`` when the roots cannot be read.
    public init(roots: TrustRoots, clock: any WallClock = SystemClock()) throws(NIOTransportError) {
        self.roots = try roots.load()
        self.clock = clock
    }

    /// Looks for a path that meets every condition.
    public func evaluate(_ question: ServerTrustQuestion) async -> ServerTrustVerdict {
        guard let presented = Self.parse(question.presented), let leaf = presented.first else {
            return .refused(.init(.untrustedServer, "\(question.host): too many certificates, or not readable"))
        }
        let intermediates = Array(presented.dropFirst())
        guard Self.pathsAreFew(intermediates) else {
            return .refused(.init(.untrustedServer, "\(question.host): one key under several alternative names"))
        }
        let identity =
            question.isAddress
            ? ServerIdentityPolicy(serverHostname: nil, serverIP: question.host)
            : ServerIdentityPolicy(serverHostname: question.host, serverIP: nil)
        var verifier = Verifier(rootCertificates: roots) {
            StrengthPolicy()
            UsagePolicy()
            RFC5280Policy(fixedExpiryValidationTime: clock.now)
            identity
            if !question.isAddress {
                NamePolicy(host: question.host)
            }
            if let pins = question.pins {
                PinPolicy(pins: pins)
            }
        }
        switch await verifier.validate(leaf: leaf, intermediates: CertificateStore(intermediates)) {
        case .validCertificate(let chain):
            let encoded = chain.compactMap(\.derBytes)
            guard encoded.count == chain.count else {
                return .refused(.init(.untrustedServer, "\(question.host): a certificate cannot be encoded"))
            }
            return .trusted(validated: encoded)
        case .couldNotValidate(let failures):
            // The pins are asked last: where they are the reason, everything else was right.
            if failures.contains(where: { $0.policyFailureReason.description == PinPolicy.reason }) {
                return .refused(.init(.pinMismatch, "\(question.host): \(PinPolicy.reason)"))
            }
            let reason = failures.first?.policyFailureReason.description ?? "no path to a trusted root"
            // It may quote names that the server chose.
            let printable = String(reason.unicodeScalars.filter { (0x20...0x7e).contains($0.value) }.prefix(200))
            return .refused(.init(.untrustedServer, "\(question.host): \(printable)"))
        }
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

    /// A key that appears under one subject with different alternative names counts as a different step for the path
    /// building each time, so that ten certificates give 9! paths. Without that each key is passed once.
    private static func pathsAreFew(_ intermediates: [Certificate]) -> Bool {
        struct Step: Hashable {
            let subject: DistinguishedName
            let key: Certificate.PublicKey
        }
        var names: [Step: Certificate.Extension?] = [:]
        for certificate in intermediates {
            let step = Step(subject: certificate.subject, key: certificate.publicKey)
            let alternative = certificate.extensions[oid: .X509ExtensionID.subjectAlternativeName]
            if let known = names[step], known != alternative { return false }
            names[step] = .some(alternative)
        }
        return true
    }
}
