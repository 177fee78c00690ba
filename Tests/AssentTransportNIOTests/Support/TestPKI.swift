import AssentCore
import Crypto
import Foundation
import NIOSSL
import SwiftASN1
import Testing
import X509

/// Certificate authorities and certificates, minted in the test.
struct TestPKI {
    /// A key with its certificate, and those that lead up to the root.
    struct Authority: Sendable {
        let certificate: Certificate
        let key: Certificate.PrivateKey
        var der: [UInt8] { TestPKI.der(certificate) }
        var pin: Pin { get throws { try TestPKI.pin(certificate) } }
    }

    struct Server: Sendable {
        var chain: [Certificate]
        let keyPEM: String
        /// What the server sends when it is not `chain`.
        var raw: [[UInt8]]?

        var encoded: [[UInt8]] { raw ?? chain.map(TestPKI.der) }
        var pin: Pin {
            get throws { try TestPKI.pin(#require(chain.first)) }
        }
    }

    /// "Now" for the clients under test.
    static let now = Date(timeIntervalSince1970: 1_900_000_000)
    /// From 2020 to 2040: also valid for a server under test that looks at the machine's clock.
    static let validity = Date(timeIntervalSince1970: 1_577_836_800)..<Date(timeIntervalSince1970: 2_208_988_800)

    struct Extras {
        var validity = TestPKI.validity
        var names: [GeneralName] = [.dnsName("localhost")]
        var purposes: [ExtendedKeyUsage.Usage]? = [.serverAuth]
        var constraints: NameConstraints?
        var pathLength: Int?
        var keyUsage: KeyUsage?
    }

    static func root(_ name: String = "root", key: P256.Signing.PrivateKey = .init()) throws -> Authority {
        let key = Certificate.PrivateKey(key)
        let certificate = try mint(
            subject: name, publicKey: key.publicKey, issuer: name, signer: key, isAuthority: true, Extras(names: []))
        return Authority(certificate: certificate, key: key)
    }

    static func intermediate(
        _ name: String, under issuer: Authority, key: Certificate.PrivateKey? = nil,
        _ extras: Extras = Extras(names: [])
    ) throws -> Authority {
        let key = key ?? Certificate.PrivateKey(P256.Signing.PrivateKey())
        let certificate = try mint(
            subject: name, publicKey: key.publicKey, issuer: issuer.certificate.subject, signer: issuer.key,
            isAuthority: true, extras)
        return Authority(certificate: certificate, key: key)
    }

    /// A server certificate; `appending` is what else the server sends.
    static func server(
        under issuer: Authority, appending: [Certificate] = [], _ extras: Extras = Extras()
    ) throws -> Server {
        let key = P256.Signing.PrivateKey()
        let leaf = try mint(
            subject: "server", publicKey: .init(key.publicKey), issuer: issuer.certificate.subject, signer: issuer.key,
            isAuthority: false, extras)
        return Server(chain: [leaf] + appending, keyPEM: key.pemRepresentation)
    }

    /// A certificate that vouches for itself.
    static func selfSigned() throws -> Server {
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("server") }
        let leaf = try mint(
            subject: "server", publicKey: .init(key.publicKey), issuer: name, signer: .init(key), isAuthority: false,
            Extras())
        return Server(chain: [leaf], keyPEM: key.pemRepresentation)
    }

    static func mint(
        subject: String, publicKey: Certificate.PublicKey, issuer: String, signer: Certificate.PrivateKey,
        isAuthority: Bool, _ extras: Extras
    ) throws -> Certificate {
        try mint(
            subject: subject, publicKey: publicKey, issuer: DistinguishedName { CommonName(issuer) }, signer: signer,
            isAuthority: isAuthority, extras)
    }

    static func mint(
        subject: String, publicKey: Certificate.PublicKey, issuer: DistinguishedName, signer: Certificate.PrivateKey,
        isAuthority: Bool, _ extras: Extras
    ) throws -> Certificate {
        let usage =
            extras.keyUsage
            ?? (isAuthority ? KeyUsage(keyCertSign: true, cRLSign: true) : KeyUsage(digitalSignature: true))
        let constraints: BasicConstraints =
            isAuthority ? .isCertificateAuthority(maxPathLength: extras.pathLength) : .notCertificateAuthority
        var extensions = try Certificate.Extensions {
            Critical(constraints)
            Critical(usage)
        }
        if !isAuthority, let purposes = extras.purposes {
            try extensions.append(.init(ExtendedKeyUsage(purposes), critical: false))
        }
        if !extras.names.isEmpty {
            try extensions.append(.init(SubjectAlternativeNames(extras.names), critical: false))
        }
        if let limits = extras.constraints { try extensions.append(.init(limits, critical: true)) }
        return try Certificate(
            version: .v3, serialNumber: .init(), publicKey: publicKey, notValidBefore: extras.validity.lowerBound,
            notValidAfter: extras.validity.upperBound, issuer: issuer,
            subject: DistinguishedName { CommonName(subject) }, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: extensions, issuerPrivateKey: signer)
    }

    static func der(_ certificate: Certificate) -> [UInt8] {
        var serializer = DER.Serializer()
        guard (try? serializer.serialize(certificate)) != nil else { return [] }
        return serializer.serializedBytes
    }

    /// Independent of the code under test: the parsed key is serialised again.
    static func pin(_ certificate: Certificate) throws -> Pin {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate.publicKey)
        return try Pin(publicKeyInfo: serializer.serializedBytes)
    }

    /// A pin that nothing has.
    static func otherPin(_ seed: UInt8 = 7) throws -> Pin { try Pin(sha256: [UInt8](repeating: seed, count: 32)) }
}
