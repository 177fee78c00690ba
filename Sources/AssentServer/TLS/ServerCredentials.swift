import AssentConfiguration
import AssentCore
import Foundation
import NIOCore
import NIOSSL
import SwiftASN1
import X509

/// What the server shows of itself in TLS, and what clients need to know of it.
struct ServerCredentials: Sendable {
    /// The files of a generated certificate in a data directory.
    static let (chainName, privateKeyName) = ("server.pem", "server.key")

    let chain: [NIOSSLCertificateSource]
    let privateKey: NIOSSLPrivateKeySource

    /// The CA to trust, as PEM, when it is not one that everybody knows.
    let authorityPEM: String?

    /// Pins for the configuration of clients: the leaf's and its issuer's; the leaf's alone when its issuer is not
    /// known.
    let pins: [Pin]

    /// The operator's own certificate.
    ///
    /// - Parameters:
    ///   - certificate: the file with the chain.
    ///   - privateKey: the file with the key.
    ///   - file: the configuration that names both; what cannot be read is told with its key and line there.
    /// - Returns: the credentials.
    /// - Throws: ``ConfigurationError``.
    static func files(certificate: String, privateKey: String, in file: String) throws -> ServerCredentials {
        func unusable(_ path: String, _ why: String, _ key: String) -> ConfigurationError {
            ConfigurationError(file: file, line: ConfigurationFile.line(of: key, in: file), "\(key): \(path) \(why)")
        }
        let chainPEM: String
        do {
            chainPEM = try String(contentsOfFile: certificate, encoding: .utf8)
        } catch {
            let why = "cannot be read: \(ConfigurationFile.whyUnreadable(certificate))"
            throw unusable(certificate, why, "tls.certificate")
        }
        let keyPEM: [UInt8]
        do {
            keyPEM = try PrivateFile.read(privateKey, isNamed: true)
        } catch let error as ConfigurationError {
            throw unusable(privateKey, error.message, "tls.privateKey")
        }
        let made = try make(chainPEM: chainPEM, keyPEM: Secret(bytes: keyPEM), authorityPEM: nil, file: certificate)
        guard (try? NIOSSLContext(configuration: made.tlsConfiguration())) != nil else {
            let why = "is not the key of the certificate in \(certificate), which must be the first one there"
            throw unusable(privateKey, why, "tls.privateKey")
        }
        return made
    }

    /// The generated certificate in a data directory, made again when it is missing or about to expire.
    static func generated(in directory: DataDirectory, now: Date) throws -> ServerCredentials {
        let authority = directory.file("authority.pem")
        let chain = directory.file(chainName)
        let key = directory.file(privateKeyName)
        if let kept = try kept(authority: authority, chain: chain, key: key),
            let leaf = try? firstCertificate(kept.chainPEM), leaf.notValidAfter > now.addingTimeInterval(86_400),
            leaf.notValidBefore <= now
        {
            return try make(
                chainPEM: kept.chainPEM, keyPEM: kept.keyPEM, authorityPEM: kept.authorityPEM, file: chain)
        }
        for path in [authority, chain, key] { try? FileManager.default.removeItem(atPath: path) }
        let made = try GeneratedCertificates.make(now: now)
        try PrivateFile.create(key, made.privateKeyPEM.revealBytes())
        try PrivateFile.create(chain, Array(made.chainPEM.utf8))
        try PrivateFile.create(authority, Array(made.authorityPEM.utf8))
        return try make(
            chainPEM: made.chainPEM, keyPEM: made.privateKeyPEM, authorityPEM: made.authorityPEM, file: chain)
    }

    private static func kept(
        authority: String, chain: String, key: String
    ) throws -> (authorityPEM: String, chainPEM: String, keyPEM: Secret)? {
        guard [authority, chain, key].allSatisfy({ FileManager.default.fileExists(atPath: $0) }) else { return nil }
        return (
            String(decoding: try PrivateFile.read(authority), as: UTF8.self),
            String(decoding: try PrivateFile.read(chain), as: UTF8.self), Secret(bytes: try PrivateFile.read(key))
        )
    }

    private static func firstCertificate(_ pem: String) throws -> Certificate {
        guard let first = try PEMDocument.parseMultiple(pemString: pem).first else {
            throw CertificateMissing()
        }
        return try Certificate(pemDocument: first)
    }

    private struct CertificateMissing: Error {}

    private static func make(
        chainPEM: String, keyPEM: Secret, authorityPEM: String?, file: String
    ) throws -> ServerCredentials {
        do {
            let chain = try NIOSSLCertificate.fromPEMBytes(Array(chainPEM.utf8))
            let key = try NIOSSLPrivateKey(bytes: keyPEM.revealBytes(), format: .pem)
            return ServerCredentials(
                chain: chain.map { .certificate($0) }, privateKey: .privateKey(key), authorityPEM: authorityPEM,
                pins: try pins(leaf: firstCertificate(chainPEM), issuers: chainPEM + (authorityPEM ?? "")))
        } catch let error as ConfigurationError {
            throw error
        } catch {
            throw ConfigurationError(file: file, line: nil, "certificate or key is not PEM that can be read")
        }
    }

    /// The leaf's pin and that of the certificate that signed it. Another one that only stands in the file would be a
    /// backup that never fits.
    private static func pins(leaf: Certificate, issuers pem: String) throws -> [Pin] {
        let own = try GeneratedCertificates.pin(of: leaf)
        let issuer = try PEMDocument.parseMultiple(pemString: pem).lazy.compactMap { try? Certificate(pemDocument: $0) }
            .first { $0.subject == leaf.issuer && $0.publicKey.isValidSignature(leaf.signature, for: leaf) }
        guard let issuer else { return [own] }
        let backup = try GeneratedCertificates.pin(of: issuer)
        return backup == own ? [own] : [own, backup]
    }

    /// The TLS settings of a server: 1.2 or later, HTTP/1.1 only.
    func tlsConfiguration() -> TLSConfiguration {
        var configuration = TLSConfiguration.makeServerConfiguration(certificateChain: chain, privateKey: privateKey)
        configuration.minimumTLSVersion = .tlsv12
        // In 1.2 only what has forward secrecy and authenticates what it encrypts (RFC 9325 §4.2).
        configuration.cipherSuiteValues = [
            .TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
            .TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, .TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
            .TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256, .TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
        ]
        configuration.applicationProtocols = ["http/1.1"]
        // How long a client may take to say that it, too, ends the connection; a stop waits for that.
        configuration.shutdownTimeout = .milliseconds(500)
        return configuration
    }
}
