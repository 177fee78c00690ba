import AssentCore
import Foundation
import Testing

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
        return try ServerCredentials.files(certificate: directory + "/chain.pem", privateKey: directory + "/key.pem")
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
