import AssentCore
import Foundation
import TestSupport
import SwiftASN1
import Testing
@_spi(FixedExpiryValidationTime) import X509

@testable import AssentServer

@Suite("The generated CA")
struct GeneratedCertificatesTests {
    private let now = Date(timeIntervalSince1970: 1_767_225_600)

    private func verify(_ name: String?, _ address: String?, with made: GeneratedCertificates) async throws -> Bool {
        let authority = try Certificate(pemEncoded: made.authorityPEM)
        let leaf = try Certificate(pemEncoded: made.chainPEM)
        let time = now
        var verifier = Verifier(rootCertificates: CertificateStore([authority])) {
            RFC5280Policy(fixedExpiryValidationTime: time)
            ServerIdentityPolicy(serverHostname: name, serverIP: address)
        }
        guard case .validCertificate = await verifier.validate(leaf: leaf, intermediates: CertificateStore()) else {
            return false
        }
        return true
    }

    @Test("Its certificate is good for localhost and loopback addresses, and for nothing else")
    func names() async throws {
        let made = try GeneratedCertificates.make(now: now)
        #expect(try await verify("localhost", nil, with: made))
        #expect(try await verify(nil, "127.0.0.1", with: made))
        #expect(try await verify(nil, "::1", with: made))
        #expect(try await !verify("bank.example", nil, with: made))
        #expect(try await !verify(nil, "10.0.0.1", with: made))
    }

    @Test("OpenSSL, a second implementation, agrees that the chain is valid and what the pin is")
    func openssl() throws {
        let made = try GeneratedCertificates.make(now: Date())
        let directory = NSTemporaryDirectory() + "assent-ca-" + SystemRandom().uuid()
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try Data(made.authorityPEM.utf8).write(to: URL(fileURLWithPath: directory + "/ca.pem"))
        try Data(made.chainPEM.utf8).write(to: URL(fileURLWithPath: directory + "/leaf.pem"))
        #expect(
            try run("openssl verify -x509_strict -purpose sslserver -CAfile ca.pem leaf.pem", in: directory)
                == "leaf.pem: OK\n")
        let pin = try run(
            "openssl x509 -in leaf.pem -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64",
            in: directory)
        #expect("sha256/" + pin.trimmingCharacters(in: .newlines) == made.pins.first?.description)
    }

    private func run(_ command: String, in directory: String) throws -> String {
        let done = try FinishedProcess.run("/bin/sh", ["-c", command], directory: directory)
        try #require(done.status == 0, "\(done.complaints)")
        return done.text
    }
}
