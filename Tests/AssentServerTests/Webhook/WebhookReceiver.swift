import AssentCore
import Crypto
import Foundation
import NIOSSL
import TestSupport

@testable import AssentServer

/// An operator's service with TLS that is sent messages. What the server needs to know of it is in a directory.
struct WebhookReceiver {
    static let key = [UInt8](0..<32)
    static let secret = "whsec_\(Data(key).base64EncodedString())"

    let directory: String
    let service: TestUpstream

    /// A service whose certificate is valid from an hour before `now`.
    init(now: Date) async throws {
        directory = try ServerFixture.makeDirectory()
        let made = try GeneratedCertificates.make(now: now)
        try PrivateFile.create(directory + "/authority.pem", Array(made.authorityPEM.utf8))
        try PrivateFile.create(directory + "/notify.secret", Array("\(Self.secret)\n".utf8))
        service = try await TestUpstream.start(
            tls: TLSConfiguration.makeServerConfiguration(
                certificateChain: try NIOSSLCertificate.fromPEMBytes(Array(made.chainPEM.utf8)).map {
                    .certificate($0)
                },
                privateKey: .privateKey(try NIOSSLPrivateKey(bytes: made.privateKeyPEM.revealBytes(), format: .pem))))
    }

    /// What lets a caller in may stand in the URL.
    var url: String { "https://localhost:\(service.port)/push?token=of-the-service" }

    var requests: [TestUpstream.Request] { service.requests }

    /// The settings of calls to it.
    func outbound() throws -> OutboundSettings {
        var settings = OutboundSettings()
        settings.authorities = .pemFile(directory + "/authority.pem")
        settings.privateHosts = [try NormalizedHost("localhost")]
        settings.timeout = .seconds(600)
        return settings
    }

    func waitForRequests(_ count: Int) async {
        await service.seen.wait { $0.requests.count >= count }
    }

    func stop() async {
        await service.stop()
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// Whether an attempt is signed as Standard Webhooks has it, by RFC 2104 and not by what the server uses.
    static func isSigned(_ request: TestUpstream.Request) -> Bool {
        guard let id = request.values("webhook-id").first, let timestamp = request.values("webhook-timestamp").first
        else { return false }
        let signed = Array("\(id).\(timestamp).".utf8) + request.body
        let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
        let (innerPad, outerPad) = (padded.map { $0 ^ 0x36 }, padded.map { $0 ^ 0x5C })
        let inner = Array(SHA256.hash(data: innerPad + signed))
        let code = Array(SHA256.hash(data: outerPad + inner))
        return request.values("webhook-signature") == ["v1,\(Data(code).base64EncodedString())"]
    }
}
