import AssentAuthorization
import AssentCore
import AssentJourney
import AssentTesting
import AssentTokens
import Foundation
import HTTPTypes
import Testing

@Suite struct CredentialTests {
    @Test("An access token is attached, and renewed between advice and repetition")
    func token() async throws {
        let world = World()
        let reply = try await world.client(.accessToken).send(try post()) { approval in
            world.clock.advance(by: 700)
            return agree(&approval)
        }
        #expect(reply.status == 201)
        #expect(world.calls.map { $0.field("Authorization") } == ["Bearer access-1", "Bearer access-2"])
        #expect(world.calls.allSatisfy { $0.field("Cookie") == nil && $0.field("iPlanetDirectoryPro") == nil })
    }

    @Test("A safe call that gets 401 is sent once more with a new token; an unsafe one only renews it")
    func refusedToken() async throws {
        let world = World()
        world.change {
            $0.gateway = { $0.field("Authorization") == "Bearer access-1" ? .json(401, [:]) : .json(200, [:]) }
        }
        let client = try await world.client(.accessToken)
        #expect(try await client.send(try post()).status == 401)
        #expect(world.calls.count == 1)
        #expect(try await client.send(try get()).status == 200)
        #expect(world.calls.map { $0.field("Authorization") } == ["Bearer access-1", "Bearer access-2"])
        world.change { $0.gateway = { _ in .json(401, [:]) } }
        #expect(try await client.send(try get()).status == 401)
        #expect(world.calls.count == 4)
    }

    @Test("A safe call whose body can be read once is not repeated when its token was refused")
    func refusedTokenOfStream() async throws {
        let world = World()
        world.change { $0.gateway = { _ in .json(401, [:]) } }
        let client = try await world.client(.accessToken)
        var call = try get()
        let readings = Locked(0)
        call.body = HTTPBody(length: 2, isReplayable: false) {
            readings.withLock { $0 += 1 }
            let rest = Locked<[UInt8]?>(Array("{}".utf8))
            return { rest.withLock { $0.take() } }
        }
        #expect(try await client.send(call).status == 401)
        #expect(world.calls.map { $0.field("Authorization") } == ["Bearer access-1"])
        #expect(readings.withLock { $0 } <= 1)
        // Its own try: whether it can be read again is all that differs.
        call.body = HTTPBody("{}")
        #expect(try await client.send(call).status == 401)
        #expect(world.calls.map { $0.field("Authorization") }.suffix(2) == ["Bearer access-2", "Bearer access-3"])
    }

    @Test("An approved request whose token was refused was not carried out, and may be sent with a new token")
    func refusedTokenOfApproved() async throws {
        let world = World()
        let refused = Locked("Bearer access-1")
        world.change {
            $0.gateway = { exchange in
                let isRefused = exchange.field("Authorization") == refused.withLock { $0 }
                guard exchange.url.contains("_txid"), isRefused else { return nil }
                return .json(401, [:], headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#])
            }
        }
        let client = try await world.client(.accessToken)
        let error = await #expect(throws: AuthorizationError.self) { try await client.send(try post(), approve: agree) }
        #expect(error?.code == .notSent && error?.suggestion?.isEmpty == false && world.calls.count == 2)
        let pending = try #require(error?.pending)
        #expect(try await client.ask(try post(), about: pending).status == 201)
        #expect(world.calls.last?.field("Authorization") == "Bearer access-2" && world.steps.count == 2)
    }

    @Test("An advice is no reason to renew a token")
    func adviceKeepsToken() async throws {
        let world = World()
        world.change { $0.statement = { $0["contentType"] = nil } }
        _ = try await world.client(.accessToken).send(try get(), approve: agree)
        #expect(Set(world.calls.map { $0.field("Authorization") }) == ["Bearer access-1"])
    }

    @Test("The app's own Authorization is left alone, its cookies are kept")
    func own() async throws {
        let world = World()
        world.change { $0.gateway = { _ in .json(200, [:]) } }
        var call = try get()
        call.request.headerFields[.authorization] = "Basic x"
        call.request.headerFields[.cookie] = "a=b"
        _ = try await world.client(.both).send(call)
        #expect(world.calls[0].field("Authorization") == "Basic x")
        #expect(world.calls[0].field("Cookie") == "a=b; iPlanetDirectoryPro=SESS")
    }

    @Test(
        "A configuration that names no proper origin is refused",
        arguments: [
            "api.bank.example", "http://api.bank.example", "https://api.bank.example/path",
            "https://u@api.bank.example",
            "", "*",
        ])
    func configuration(origin: String) {
        #expect(throws: AuthorizationError.like(.invalidConfiguration)) {
            try AuthorizationConfiguration(resources: [origin: .session])
        }
        #expect(throws: AuthorizationError.like(.invalidConfiguration)) {
            try AuthorizationConfiguration(resources: [api: .session, "https://API.bank.example:443": .both])
        }
    }
}
