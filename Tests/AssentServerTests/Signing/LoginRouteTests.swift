import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTesting
import Foundation
import SigningTesting
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Logins of devices over HTTP")
struct LoginRouteTests {
    /// A server with an installation whose container signs Ana in.
    private struct World: Sendable {
        let door: RegistrationDoor
        let instance: RegistrationDoor.Instance
        let device: TestDevice
        let container: TestDevice.Enrolled
        let pin: TestPIN

        var fixture: ServerFixture { door.fixture }
        var url: String { fixture.oauth("access_token") }

        static func run(implicit: Bool = true, _ body: (World) async throws -> Void) async throws {
            let lines = implicit ? "\n        implicit: {scopes: [accounts]}" : ""
            try await ServerFixture.run(editing: { file($0, lines) }) { fixture in
                let door = try await RegistrationDoor(fixture)
                let instance = try await door.instance()
                let issuer = SigningOverHTTP(fixture)
                let session = try await fixture.boundSession(to: instance.key)
                func ask(_ path: String, _ body: JSONValue) async throws -> Answer {
                    let fields = try await fixture.proved(
                        "POST", fixture.signing(path), session: session, by: instance.key)
                    return try await fixture.send(
                        "POST", fixture.signing(path), fields + [("Content-Type", "application/json")],
                        body: body.serializedBytes())
                }
                let invite = try await ask("invites", [:])
                let pid = try #require(invite.json["pid"]?.string, "\(invite.text)")
                let code = try #require(invite.json["code"]?.string.flatMap { InviteCode(typed: $0) })
                let device = try TestDevice(issuer, modes: [.device, .assisted])
                let (container, pin) = try await device.enrol(code, pin: "2580", for: "sign-in")
                let digits = try await ask("invites/\(pid)/digits", ["digits": .string(container.digits)])
                try #require(digits.json == ["state": "ACTIVE"], "\(digits.text)")
                try await body(
                    World(door: door, instance: instance, device: device, container: container, pin: pin))
            }
        }

        private static func file(_ text: String, _ lines: String) -> String {
            let name = "      name: Bank of Example\n"
            let keys = """
                      authenticators: {sign-in: {level: 4}}
                      policies:
                        pin: {mode: assisted, password: {minLength: 4}, lock: {max: 3, delays: []}}
                      keys:
                        - {usage: sign, label: payments}
                        - {usage: auth, label: sign-in, policy: pin}

                """
            let types = "grantTypes: [authorization_code, refresh_token, client_credentials"
            return RegistrationDoor.file(text, lines)
                .replacing(types, with: types + ", \"\(OAuthClient.GrantType.jwtBearer.rawValue)\"")
                .replacing(name, with: name + keys, maxReplacements: 1)
        }

        /// A login, by the PIN or by the device key.
        func assertion(
            _ opened: TestPIN.Opened?, nonce: String, by key: SoftwareSigningKey? = nil, late: Int = 0
        ) async throws -> String {
            try await SignedMessage.sign(
                LoginAssertion(
                    did: container.did, sub: container.sub,
                    audience: fixture.published(String(fixture.oauth("").dropLast())),
                    jkt: try #require(KeyThumbprint(text: instance.key.thumbprint)), nonce: nonce,
                    unl: try opened?.unl, jti: SigningID(random: SystemRandom()),
                    issuedAt: Int(fixture.clock.now.timeIntervalSince1970) + late),
                with: key ?? opened?.key ?? device.deviceKey
            ).compact
        }

        /// Sends a login with a proof that has this nonce.
        func send(_ assertion: String, nonce: String?, isProved: Bool = true) async throws -> Answer {
            var fields = [("Content-Type", "application/x-www-form-urlencoded")]
            if isProved {
                var subject = fixture.subject("POST", url, token: "")
                subject.nonce = nonce
                fields.append(("DPoP", try await instance.key.proof(subject, claims: { $0["ath"] = nil })))
            }
            let grant = [("grant_type", OAuthClient.GrantType.jwtBearer.rawValue), ("assertion", assertion)]
            let client = try await door.assertion(instance.id, by: instance.key)
            return try await fixture.send("POST", url, fields, text: ServerFixture.query(grant + client))
        }

        var nonce: String { fixture.nonce(of: .authorizationServer) }
    }

    @Test("A PIN gives a token without a refresh token, and a session that its key alone can use")
    func pin() async throws {
        try await World.run { world in
            let opened = try #require(try await world.pin.open("2580"))
            let nonce = world.nonce
            let reply = try await world.send(try await world.assertion(opened, nonce: nonce), nonce: nonce)
            #expect(reply.status == 200, "\(reply.text)")
            #expect(reply.json["refresh_token"] == nil && reply.json["token_type"] == "DPoP")
            let session = try #require(reply.json["assent_session"]?.string)
            let url = world.fixture.json("sessions?_action=getSessionInfo")
            let read = try await world.fixture.send(
                "POST", url, try await world.fixture.proved("POST", url, session: session, by: world.instance.key))
            #expect(read.status == 200, "\(read.text)")
            let bare = try await world.fixture.send("POST", url, ServerFixture.session(session))
            #expect(bare.status == 401)
            let stored = try await Sessions(world.fixture.server.context).live(token: Secret(session))
            #expect(stored?.authLevel == 4 && stored?.isOfJourney == false)
        }
    }

    @Test("A proof with the nonce that the device has signed is demanded")
    func nonces() async throws {
        try await World.run { world in
            let nonce = world.nonce
            let assertion = try await world.assertion(nil, nonce: nonce)
            let bare = try await world.send(assertion, nonce: nil)
            #expect(bare.status == 400 && bare.json["error"] == "use_dpop_nonce" && bare["DPoP-Nonce"] != nil)
            let none = try await world.send(assertion, nonce: nil, isProved: false)
            #expect(none.status == 400 && none.json["error"] == "invalid_dpop_proof")
            let another = try await world.send(try await world.assertion(nil, nonce: "another"), nonce: nonce)
            #expect(another.status == 400 && another.json["error"] == "invalid_grant")
            #expect(try await world.send(assertion, nonce: nonce).status == 200)
        }
    }

    @Test("A refusal says to programs what the user must do")
    func reasons() async throws {
        try await World.run(implicit: false) { world in
            let nonce = world.nonce
            let implicit = try await world.send(try await world.assertion(nil, nonce: nonce), nonce: nonce)
            #expect(implicit.status == 400 && implicit.json["error"] == "invalid_grant")
            #expect(implicit.json["assent_error"] == "implicit_disabled")
            let opened = try #require(try await world.pin.open("2580"))
            let first = try await world.send(try await world.assertion(opened, nonce: nonce), nonce: nonce)
            #expect(first.status == 200)
            let second = try await world.send(try await world.assertion(opened, nonce: nonce), nonce: nonce)
            #expect(second.json["assent_error"] == "unlock_required")
        }
    }

    @Test("A device's clock that is ten minutes off is refused without a reason, and spends no evaluation")
    func clock() async throws {
        try await World.run { world in
            let opened = try #require(try await world.pin.open("2580"))
            let nonce = world.nonce
            for late in [-600, 600] {
                let reply = try await world.send(
                    try await world.assertion(opened, nonce: nonce, late: late), nonce: nonce)
                #expect(reply.status == 400 && reply.json["error"] == "invalid_grant")
                #expect(reply.json["assent_error"] == nil && reply["Date"] != nil)
            }
            let right = try await world.send(try await world.assertion(opened, nonce: nonce), nonce: nonce)
            #expect(right.status == 200, "\(right.text)")
        }
    }

    @Test("An implicit token opens no door of a user")
    func implicit() async throws {
        try await World.run { world in
            let nonce = world.nonce
            let reply = try await world.send(try await world.assertion(nil, nonce: nonce), nonce: nonce)
            #expect(reply.status == 200, "\(reply.text)")
            #expect(reply.json["scope"] == "accounts" && reply.json["assent_session"] == nil)
            let token = try #require(reply.json["access_token"]?.string)
            let url = world.fixture.oauth("userinfo")
            let answer = try await world.fixture.send(
                "GET", url, try await world.fixture.proved("GET", url, token: token, by: world.instance.key))
            #expect(answer.status == 403 && answer.json["error"] == "token_kind")
        }
    }
}
