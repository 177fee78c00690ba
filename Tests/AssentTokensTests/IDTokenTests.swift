import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@Suite struct IDTokenTests {
    @Test(
        "A claim that does not hold refuses the tokens, which are not kept",
        arguments: [
            { $0["iss"] = "https://evil.example" }, { $0["iss"] = nil }, { $0["aud"] = "other" }, { $0["aud"] = [] },
            { $0["aud"] = nil }, { $0["aud"] = ["bank-app", "other"] },
            {
                $0["aud"] = ["bank-app", "other"]; $0["azp"] = "other"
            }, { $0["azp"] = "other" }, { $0["azp"] = 5 },
            { $0["exp"] = 1 }, { $0["exp"] = nil }, { $0["exp"] = "soon" }, { $0["iat"] = nil },
            { $0["iat"] = 99_999_999_999 }, { $0["nbf"] = 99_999_999_999 }, { $0["nonce"] = nil },
            { $0["nonce"] = "another" }, { $0["nonce"] = 5 }, { $0["at_hash"] = "AAAAAAAAAAAAAAAAAAAAAA" },
            { $0["at_hash"] = "" }, { $0["at_hash"] = 5 }, { $0["sub"] = nil }, { $0["sub"] = "" }, { $0["sub"] = 7 },
            { $0["aud"] = "" }, { $0["aud"] = ["", "bank-app"] }, { $0["aud"] = ["bank-app", 5] },
            { $0["aud"] = "BANK-APP" }, { $0["aud"] = "bank-app " }, { $0["aud"] = [["bank-app"]] },
            {
                $0["aud"] = ["bank-app", "other"]; $0["azp"] = "bank-app"
            },
            { $0["iss"] = [.string(issuer)] }, { $0["iss"] = .string(issuer + "/") }, { $0["exp"] = -1 },
            { $0["exp"] = .number(JSONNumber(1e300) ?? JSONNumber(0)) }, { $0["nonce"] = .null },
            { $0["nonce"] = "" }, { $0["at_hash"] = .null }, { $0["azp"] = .null }, { $0["azp"] = "" },
        ] as [@Sendable (inout JSONObject) -> Void])
    func claims(change: @escaping @Sendable (inout JSONObject) -> Void) async throws {
        let provider = try FakeProvider()
        provider.change { $0.claims = change }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        #expect(try await manager.storedTokens() == nil)
    }

    @Test("Times count within the leeway and not beyond", arguments: [(29, true), (30, true), (31, false)])
    func leeway(seconds: Int64, good: Bool) async throws {
        for name in ["exp", "iat"] {
            let provider = try FakeProvider()
            let now = provider.clock.epochSeconds
            // exp may have passed, iat may be to come, by less than (exp) or no more than (iat) the leeway.
            provider.change { $0.claims = { $0[name] = .integer(name == "exp" ? now - seconds + 1 : now + seconds) } }
            let manager = try await provider.signedIn()
            if good {
                _ = try await manager.tokens()
            } else {
                await #expect(throws: TokenError.like(.invalidIDToken), "\(name)") { try await manager.tokens() }
            }
        }
    }

    @Test("Several audiences are fine when they are trusted and azp is right, and at_hash may be missing")
    func acceptable() async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.claims = {
                $0["aud"] = ["x", "bank-app"]; $0["azp"] = "bank-app"; $0["at_hash"] = nil
            }
        }
        let manager = try await provider.signedIn { $0.trustedAudiences = ["x"] }
        #expect(try await manager.tokens().idToken?.subject == "ana")
        provider.change { $0.claims = { $0["aud"] = ["bank-app"] } }
        #expect(try await provider.signedIn().tokens().idToken?.subject == "ana")
    }

    @Test(
        "Beside several audiences azp must be there, and be this client, although all are trusted",
        arguments: [nil, "x", "", .null, 5] as [JSONValue?])
    func authorizedParty(azp: JSONValue?) async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.claims = {
                $0["aud"] = ["bank-app", "x"]; $0["azp"] = azp
            }
        }
        let manager = try await provider.signedIn { $0.trustedAudiences = ["x"] }
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        #expect(try await manager.storedTokens() == nil)
    }

    @Test(
        "A header that says that it is another kind of token refuses it",
        arguments: ["at+jwt", "application/at+jwt", "logout+jwt", "secevent+jwt", ""])
    func otherKinds(type: String) async throws {
        let provider = try FakeProvider()
        provider.change { $0.header["typ"] = .string(type) }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        provider.change { $0.header["typ"] = "jwt" }
        _ = try await manager.tokens()
    }

    @Test("A key that comes with the token is not used", arguments: ["jwk", "jku", "x5c", "x5u"])
    func embeddedKey(name: String) async throws {
        let provider = try FakeProvider()
        let evil = try SoftwareSigningKey.generate(.es256)
        let jwk = try JWK(publicKeyInfo: evil.publicKeyInfo, keyID: "k1")
        provider.change {
            $0.key = evil
            $0.header[name] = name == "jwk" ? jwk.json : name == "x5c" ? ["AAAA"] : "https://evil.example/keys"
        }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        #expect(provider.exchanges.withLock { $0 }.allSatisfy { $0.request.url?.hasPrefix(issuer) == true })
    }

    @Test(
        "With max_age the token must say when the user signed in, and that it was recent enough",
        arguments: [
            (nil, false), (.string("now"), false), (.integer(-100), true), (.integer(-330), true),
            (.integer(-331), false),
        ] as [(JSONValue?, Bool)])
    func maxAge(offset: JSONValue?, good: Bool) async throws {
        let provider = try FakeProvider()
        let now = provider.clock.epochSeconds
        provider.change { $0.claims = { $0["auth_time"] = offset?.integer.map { .integer(now + $0) } ?? offset } }
        let manager = try await provider.signedIn { $0.authorizationParameters = [.init("max_age", "300")] }
        if good {
            _ = try await manager.tokens()
        } else {
            await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        }
    }

    @Test("Only the algorithms of the configuration count, whatever the provider publishes")
    func allowList() async throws {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn { $0.idTokenAlgorithms = [.rs256, .ps256] }
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        let none = try await provider.signedIn { $0.idTokenAlgorithms = [] }
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await none.tokens() }
        let shared = try await provider.signedIn { $0.idTokenAlgorithms = [.hs256] }
        let key = try HMACSigningKey(Secret(bytes: provider.behaviour.withLock { $0.keys[0] }.publicKeyInfo))
        let parts = try await provider.idToken(access: "access-1").split(separator: ".").map(String.init)
        let payload = try #require(Base64URL.decode(parts[1]))
        let token = try await JWS.sign(payload, header: JSONObject([.init(name: "kid", value: "k1")]), with: key)
        provider.change {
            $0.tokenReply = { _ in .json(200, ["access_token": "access-1", "id_token": .string(token)]) }
        }
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await shared.tokens() }
    }

    @Test("A claim that is there twice refuses the token: two readers could see two values")
    func repeatedClaim() async throws {
        let provider = try FakeProvider()
        let payload = Array(
            #"{"iss":"\#(issuer)","sub":"ana","sub":"bob","aud":"bank-app","iat":1,"exp":99999999999}"#.utf8)
        let (header, key) = provider.behaviour.withLock { ($0.header, $0.key) }
        let token = try await JWS.sign(payload, header: header, with: key)
        provider.change {
            $0.tokenReply = { _ in .json(200, ["access_token": "access-1", "id_token": .string(token)]) }
        }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
    }

    @Test(
        "Every allowed algorithm has its digest for at_hash",
        arguments: [SignatureAlgorithm.es384, .es512, .edDSA, .rs256, .ps256])
    func digests(algorithm: SignatureAlgorithm) async throws {
        let provider = try FakeProvider()
        let key = try SoftwareSigningKey.generate(algorithm, rsaBits: 2048)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: "k1")
        provider.change {
            $0.key = key
            $0.keys = [jwk]
            $0.claims = {
                let access = Array("access-1".utf8)
                switch algorithm {
                case .es384: $0["at_hash"] = .string(Base64URL.encode(SHA2.sha384(access).prefix(24)))
                case .es512, .edDSA: $0["at_hash"] = .string(Base64URL.encode(SHA2.sha512(access).prefix(32)))
                default: break
                }
            }
        }
        #expect(try await provider.signedIn().tokens().idToken != nil)
    }

    @Test("A token signed with the public key as a shared one, with none, or not at all, is refused")
    func algorithms() async throws {
        let provider = try FakeProvider()
        let good = try await provider.idToken(access: "access-1")
        let parts = good.split(separator: ".").map(String.init)
        let publicKey = provider.behaviour.withLock { $0.keys[0] }.publicKeyInfo
        let shared = try HMACSigningKey(Secret(bytes: publicKey))
        let payload = try #require(Base64URL.decode(parts[1]))
        let hmac = try await JWS.sign(payload, header: JSONObject([.init(name: "kid", value: "k1")]), with: shared)
        let none = Base64URL.encode(Array(#"{"alg":"none"}"#.utf8)) + ".\(parts[1])."
        var flipped = Array(parts[2].utf8)
        flipped[10] = flipped[10] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
        let forged = "\(parts[0]).\(parts[1]).\(String(decoding: flipped, as: UTF8.self))"
        let stripped = "\(parts[0]).\(parts[1])."
        for token in [hmac, none, forged, stripped, "x", good + ".x", parts[1]] {
            provider.change {
                $0.tokenReply = { _ in
                    .json(200, ["access_token": "access-1", "id_token": .string(token), "expires_in": 60])
                }
            }
            let manager = try await provider.signedIn()
            await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        }
    }

    @Test("An ID token must be there when openid was asked for, and is not looked at when not")
    func presence() async throws {
        let provider = try FakeProvider()
        provider.change { $0.tokenReply = { _ in .json(200, ["access_token": "a", "expires_in": 60]) } }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        let plain = try provider.manager(scopes: ["accounts"], clientID: "plain")
        try await plain.install(Session(token: Secret("SESS")))
        #expect(try await plain.tokens().idToken == nil)
        #expect(provider.sent("/authorize").last?.query["nonce"] == nil)
    }

    @Test("A new key is fetched once when a signature names it; forged names do not hammer the server")
    func rotation() async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.expiresIn = 0; $0.rotates = false
        }
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        let key = try SoftwareSigningKey.generate(.es256)
        let jwk = try JWK(publicKeyInfo: key.publicKeyInfo, keyID: "k2")
        provider.change {
            $0.key = key
            $0.keys.append(jwk)
            $0.header["kid"] = "k2"
        }
        provider.clock.advance(by: 60)
        _ = try await manager.tokens()
        #expect(provider.sent("/jwk_uri").count == 2)
        provider.change { $0.header["kid"] = "forged" }
        for _ in 0..<20 {
            await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        }
        #expect(provider.sent("/jwk_uri").count == 2)
        provider.clock.advance(by: 31)
        await #expect(throws: TokenError.like(.invalidIDToken)) { try await manager.tokens() }
        #expect(provider.sent("/jwk_uri").count == 3)
    }

    @Test(
        "A reply of the token endpoint that is no grant is refused",
        arguments: [
            [:], ["access_token": ""], ["access_token": 5], ["access_token": "a b"], ["access_token": "a\nb"],
            ["access_token": "a", "token_type": "mac"], ["access_token": "a", "token_type": 1],
            ["access_token": "a", "refresh_token": "é"], [],
        ] as [JSONValue])
    func grants(body: JSONValue) async throws {
        let provider = try FakeProvider()
        provider.change { $0.tokenReply = { _ in .json(200, body) } }
        let manager = try await provider.signedIn()
        await #expect(throws: TokenError.like(.malformedReply)) { try await manager.tokens() }
    }

    @Test(
        "expires_in may be a text, missing or absurd; a refresh token that comes along is not lost for it",
        arguments: [
            ("60", 60), (nil, nil), (.null, nil), (-1, 0), ("-1", 0), ("soon", nil), ("", nil), ("nan", nil),
            (true, nil),
            ([:], nil), ([60], nil), (.number(JSONNumber(1e300) ?? JSONNumber(0)), 315_360_000),
            (.integer(Int64.max), 315_360_000), (.number(JSONNumber(59.9) ?? JSONNumber(0)), 59),
        ] as [(JSONValue?, Double?)])
    func lifetimes(value: JSONValue?, seconds: Double?) async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.tokenReply = { _ in
                var reply: JSONObject = JSONObject([.init(name: "access_token", value: "a")])
                reply["refresh_token"] = "r"
                reply["expires_in"] = value
                return .json(200, .object(reply))
            }
        }
        let manager = try provider.manager(scopes: [])
        try await manager.install(Session(token: Secret("SESS")))
        let tokens = try await manager.tokens()
        #expect(tokens.expiresAt?.timeIntervalSince(provider.clock.now) == seconds)
        #expect(try await manager.storedTokens()?.refreshToken == Secret("r"))
    }
}
