import AssentCore
import AssentJOSE
import AssentTesting
import Testing

@testable import AssentServer

/// Proofs that no library makes: what reads them must not trust what they say of themselves.
extension DPoPNegativeTests {
    static let malformed: [Case] = [
        Case("HS256 under the public key") { attempt in
            let key = attempt.key.key.publicKeyInfo
            return attempt.fields(try await ProofKey.authenticated(attempt.proof(), by: key))
        },
        Case("ES512") { $0.fields(try await ProofKey(.es512).proof($0.subject)) },
        .header("an algorithm that is not the key's") { $0["alg"] = "ES384" },
        .jwk("a jwk that is an array") { $0 = [] },
        .jwk("a jwk with a member twice") { jwk in
            jwk = .object(JSONObject((jwk.object?.members ?? []) + [.init(name: "kty", value: "EC")]))
        },
        .jwk("a point with a coordinate too few") { $0 = Self.without("y", $0) },
        .jwk("a point at zero") { jwk in
            let zero = JSONValue.string(Base64URL.encode([UInt8](repeating: 0, count: 32)))
            jwk = ["kty": "EC", "crv": "P-256", "x": zero, "y": zero]
        },
        Case("a private member of an RSA key in jwk") { attempt in
            let proof = try await ProofKey(.ps256).proof(attempt.subject) { header in
                var jwk = header["jwk"]?.object ?? JSONObject()
                jwk["p"] = "AQAB"
                header["jwk"] = .object(jwk)
            }
            return attempt.fields(proof)
        },
        .jwk("a jwk of 64 KiB") { jwk in
            var object = jwk.object ?? JSONObject()
            object["x5c"] = [.string(String(repeating: "A", count: 45 << 10))]
            jwk = .object(object)
        },
        .header("crit with nothing in it") { $0["crit"] = [] },
        .header("an unencoded payload") { header in
            header["b64"] = false
            header["crit"] = ["b64"]
        },
        .claims("a jti that is too long") { $0["jti"] = .string(String(repeating: "a", count: 513)) },
        .claims("a jti that is a number") { $0["jti"] = 1 },
        .claims("a claim twice") { $0 = JSONObject($0.members + [.init(name: "jti", value: "another")]) },
        .claims("iat as text") { $0["iat"] = .string("\($0["iat"]?.integer ?? 0)") },
        .claims("iat beyond any date") { $0["iat"] = .number(JSONNumber(1e300) ?? JSONNumber(0)) },
        .claims("an empty ath") { $0["ath"] = "" },
        .claims("an ath with padding") { $0["ath"] = .string(($0["ath"]?.string ?? "") + "=") },
        .claims("a nonce that is a list") { $0["nonce"] = .array([$0["nonce"] ?? .null]) },
        .claims("a nonce of 64 KiB") { $0["nonce"] = .string(String(repeating: "a", count: 46 << 10)) },
        .claims("htm as a list") { $0["htm"] = ["GET"] },
        .htu("an empty htu") { _ in "" },
        .htu("htu with a path alone") { "/" + $0.split(separator: "/").dropFirst(2).joined(separator: "/") },
        .htu("htu with a dot as %2e") { text in
            text.lastIndex(of: "/").map { "\(text[..<$0])/%2e\(text[$0...])" } ?? text
        },
        .htu("htu with a backslash") { $0.replacing("://", with: ":\\\\") },
        Case("two proofs in one field") { attempt in
            let proofs = [try await attempt.proof(), try await attempt.proof()]
            return attempt.fields(proofs.joined(separator: ", "))
        },
        Case("a proof with a part too many") { $0.fields(try await $0.proof() + ".AAAA") },
        Case("a proof without its signature") { attempt in
            let proof = try await attempt.proof()
            return attempt.fields(proof.split(separator: ".").dropLast().joined(separator: ".") + ".")
        },
        Case("a proof that is cut off") { $0.fields(String(try await $0.proof().dropLast(2))) },
    ]

    @Test("Without a nonce iat is accepted 60 seconds back and 30 ahead, and not a second more")
    func windowOfTime() async throws {
        try await ServerFixture.run { fixture in
            // Since the start so much time has passed that a proof needs no nonce.
            fixture.clock.advance(by: 200)
            let session = try await fixture.session()
            let key = try ProofKey()
            for door in ResourceDoor.allCases {
                let token = try await door.boundToken(fixture, session: session, to: key)
                let url = door.url(fixture)
                for (seconds, isAccepted) in [(-60, true), (-61, false), (30, true), (31, false)] as [(Int64, Bool)] {
                    var subject = fixture.subject("GET", url, token: token)
                    subject.nonce = nil
                    subject.issuedAt += seconds
                    let answer = try await fixture.send(
                        "GET", url, ServerFixture.dpop(token, try await key.proof(subject)))
                    let expected = isAccepted ? "yes" : "401 `DPoP` `use_dpop_nonce`"
                    #expect(try door.outcome(answer) == expected, "\(door), \(seconds): \(answer.text)")
                }
            }
        }
    }

    private static func without(_ name: String, _ value: JSONValue) -> JSONValue {
        var object = value.object ?? JSONObject()
        object[name] = nil
        return .object(object)
    }
}

extension DPoPNegativeTests.Case {
    /// A proof whose header has another `jwk`, made from the right one.
    fileprivate static func jwk(_ name: String, _ change: @escaping @Sendable (inout JSONValue) -> Void) -> Self {
        header(name) { header in
            var jwk = header["jwk"] ?? .null
            change(&jwk)
            header["jwk"] = jwk
        }
    }
}

extension ProofKey {
    /// A proof with an authentication code in place of its signature, under bytes that everybody knows.
    static func authenticated(_ proof: String, by key: [UInt8]) async throws -> String {
        let parts = proof.split(separator: ".").map(String.init)
        let bytes = try #require(Base64URL.decode(parts[0]))
        var header = try #require(JSONValue.parse(bytes).object)
        header["alg"] = "HS256"
        let input = Base64URL.encode(JSONValue.object(header).serializedBytes()) + "." + parts[1]
        let code = try await HMACSigningKey(Secret(bytes: key)).signature(for: Array(input.utf8))
        return input + "." + Base64URL.encode(code)
    }
}
