import AssentCore
import AssentTesting
import Foundation
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

/// An installation in Python, written from docs/ alone: `Tests/Resources/instance.py`. Of each answer it says the
/// status, the name of the refusal, and the scheme of the challenge with its error.
@Suite(
    "An installation in Python, at routes of each kind, with a user whom it remembers", .enabled(if: PythonPeer.mustRun)
)
struct ResourceInstanceTests {
    private static let allowed: JSONValue = [200, .null, .null]
    private static let badToken: JSONValue = [401, .null, "DPoP invalid_token"]
    private static let badProof: JSONValue = [401, .null, "DPoP invalid_dpop_proof"]
    private static let otherKind: JSONValue = [403, "token_kind", .null]
    private static let unknown: JSONValue = [401, "invalid_token", "DPoP invalid_token"]

    @Test("27, 29: It registers, has a token, remembers a user, is let in where a kind is named, and then nowhere")
    func story() async throws {
        // Python compares the certificate with a clock of its own.
        try await ServerFixture.run(clock: ManualClock(Date()), editing: { Self.remembering($0) }) { fixture in
            let door = try await RegistrationDoor(fixture)
            let job = try await Self.job(door).serializedBytes()
            let seen = try JSONValue.parse(
                try await offPool { try PythonPeer.run(script: "Resources/instance.py", input: job) })
            Self.checkCredentials(seen)
            Self.checkCalls(seen)
            RememberedInstance.check(seen)
            Self.checkEnd(seen)

            // A signed-in user is let in where both are named, and by name.
            let user = ServerFixture.session(door.admin)
            #expect(try await fixture.send("GET", fixture.gateway("/news"), user).status == 200)
            let refused = try await fixture.send("GET", fixture.gateway("/app-info"), user)
            #expect(refused.status == 403 && refused.json["code"] == "token_kind")
            #expect(refused["WWW-Authenticate"] == nil)

            let received = fixture.upstream.requests
            #expect(
                received.map { [$0.line] + $0.values("X-Remote-User") } == [
                    ["GET /app-info HTTP/1.1"], ["GET /news HTTP/1.1"], ["GET /open HTTP/1.1"],
                    ["GET /app-info HTTP/1.1"], ["GET /greeting HTTP/1.1", "ana"], ["GET /news HTTP/1.1", "ana"],
                    ["GET /accounts HTTP/1.1", "ana"], ["GET /greeting HTTP/1.1", "ana"], ["GET /open HTTP/1.1"],
                    ["GET /news HTTP/1.1", "ana"],
                ])
            for name in ["Authorization", "DPoP", ServerFixture.cookieName] {
                #expect(received.allSatisfy { $0.values(name).isEmpty }, "\(name)")
            }
            #expect(try await fixture.count("client_instances") == 0)
        }
    }

    private static func checkCredentials(_ seen: JSONValue) {
        #expect(
            seen["not_registered"] == [
                "without_token": [401, "invalid_token", "Bearer"],
                "without_key": [400, "invalid_dpop_proof", .null],
                "more_than_the_app": [400, "invalid_client_metadata", .null],
                "used_token": [401, "invalid_token", "Bearer invalid_token"],
            ])
        #expect(
            seen["registered"] == [
                "of_app": true, "beside": true, "key": true, "scope": "accounts",
                "grants": ["client_credentials", .string(OAuthClient.GrantType.jwtBearer.rawValue)], "secret": false,
                "bound": true,
            ])
        let (noClient, noProof): (JSONValue, JSONValue) = (
            [400, "invalid_client", .null], [400, "invalid_dpop_proof", .null]
        )
        #expect(
            seen["no_token"] == [
                "wrong_proof": noProof, "without_proof": noProof, "assertion_of_that": noClient,
                "other_key": noClient, "used_assertion": noClient,
                "more_than_registered": [400, "invalid_scope", .null],
            ])
        #expect(seen["token"] == ["type": "DPoP", "scope": "accounts", "expires": true, "refresh": false])
        #expect(seen["introspected"] == ["active": true, "client": true, "type": "DPoP", "key": true])
    }

    private static func checkCalls(_ seen: JSONValue) {
        #expect(
            seen["calls"] == [
                "device": allowed, "several": allowed, "other_app": [403, .null, .null], "user": otherKind,
                "public": allowed, "userinfo": otherKind, "account": otherKind,
            ])
        let nobody: JSONValue = [401, .null, "SSOADVICE"]
        #expect(
            seen["refused"] == [
                "nothing": nobody, "proof_alone": nobody, "without_proof": badProof, "bearer": badToken,
                "other_key": badToken, "used_proof": badProof, "other_address": badProof, "signature": badToken,
                "scope": badToken, "unsigned": badToken,
            ])
    }

    private static func checkEnd(_ seen: JSONValue) {
        #expect(
            seen["not_ended"] == [
                "other_key": unknown,
                "without_proof": [401, "invalid_dpop_proof", "DPoP invalid_dpop_proof"], "own_token": unknown,
            ])
        #expect(seen["known"] == allowed)
        #expect(seen["ended"] == [204, .null, .null])
        #expect(
            seen["afterwards"] == [
                "device": badToken, "several": badToken, "other_app": badToken, "user": badToken, "public": allowed,
                "userinfo": unknown, "account": [401, .null, .null],
                "token": [400, "invalid_client", .null], "registration": unknown,
            ])
        #expect(seen["introspected_afterwards"] == ["active": false])
    }

    private static func job(_ door: RegistrationDoor) async throws -> JSONValue {
        let fixture = door.fixture
        let token = try await door.initialToken()
        func route(_ path: String) -> JSONValue { .string(fixture.published(fixture.gateway(path))) }
        let own: JSONObject = [
            "issuer": .string(fixture.published(String(fixture.oauth("").dropLast()))),
            "ca": .string(try #require(fixture.endpoints.authorityFile)),
            "now": .integer(Int64(fixture.clock.now.timeIntervalSince1970)),
            "software_id": "pay", "scope": "accounts", "initial_access_token": .string(token),
            "resource_server": [
                "client_id": "back-office", "client_secret": .string(FixtureConfiguration.clientSecret),
            ],
            "account": .string(fixture.published(fixture.json("consents"))),
            "routes": [
                "device": route("/app-info"), "several": route("/news"), "other_app": route("/other-app"),
                "user": route("/accounts"), "public": route("/open"), "greeting": route("/greeting"),
            ],
        ]
        let ofUser = try await RememberedInstance.job(door)
        return .object(JSONObject(own.members + ofUser.members))
    }

    /// The same with a user who is remembered, and a route for such.
    private static func remembering(_ text: String) -> String {
        let greeting = """
                - name: greeting
                  path: /greeting
                  upstream: \(upstream(text))
                  realm: alpha
                  policySet: installations
                  accepts: [user, implicit]

            """
        return RememberedInstance.file(file(text, app: RememberedInstance.lines))
            .replacing("  routes:\n", with: "  routes:\n" + greeting, maxReplacements: 1)
    }

    private static func upstream(_ text: String) -> String {
        text.firstMatch(of: /upstream: (http:\S+)/).map { String($0.1) } ?? ""
    }

    /// The fixture's file with the app, routes that accept its installations, and a policy for them.
    static func file(_ text: String, app lines: String = "") -> String {
        let upstream = upstream(text)
        func route(_ name: String, _ kinds: String) -> String {
            """
                - name: \(name)
                  path: /\(name)
                  upstream: \(upstream)
                  realm: alpha
                  policySet: installations
                  accepts: [\(kinds)]

            """
        }
        let routes = route("app-info", "device") + route("other-app", "device") + route("news", "user, device")
        return RegistrationDoor.file(text, lines).replacing("  routes:\n", with: "  routes:\n" + routes)
            .replacing("    policySets:\n      bank:\n", with: policies)
    }

    private static let policies = """
            policySets:
              installations:
                policies:
                  - name: own
                    resources:
                      - https://localhost:*/app-info
                      - https://localhost:*/news
                      - https://localhost:*/greeting
                    actionValues: {GET: true}
                    subject: {type: OR, subjects: [{type: App, apps: [pay]}, {type: AuthenticatedUsers}]}
                  - name: other
                    resources: ["https://localhost:*/other-app"]
                    actionValues: {GET: true}
                    subject: {type: App, apps: [other]}
              bank:

        """
}
