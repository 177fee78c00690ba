import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("What an instance may register")
struct InstanceMetadataTests {
    /// A request that is wrong in one place.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let changes: [String: JSONValue?]
        var error = "invalid_client_metadata"
    }

    private static func key(_ change: (inout JSONObject) -> Void) -> JSONValue {
        var key: JSONObject = [
            "kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
            "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
        ]
        change(&key)
        return .object(key)
    }

    private static func keys(_ keys: JSONValue...) -> [String: JSONValue?] { ["jwks": ["keys": .array(keys)]] }

    private static let plain = key { _ in }

    static let cases: [Case] = [
        Case(testDescription: "no key", changes: ["jwks": nil]),
        Case(testDescription: "an empty key set", changes: keys()),
        Case(
            testDescription: "two keys",
            changes: keys(
                plain, ["kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"])),
        Case(testDescription: "a private key", changes: keys(key { $0["d"] = $0["x"] })),
        Case(testDescription: "a symmetric key", changes: keys(["kty": "oct", "k": "GawgguFyGrWKav7AX4VKUg"])),
        Case(testDescription: "a point off the curve", changes: keys(key { $0["y"] = $0["x"] })),
        Case(testDescription: "a key on another curve", changes: keys(key { $0["crv"] = "P-384" })),
        Case(testDescription: "a key for encryption", changes: keys(key { $0["use"] = "enc" })),
        Case(testDescription: "a key for another algorithm", changes: keys(key { $0["alg"] = "ES384" })),
        Case(testDescription: "an empty kid", changes: keys(key { $0["kid"] = "" })),
        Case(
            testDescription: "a kid of 300 bytes",
            changes: keys(key { $0["kid"] = .string(String(repeating: "k", count: 300)) })),
        Case(testDescription: "keys at an address", changes: ["jwks_uri": "https://evil.example/keys"]),
        Case(
            testDescription: "keys at an address, and no others",
            changes: ["jwks": nil, "jwks_uri": "https://evil.example/keys"]),
        Case(testDescription: "request_uris", changes: ["request_uris": []]),
        Case(testDescription: "sector_identifier_uri", changes: ["sector_identifier_uri": "https://evil.example/"]),
        Case(testDescription: "a secret", changes: ["client_secret": "s3cret"]),
        Case(testDescription: "a secret's end", changes: ["client_secret_expires_at": 0]),
        Case(testDescription: "a client id", changes: ["client_id": "pay~AAAAAAAAAAAAAAAAAAAAAA"]),
        Case(testDescription: "a time", changes: ["client_id_issued_at": 1]),
        Case(testDescription: "an address of its own", changes: ["registration_client_uri": "https://evil.example/"]),
        Case(testDescription: "a registration token", changes: ["registration_access_token": "t"]),
        Case(
            testDescription: "an http redirect", changes: ["redirect_uris": ["http://pay.example/cb"]],
            error: "invalid_redirect_uri"),
        Case(
            testDescription: "another redirect beside one of the app's",
            changes: ["redirect_uris": ["https://pay.example/cb", "https://evil.example/cb"]],
            error: "invalid_redirect_uri"),
        Case(
            testDescription: "the port of a loopback address",
            changes: ["redirect_uris": ["http://127.0.0.1:8080/cb"]], error: "invalid_redirect_uri"),
        Case(
            testDescription: "a redirect twice",
            changes: ["redirect_uris": ["https://pay.example/cb", "https://pay.example/cb"]],
            error: "invalid_redirect_uri"),
        Case(
            testDescription: "a redirect in another spelling that Unicode takes for equal",
            changes: ["redirect_uris": ["https://pay.example/cb?\u{212A}"]], error: "invalid_redirect_uri"),
        Case(
            testDescription: "redirects as a text", changes: ["redirect_uris": "https://pay.example/cb"],
            error: "invalid_redirect_uri"),
        Case(testDescription: "more scopes than the app", changes: ["scope": "openid accounts admin"]),
        Case(testDescription: "a scope in another case", changes: ["scope": "OpenID"]),
        Case(testDescription: "no scope in a text", changes: ["scope": " "]),
        Case(testDescription: "scopes as a list", changes: ["scope": ["openid"]]),
        Case(testDescription: "another grant type", changes: ["grant_types": ["password"]]),
        Case(testDescription: "no grant type", changes: ["grant_types": []]),
        Case(testDescription: "another response type", changes: ["response_types": ["code", "token"]]),
        Case(testDescription: "a response type of a number", changes: ["response_types": [1]]),
        Case(
            testDescription: "a code without its grant type",
            changes: ["grant_types": ["client_credentials"], "response_types": ["code"]]),
        Case(testDescription: "no authentication", changes: ["token_endpoint_auth_method": "none"]),
        Case(
            testDescription: "a secret as authentication",
            changes: ["token_endpoint_auth_method": "client_secret_basic"]),
        Case(testDescription: "a flag as a text", changes: ["dpop_bound_access_tokens": "true"]),
        Case(testDescription: "an empty name", changes: ["client_name": ""]),
        Case(
            testDescription: "a name of 201 bytes",
            changes: ["client_name": .string(String(repeating: "n", count: 201))]),
        Case(testDescription: "a name that clears the terminal", changes: ["client_name": "a\u{1B}[2J"]),
        Case(testDescription: "a name with U+0000", changes: ["client_name": "a\u{0}b"]),
        Case(testDescription: "a version of two lines", changes: ["software_version": "1\n2"]),
        Case(testDescription: "another app", changes: ["software_id": "other"]),
        Case(testDescription: "no app", changes: ["software_id": nil]),
        Case(testDescription: "an app as a number", changes: ["software_id": 1]),
        Case(
            testDescription: "a statement where nobody signs any", changes: ["software_statement": "a.b.c"],
            error: "unapproved_software_statement"),
    ]

    private static func refusal(
        _ body: JSONObject, of app: OAuthApp = ProviderFixture.pay, as id: String? = nil
    ) throws -> String? {
        var configuration = OAuthProviderConfiguration(realm: "/alpha", issuer: ProviderFixture.issuer, clients: [])
        configuration.apps = [app.id: app]
        do {
            _ = try InstanceMetadata(
                body, of: try InstanceMetadata.app(of: body, in: configuration), as: id, clock: ManualClock())
            return nil
        } catch {
            return error.code.rawValue
        }
    }

    @Test("A request that is wrong in one place is refused", arguments: cases)
    func wrong(test: Case) throws {
        let key = try AssertionKey()
        #expect(try Self.refusal(ProviderFixture.request(key)) == nil)
        #expect(try Self.refusal(ProviderFixture.request(key, test.changes)) == test.error)
    }

    @Test("Less than the app has is registered as it is asked for, and what nobody knows is left out")
    func less() throws {
        for algorithm in [SignatureAlgorithm.es256, .ps256, .edDSA] {
            let key = try AssertionKey(algorithm, keyID: "k-1")
            let metadata = try InstanceMetadata(
                ProviderFixture.request(
                    key,
                    [
                        "redirect_uris": ["http://127.0.0.1/cb"], "scope": "accounts openid",
                        "grant_types": ["refresh_token", "authorization_code"], "response_types": ["code"],
                        "dpop_bound_access_tokens": true, "client_name": "Ana's laptop", "software_version": "1.2",
                        "logo_uri": "https://evil.example/logo", "client_name#de": "x", "contacts": .null,
                        "jwks_uri": .null,
                    ]), of: ProviderFixture.pay, clock: ManualClock())
            let told = JSONObject(metadata.members)
            #expect(told["redirect_uris"]?.strings == ["http://127.0.0.1/cb"])
            #expect(told["scope"]?.string == "openid accounts")
            #expect(told["grant_types"]?.strings == ["authorization_code", "refresh_token"])
            #expect(told["dpop_bound_access_tokens"]?.bool == true)
            #expect(told["jwks"] == ["keys": [key.jwk.json]])
            #expect(told["client_name"]?.string == "Ana's laptop" && told["logo_uri"] == nil)
            #expect(InstanceMetadata(stored: JSONValue.object(told).serialized()) == metadata)
        }
    }

    @Test("What is stored and damaged is not read as something else")
    func damaged() {
        for text in ["", "{}", "[]", #"{"software_id":"pay","jwks":{"keys":[]}}"#] {
            #expect(InstanceMetadata(stored: text) == nil)
        }
    }

    @Test("A change repeats the client id, and no other")
    func clientID() throws {
        let (key, id) = (try AssertionKey(), "pay~AAAAAAAAAAAAAAAAAAAAAA")
        #expect(try Self.refusal(ProviderFixture.request(key, ["client_id": .string(id)]), as: id) == nil)
        for other: JSONValue? in [nil, .null, "pay~BBBBBBBBBBBBBBBBBBBBBB", "", 1] {
            #expect(
                try Self.refusal(ProviderFixture.request(key, ["client_id": other]), as: id)
                    == "invalid_client_metadata")
        }
    }

    // MARK: - Software statements

    private struct Statements {
        let signer: AssertionKey
        let clock = ManualClock()

        init() throws { signer = try AssertionKey() }

        var app: OAuthApp {
            ProviderFixture.pay {
                $0.admission = .statement
                $0.statements = SoftwareStatements(issuer: "https://vendor.example", keys: JWKSet([signer.jwk]))
            }
        }

        func statement(
            by key: AssertionKey? = nil, header: JSONObject = [:], _ changes: [String: JSONValue?] = [:]
        ) async throws -> String {
            var claims: JSONObject = ["iss": "https://vendor.example", "software_id": "pay"]
            for (name, value) in changes { claims[name] = value }
            var all: JSONObject = ["alg": "ES256"]
            for member in header.members { all[member.name] = member.value }
            return try await (key ?? signer).signed(
                header: JSONValue.object(all).serializedBytes(), claims: JSONValue.object(claims).serializedBytes())
        }

        func read(_ statement: String?, _ changes: [String: JSONValue?] = [:]) throws -> InstanceMetadata {
            try InstanceMetadata(
                ProviderFixture.request(
                    try AssertionKey(), changes.merging(["software_statement": statement.map(JSONValue.string)]) { $1 }),
                of: app, clock: clock)
        }

        func refusal(_ statement: String?, _ changes: [String: JSONValue?] = [:]) throws -> String? {
            do {
                _ = try read(statement, changes)
                return nil
            } catch let error as OAuthError {
                return error.code.rawValue
            }
        }
    }

    @Test("A software statement counts only if the app's vendor has signed it for this app, and it is in its time")
    func statements() async throws {
        let world = try Statements()
        let now = world.clock.epochSeconds
        #expect(
            try world.refusal(try await world.statement(header: ["typ": "JWT"], ["exp": .integer(now + 60)])) == nil)
        let invalid = "invalid_software_statement"
        #expect(try world.refusal(nil) == invalid)
        #expect(try world.refusal("not a statement") == invalid)
        let other = try AssertionKey()
        #expect(try world.refusal(try await world.statement(by: other)) == invalid)
        #expect(try world.refusal(try await world.statement(["exp": .integer(now - 60)])) == invalid)
        #expect(try world.refusal(try await world.statement(["nbf": .integer(now + 600)])) == invalid)
        #expect(try world.refusal(try await world.statement(header: ["typ": "at+jwt"])) == invalid)
        #expect(try world.refusal(try await world.statement(header: ["alg": "none"])) == invalid)
        let good = try await world.statement()
        #expect(try world.refusal(good.replacing(".", with: ".e30", maxReplacements: 1)) != nil)
        let foreign = "unapproved_software_statement"
        #expect(try world.refusal(try await world.statement(by: other, ["iss": "https://evil.example"])) == foreign)
        #expect(try world.refusal(try await world.statement(["iss": nil])) == foreign)
        #expect(try world.refusal(try await world.statement(["software_id": "other"])) == foreign)
        #expect(try world.refusal(try await world.statement(["software_id": nil])) == foreign)
    }

    @Test("What a statement says takes the place of the request, and is held to the app")
    func statedMembers() async throws {
        let world = try Statements()
        let statement = try await world.statement([
            "scope": "openid", "client_name": "Pay", "grant_types": ["authorization_code"],
        ])
        let read = try world.read(statement, ["scope": "accounts openid profile", "client_name": "Bank"])
        #expect(read.scopes == ["openid"] && read.name == "Pay" && read.grantTypes == [.authorizationCode])
        let silent = try world.read(
            try await world.statement(["client_name": .null, "jwks": .null, "jwks_uri": .null]), ["client_name": "Bank"]
        )
        #expect(silent.name == "Bank")
        #expect(JSONObject(read.members)["software_statement"]?.string == statement)
        #expect(try world.refusal(try await world.statement(["scope": "admin"])) == "invalid_client_metadata")
        #expect(
            try world.refusal(try await world.statement(["redirect_uris": ["https://evil.example/"]]))
                == "invalid_redirect_uri")
        #expect(
            try world.refusal(try await world.statement(["jwks_uri": "https://evil.example/"]))
                == "invalid_client_metadata")
    }

    private static func stored(name: String) -> String {
        let members: JSONObject = [
            "software_id": "pay", "jwks": ["keys": [plain]], "redirect_uris": ["https://pay.example/cb"],
            "grant_types": ["refresh_token"], "scope": "accounts", "dpop_bound_access_tokens": false,
            "client_name": .string(name),
        ]
        return JSONValue.object(members).serialized()
    }

    @Test("What is stored says the same each time, and texts that only look alike are read each for itself")
    func known() throws {
        let instances = KnownInstances()
        for _ in 0..<2 {
            for name in ["caf\u{E9}", "cafe\u{301}"] {
                let metadata = try #require(instances.metadata(stored: Self.stored(name: name)))
                #expect(metadata.name.map { Array($0.utf8) } == Array(name.utf8))
                #expect(metadata.redirectURIs == ["https://pay.example/cb"])
                #expect(metadata.scopes == ["accounts"])
            }
            #expect(instances.metadata(stored: "{}") == nil)
        }
    }
}
