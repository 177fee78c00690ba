import AssentConfiguration
import AssentCore
import Crypto
import Foundation
import SwiftASN1
import NIOSSL
import Testing
import X509

@testable import AssentServer

@Suite("The operator's own certificate")
struct ServerCredentialsTests {
    /// The credentials from a chain file with these certificates.
    private func credentials(_ chain: String, key: Secret) throws -> ServerCredentials {
        let directory = NSTemporaryDirectory() + "/assent-tls-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try Data(chain.utf8).write(to: URL(fileURLWithPath: directory + "/chain.pem"))
        try PrivateFile.create(directory + "/key.pem", key.revealBytes())
        return try ServerCredentials.files(
            certificate: directory + "/chain.pem", privateKey: directory + "/key.pem", in: directory + "/assent.yaml")
    }

    @Test("With its issuer in the chain, wherever it stands, there are two pins: its own and the issuer's")
    func issuer() throws {
        let made = try GeneratedCertificates.make(now: Date())
        let other = try GeneratedCertificates.make(now: Date())
        for chain in [
            made.chainPEM + made.authorityPEM, made.chainPEM + other.authorityPEM + made.authorityPEM,
            made.chainPEM + other.chainPEM + made.authorityPEM,
        ] {
            #expect(try credentials(chain, key: made.privateKeyPEM).pins == made.pins)
        }
    }

    @Test("A file that is missing, or is no key of the certificate, is told with its key and line in the configuration")
    func places() throws {
        let directory = NSTemporaryDirectory() + "/assent-tls-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (chain, key, file) = ("\(directory)/chain.pem", "\(directory)/key.pem", "\(directory)/assent.yaml")
        let text = "publicURL: https://localhost/am\ntls:\n  certificate: chain.pem\n  privateKey: key.pem\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: file))
        func fault() -> ConfigurationError? {
            #expect(throws: ConfigurationError.self) {
                try ServerCredentials.files(certificate: chain, privateKey: key, in: file)
            }
        }
        let noChain = fault()
        #expect(noChain?.description == "\(file):3: tls.certificate: \(chain) cannot be read: there is no such file")
        try Data(GeneratedCertificates.make(now: Date()).chainPEM.utf8).write(to: URL(fileURLWithPath: chain))
        let noKey = fault()
        #expect(noKey?.file == file && noKey?.line == 4, "\(noKey as Any)")
        #expect(noKey?.message.hasPrefix("tls.privateKey: \(key) cannot be read") == true, "\(noKey as Any)")
        let other = try GeneratedCertificates.make(now: Date())
        try PrivateFile.create(key, other.privateKeyPEM.revealBytes())
        let wrong = fault()
        #expect(wrong?.line == 4 && wrong?.message.contains("is not the key of") == true, "\(wrong as Any)")
    }

    @Test("TLS 1.2 has no suite without forward secrecy, and none that authenticates before it encrypts")
    func suites() async throws {
        try await ServerFixture.run { fixture in
            func connects(_ suites: [NIOTLSCipher]) async -> Bool {
                var tls = TLSConfiguration.makeClientConfiguration()
                tls.certificateVerification = .none
                tls.maximumTLSVersion = .tlsv12
                tls.cipherSuiteValues = suites
                return await RawConnection.answers(port: fixture.serverPort, tls: tls)
            }
            #expect(await connects([.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, .TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]))
            #expect(
                await !connects([
                    .TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, .TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA,
                    .TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA, .TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA,
                    .TLS_RSA_WITH_AES_128_GCM_SHA256, .TLS_RSA_WITH_AES_128_CBC_SHA,
                ]))
        }
    }

    @Test("A private file is on the disk before it counts, and so is its name; one that cannot be is not kept")
    func synced() throws {
        let directory = NSTemporaryDirectory() + "/assent-synced-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        var synced: [String] = []
        func note(_ descriptor: Int32) throws {
            let path = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(descriptor)")
            let attributes = try FileManager.default.attributesOfItem(atPath: path)
            let isDirectory = attributes[.type] as? FileAttributeType == .typeDirectory
            synced.append(isDirectory ? "directory" : "file of \(attributes[.size] as? Int ?? -1)")
        }
        try PrivateFile.create(directory + "/key", [1, 2, 3], sync: note)
        #expect(synced == ["file of 3", "directory"])
        for failing in 1...2 {
            synced = []
            #expect(throws: ConfigurationError.self) {
                try PrivateFile.create(directory + "/other", [1]) { descriptor in
                    try note(descriptor)
                    if synced.count == failing { throw POSIXError(.EIO) }
                }
            }
            #expect(!FileManager.default.fileExists(atPath: directory + "/other"))
        }
        #expect(throws: POSIXError.self) { try PrivateFile.sync(-1) }
    }

    @Test("A file that is named without a directory is made in the working directory")
    func bareName() throws {
        let name = "assent-bare-" + SystemRandom().uuid()
        defer { try? FileManager.default.removeItem(atPath: name) }
        try PrivateFile.create(name, [1, 2, 3])
        #expect(try PrivateFile.read(name) == [1, 2, 3])
    }

    @Test("A key that is not the certificate's is refused with both names, whichever of two certificates it belongs to")
    func mismatch() throws {
        let made = try GeneratedCertificates.make(now: Date())
        let other = try GeneratedCertificates.make(now: Date())
        for chain in [made.chainPEM, made.chainPEM + other.chainPEM] {
            let error = #expect(throws: ConfigurationError.self) { try credentials(chain, key: other.privateKeyPEM) }
            #expect(error?.message.contains("/key.pem") == true)
            #expect(error?.message.contains("/chain.pem") == true)
        }
    }

    @Test(
        "A file that the operator names may be a link, as certbot and Kubernetes make them; it is private all the same")
    func links() throws {
        let directory = NSTemporaryDirectory() + "/assent-links-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let (file, link) = (directory + "/file", directory + "/link")
        try PrivateFile.create(file, [7])
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "file")
        #expect(try PrivateFile.read(link, isNamed: true) == [7])
        let own = #expect(throws: ConfigurationError.self) { try PrivateFile.read(link) }
        #expect(own?.message.contains("it is a link") == true)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: file)
        let open = #expect(throws: ConfigurationError.self) { try PrivateFile.read(link, isNamed: true) }
        #expect(open?.message.contains("chmod 600") == true)
        try FileManager.default.removeItem(atPath: file)
        #expect(throws: ConfigurationError.self) { try PrivateFile.read(link, isNamed: true) }
        #expect(mkfifo(file, 0o600) == 0)
        #expect(throws: ConfigurationError.self) { try PrivateFile.read(link, isNamed: true) }
    }

    @Test("Hosts that the certificate does not name are known before a client refuses it; a wildcard is one label")
    func names() throws {
        let made = try GeneratedCertificates.make(now: Date())
        let own = try credentials(made.chainPEM, key: made.privateKeyPEM)
        #expect(
            try own.hostsNotNamed(in: [
                "https://LOCALHOST:8443/am", "https://127.0.0.1:1", "https://[::1]/", "https://am.bank.example/am",
                "https://am.bank.example", "https://x.localhost",
            ]) == ["am.bank.example", "x.localhost"])
        let key = P256.Signing.PrivateKey()
        let name = try DistinguishedName { CommonName("wild") }
        let certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey), notValidBefore: Date(),
            notValidAfter: Date() + 3600, issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try .init { SubjectAlternativeNames([.dnsName("*.bank.example")]) },
            issuerPrivateKey: .init(key))
        let wild = try credentials(
            certificate.serializeAsPEM().pemString, key: Secret(key.pemRepresentation))
        #expect(
            try wild.hostsNotNamed(in: ["https://am.bank.example", "https://bank.example", "https://a.am.bank.example"])
                == ["bank.example", "a.am.bank.example"])
    }

    @Test("A certificate that did not sign it, though it has the issuer's name, is no backup: then there is one pin")
    func noIssuer() throws {
        let made = try GeneratedCertificates.make(now: Date())
        // All generated CAs have the same name.
        let other = try GeneratedCertificates.make(now: Date())
        for chain in [made.chainPEM, made.chainPEM + other.authorityPEM, made.chainPEM + made.chainPEM] {
            #expect(try credentials(chain, key: made.privateKeyPEM).pins == [made.pins[0]])
        }
    }
}
