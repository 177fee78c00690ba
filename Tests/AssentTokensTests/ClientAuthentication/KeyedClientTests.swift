import AssentCore
import AssentJOSE
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Testing

@Suite("A client that authenticates by a key (private_key_jwt)") struct KeyedClientTests {
    private let clock = ManualClock()

    /// A provider that knows the key called `bank` of a ring.
    private func known() async throws -> (FakeProvider, KeyRing, ClientDoor) {
        let provider = try FakeProvider(clock: clock)
        let ring = KeyRing()
        let door = ClientDoor(try await ClientKey.make(named: "bank", at: ring).keySet, clock: clock)
        provider.authenticates(by: door)
        return (provider, ring, door)
    }

    @Test("Codes, refreshes and revocations have an assertion each, with the claims of the standard and nothing else")
    func everywhere() async throws {
        let (provider, ring, door) = try await known()
        let manager = try await provider.clientSignedIn(ring)
        _ = try await manager.tokens()
        clock.advance(by: 601)
        _ = try await manager.tokens()
        #expect(await manager.signOut().isComplete)
        let kinds = (provider.sent("/access_token") + provider.sent("/token/revoke")).map {
            $0.form["grant_type"] ?? $0.form["token_type_hint"]
        }
        #expect(kinds == ["authorization_code", "refresh_token", "refresh_token", "access_token"])
        #expect(door.taken.count == 4 && Set(door.taken.map(\.jti)).count == 4)
        for claims in door.taken {
            let (iat, exp) = (try #require(claims["iat"]?.integer), try #require(claims["exp"]?.integer))
            #expect(exp - iat == 60 && claims.object.members.count == 6)
            #expect(claims.jti.map { $0.utf8.count >= 22 } == true)
        }
        #expect(door.taken.first?["iat"]?.integer == clock.epochSeconds - 601)
        let key = try await ClientKey.find(named: "bank", at: ring)
        for text in door.texts {
            let message = try UnverifiedJWS.parse(text)
            #expect(message.keyID == key.publicKey.thumbprint && message.algorithm == .es256)
            #expect(message.header["jwk"] == nil)
        }
    }

    @Test("Nowhere else does an assertion go: not into the browser, not to resources of the provider")
    func nowhereElse() async throws {
        let (provider, ring, door) = try await known()
        let manager = try await provider.clientSignedIn(ring)
        _ = try await manager.tokens()
        provider.change { $0.other = { _ in .json(200, ["sub": "ana"]) } }
        _ = try await manager.userInfo()
        let exchanges = provider.exchanges.withLock { $0 }
        let carriers = exchanges.filter { exchange in
            let fields = exchange.request.headerFields.map(\.value).joined()
            let text = exchange.text + (exchange.request.url ?? "") + fields
            return text.contains("client_assertion") || door.texts.contains { text.contains($0) }
        }
        #expect(carriers.map { URLText.withoutQuery($0.request.url ?? "") } == [tokenEndpoint])
        #expect(provider.sent("/userinfo").count == 1)
    }

    @Test("A request that goes out again for a nonce has another assertion")
    func nonce() async throws {
        let (provider, ring, door) = try await known()
        let proofs = ProofDoor(clock, nonce: "n")
        provider.authenticates(by: door, proofs: proofs)
        let manager = try await provider.clientSignedIn(ring) { $0.dpop = .on(keys: ring) }
        #expect(try await manager.tokens().isBound)
        let codes = provider.tokenRequests("authorization_code")
        #expect(codes.count == 2 && codes[0].form["code"] == codes[1].form["code"])
        #expect(door.taken.count == 2 && Set(door.texts).count == 2 && Set(door.taken.map(\.jti)).count == 2)
        // The key of the tokens and that of the client are two.
        let kid = try await kid(ring)
        #expect(ring.names.count == 2 && proofs.seen.count == 1 && proofs.seen.allSatisfy { $0.thumbprint != kid })
    }

    @Test("A refresh without an answer goes out again with another assertion, and the same refresh token")
    func retry() async throws {
        let (provider, ring, door) = try await known()
        let manager = try await provider.clientSignedIn(ring)
        _ = try await manager.tokens()
        let good = try #require(provider.behaviour.withLock { $0.tokenReply })
        provider.change { behaviour in
            behaviour.tokenReply = { form in
                _ = door.accepts(form)
                throw HTTPTransportError(.timedOut, "no answer")
            }
        }
        clock.advance(by: 601)
        await #expect(throws: TokenError.like(.transport)) { try await manager.tokens() }
        provider.change { $0.tokenReply = good }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        let refreshes = provider.tokenRequests("refresh_token")
        #expect(refreshes.count == 2 && Set(refreshes.map { $0.form["refresh_token"] }).count == 1)
        #expect(door.taken.count == 3 && Set(door.taken.map(\.jti)).count == 3)
    }

    @Test("Managers that share a key provider are one client by one key, and never make another")
    func shared() async throws {
        let (provider, ring, door) = try await known()
        let first = try await provider.clientSignedIn(ring)
        let managers = try (0..<4).map { _ in
            try provider.manager { $0.clientAuthentication = .privateKeyJWT(keys: ring, named: "bank") }
        }
        _ = try await first.tokens()
        for manager in managers {
            clock.advance(by: 601)
            _ = try await manager.tokens()
        }
        #expect(door.taken.count == 5 && ring.made == 1 && ring.names == ["client.bank"])
        #expect(Set(try door.texts.map { try UnverifiedJWS.parse($0).keyID }) == [try await kid(ring)])
    }

    @Test("An assertion stands for this client at this server alone: flipped, cut or by another key it is refused")
    func forged() async throws {
        let (provider, ring, door) = try await known()
        _ = try await provider.clientSignedIn(ring).tokens()
        let form = try #require(provider.sent("/access_token").first).form
        let text = try #require(form["client_assertion"])
        func sent(_ assertion: String) -> FormItems {
            var other = FormItems()
            for item in form.items where item.name != "client_assertion" { other.append(item.name, item.value) }
            other.append("client_assertion", assertion)
            return other
        }
        let fresh = ClientDoor(door.state.withLock { $0.keys }, clock: clock)
        #expect(fresh.accepts(sent(text)) && !fresh.accepts(sent(text)))
        let parts = text.split(separator: ".").map(String.init)
        let payload = try #require(Base64URL.decode(parts[1]))
        let changed = String(decoding: payload, as: UTF8.self).replacing("bank-app", with: "gold-app")
        for forged in [
            "\(parts[0]).\(Base64URL.encode(Array(changed.utf8))).\(parts[2])", "\(parts[0]).\(parts[1]).",
            String(text.dropLast(4)), "\(parts[0]).\(parts[1]).\(Base64URL.encode([UInt8](repeating: 0, count: 64)))",
        ] {
            #expect(!fresh.accepts(sent(forged)))
        }
        let stranger = KeyRing()
        let foreign = try await ClientKey.make(named: "bank", at: stranger)
        #expect(!ClientDoor(foreign.keySet, clock: clock).accepts(sent(text)))
        clock.advance(by: 61)
        #expect(!ClientDoor(door.state.withLock { $0.keys }, clock: clock).accepts(sent(text)))
    }

    private func kid(_ ring: KeyRing) async throws -> String {
        try await ClientKey.find(named: "bank", at: ring).publicKey.thumbprint
    }
}
