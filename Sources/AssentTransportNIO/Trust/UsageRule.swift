import X509

/// The keys may be used as they are: for a TLS server (extended key usage), for signing certificates (key usage), with
/// a name in the subject alternative name and not only in the subject (RFC 9525 §6.3).
struct UsageRule: PathRule {
    func failure(of path: UnverifiedCertificateChain) -> TrustFailure? {
        do {
            guard try path.leaf.extensions.subjectAlternativeNames != nil else { return .noAlternativeName }
            for (index, certificate) in path.enumerated() {
                let isIssuer = index > 0
                if let usage = try certificate.extensions.keyUsage {
                    guard isIssuer ? usage.keyCertSign : usage.digitalSignature else { return .keyUsage }
                }
                let isAnchor = isIssuer && index == path.count - 1
                if !isAnchor, let purposes = try certificate.extensions.extendedKeyUsage {
                    guard purposes.contains(.serverAuth) || purposes.contains(.any) else { return .extendedKeyUsage }
                }
            }
            return nil
        } catch {
            return .unreadableExtension
        }
    }
}
