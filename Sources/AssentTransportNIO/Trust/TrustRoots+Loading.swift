import AssentCore
import Foundation
import NIOSSL
import SwiftASN1
import X509

extension TrustRoots {
    /// The certificates, ready for path validation.
    ///
    /// - Throws: ``NIOTransportError`` `invalidTrustRoots`.
    func load() throws(NIOTransportError) -> CertificateStore {
        switch self {
        case .system: return .systemTrustRoots
        case .certificates(let encoded): return CertificateStore(try Self.parse(encoded))
        case .pemFile(let path): return CertificateStore(try Self.read(pemFile: path))
        }
    }

    /// The certificates of a PEM file, in its order.
    static func read(pemFile path: String) throws(NIOTransportError) -> [Certificate] {
        guard let bytes = try? Data(contentsOf: URL(fileURLWithPath: path)) else {
            throw NIOTransportError(.invalidTrustRoots, "\(path) cannot be read.")
        }
        return try parse([Array(bytes)])
    }

    private static func parse(_ encoded: [[UInt8]]) throws(NIOTransportError) -> [Certificate] {
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
                throw NIOTransportError(.invalidTrustRoots, "This is not a certificate in PEM or DER.")
            }
        }
        guard !roots.isEmpty else { throw NIOTransportError(.invalidTrustRoots, "There is no certificate in it.") }
        return roots
    }
}
