import AssentCore
import SwiftASN1

/// The key of a certificate as it is written in it. Serialising a parsed key again may give other bytes (compressed
/// points, absent parameters), and so another digest than the one that was pinned.
enum SubjectPublicKeyInfo {
    /// The DER SubjectPublicKeyInfo of a DER certificate (RFC 5280 §4.1), or `nil` for other bytes.
    static func bytes(ofCertificate der: [UInt8]) -> [UInt8]? {
        guard let certificate = try? DER.parse(der), let tbs = children(certificate)?.first, let fields = children(tbs),
            let first = fields.first
        else { return nil }
        // version [0] is optional; then serial number, signature, issuer, validity, subject, subjectPublicKeyInfo.
        let hasVersion = first.identifier == ASN1Identifier(tagWithNumber: 0, tagClass: .contextSpecific)
        let index = hasVersion ? 6 : 5
        guard fields.indices.contains(index), fields[index].identifier == .sequence else { return nil }
        return Array(fields[index].encodedBytes)
    }

    /// The modulus length in bits of an RSA key, or `nil` when it is another key.
    static func rsaBits(_ publicKeyInfo: [UInt8]) -> Int? {
        guard let parts = children(try? DER.parse(publicKeyInfo)), parts.count == 2,
            let algorithm = children(parts[0])?.first,
            let oid = try? ASN1ObjectIdentifier(derEncoded: algorithm), oid == [1, 2, 840, 113_549, 1, 1, 1],
            let key = try? ASN1BitString(derEncoded: parts[1]),
            let modulus = children(try? DER.parse(key.bytes))?.first, modulus.identifier == .integer,
            case .primitive(let bytes) = modulus.content
        else { return nil }
        let significant = bytes.drop { $0 == 0 }
        guard let top = significant.first else { return 0 }
        return significant.count * 8 - top.leadingZeroBitCount
    }

    /// Whether one of the certificates' keys is pinned.
    static func contains(_ pins: Set<Pin>, in chain: [[UInt8]]) -> Bool {
        chain.contains { der in pin(ofCertificate: der).map(pins.contains) ?? false }
    }

    /// The pins of the certificates' keys.
    static func pins(of chain: [[UInt8]]) -> Set<Pin> { Set(chain.compactMap(pin(ofCertificate:))) }

    private static func pin(ofCertificate der: [UInt8]) -> Pin? {
        bytes(ofCertificate: der).flatMap { try? Pin(publicKeyInfo: $0) }
    }

    private static func children(_ node: ASN1Node?) -> [ASN1Node]? {
        guard let node, case .constructed(let nodes) = node.content else { return nil }
        return Array(nodes)
    }
}
