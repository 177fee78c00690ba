package import AssentCore
import SwiftASN1
import X509

/// What identifies a certificate for a person: its subject, and the pin of its key.
package struct CertificateKey: Sendable, Hashable {
    /// The subject, in printable ASCII, at most 200 characters.
    package let subject: String

    /// The SHA-256 of its SubjectPublicKeyInfo.
    package let pin: Pin

    init?(der: [UInt8]) {
        guard let certificate = try? Certificate(derEncoded: der),
            let info = SubjectPublicKeyInfo.bytes(ofCertificate: der), let pin = try? Pin(publicKeyInfo: info)
        else { return nil }
        // The server chose it.
        subject = String(
            String.UnicodeScalarView(
                certificate.subject.description.unicodeScalars.filter { (0x20...0x7E).contains($0.value) }.prefix(200)))
        self.pin = pin
    }

    /// The certificates of a PEM file, in its order.
    ///
    /// - Throws: ``NIOTransportError`` `invalidTrustRoots` when it cannot be read or has none.
    package static func read(pemFile path: String) throws(NIOTransportError) -> [CertificateKey] {
        try TrustRoots.read(pemFile: path).compactMap { $0.derBytes.flatMap(CertificateKey.init(der:)) }
    }
}

extension Certificate {
    var derBytes: [UInt8]? {
        var serializer = DER.Serializer()
        guard (try? serializer.serialize(self)) != nil else { return nil }
        return serializer.serializedBytes
    }
}
