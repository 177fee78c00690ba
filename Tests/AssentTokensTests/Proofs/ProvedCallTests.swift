import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

private let bank = "https://api.bank.example"

/// A resource that takes bound tokens with proofs alone.
private final class ProvedBank: Sendable {
    let door: ProofDoor
    let exchanges = Locked<[InMemoryTransport.Exchange]>([])
    /// The only access token that it takes; `nil` takes any.
    let accepts = Locked<String?>(nil)
    /// The scheme of its challenges.
    let scheme: String

    init(_ door: ProofDoor, scheme: String = "DPoP") {
        self.door = door
        self.scheme = scheme
    }

    var sent: [InMemoryTransport.Exchange] { exchanges.withLock { $0 } }

    func transport(
        _ tokens: TokenManager, access: ResourceAccess = .accessToken, origin: String = bank
    ) throws -> AuthenticatingTransport {
        AuthenticatingTransport(
            tokens, resources: [try Origin(origin): access], over: InMemoryTransport { [self] in answer($0) })
    }

    private func answer(_ exchange: InMemoryTransport.Exchange) -> HTTPReply {
        exchanges.withLock { $0.append(exchange) }
        var fields = door.fields
        guard let value = exchange.field("Authorization"), value.hasPrefix("DPoP ") else {
            return .json(401, [:], headers: fields)
        }
        let token = String(value.dropFirst(5))
        var error = door.refusal(of: exchange, token: Secret(token))
        if error == nil, let wanted = accepts.withLock({ $0 }), wanted != token { error = "invalid_token" }
        fields = door.fields
        guard let error else { return .json(200, [:], headers: fields) }
        fields[.wwwAuthenticate] = "\(scheme) error=\"\(error)\", algs=\"ES256 PS256\""
        return .json(401, [:], headers: fields)
    }
}

@Suite("Calls to resources with proofs") struct ProvedCallTests {
    private func signedIn(_ ring: KeyRing = KeyRing()) async throws -> (FakeProvider, TokenManager) {
        let provider = try FakeProvider()
        provider.binds(ProofDoor(provider.clock))
        let manager = try await provider.boundSignedIn(ring)
        _ = try await manager.tokens()
        return (provider, manager)
    }

    private func call(_ method: HTTPRequest.Method = .post, once: Bool = false, url: String = bank) throws -> HTTPCall {
        var call = try HTTPCall(
            method, url: "\(url)/transfers?to=Bob", body: method == .get ? nil : HTTPBody(Array("{}".utf8)))
        call.isSentOnce = once
        return call
    }

    @Test("Each call has the scheme DPoP and a proof of its own, for its method, its URL and its token")
    func proved() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock))
        let transport = try bank.transport(manager)
        for method in [HTTPRequest.Method.get, .post, .delete] {
            #expect(try await transport.send(call(method)).status == 200)
        }
        #expect(bank.sent.allSatisfy { $0.field("Authorization") == "DPoP access-1" })
        #expect(bank.door.seen.count == 3 && Set(bank.door.seen.map(\.jti)).count == 3)
        #expect(Set(bank.door.seen.map(\.thumbprint)) == [try #require(try await manager.tokens().keyThumbprint)])
        // Sent again by somebody else, or for another token, it is worth nothing.
        #expect(bank.door.refusal(of: bank.sent[0], token: Secret("access-1")) == "invalid_dpop_proof")
        #expect(bank.door.refusal(of: bank.sent[1], token: Secret("access-2")) == "invalid_dpop_proof")
    }

    @Test(
        "rs-dpop-auth-scheme-case-insensitivity: where a nonce is wanted the same call goes out once more, of any kind",
        arguments: ["DPoP", "dpop", "DPOP"])
    func nonce(scheme: String) async throws {
        let (provider, manager) = try await signedIn()
        for (method, once) in [(HTTPRequest.Method.get, false), (.post, false), (.post, true), (.delete, true)] {
            let bank = ProvedBank(ProofDoor(provider.clock, nonce: "\(method.rawValue)-\(once)"), scheme: scheme)
            let call = try call(method, once: once)
            #expect(try await bank.transport(manager).send(call).status == 200)
            #expect(bank.sent.count == 2 && bank.sent[0].body == bank.sent[1].body)
            #expect(Set(bank.door.texts).count == 2 && bank.door.seen.map(\.nonce) == ["\(method.rawValue)-\(once)"])
        }
        #expect(provider.sent("/access_token").count == 1)
    }

    @Test(
        "A nonce that is asked for under another scheme than DPoP is the service's answer, which may come after the deed"
    )
    func otherScheme() async throws {
        let (provider, manager) = try await signedIn()
        for method in [HTTPRequest.Method.post, .put, .delete] {
            let bank = ProvedBank(ProofDoor(provider.clock, nonce: method.rawValue), scheme: "Bearer")
            #expect(try await bank.transport(manager).send(call(method)).status == 401)
            #expect(bank.sent.count == 1)
        }
    }

    @Test("A nonce of a successful reply is in the next proof, and a newer one replaces it")
    func newest() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock, nonce: "first", renews: true))
        let transport = try bank.transport(manager)
        for _ in 0..<4 { #expect(try await transport.send(call()).status == 200) }
        #expect(bank.sent.count == 5)
        #expect(bank.door.seen.map(\.nonce) == ["first", "r-2", "r-3", "r-4"])
    }

    @Test("A resource that is content with no nonce is asked twice, and no token is renewed for it")
    func endless() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock, isNeverContent: true))
        let transport = try bank.transport(manager)
        for once in [true, false] { #expect(try await transport.send(call(once: once)).status == 401) }
        #expect(bank.sent.count == 4 && Set(bank.door.texts).count == 4)
        #expect(provider.sent("/access_token").count == 1)
    }

    @Test("Content that can be read once is not sent again; the next call has the nonce")
    func stream() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock, nonce: "n"))
        let transport = try bank.transport(manager)
        var call = try call()
        call.body = HTTPBody(length: 2, isReplayable: false) {
            let rest = Locked<[UInt8]?>(Array("{}".utf8))
            return { rest.withLock { $0.take() } }
        }
        #expect(try await transport.send(call).status == 401)
        #expect(bank.sent.count == 1)
        #expect(try await transport.send(self.call()).status == 200)
        #expect(bank.sent.count == 2 && bank.door.seen.map(\.nonce) == ["n"])
    }

    @Test(
        "A nonce of the authorization server takes no resource's place behind the same origin, so a stream goes out once"
    )
    func sharedOrigin() async throws {
        let provider = try FakeProvider()
        let server = ProofDoor(provider.clock, nonce: "server", renews: true)
        provider.binds(server)
        let manager = try await provider.boundSignedIn(KeyRing())
        let bank = ProvedBank(ProofDoor(provider.clock, nonce: "resource"))
        let origin = "https://am.example.com"
        let transport = try bank.transport(manager, origin: origin)
        #expect(try await transport.send(call(.get, url: origin)).status == 200)
        #expect(bank.sent.count == 2)
        provider.clock.advance(by: 601)
        for _ in 0..<2 {
            var call = try call(url: origin)
            call.body = HTTPBody(length: 2, isReplayable: false) {
                let rest = Locked<[UInt8]?>(Array("{}".utf8))
                return { rest.withLock { $0.take() } }
            }
            #expect(try await transport.send(call).status == 200)
            provider.clock.advance(by: 601)
        }
        #expect(bank.sent.count == 4 && bank.door.seen.allSatisfy { $0.nonce == "resource" })
        #expect(server.asked == 4 && provider.tokenRequests("refresh_token").count == 2)
        // The userinfo endpoint is the authorization server's.
        provider.change {
            $0.other = { exchange in
                let refusal = server.refusal(of: exchange, token: Secret("access-4"))
                return refusal == nil ? .json(200, ["sub": "ana"]) : .json(401, [:])
            }
        }
        #expect(try await manager.userInfo().sub == "ana")
        #expect(server.asked == 6)
    }

    @Test("refresh-token-test: a token that the resource refuses is renewed, and its successor has its own proof")
    func refused() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock, nonce: "n", renews: true))
        bank.accepts.withLock { $0 = "access-2" }
        #expect(try await bank.transport(manager).send(call()).status == 200)
        // Nonce, token refused, done.
        #expect(
            bank.sent.map { $0.field("Authorization") } == ["DPoP access-1", "DPoP access-1", "DPoP access-2"])
        #expect(Set(bank.door.texts).count == 3 && Set(bank.door.seen.map(\.thumbprint)).count == 1)
        #expect(provider.tokenRequests("refresh_token").count == 1)
        // A call that is sent once is not sent with another token by itself.
        bank.accepts.withLock { $0 = "access-3" }
        #expect(try await bank.transport(manager).send(call(once: true)).status == 401)
        #expect(bank.sent.count == 4)
    }

    @Test("A refused proof is the answer, and no reason to renew the token")
    func wrongClock() async throws {
        let (provider, manager) = try await signedIn()
        let ahead = ManualClock()
        ahead.advance(by: 3600)
        let bank = ProvedBank(ProofDoor(ahead))
        #expect(try await bank.transport(manager).send(call(.get)).status == 401)
        #expect(bank.sent.count == 1 && provider.sent("/access_token").count == 1)
    }

    @Test("Another origin gets neither token nor proof, whatever it answers")
    func otherOrigin() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock, nonce: "n"))
        let transport = try bank.transport(manager, access: .both)
        for url in ["https://bank.example", "https://api.bank.example:8443", "http://api.bank.example"] {
            #expect(try await transport.send(call(url: url)).status == 401)
        }
        #expect(bank.sent.count == 3)
        #expect(bank.sent.allSatisfy { $0.field("Authorization") == nil && $0.field("DPoP") == nil })
    }

    @Test("A DPoP that the call brings itself is refused; beside an Authorization of its own both are left alone")
    func own() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock))
        let transport = try bank.transport(manager)
        let name = try #require(HTTPField.Name("dpop"))
        var call = try call()
        call.request.headerFields[name] = "mine"
        await #expect(throws: TokenError.like(.unprovable)) { try await transport.send(call) }
        #expect(bank.sent.isEmpty)
        call.request.headerFields[.authorization] = "Basic x"
        #expect(try await transport.send(call).status == 401)
        #expect(bank.sent.map { $0.field("DPoP") } == ["mine"] && bank.sent[0].field("Authorization") == "Basic x")
    }

    @Test("A URL that no proof can name is refused before anything is sent", arguments: ["/a/../b", "/./a", "/%zz"])
    func path(path: String) async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock))
        var call = try call(.get)
        call.request.path = path
        await #expect(throws: TokenError.like(.unprovable)) { try await bank.transport(manager).send(call) }
        #expect(bank.sent.isEmpty)
    }

    @Test("Concurrent calls have proofs of their own, also while the nonce changes")
    func concurrent() async throws {
        let (provider, manager) = try await signedIn()
        let bank = ProvedBank(ProofDoor(provider.clock, nonce: "n"))
        let transport = try bank.transport(manager)
        let call = try call()
        let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<200 { group.addTask { try await transport.send(call).status } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(statuses.allSatisfy { $0 == 200 } && bank.door.seen.count == 200)
        #expect(Set(bank.door.texts).count == bank.door.asked && bank.door.asked <= 400)
    }

    @Test("A key that is lost while it signs: the call is not sent, and the next one has tokens of a new key")
    func lostWhileSigning() async throws {
        let ring = KeyRing()
        let (provider, manager) = try await signedIn(ring)
        let bank = ProvedBank(ProofDoor(provider.clock))
        let transport = try bank.transport(manager)
        ring.change { state in
            state.signingFailure = KeyProviderError(.keyLost, "It is gone.")
            state.keys = [:]
        }
        let error = await #expect(throws: TokenError.self) { try await transport.send(call()) }
        #expect(error?.signInReason == .keyLost && bank.sent.isEmpty)
        ring.change { $0.signingFailure = nil }
        // For a second what was read of the store is believed.
        provider.clock.advance(by: 2)
        #expect(try await transport.send(call()).status == 200)
        #expect(bank.sent.map { $0.field("Authorization") } == ["DPoP access-2"] && ring.made == 2)
    }

    @Test("A credential for another program is good for its request alone, with the nonce that is given")
    func credential() async throws {
        let (provider, manager) = try await signedIn()
        let url = "\(bank)/accounts?all=1"
        let credential = try await manager.credential(for: .get, url: url, nonce: "n")
        #expect(credential.authorization == Secret("DPoP access-1"))
        let proof = try #require(credential.proof).reveal()
        let token = Secret("access-1")
        let verified = try DPoPProof.verify(
            proof, method: "GET", uri: "\(bank)/accounts", accessToken: token, nonces: ["n"], clock: provider.clock)
        #expect(verified.thumbprint == (try await manager.tokens().keyThumbprint))
        #expect(throws: JOSEError.self) {
            try DPoPProof.verify(proof, method: "POST", uri: url, accessToken: token, clock: provider.clock)
        }
        let bearer = try FakeProvider()
        let plain = try await bearer.signedIn().credential(for: .get, url: url)
        #expect(plain.authorization == Secret("Bearer access-1") && plain.proof == nil)
    }
}
