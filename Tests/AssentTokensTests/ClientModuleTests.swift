import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

/// The conformance suite's modules for a client of FAPI 2.0: what a server answers that is not as it must be.
@Suite("Modules for a client") struct ClientModuleTests {
    struct Module: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let code: TokenError.Code
        /// Whether the client must stop before it sends the code.
        var keepsCode = false
        let change: @Sendable (FakeProvider) -> Void

        init(
            _ name: String, _ code: TokenError.Code, keepsCode: Bool = false,
            _ change: @escaping @Sendable (FakeProvider) -> Void
        ) {
            testDescription = name
            self.code = code
            self.keepsCode = keepsCode
            self.change = change
        }

        /// An ID token with other claims.
        static func token(_ name: String, _ change: @escaping @Sendable (inout JSONObject) -> Void) -> Module {
            Module(name, .invalidIDToken) { $0.change { $0.claims = change } }
        }

        /// An answer of the authorization endpoint with other parameters.
        static func answer(
            _ name: String, _ change: @escaping @Sendable ([String: String]) -> [(String, String)]
        ) -> Module {
            Module(name, .foreignAnswer, keepsCode: true) { provider in
                provider.change {
                    $0.location = { good in
                        let right = ["code", "state"].reduce(into: [String: String]()) { $0[$1] = good[$1] }
                        var items = FormItems()
                        for (name, value) in change(right) { items.append(name, value) }
                        return "\(redirectURI)?\(FormEncoding.encode(items))"
                    }
                }
            }
        }

        /// An ID token that is made from a right one.
        static func forged(
            _ name: String, _ forge: @escaping @Sendable (FakeProvider, String) async throws -> String
        ) -> Module {
            Module(name, .invalidIDToken) { provider in
                provider.change {
                    $0.tokenReply = { form in
                        guard case .object(var reply) = try await provider.grant(form),
                            let token = reply["id_token"]?.string
                        else { return nil }
                        reply["id_token"] = .string(try await forge(provider, token))
                        return .json(200, .object(reply))
                    }
                }
            }
        }
    }

    private static let modules: [Module] = [
        Module("discovery-issuer-mismatch", .issuerMismatch, keepsCode: true) { provider in
            provider.change { $0.discovery["issuer"] = "https://evil.example" }
        },
        .answer("invalid-authorization-response-iss") { right in
            [("code", right["code"] ?? ""), ("iss", "https://evil.example"), ("state", right["state"] ?? "")]
        },
        .answer("remove-authorization-response-iss") { right in
            [("code", right["code"] ?? ""), ("state", right["state"] ?? "")]
        },
        .answer("ensure-authorization-response-with-invalid-state-fails") { right in
            [("code", right["code"] ?? ""), ("iss", issuer), ("state", (right["state"] ?? "") + "1")]
        },
        .answer("ensure-authorization-response-with-missing-state-fails") { right in
            [("code", right["code"] ?? ""), ("iss", issuer)]
        },
        .token("invalid-aud") { $0["aud"] = "other" },
        .token("invalid-secondary-aud") { $0["aud"] = ["bank-app", "other"] },
        .token("invalid-missing-aud") { $0["aud"] = nil },
        .token("invalid-iss") { $0["iss"] = "https://evil.example" },
        .token("invalid-missing-iss") { $0["iss"] = nil },
        .token("invalid-expired-exp") { $0["exp"] = .integer(($0["iat"]?.integer ?? 0) - 300) },
        .token("invalid-missing-exp") { $0["exp"] = nil },
        .token("invalid-nonce") { $0["nonce"] = .string(($0["nonce"]?.string ?? "") + "1") },
        .token("invalid-missing-nonce") { $0["nonce"] = nil },
        .forged("invalid-null-alg") { _, token in
            let payload = token.split(separator: ".")[1]
            return Base64URL.encode(Array(#"{"alg":"none","kid":"k1"}"#.utf8)) + ".\(payload)."
        },
        .forged("invalid-alternate-alg") { provider, token in
            let (header, key) = provider.behaviour.withLock { ($0.header, $0.keys[0].json) }
            let payload = try #require(Base64URL.decode(token.split(separator: ".")[1]))
            let secret = try HMACSigningKey(Secret(bytes: key.serializedBytes()))
            return try await JWS.sign(payload, header: header, with: secret)
        },
    ]

    @Test(
        "A client refuses what a module falsifies, keeps nothing of it, and accepts the right answer",
        arguments: modules)
    func refused(_ module: Module) async throws {
        for isBound in [false, true] {
            let provider = try FakeProvider()
            if isBound { provider.change { $0.tokenType = "DPoP" } }
            let right = provider.behaviour.withLock { $0 }
            module.change(provider)
            let manager = isBound ? try await provider.boundSignedIn(KeyRing()) : try await provider.signedIn()
            await #expect(throws: TokenError.like(module.code)) { try await manager.tokens() }
            #expect(try await manager.storedTokens() == nil)
            #expect(provider.sent("/access_token").isEmpty == module.keepsCode)
            // The session is still there, and a server that answers rightly gets it.
            provider.change { now in
                (now.discovery, now.claims, now.location, now.tokenReply) =
                    (right.discovery, right.claims, right.location, right.tokenReply)
            }
            #expect(try await manager.tokens().isBound == isBound)
        }
    }

    @Test("valid-aud-as-array")
    func arrayOfAudiences() async throws {
        let provider = try FakeProvider()
        provider.change { $0.claims = { $0["aud"] = ["bank-app"] } }
        #expect(try await provider.signedIn().tokens().idToken?.subject == "ana")
    }

    @Test("token-endpoint-response-without-expires_in")
    func withoutLifetime() async throws {
        let provider = try FakeProvider()
        provider.change {
            $0.tokenReply = { form in
                guard case .object(var reply) = try await provider.grant(form) else { return nil }
                reply["expires_in"] = nil
                return .json(200, .object(reply))
            }
        }
        let tokens = try await provider.signedIn().tokens()
        #expect(tokens.accessToken == Secret("access-1") && tokens.expiresAt == nil)
    }
}
