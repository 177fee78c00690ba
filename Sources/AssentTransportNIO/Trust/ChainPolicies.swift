import AssentCore
import Crypto
import SwiftASN1
import X509

extension Certificate {
    var derBytes: [UInt8]? {
        var serializer = DER.Serializer()
        guard (try? serializer.serialize(self)) != nil else { return nil }
        return serializer.serializedBytes
    }
}

/// One of the pinned keys is in the path. As a policy of the path building, other paths are tried when it fails.
struct PinPolicy: VerifierPolicy {
    static let reason = "no key of the chain is pinned for this host"
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = []
    let pins: Set<Pin>

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        let encoded = (chain.startIndex..<chain.endIndex).compactMap { chain[$0].derBytes }
        guard SubjectPublicKeyInfo.contains(pins, in: encoded) else { return .failsToMeetPolicy(reason: Self.reason) }
        return .meetsPolicy
    }
}

/// The keys may be used as they are: for a TLS server (EKU), for signing certificates (key usage), with a name in the
/// subject alternative name and not only in the subject (RFC 9525 §6.3).
struct UsagePolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = [.X509ExtensionID.extendedKeyUsage]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        do {
            guard try chain.leaf.extensions.subjectAlternativeNames != nil else {
                return .failsToMeetPolicy(reason: "no subject alternative name")
            }
            for index in chain.startIndex..<chain.endIndex {
                let extensions = chain[index].extensions
                let isIssuer = index > chain.startIndex
                if let usage = try extensions.keyUsage {
                    guard isIssuer ? usage.keyCertSign : usage.digitalSignature else {
                        return .failsToMeetPolicy(reason: "the key usage does not allow this")
                    }
                }
                let isAnchor = isIssuer && index == chain.endIndex - 1
                if !isAnchor, let purposes = try extensions.extendedKeyUsage {
                    guard purposes.contains(.serverAuth) || purposes.contains(.any) else {
                        return .failsToMeetPolicy(reason: "the extended key usage does not allow a TLS server")
                    }
                }
            }
            return .meetsPolicy
        } catch {
            return .failsToMeetPolicy(reason: "an extension cannot be read")
        }
    }
}

/// A DNS name in the certificate is the host, or its wildcard stands for exactly the first label of a host with at least
/// three (RFC 9525 §6.3). The library's own check also takes `*` alone and `*.com`.
struct NamePolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = []
    let host: String

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        guard let names = try? chain.leaf.extensions.subjectAlternativeNames, names.contains(where: matches) else {
            return .failsToMeetPolicy(reason: "the certificate is for another host")
        }
        return .meetsPolicy
    }

    private func matches(_ name: GeneralName) -> Bool {
        guard case .dnsName(let name) = name else { return false }
        let pattern = name.lowercased()
        guard pattern.hasPrefix("*.") else { return pattern == host }
        let parent = pattern.dropFirst(2)
        guard parent.contains("."), let dot = host.firstIndex(of: "."), dot > host.startIndex else { return false }
        return host[host.index(after: dot)...] == parent
    }
}

/// Signatures without SHA-1 or MD5, RSA keys of 2048 to 8192 bits, curves from P-256.
struct StrengthPolicy: VerifierPolicy {
    let verifyingCriticalExtensions: [ASN1ObjectIdentifier] = []
    static let longestPath = 8
    private static let signatures: Set<Certificate.SignatureAlgorithm> = [
        .ecdsaWithSHA256, .ecdsaWithSHA384, .ecdsaWithSHA512, .ed25519,
        .sha256WithRSAEncryption, .sha384WithRSAEncryption, .sha512WithRSAEncryption,
    ]

    func chainMeetsPolicyRequirements(chain: UnverifiedCertificateChain) async -> PolicyEvaluationResult {
        guard chain.endIndex - chain.startIndex <= Self.longestPath else {
            return .failsToMeetPolicy(reason: "the path is too long")
        }
        for index in chain.startIndex..<chain.endIndex {
            let certificate = chain[index]
            // Nothing rests on a trust anchor's signature of itself.
            let isAnchor = index == chain.endIndex - 1
            guard isAnchor || Self.signatures.contains(certificate.signatureAlgorithm) else {
                return .failsToMeetPolicy(reason: "a signature algorithm is too weak")
            }
            guard Self.isStrong(certificate) else { return .failsToMeetPolicy(reason: "a key is too weak") }
        }
        return .meetsPolicy
    }

    private static func isStrong(_ certificate: Certificate) -> Bool {
        let key = certificate.publicKey
        if P256.Signing.PublicKey(key) != nil || P384.Signing.PublicKey(key) != nil
            || P521.Signing.PublicKey(key) != nil || Curve25519.Signing.PublicKey(key) != nil
        {
            return true
        }
        guard let der = certificate.derBytes, let info = SubjectPublicKeyInfo.bytes(ofCertificate: der),
            let bits = SubjectPublicKeyInfo.rsaBits(info)
        else { return false }
        return (2048...8192).contains(bits)
    }
}
