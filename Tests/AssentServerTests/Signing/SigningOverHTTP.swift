import AssentCore
import AssentSigningProtocol
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

/// The issuer of the fixture's realm `/alpha`, over HTTP, with what its users and relying parties ask.
final class SigningOverHTTP: TestIssuer {
    let fixture: ServerFixture

    static let details = """
        [{"type":"payment","instructedAmount":{"amount":"200.00","currency":"EUR"},"creditorName":"Bob"}]
        """

    private static let json = [("Content-Type", "application/json")]

    init(_ fixture: ServerFixture) { self.fixture = fixture }

    var name: String { fixture.signing("").dropLast().description }

    func configuration() async throws -> (bytes: [UInt8], nonce: String) {
        let reply = try await fixture.send("GET", fixture.signing("configuration"))
        return (reply.bytes, try #require(reply["TSP-Nonce"]))
    }

    func send(_ path: String, proof: String?, body: String) async throws -> String {
        let reply = try await raw(path, proof: proof, body: body)
        guard reply.status == 200 else { throw TestRefusal(reply.json["code"]?.string ?? "status \(reply.status)") }
        #expect(reply["Content-Type"] == "application/jose")
        return reply.text
    }

    func raw(_ path: String, proof: String?, body: String, type: String = "application/jose") async throws -> Answer {
        let fields = [("Content-Type", type)] + (proof.map { [("TSP-Proof", $0)] } ?? [])
        return try await fixture.send("POST", fixture.signing("device/" + path), fields, text: body)
    }

    /// What the page of a signed-in user asks.
    func ask(_ method: String, _ path: String, session: String, _ body: JSONValue? = nil) async throws -> Answer {
        try await fixture.send(
            method, fixture.signing(path), ServerFixture.session(session) + (body == nil ? [] : Self.json),
            body: body?.serializedBytes())
    }

    func invite(session: String, _ body: JSONValue = [:]) async throws -> (pid: String, code: InviteCode) {
        let reply = try await ask("POST", "invites", session: session, body)
        try #require(reply.status == 201, "\(reply.text)")
        return (
            try #require(reply.json["pid"]?.string),
            try #require(reply.json["code"]?.string.flatMap { InviteCode(typed: $0) })
        )
    }

    /// A device of Ana's that may approve.
    func enrolled(
        session: String, pushID: String? = nil
    ) async throws -> (device: TestDevice, container: TestDevice.Enrolled) {
        let invite = try await invite(session: session)
        let device = try TestDevice(self)
        let container = try await device.enrol(invite.code, pushID: pushID)
        let reply = try await ask(
            "POST", "invites/\(invite.pid)/digits", session: session, ["digits": .string(container.digits)])
        try #require(reply.json == ["state": "ACTIVE"], "\(reply.text)")
        return (device, container)
    }

    /// An access token of the client `shop`.
    func shop(scope: String = "signing") async throws -> String {
        let basic = Data("shop:\(FixtureConfiguration.clientSecret)".utf8).base64EncodedString()
        let reply = try await fixture.send(
            "POST", fixture.oauth("access_token"),
            [("Content-Type", "application/x-www-form-urlencoded"), ("Authorization", "Basic \(basic)")],
            text: ServerFixture.query([("grant_type", "client_credentials"), ("scope", scope)]))
        return try #require(reply.json["access_token"]?.string, "\(reply.text)")
    }

    func create(
        _ token: String, key: String = SystemRandom().uuid(), _ change: (inout JSONObject) -> Void = { _ in }
    ) async throws -> Answer {
        var body: JSONObject = [
            "user": "ana", "template": "payment", "authorization_details": .string(Self.details),
        ]
        change(&body)
        return try await fixture.send(
            "POST", fixture.signing("transactions"),
            ServerFixture.bearer(token) + Self.json + [("Idempotency-Key", key)],
            body: JSONValue.object(body).serializedBytes())
    }

    func party(_ method: String, _ path: String, _ token: String) async throws -> Answer {
        try await fixture.send(method, fixture.signing(path), ServerFixture.bearer(token))
    }
}
