import AssentCore
import AssentJOSE
import AssentStore
import AssentTesting
import Foundation
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Registration over HTTP")
struct RegistrationRouteTests {
    private typealias Door = RegistrationDoor

    @Test("An installation registers, authenticates, looks at itself, changes its key and ends")
    func story() async throws {
        try await Door.run { door in
            let fixture = door.fixture
            let metadata = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration")).json
            #expect(metadata["registration_endpoint"]?.string == fixture.published(door.url))
            let instance = try await door.instance(["client_name": "Ana's laptop"])
            #expect(
                instance.metadata["registration_client_uri"]?.string == fixture.published(door.url(of: instance.id)))
            #expect(instance.metadata["client_secret"] == nil && instance.metadata["client_name"] == "Ana's laptop")
            #expect(instance.metadata["token_endpoint_auth_method"] == "private_key_jwt")
            let granted = try await door.ownToken(instance.id, by: instance.key)
            let access = try #require(granted.json["access_token"]?.string)
            let userInfo = fixture.oauth("userinfo")
            #expect(try await fixture.send("GET", userInfo, ServerFixture.bearer(access)).status != 401)

            let seen = try await door.manage("GET", instance)
            #expect(seen.status == 200 && seen["Cache-Control"]?.contains("no-store") == true)
            #expect(
                seen.json["registration_access_token"]?.string == instance.token
                    && seen.json["jwks"] == instance.metadata["jwks"])

            let newKey = try ProofKey(.edDSA)
            let body = Door.repeated(
                instance,
                ["jwks": ["keys": [newKey.jwk.json]], "scope": "accounts", "client_name": nil])
            let url = door.url(of: instance.id)
            let second = try await door.proof("PUT", url, by: newKey, token: instance.token)
            let changed = try await door.manage(
                "PUT", instance, body: body, fields: [("DPoP-New-Key", second)])
            #expect(changed.status == 200, "\(changed.text)")
            #expect(changed.json["scope"] == "accounts" && changed.json["client_name"] == nil)
            #expect(try await door.ownToken(instance.id, by: instance.key).error == "invalid_client")
            #expect(try await door.ownToken(instance.id, by: newKey).status == 200)
            #expect(try await door.manage("GET", instance).status == 401)
            #expect(try await door.manage("GET", instance, by: newKey).status == 200)

            let ended = try await door.manage("DELETE", instance, by: newKey)
            #expect(ended.status == 204 && ended.bytes.isEmpty)
            #expect(try await fixture.send("GET", userInfo, ServerFixture.bearer(access)).status == 401)
            #expect(try await door.ownToken(instance.id, by: newKey).error == "invalid_client")
            for method in ["GET", "PUT", "DELETE"] {
                #expect(try await door.manage(method, instance, by: newKey).status == 401)
            }
        }
    }

    @Test("A stolen registration token is refused from another key, another instance and as a bearer token")
    func theft() async throws {
        try await Door.run { door in
            let instance = try await door.instance()
            let thief = try await door.instance()
            for method in ["GET", "PUT", "DELETE"] {
                let body = method == "PUT" ? Door.repeated(instance) : nil
                let url = door.url(of: instance.id)
                var answers = [
                    try await door.manage(method, instance, by: thief.key, body: body),
                    try await door.manage(method, instance, by: try ProofKey(), body: body),
                    try await door.manage(method, thief, token: instance.token, body: body),
                    try await door.manage(method, instance, by: thief.key, token: thief.token, body: body),
                    try await door.manage(method, instance, id: thief.id, body: body),
                ]
                // The right proof beside the wrong scheme, and the cookie's way.
                let proof = try await door.proof(method, url, by: instance.key, token: instance.token)
                for authorization in ["Bearer \(instance.token)", "DPoP", "Basic cGF5OnBheQ=="] {
                    answers.append(
                        try await door.fixture.send(
                            method, url, [("Authorization", authorization), ("DPoP", proof)]))
                }
                for answer in answers {
                    #expect(answer.status == 401 && answer.error == "invalid_token", "\(method): \(answer.text)")
                    #expect(answer["WWW-Authenticate"]?.hasPrefix("DPoP ") == true)
                }
            }
            let count = try await door.fixture.count("client_instances")
            #expect(count == 2)
            for (method, status) in [("GET", 200), ("PUT", 200), ("DELETE", 204)] {
                let body = method == "PUT" ? Door.repeated(instance) : nil
                #expect(try await door.manage(method, instance, body: body).status == status)
            }
        }
    }

    @Test("Proofs that are missing, doubled, replayed, about something else or by another key register nothing")
    func proofs() async throws {
        try await Door.run { door in
            let (key, token) = (try ProofKey(), try await door.initialToken(count: 2))
            func refused(_ proofs: [String], _ error: String = "invalid_dpop_proof") async throws {
                let answer = try await door.register(key, token: token, proofs: proofs)
                #expect(answer.status == 400 && answer.error == error, "\(answer.text)")
            }
            let good = try await door.proof("POST", door.url, by: key)
            try await refused([])
            try await refused([good, good])
            try await refused(["x"])
            try await refused([try await door.proof("POST", door.url, by: try ProofKey())])
            try await refused([try await door.proof("PUT", door.url, by: key)])
            try await refused([try await door.proof("POST", door.url + "/x", by: key)])
            try await refused([try await door.proof("POST", door.fixture.oauth("access_token"), by: key)])
            try await refused(
                [try await door.proof("POST", door.url, by: key) { $0["nonce"] = "stale" }], "use_dpop_nonce")
            try await refused(
                [
                    try await door.proof("POST", door.url, by: key) {
                        $0["nonce"] = nil
                        $0["iat"] = 1
                    }
                ], "use_dpop_nonce")
            #expect(try await door.fixture.count("client_instances") == 0)
            #expect(try await door.register(key, token: token, proofs: [good]).status == 201)
            // The same proof a second time, and at another door.
            try await refused([good])
            #expect(try await door.fixture.count("client_instances") == 1)
        }
    }

    @Test("A realm or an app that demands nonces gets them, and nothing has happened before")
    func nonces() async throws {
        try await Door.run(app: "\n        dpop: {nonce: required}") { door in
            let (key, token) = (try ProofKey(), try await door.initialToken())
            let without = try await door.proof("POST", door.url, by: key) { $0["nonce"] = nil }
            let answer = try await door.register(key, token: token, proofs: [without])
            let nonce = try #require(answer["DPoP-Nonce"])
            #expect(answer.status == 400 && answer.error == "use_dpop_nonce")
            let with = try await door.proof("POST", door.url, by: key) { $0["nonce"] = .string(nonce) }
            let registered = try await door.register(key, token: token, proofs: [with])
            #expect(registered.status == 201)
            let id = try #require(registered.json["client_id"]?.string)
            let own = try #require(registered.json["registration_access_token"]?.string)
            let late = try await door.proof("GET", door.url(of: id), by: key, token: own) { $0["nonce"] = nil }
            let seen = try await door.fixture.send("GET", door.url(of: id), ServerFixture.dpop(own, late))
            #expect(seen.status == 401 && seen.error == "use_dpop_nonce" && seen["DPoP-Nonce"] != nil)
        }
    }

    @Test("Bad bodies: not JSON, members twice, 64 KiB, another media type, unusable keys")
    func bodies() async throws {
        try await Door.run { door in
            let (key, token) = (try ProofKey(), try await door.initialToken())
            let good = JSONValue.object(Door.request(key)).serialized()
            let open = String(good.dropLast())
            for text in [
                "", "x", "[]", "\"pay\"", open + #","software_id":"pay"}"#, good + "{}",
                open + #","jwks":{"keys":[]}}"#,
                String(repeating: "[", count: 5000),
                #"{"software_id":"pay","jwks":{"keys":[{"kty":"oct","k":"AAAA"}]}}"#,
                #"{"software_id":"pay","jwks":{"keys":[{"kty":"EC","crv":"P-256","x":"AAAA","y":"AAAA"}]}}"#,
                #"{"software_id":"\#u{0}","jwks":{"keys":[]}}"#,
            ] {
                let answer = try await door.register(key, token: token, text: text)
                #expect(answer.status == 400 && answer.error == "invalid_client_metadata", "\(text)")
            }
            let large = open + #","x":""# + String(repeating: "x", count: 64 << 10) + "\"}"
            #expect(try await door.register(key, token: token, text: large).status == 413)
            let form = try await door.fixture.send(
                "POST", door.url, [("Content-Type", "application/x-www-form-urlencoded")], text: good)
            #expect(form.status == 415)
            let redirect = try await door.register(
                key, token: token, ["redirect_uris": ["http://pay.example/callback"]])
            #expect(redirect.status == 400 && redirect.error == "invalid_redirect_uri")
            #expect(try await door.fixture.count("client_instances") == 0)
            #expect(try await door.register(key, token: token).status == 201)
        }
    }

    @Test("Initial access tokens: missing, unknown, by another scheme, twice, used up")
    func tokens() async throws {
        try await Door.run { door in
            let (key, token) = (try ProofKey(), try await door.initialToken())
            let missing = try await door.register(key, token: nil)
            #expect(missing.status == 401 && missing["WWW-Authenticate"]?.contains("error=") == false)
            let body = JSONValue.object(Door.request(key)).serialized()
            for authorizations in [["Bearer guess"], ["DPoP \(token)"], ["Bearer \(token)", "Bearer \(token)"], ["x"]] {
                let answer = try await door.fixture.send(
                    "POST", door.url,
                    [("Content-Type", "application/json"), ("DPoP", try await door.proof("POST", door.url, by: key))]
                        + authorizations.map { ("Authorization", $0) }, text: body)
                #expect(answer.status == 401 && answer.error == "invalid_token", "\(authorizations)")
                #expect(answer["WWW-Authenticate"]?.hasPrefix("Bearer ") == true)
            }
            #expect(try await door.register(key, token: token).status == 201)
            #expect(try await door.register(try ProofKey(), token: token).status == 401)
        }
    }

    @Test("PUT with another client id, for another app, with the server's own members, or a new key without its proof")
    func changes() async throws {
        try await Door.run { door in
            let (instance, newKey) = (try await door.instance(), try ProofKey())
            let wrong: [(String, JSONValue?)] = [
                ("client_id", nil), ("client_id", "pay~AAAAAAAAAAAAAAAAAAAAAA"), ("software_id", "other"),
                ("registration_access_token", .string(instance.token)), ("client_id_issued_at", 1),
                ("registration_client_uri", "https://evil.example/"), ("client_secret", "s"),
                ("scope", "openid admin"), ("jwks", ["keys": []]),
            ]
            for (name, value) in wrong {
                let answer = try await door.manage("PUT", instance, body: Door.repeated(instance, [name: value]))
                #expect(answer.status == 400 && answer.error == "invalid_client_metadata", "\(name): \(answer.text)")
            }
            let url = door.url(of: instance.id)
            let body = Door.repeated(instance, ["jwks": ["keys": [newKey.jwk.json]]])
            let others = [
                [], [try await door.proof("PUT", url, by: instance.key, token: instance.token)],
                [try await door.proof("PUT", url, by: newKey)],
                [try await door.proof("PUT", url, by: newKey, token: "another")],
                [try await door.proof("DELETE", url, by: newKey, token: instance.token)],
            ]
            for proofs in others {
                let answer = try await door.manage(
                    "PUT", instance, body: body, fields: proofs.map { ("DPoP-New-Key", $0) })
                #expect(answer.status == 401 && answer.error == "invalid_dpop_proof", "\(answer.text)")
            }
            let needless = try await door.proof("PUT", url, by: instance.key, token: instance.token)
            let answer = try await door.manage(
                "PUT", instance, body: Door.repeated(instance), fields: [("DPoP-New-Key", needless)])
            #expect(answer.status == 401 && answer.error == "invalid_dpop_proof")
            let seen = try await door.manage("GET", instance)
            #expect(seen.json["jwks"] == instance.metadata["jwks"] && seen.json["scope"] == instance.metadata["scope"])
        }
    }

    @Test("A proof about the instance is good once, and needs the registration token's hash")
    func managingProofs() async throws {
        try await Door.run { door in
            let instance = try await door.instance()
            let url = door.url(of: instance.id)
            func get(_ proofs: String...) async throws -> Answer {
                try await door.fixture.send(
                    "GET", url,
                    [("Authorization", "DPoP \(instance.token)")] + proofs.map { ("DPoP", $0) })
            }
            let good = try await door.proof("GET", url, by: instance.key, token: instance.token)
            for answer in [
                try await get(), try await get(good, good),
                try await get(try await door.proof("GET", url, by: instance.key)),
                try await get(try await door.proof("GET", url, by: instance.key, token: "another")),
            ] { #expect(answer.status == 401 && answer.error == "invalid_dpop_proof", "\(answer.text)") }
            #expect(try await get(good).status == 200)
            #expect(try await get(good).error == "invalid_dpop_proof")
        }
    }

    @Test("Registration by statement takes a statement of the vendor, and no initial access token")
    func statements() async throws {
        let vendor = try ProofKey()
        let set = JSONValue.object(["keys": [vendor.jwk.json]]).serialized()
        let lines = "\n        softwareStatements: {issuer: \"https://vendor.example\", jwks: \(set)}"
        try await Door.run(app: lines, registration: "statement") { door in
            func statement(_ issuer: String, by signer: ProofKey) async throws -> JSONValue {
                var claims = JWTClaims()
                claims.iss = issuer
                claims["software_id"] = "pay"
                return .string(try await JWS.sign(claims.payload, with: signer.key))
            }
            let key = try ProofKey()
            let good = try await statement("https://vendor.example", by: vendor)
            #expect(try await door.register(key, token: nil).error == "invalid_software_statement")
            let foreign = try await statement("https://evil.example", by: try ProofKey())
            let answer = try await door.register(key, token: nil, ["software_statement": foreign])
            #expect(answer.status == 400 && answer.error == "unapproved_software_statement")
            let forged = try await statement("https://vendor.example", by: try ProofKey())
            #expect(
                try await door.register(key, token: nil, ["software_statement": forged]).error
                    == "invalid_software_statement")
            let token = try await door.initialToken()
            #expect(try await door.register(key, token: token, ["software_statement": good]).status == 401)
            let registered = try await door.register(key, token: nil, ["software_statement": good])
            #expect(registered.status == 201 && registered.json["software_statement"] == good)
            let refused = try await door.fixture.rows(
                "SELECT reason FROM audit WHERE event = 'registration.create' AND outcome = 'refused'")
            #expect(
                try refused.map { try $0.text("reason") }.sorted() == ["statement", "statement", "statement", "token"])
        }
    }

    @Test("An address that asks too often in a minute is told to wait")
    func limits() async throws {
        try await ServerFixture.run(editing: {
            RegistrationDoor.file($0).replacing("registrationsPerAddress: 1000", with: "registrationsPerAddress: 3")
        }) { fixture in
            let door = try await Door(fixture)
            for _ in 1...3 { #expect(try await door.register(try ProofKey(), token: "guess").status == 401) }
            let token = try await door.initialToken()
            let answer = try await door.register(try ProofKey(), token: token)
            #expect(answer.status == 429 && answer["Retry-After"] == "60" && answer.error == "temporarily_unavailable")
            fixture.clock.advance(by: 60)
            #expect(try await door.register(try ProofKey(), token: token).status == 201)
        }
    }

    @Test("Administrators make tokens, list instances and end them over HTTP")
    func administration() async throws {
        try await Door.run { door in
            let (first, second) = (try await door.instance(["client_name": "One"]), try await door.instance())
            let listed = try await door.act("listRegistrations", ["app": "pay"])
            #expect(listed.json["resultCount"]?.integer == 2)
            let names = listed.json["result"]?.array?.compactMap { $0["name"]?.string }
            #expect(names == ["One"])
            let containers = listed.json["result"]?.array?.map { $0["containers"]?.integer }
            #expect(containers == [0, 0])
            #expect(try await door.act("endRegistration", ["clientId": .string(first.id)]).status == 200)
            #expect(try await door.act("endRegistration", ["clientId": .string(first.id)]).status == 404)
            #expect(try await door.ownToken(first.id, by: first.key).error == "invalid_client")
            #expect(try await door.ownToken(second.id, by: second.key).status == 200)
            #expect(try await door.act("endRegistrations", ["app": "pay"]).json["ended"]?.integer == 1)
            #expect(try await door.act("endRegistrations", ["app": "pay"]).json["ended"]?.integer == 0)
            for (action, body): (String, JSONValue) in [
                ("createRegistrationToken", [:]), ("createRegistrationToken", ["app": "pay", "count": 0]),
                ("createRegistrationToken", ["app": "pay", "days": "7"]), ("listRegistrations", ["app": 1]),
                ("listRegistrations", ["limit": 0]), ("endRegistration", [:]), ("endRegistrations", [:]),
            ] { #expect(try await door.act(action, body).status == 400, "\(action) \(body)") }
            #expect(try await door.act("createRegistrationToken", ["app": "none"]).status == 404)
        }
    }

    @Test("A realm without apps has no such endpoint in its metadata, and registers nobody")
    func none() async throws {
        try await ServerFixture.run { fixture in
            let metadata = try await fixture.send("GET", fixture.oauth(".well-known/openid-configuration")).json
            #expect(metadata["registration_endpoint"] == nil)
            let answer = try await fixture.send(
                "POST", fixture.oauth("register"), [("Content-Type", "application/json")],
                text: #"{"software_id":"bank-app"}"#)
            #expect(answer.status == 400 && answer.error == "invalid_client_metadata")
        }
    }
}
