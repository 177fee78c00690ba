import X509

/// A DNS name in the certificate is the host, or its wildcard stands for exactly the first label of a host with at
/// least three (RFC 9525 §6.3). The library's own check also takes `*` alone and `*.com`.
struct NameRule: PathRule {
    /// In lower case, without a trailing dot.
    let host: String

    func failure(of path: UnverifiedCertificateChain) -> TrustFailure? {
        let names = try? path.leaf.extensions.subjectAlternativeNames
        return names?.contains(where: matches) == true ? nil : .otherHost
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
