import Foundation
import NIOSSL
import SwiftASN1
import X509

/// The certificate authorities that a server's chain must end in.
public enum TrustRoots: Sendable, Hashable {
    /// Those that the Linux distribution installs. On Apple systems this set is empty, so that nothing is trusted.
    case system

    /// These and no others; each element is one certificate in DER, or any number of them in PEM.
    case certificates([[UInt8]])

    /// Those in this PEM file and no others.
    case pemFile(String)

    func load() throws(NIOTransportError) -> CertificateStore {
        switch self {
        case .system: return .systemTrustRoots
        case .certificates(let encoded): return CertificateStore(try Self.parse(encoded))
        case .pemFile(let path):
            guard let bytes = try? Data(contentsOf: URL(fileURLWithPath: path)) else {
                throw NIOTransportError(.invalidTrustRoots, "cannot read \(path)")
            }
            return CertificateStore(try Self.parse([Array(bytes)]))
        }
    }

    static func parse(_ encoded: [[UInt8]]) throws(NIOTransportError) -> [Certificate] {
        var roots: [Certificate] = []
        for bytes in encoded {
            do {
                // A DER certificate is a SEQUENCE; text never starts with that tag.
                if bytes.first == 0x30 {
                    roots.append(try Certificate(derEncoded: bytes))
                } else {
                    for certificate in try NIOSSLCertificate.fromPEMBytes(bytes) {
                        roots.append(try Certificate(derEncoded: certificate.toDERBytes()))
                    }
                }
            } catch {
                throw NIOTransportError(.invalidTrustRoots, "not a certificate in PEM or DER")
            }
        }
        guard !roots.isEmpty else { throw NIOTransportError(.invalidTrustRoots, "there is no certificate in it") }
        return roots
    }
}
