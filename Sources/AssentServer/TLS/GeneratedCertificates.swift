public import AssentCore
import Crypto
public import Foundation
import SwiftASN1
import X509

/// A certificate for localhost from a private CA made for it alone, for development.
///
/// The CA can issue nothing but leaf certificates for localhost and loopback addresses (path length 0, name
/// constraints), lives for days, and its key is forgotten as soon as it has signed.
public struct GeneratedCertificates: Sendable {
    /// The CA's certificate as PEM: what a client trusts.
    public let authorityPEM: String

    /// The server's certificate chain as PEM, leaf first, without the CA.
    public let chainPEM: String

    /// The server's private key as PEM (PKCS#8).
    public let privateKeyPEM: Secret

    /// The pins of the leaf's and the CA's public keys, in this order.
    public let pins: [Pin]

    /// Makes a CA and a certificate that are valid from an hour before `now` for `days`.
    public static func make(now: Date, days: Int = 30) throws -> GeneratedCertificates {
        let notBefore = now.addingTimeInterval(-3600)
        let notAfter = now.addingTimeInterval(Double(days) * 86_400)
        let authorityKey = Certificate.PrivateKey(P256.Signing.PrivateKey())
        let authorityName = try DistinguishedName { CommonName("Assent development CA, this machine only") }
        let authorityIdentifier = SubjectKeyIdentifier(hash: authorityKey.publicKey)
        let authority = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: authorityKey.publicKey,
            notValidBefore: notBefore, notValidAfter: notAfter, issuer: authorityName, subject: authorityName,
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true))
                Critical(
                    NameConstraints(
                        permittedDNSDomains: ["localhost"],
                        permittedIPRanges: [
                            ASN1OctetString(contentBytes: [127, 0, 0, 0, 255, 0, 0, 0]),
                            ASN1OctetString(
                                contentBytes: ArraySlice([UInt8](repeating: 0, count: 15) + [1])
                                    + ArraySlice([UInt8](repeating: 255, count: 16))),
                        ]))
                authorityIdentifier
            }, issuerPrivateKey: authorityKey)
        let leafKey = P256.Signing.PrivateKey()
        let leafCertificateKey = Certificate.PrivateKey(leafKey)
        let leaf = try Certificate(
            version: .v3, serialNumber: Certificate.SerialNumber(), publicKey: leafCertificateKey.publicKey,
            notValidBefore: notBefore, notValidAfter: notAfter, issuer: authorityName,
            subject: try DistinguishedName { CommonName("localhost") },
            signatureAlgorithm: .ecdsaWithSHA256,
            extensions: Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                try ExtendedKeyUsage([.serverAuth])
                SubjectAlternativeNames([
                    .dnsName("localhost"), .ipAddress(ASN1OctetString(contentBytes: [127, 0, 0, 1])),
                    .ipAddress(ASN1OctetString(contentBytes: ArraySlice([UInt8](repeating: 0, count: 15) + [1]))),
                ])
                AuthorityKeyIdentifier(keyIdentifier: authorityIdentifier.keyIdentifier)
            }, issuerPrivateKey: authorityKey)
        return GeneratedCertificates(
            authorityPEM: try authority.serializeAsPEM().pemString + "\n",
            chainPEM: try leaf.serializeAsPEM().pemString + "\n",
            privateKeyPEM: Secret(leafKey.pemRepresentation + "\n"),
            pins: [try pin(of: leaf), try pin(of: authority)])
    }

    /// The pin of a certificate's public key.
    static func pin(of certificate: Certificate) throws -> Pin {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate.publicKey)
        return try Pin(publicKeyInfo: serializer.serializedBytes)
    }
}
