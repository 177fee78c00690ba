import AssentCore
import AssentJOSE
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

/// A server with the app `pay`, an administrator, and what instances send to it: right requests, and ones that are
/// wrong in one place.
struct RegistrationDoor: Sendable {
    let fixture: ServerFixture

    /// The session of the administrator.
    let admin: String

    /// Runs `body` beside a server whose file has the app, with further lines.
    static func run(
        app lines: String = "", registration: String = "token", _ body: (RegistrationDoor) async throws -> Void
    ) async throws {
        try await ServerFixture.run(editing: { file($0, lines, registration: registration) }) { fixture in
            try await body(try await RegistrationDoor(fixture))
        }
    }

    /// The file of the fixture with the app.
    static func file(_ text: String, _ lines: String = "", registration: String = "token") -> String {
        text.replacing(
            "    clients:\n      bank-app:\n",
            with: """
                    apps:
                      pay:
                        name: Example Pay
                        redirectURIs: ["http://127.0.0.1/callback"]
                        scopes: [openid, accounts, offline_access]
                        defaultScopes: [accounts]
                        idTokenAlgorithm: ES256
                        grantTypes: [authorization_code, refresh_token, client_credentials]
                        registration: \(registration)
                        registrationsPerAddress: 1000
                        registrationsPerMinute: 1000\(lines)
                    clients:
                      bank-app:

                """, maxReplacements: 1)
    }

    init(_ fixture: ServerFixture) async throws {
        self.fixture = fixture
        admin = try await fixture.session("ana")
        let file = try #require(fixture.endpoints.bootstrapFile)
        let token = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .newlines)
        #expect(try await act("bootstrap", ["token": .string(token)]).status == 200)
    }

    var url: String { fixture.oauth("register") }

    func url(of id: String) -> String { fixture.oauth("register/\(id)") }

    func act(_ action: String, _ body: JSONValue) async throws -> Answer {
        try await fixture.send(
            "POST", fixture.json("administration?_action=\(action)"),
            [("Content-Type", "application/json")] + ServerFixture.session(admin), body: body.serializedBytes())
    }

    func initialToken(count: Int64 = 1) async throws -> String {
        let answer = try await act("createRegistrationToken", ["app": "pay", "count": .integer(count)])
        return try #require(answer.json["token"]?.string)
    }

    /// A right proof, after a change to its claims. Without a token it has no `ath`.
    func proof(
        _ method: String, _ url: String, by key: ProofKey, token: String? = nil,
        claims change: (inout JSONObject) -> Void = { _ in }
    ) async throws -> String {
        try await key.proof(
            fixture.subject(method, url, token: token ?? ""),
            claims: { claims in
                if token == nil { claims["ath"] = nil }
                change(&claims)
            })
    }

    static func request(_ key: ProofKey, _ changes: [String: JSONValue?] = [:]) -> JSONObject {
        var body: JSONObject = ["software_id": "pay", "jwks": ["keys": [key.jwk.json]]]
        for (name, value) in changes { body[name] = value }
        return body
    }

    /// Sends a request to register. A proof is made unless some, or none, are given.
    func register(
        _ key: ProofKey, token: String?, _ changes: [String: JSONValue?] = [:], proofs: [String]? = nil,
        text: String? = nil, on node: ServerFixture? = nil
    ) async throws -> Answer {
        var fields = [("Content-Type", "application/json")]
        if let token { fields.append(("Authorization", "Bearer \(token)")) }
        var sent = proofs ?? []
        if proofs == nil { sent = [try await proof("POST", url, by: key)] }
        fields += sent.map { ("DPoP", $0) }
        return try await (node ?? fixture).send(
            "POST", (node ?? fixture).oauth("register"), fields,
            text: text ?? JSONValue.object(Self.request(key, changes)).serialized())
    }

    /// A registered instance.
    struct Instance: Sendable {
        let id: String
        let token: String
        let key: ProofKey
        let metadata: JSONValue
    }

    func instance(_ changes: [String: JSONValue?] = [:]) async throws -> Instance {
        let key = try ProofKey()
        let answer = try await register(key, token: try await initialToken(), changes)
        #expect(answer.status == 201, "\(answer.text)")
        return Instance(
            id: try #require(answer.json["client_id"]?.string),
            token: try #require(answer.json["registration_access_token"]?.string), key: key, metadata: answer.json)
    }

    /// Sends what an instance sends about itself, by `key`, which is its own unless another one is named, and to the
    /// door's server unless another node is named. A proof is made unless some, or none, are given.
    func manage(
        _ method: String, _ instance: Instance, by key: ProofKey? = nil, token: String? = nil, id: String? = nil,
        body: JSONObject? = nil, proofs: [String]? = nil, fields: [(String, String)] = [],
        on node: ServerFixture? = nil
    ) async throws -> Answer {
        let (id, token) = (id ?? instance.id, token ?? instance.token)
        var sent = proofs ?? []
        if proofs == nil {
            sent = [try await proof(method, url(of: id), by: key ?? instance.key, token: token)]
        }
        let server = node ?? fixture
        return try await server.send(
            method, server.oauth("register/\(id)"),
            [("Authorization", "DPoP \(token)")] + sent.map { ("DPoP", $0) } + fields
                + (body == nil ? [] : [("Content-Type", "application/json")]),
            body: body.map { JSONValue.object($0).serializedBytes() })
    }

    /// What an instance has registered, as a PUT repeats it, after a change.
    static func repeated(_ instance: Instance, _ changes: [String: JSONValue?] = [:]) -> JSONObject {
        var body = JSONObject(
            (instance.metadata.object ?? JSONObject()).members.filter {
                !["client_id_issued_at", "registration_client_uri", "registration_access_token"].contains($0.name)
            })
        for (name, value) in changes { body[name] = value }
        return body
    }

    /// Asks for a token of an instance's own by an assertion; with `isBound`, for one that belongs to its key.
    func ownToken(_ id: String, by key: ProofKey, isBound: Bool = false) async throws -> Answer {
        let proofs =
            isBound ? [("DPoP", try await proof("POST", fixture.oauth("access_token"), by: key))] : []
        return try await fixture.send(
            "POST", fixture.oauth("access_token"), [("Content-Type", "application/x-www-form-urlencoded")] + proofs,
            text: ServerFixture.query([("grant_type", "client_credentials")] + (try await assertion(id, by: key))))
    }

    /// What an instance authenticates with.
    func assertion(_ id: String, by key: ProofKey) async throws -> [(String, String)] {
        try await key.assertion(
            of: id, to: fixture.published(String(fixture.oauth("").dropLast())),
            at: Int64(fixture.clock.now.timeIntervalSince1970))
    }
}
