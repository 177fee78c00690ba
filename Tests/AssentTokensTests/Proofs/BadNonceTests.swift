import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

private let bank = "https://api.bank.example"

/// A resource that gives whatever it likes as a nonce, and notes the nonces of the proofs that it gets.
private final class BadBank: Sendable {
    struct Reply: Sendable {
        var status = 401
        var nonces: [String] = []
    }

    let nonces = Locked<[String?]>([])
    private let reply: Locked<Reply>

    init(_ reply: Reply) { self.reply = Locked(reply) }

    func answers(_ new: Reply) { reply.withLock { $0 = new } }

    func transport(_ tokens: TokenManager) throws -> AuthenticatingTransport {
        AuthenticatingTransport(
            tokens, resources: [try Origin(bank): .accessToken], over: InMemoryTransport { [self] in try answer($0) })
    }

    private func answer(_ exchange: InMemoryTransport.Exchange) throws -> HTTPReply {
        let claims = try JWTClaims(payload: UnverifiedJWS.parse(exchange.field("DPoP") ?? "").payload)
        nonces.withLock { $0.append(claims["nonce"]?.string) }
        let (now, name) = (reply.withLock { $0 }, try #require(HTTPField.Name("DPoP-Nonce")))
        var fields = HTTPFields()
        for value in now.nonces { fields.append(HTTPField(name: name, value: value)) }
        if now.status == 401 { fields[.wwwAuthenticate] = #"DPoP error="use_dpop_nonce", algs="ES256""# }
        return .json(now.status, [:], headers: fields)
    }
}

@Suite("Nonces of resources that are not as they must be") struct BadNonceTests {
    private static let unusable: [[String]] = [
        [], [""], ["a b"], ["a\"b"], ["a\\b"], ["ä"], ["one", "two"], ["same", "same"],
        [String(repeating: "n", count: 513)], [String(repeating: "n", count: 64 << 10)],
    ]

    private func signedIn() async throws -> (FakeProvider, TokenManager) {
        let provider = try FakeProvider()
        provider.binds(ProofDoor(provider.clock))
        let manager = try await provider.boundSignedIn(KeyRing())
        _ = try await manager.tokens()
        return (provider, manager)
    }

    private func call(once: Bool) throws -> HTTPCall {
        var call = try HTTPCall(.post, url: "\(bank)/transfers", body: HTTPBody(Array("{}".utf8)))
        call.isSentOnce = once
        return call
    }

    @Test(
        "A refusal without a usable nonce is the answer: nothing is sent again, and no token is renewed",
        arguments: unusable)
    func refusal(nonces: [String]) async throws {
        let (provider, manager) = try await signedIn()
        let resource = BadBank(.init(nonces: nonces))
        let transport = try resource.transport(manager)
        for once in [true, false] { #expect(try await transport.send(call(once: once)).status == 401) }
        #expect(resource.nonces.withLock { $0 } == [nil, nil])
        #expect(provider.sent("/access_token").count == 1)
    }

    @Test("A successful reply with an unusable nonce leaves the one before in use", arguments: unusable)
    func success(nonces: [String]) async throws {
        let (_, manager) = try await signedIn()
        let resource = BadBank(.init(status: 200, nonces: ["good"]))
        let transport = try resource.transport(manager)
        #expect(try await transport.send(call(once: false)).status == 200)
        resource.answers(.init(status: 200, nonces: nonces))
        for _ in 0..<2 { #expect(try await transport.send(call(once: false)).status == 200) }
        #expect(resource.nonces.withLock { $0 } == [nil, "good", "good"])
    }

    @Test("The longest nonce that is taken has 512 bytes")
    func longest() async throws {
        let (_, manager) = try await signedIn()
        let nonce = String(repeating: "n", count: 512)
        let resource = BadBank(.init(nonces: [nonce]))
        let transport = try resource.transport(manager)
        #expect(try await transport.send(call(once: true)).status == 401)
        #expect(resource.nonces.withLock { $0 } == [nil, nonce])
    }

    @Test("A resource that repeats a nonce which it has just refused is not asked a third time")
    func repeated() async throws {
        let (_, manager) = try await signedIn()
        let resource = BadBank(.init(nonces: ["n"]))
        let transport = try resource.transport(manager)
        #expect(try await transport.send(call(once: false)).status == 401)
        #expect(resource.nonces.withLock { $0 } == [nil, "n"])
        // It is known now, so its second refusal tells nothing new.
        #expect(try await transport.send(call(once: false)).status == 401)
        #expect(resource.nonces.withLock { $0 } == [nil, "n", "n"])
    }
}
