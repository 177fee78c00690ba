import AssentConfiguration
import Foundation
import NIOCore
import NIOSSL
import SwiftASN1
import X509

extension ServerCredentials {
    /// The server's own certificate; `nil` where the chain has none that can be looked into.
    var leaf: Certificate? {
        get throws {
            guard case .certificate(let leaf)? = chain.first else { return nil }
            return try Certificate(derEncoded: leaf.toDERBytes())
        }
    }

    /// The hosts of `urls` that the certificate does not name, so that clients refuse it there (RFC 9525 §6.3).
    /// Addresses are not looked at.
    func hostsNotNamed(in urls: [String]) throws -> [String] {
        guard let leaf = try leaf else { return [] }
        let names = try leaf.extensions.subjectAlternativeNames ?? .init()
        var missing: [String] = []
        for host in urls.compactMap({ URLComponents(string: $0)?.host?.lowercased() }) where !missing.contains(host) {
            let isAddress = host.hasPrefix("[") || (try? SocketAddress(ipAddress: host, port: 0)) != nil
            if !isAddress, !names.contains(where: { Self.names($0, host) }) { missing.append(host) }
        }
        return missing
    }

    /// What is wrong with the time for which the certificate is valid, in words for the operator.
    func fault(isRenewed: Bool, now: Date) throws -> String? {
        guard let leaf = try leaf else { return nil }
        let found = ServerExamination.validity(leaf, isRenewed: isRenewed, now: now)
        return found.verdict == .problem ? found.text : nil
    }

    private static func names(_ name: GeneralName, _ host: String) -> Bool {
        guard case .dnsName(let name) = name else { return false }
        let pattern = name.lowercased()
        guard pattern.hasPrefix("*."), let dot = host.firstIndex(of: ".") else { return pattern == host }
        return pattern.dropFirst(2) == host[host.index(after: dot)...]
    }
}
