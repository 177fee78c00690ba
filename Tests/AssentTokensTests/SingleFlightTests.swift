import AssentCore
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import Testing

@testable import AssentTokens

/// One renewal for however many want a token. These tests also run under the thread sanitizer.
@Suite("One renewal for all")
struct SingleFlightTests {
    /// A provider whose answers to a refresh wait until they are let go.
    private final class Gate: Sendable {
        private let state = Locked<(isOpen: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

        /// Whether an answer waits here.
        var isWaitedAt: Bool { state.withLock { !$0.waiting.isEmpty } }

        func pass() async {
            await withCheckedContinuation { continuation in
                let isOpen = state.withLock { state in
                    if !state.isOpen { state.waiting.append(continuation) }
                    return state.isOpen
                }
                if isOpen { continuation.resume() }
            }
        }

        func open() {
            let waiting = state.withLock { state in
                state.isOpen = true
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }
    }

    /// A store of which the next lease is free as soon as it is given back, while who gave it back goes on only when a
    /// gate is opened.
    private struct LingeringStore: SecretStore {
        let store: any SecretStore
        let gate: Gate
        let lingers = Locked(false)

        private struct Lease: SecretLease {
            let lease: any SecretLease
            let store: LingeringStore

            func release() async {
                await lease.release()
                let isNext = store.lingers.withLock { lingers in
                    defer { lingers = false }
                    return lingers
                }
                if isNext { await store.gate.pass() }
            }
        }

        func value(_ name: String) async throws -> StoredSecret? { try await store.value(name) }
        func update(_ name: String, to value: Secret?, expected: ExpectedVersion) async throws -> UInt64 {
            try await store.update(name, to: value, expected: expected)
        }
        func names() async throws -> [String] { try await store.names() }
        func removeAll() async throws { try await store.removeAll() }
        func lease(_ name: String, deadline: Date) async throws -> any SecretLease {
            Lease(lease: try await store.lease(name, deadline: deadline), store: self)
        }
    }

    private func expired(after seconds: TimeInterval = 601) async throws -> (FakeProvider, TokenManager, Gate) {
        let provider = try FakeProvider()
        let manager = try await provider.signedIn()
        _ = try await manager.tokens()
        provider.clock.advance(by: seconds)
        let gate = Gate()
        provider.change {
            $0.tokenReply = { _ in
                await gate.pass()
                return nil
            }
        }
        return (provider, manager, gate)
    }

    /// A manager whose store refuses to change from when the server has answered such a grant.
    private func refusing(
        _ provider: FakeProvider, after grantType: String
    ) throws -> (TokenManager, RefusingStore) {
        let store = RefusingStore(provider.store)
        let manager = TokenManager(
            configuration: try TokenConfiguration(
                issuer: issuer, clientID: "bank-app", redirectURI: redirectURI, scopes: ["openid", "accounts"]),
            transport: InMemoryTransport { exchange in
                let reply = try await provider.answer(exchange)
                if exchange.form["grant_type"] == grantType { store.refuses.withLock { $0 = true } }
                return reply
            }, store: store, clock: provider.clock)
        return (manager, store)
    }

    private func refreshes(_ provider: FakeProvider) -> Int {
        provider.sent("/access_token").count { $0.form["grant_type"] == "refresh_token" }
    }

    private func until(_ condition: () -> Bool) async {
        while !condition(), !Task.isCancelled { await Task.yield() }
    }

    @Test("A thousand tasks of eight managers on one vault of files make one request")
    func vaults() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "assent-\(SystemRandom().uuid())")
        defer { try? FileManager.default.removeItem(at: directory) }
        let provider = try FakeProvider(clock: ManualClock(Date()))
        let configuration = try TokenConfiguration(
            issuer: issuer, clientID: "bank-app", redirectURI: redirectURI, scopes: ["openid", "accounts"])
        let transport = InMemoryTransport { try await provider.answer($0) }
        var managers: [TokenManager] = []
        for _ in 0..<8 {
            let vault = try await FileVault.open(
                directory.appending(path: "vault"),
                keys: .software(SoftwareKeyProvider(unprotectedFile: directory.appending(path: "key"))),
                lockTimeout: 300)
            managers.append(
                TokenManager(configuration: configuration, transport: transport, store: vault, clock: provider.clock))
        }
        try await managers[0].install(Session(token: Secret("SESS")))
        _ = try await managers[0].tokens()
        provider.clock.advance(by: 601)
        try await withThrowingTaskGroup(of: TokenSet.self) { [managers] group in
            for index in 0..<1000 { group.addTask { try await managers[index % 8].tokens() } }
            for try await tokens in group { #expect(tokens.accessToken == Secret("access-2")) }
        }
        #expect(refreshes(provider) == 1)
    }

    @Test("Who is cancelled stops waiting at once, and the others get their token")
    func cancelledWaiter() async throws {
        let (provider, manager, gate) = try await expired()
        let patient = (0..<20).map { _ in Task { try await manager.tokens() } }
        let impatient = (0..<20).map { _ in Task { try await manager.tokens() } }
        await until { refreshes(provider) == 1 }
        for task in impatient { task.cancel() }
        // The request is still under way: nobody has let it go.
        for task in impatient { await #expect(throws: CancellationError.self) { try await task.value } }
        gate.open()
        for task in patient { #expect(try await task.value.accessToken == Secret("access-2")) }
        #expect(refreshes(provider) == 1)
    }

    @Test("When everybody is cancelled the renewal ends nonetheless, and is stored")
    func everybodyCancelled() async throws {
        let (provider, manager, gate) = try await expired()
        let task = Task { try await manager.tokens() }
        await until { refreshes(provider) == 1 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        gate.open()
        #expect(try await provider.manager().tokens().accessToken == Secret("access-2"))
        #expect(refreshes(provider) == 1)
    }

    @Test("What each of those who have waited does afterwards is done without them when everybody is cancelled")
    func afterwards() async throws {
        let (flight, gate, count) = (SingleFlight<Int>(), Gate(), Locked(0))
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (done, tell) = AsyncStream.makeStream(of: Void.self)
        let wait: @Sendable () async throws -> Int = {
            try await flight.joinOrStart {
                begin.yield()
                await gate.pass()
                return 1
            } afterwards: {
                count.withLock { $0 += 1 }
                tell.yield()
            }
        }
        let task = Task { try await wait() }
        for await _ in begun { break }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(count.withLock { $0 } == 0)
        gate.open()
        for await _ in done { break }
        #expect(count.withLock { $0 } == 1)
        #expect(try await wait() == 1)
        #expect(count.withLock { $0 } == 2)
    }

    @Test("What is to be done afterwards is done also where the work ends as cancelled and its caller is not")
    func cancelledWork() async throws {
        let (flight, count) = (SingleFlight<Int>(), Locked(0))
        let wait: @Sendable () async throws -> Int = {
            try await flight.joinOrStart {
                throw CancellationError()
            } afterwards: {
                count.withLock { $0 += 1 }
            }
        }
        await #expect(throws: CancellationError.self) { try await wait() }
        #expect(count.withLock { $0 } == 1)
    }

    @Test("Whoever was cancelled before gets nothing and asks nobody")
    func cancelledBefore() async throws {
        let (provider, manager, gate) = try await expired()
        gate.open()
        let task = Task {
            while !Task.isCancelled { await Task.yield() }
            return try await manager.tokens()
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        _ = try await manager.tokens()
        #expect(refreshes(provider) == 1)
    }

    @Test(
        "While somebody else holds the lease: a token that is good is used, one that is over makes an error that may pass",
        arguments: [(570.0, true), (601.0, false)])
    func leaseIsHeld(age: TimeInterval, isUsed: Bool) async throws {
        let (provider, first, gate) = try await expired(after: age)
        gate.open()
        var configuration = first.configuration
        configuration.patience = 10
        let manager = TokenManager(
            configuration: configuration, transport: InMemoryTransport { try await provider.answer($0) },
            store: provider.store, clock: provider.clock)
        let names = await provider.store.names()
        let name = try #require(names.first { $0.hasPrefix("tokens.") })
        let lease = try await provider.store.lease(name, deadline: .distantFuture)
        let asking = Task { try await manager.tokens() }
        await until { provider.clock.sleeperCount > 0 }
        provider.clock.advance(by: 11)
        if isUsed {
            #expect(try await asking.value.accessToken == Secret("access-1"))
        } else {
            let error = await #expect(throws: TokenError.self) { try await asking.value }
            #expect(error?.code == .busy && error?.isTransient == true)
        }
        #expect(refreshes(provider) == 0)
        await lease.release()
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
    }

    @Test("A token that a resource has refused is renewed, also when a renewal that does not know that is under way")
    func rejectedMeanwhile() async throws {
        let (provider, manager, gate) = try await expired(after: 570)
        let stored = try #require(try await manager.storedTokens()?.accessToken)
        provider.change {
            $0.tokenReply = { _ in
                await gate.pass()
                throw HTTPTransportError(.connectFailed, "offline")
            }
        }
        let first = Task { try await manager.tokens() }
        // Counted before the server looks how it is to answer: what is changed in between would be its answer already.
        await until { gate.isWaitedAt }
        let second = Task { try await manager.tokens(rejecting: stored) }
        for _ in 0..<1000 { await Task.yield() }
        provider.change { $0.tokenReply = nil }
        gate.open()
        #expect(try await first.value.accessToken == stored)
        #expect(try await second.value.accessToken == Secret("access-2"))
    }

    @Test("A renewal that ends after somebody has signed in gives that one's calls neither its tokens nor its failure")
    func anotherSignIn() async throws {
        for isRefused in [false, true] {
            let provider = try FakeProvider()
            let gate = Gate()
            let store = LingeringStore(store: provider.store, gate: gate)
            let manager = TokenManager(
                configuration: try TokenConfiguration(
                    issuer: issuer, clientID: "bank-app", redirectURI: redirectURI, scopes: ["openid", "accounts"]),
                transport: InMemoryTransport { try await provider.answer($0) }, store: store, clock: provider.clock)
            try await manager.install(Session(token: Secret("SESS")))
            _ = try await manager.tokens()
            provider.clock.advance(by: 601)
            if isRefused { provider.change { $0.tokenReply = { _ in .json(503, [:]) } } }
            store.lingers.withLock { $0 = true }
            let first = Task { try await manager.tokens() }
            await until { gate.isWaitedAt }
            provider.change { $0.tokenReply = nil }
            try await manager.install(Session(token: Secret("BOB")))
            let resources = AuthenticatingTransport(
                manager, resources: [try Origin("https://api.bank.example"): .accessToken],
                over: InMemoryTransport { .json(200, ["token": .string($0.field("Authorization") ?? "")]) })
            let second = Task {
                try await resources.send(try HTTPCall(.post, url: "https://api.bank.example/", body: HTTPBody("{}")))
            }
            await until { manager.renewals.count == 2 }
            gate.open()
            _ = try? await first.value
            let reply = try await second.value
            let token = try JSONValue.parse(try await reply.body.collect(upTo: 1024))["token"]?.string
            #expect(token == (isRefused ? "Bearer access-2" : "Bearer access-3"))
            #expect(provider.sent("/authorize").last?.field("iPlanetDirectoryPro") == "BOB")
        }
    }

    @Test("What the store refused is stored at the next call, and the server is not asked again")
    func unsaved() async throws {
        let (provider, _, gate) = try await expired()
        let (manager, store) = try refusing(provider, after: "refresh_token")
        gate.open()
        for _ in 0..<2 {
            await #expect(throws: TokenError.like(.storageFailed)) { try await manager.tokens() }
        }
        store.refuses.withLock { $0 = false }
        #expect(try await manager.tokens().accessToken == Secret("access-2"))
        #expect(try await provider.manager().storedTokens()?.refreshToken == Secret("refresh+2&=%"))
        #expect(refreshes(provider) == 1)
    }

    @Test("What the store refused is not stored for somebody else")
    func unsavedOfAnother() async throws {
        let (provider, _, gate) = try await expired()
        let (manager, store) = try refusing(provider, after: "refresh_token")
        gate.open()
        await #expect(throws: TokenError.like(.storageFailed)) { try await manager.tokens() }
        store.refuses.withLock { $0 = false }
        try await provider.manager().install(Session(token: Secret("BEN")))
        #expect(try await manager.tokens().accessToken == Secret("access-3"))
        #expect(provider.sent("/authorize").last?.field("iPlanetDirectoryPro") == "BEN")
    }

    @Test("What the store refused does not come back after somebody else has signed out")
    func unsavedAfterSignOut() async throws {
        let provider = try FakeProvider()
        let (manager, store) = try refusing(provider, after: "authorization_code")
        try await manager.install(Session(token: Secret("SESS")))
        await #expect(throws: TokenError.like(.storageFailed)) { try await manager.tokens() }
        store.refuses.withLock { $0 = false }
        _ = try await provider.manager().signOut()
        provider.clock.advance(by: 2)
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.signInReason == .notSignedIn)
        #expect(try await manager.storedTokens() == nil)
    }

    @Test("A clock that steps back and forth costs at most a renewal each time, and no token is lost")
    func clockSteps() async throws {
        let provider = try FakeProvider()
        let manager = try provider.manager(scopes: ["accounts"])
        try await manager.install(Session(token: Secret("SESS")))
        var last = try await manager.tokens().accessToken
        for step: TimeInterval in [-3600, 7200, -7200, 3600, -34_560_000, 69_120_000, 10] {
            provider.clock.advance(by: step)
            let count = refreshes(provider)
            let next = try await manager.tokens().accessToken
            #expect(refreshes(provider) == (abs(step) > 600 ? count + 1 : count), "\(step)")
            #expect((next == last) == (abs(step) <= 600), "\(step)")
            #expect(try await manager.tokens().accessToken == next)
            last = next
        }
        #expect(provider.sent("/authorize").count == 1)
    }

    @Test("A refresh whose answer was lost is an interrupted one, and an answered refusal is none")
    func interrupted() async throws {
        let (provider, manager, gate) = try await expired()
        gate.open()
        let names = await provider.store.names()
        try await provider.store.update(
            try #require(names.first { $0.hasPrefix("session.") }), to: nil, expected: .any)
        provider.change {
            $0.tokenReply = { _ in throw HTTPTransportError(.connectionClosed, "lost", mayHaveHadEffect: true) }
        }
        await #expect(throws: TokenError.like(.transport)) { try await manager.tokens() }
        #expect(try await manager.storedTokens() != nil)
        provider.change { $0.tokenReply = { _ in .json(400, ["error": "invalid_grant"]) } }
        let error = await #expect(throws: TokenError.self) { try await manager.tokens() }
        #expect(error?.signInReason == .refreshInterrupted)
        #expect(await provider.store.names().isEmpty)
    }
}
