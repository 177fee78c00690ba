import AssentCore
import AssentTesting
import AssentTokens
import AssentVault
import Foundation
import HTTPTypes
import Logging
import Testing

@testable import AssentTrust

@Suite("An app's trust file is kept up to date")
struct TrustKeeperTests {
    /// A bank whose server shows one key, a source of trust files, and the app's processes.
    private final class World: Sendable {
        static let record = TrustRecord.name(for: "bank-app/linux/production")

        let clock = ManualClock()
        let store: MemorySecretStore
        let files = Locked<[Int: String]>([:])
        let status = Locked(404)
        /// The key that the bank's server shows.
        let shown = Locked<UInt8>(1)
        let pins = Locked<[String: PinRequirement]>([:])
        let asked = Locked<[HTTPRequest]>([])
        /// What an answer of the source waits for.
        let held = Locked<Task<Void, Never>?>(nil)
        let called = Locked(0)

        init() { store = MemorySecretStore(clock: clock) }

        func keeper(_ shipped: String) throws -> TrustKeeper {
            let file = try TrustFile(shipped: shipped)
            pins.withLock { $0 = file.pins(at: file.now(clock.now)) }
            let source = InMemoryTransport { [self] exchange in
                asked.withLock { $0.append(exchange.request) }
                await held.withLock { $0 }?.value
                let version = exchange.request.path?.split(separator: "/").last.flatMap { Int($0) } ?? 0
                guard let text = files.withLock({ $0[version] }) else {
                    return HTTPReply(HTTPResponse(status: .init(code: status.withLock { $0 })))
                }
                return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(text))
            }
            return TrustKeeper(
                shipped: file,
                in: .init(
                    store: store, network: source, clock: clock,
                    logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
            ) { [self] new in pins.withLock { $0 = new } }
        }

        /// A call to the bank over a transport that compares pins.
        func call(_ keeper: TrustKeeper, total: Duration? = .seconds(60)) async -> HTTPTransportError.Code? {
            let network = InMemoryTransport { [self] _ in
                let key = try Pin(sha256: [UInt8](repeating: shown.withLock { $0 }, count: 32))
                let accepted: [Pin] =
                    switch pins.withLock({ $0["api.bank.example"] }) {
                    case .pins(let pins): pins
                    case .singlePin(let pin): [pin]
                    default: []
                    }
                guard accepted.contains(key) else { throw HTTPTransportError(.pinMismatch, "Another key.") }
                called.withLock { $0 += 1 }
                return HTTPReply(HTTPResponse(status: .ok))
            }
            do {
                let limits = HTTPLimits(total: total)
                let call = try HTTPCall(.get, url: "https://api.bank.example/balance", limits: limits)
                _ = try await TrustedTransport(keeper, over: network).send(call)
                await keeper.finish()
                return nil
            } catch {
                return (error as? HTTPTransportError)?.code
            }
        }

        var questions: Int { asked.withLock { $0.count } }
    }

    private let world = World()
    private let samples: TrustSamples

    init() throws { samples = try TrustSamples() }

    /// A version whose pins have these numbers.
    private func file(_ version: Int, pins: [UInt8]) async throws -> String {
        let end = TrustSamples.time + TrustSamples.year
        return try await samples.file(version, ["hosts": [TrustSamples.host(pins.map { ($0, end) })]])
    }

    @Test("34: all pins were changed while the app was off: its next start recovers by the source")
    func rotated() async throws {
        let first = try await file(1, pins: [1, 2])
        let files = [2: try await file(2, pins: [2, 3]), 3: try await file(3, pins: [3, 4])]
        world.files.withLock { $0 = files }
        world.shown.withLock { $0 = 4 }
        let keeper = try world.keeper(first)
        // Both are right: a call that failed stays failed, and the question may have been answered before it.
        let failure = await world.call(keeper)
        #expect(failure == nil || failure == .pinMismatch)
        #expect(await world.call(keeper) == nil)
        #expect(await keeper.state == .stored)
        // The vault has it: the next process needs no source.
        world.files.withLock { $0 = [:] }
        let next = try world.keeper(first)
        #expect(await world.call(next) == nil)
        #expect(next.inForce.version == 3)
    }

    @Test("34: someone with a valid certificate at the source, but without a key, changes nothing")
    func forged() async throws {
        let first = try await file(1, pins: [1, 2])
        let members = try samples.members(2, keys: [samples.stranger, samples.first])
        let forged = try await samples.sign(members, by: samples.stranger)
        world.files.withLock { $0 = [2: forged] }
        let keeper = try world.keeper(first)
        #expect(await world.call(keeper) == nil)
        await keeper.ask()
        #expect(await keeper.state == .refused)
        #expect(keeper.inForce.version == 1)
        #expect(await world.call(keeper) == nil)
        world.shown.withLock { $0 = 9 }
        #expect(await world.call(keeper) == .pinMismatch)
        #expect(world.questions == 1, "it is asked once an hour")
    }

    @Test("34: An older version is never taken back, not from the source, the vault or an older release")
    func rollback() async throws {
        world.files.withLock { $0 = [:] }
        let (two, three) = (try await file(2, pins: [2, 3]), try await file(3, pins: [3, 4]))
        let keeper = try world.keeper(three)
        world.files.withLock { $0 = [3: three, 4: two] }
        #expect(await keeper.ask() == 3)
        try await world.store.update(World.record, to: TrustRecord(file: two).secret, expected: .any)
        world.clock.advance(by: 7200)
        #expect(await keeper.ask() == 3)
        try await world.store.update(World.record, to: TrustRecord(file: three).secret, expected: .any)
        let older = try world.keeper(two)
        world.shown.withLock { $0 = 4 }
        #expect(await world.call(older) == nil)
        #expect(older.inForce.version == 3)
    }

    @Test("A question has no credential, and what is no file of at most 64 KiB is no answer")
    func questions() async throws {
        let keeper = try world.keeper(try await file(1, pins: [1, 2]))
        let long = String(repeating: "a", count: TrustFile.limit + 1)
        let answers: [(Int, String?)] = [(302, nil), (500, nil), (404, long)]
        for (status, text) in answers {
            world.status.withLock { $0 = status }
            world.files.withLock { $0 = text.map { [2: $0] } ?? [:] }
            #expect(await keeper.ask() == 1)
            world.clock.advance(by: 3600)
        }
        let asked = world.asked.withLock { $0 }
        #expect(asked.map(\.path) == Array(repeating: "/app/2", count: 3))
        #expect(asked.allSatisfy { $0.method == .get && $0.headerFields.isEmpty })
    }

    @Test("A process asks when it starts, then once a day, and once an hour while a pin fails")
    func times() async throws {
        let keeper = try world.keeper(try await file(1, pins: [1, 2]))
        #expect(await world.call(keeper) == nil)
        await keeper.ask()
        #expect(world.questions == 1)
        world.clock.advance(by: 23 * 3600)
        #expect(await world.call(keeper) == nil)
        #expect(world.questions == 1)
        world.shown.withLock { $0 = 9 }
        #expect(await world.call(keeper) == .pinMismatch)
        #expect(world.questions == 2)
        world.clock.advance(by: 3599)
        #expect(await world.call(keeper) == .pinMismatch)
        #expect(world.questions == 2)
        // A clock that was put back asks as well.
        world.clock.advance(by: -86_400)
        #expect(await world.call(keeper) == .pinMismatch)
        #expect(world.questions == 3)
    }

    @Test("Two processes with one vault ask once, and both have what was found")
    func processes() async throws {
        let first = try await file(1, pins: [1, 2])
        let second = try await file(2, pins: [2, 3])
        world.files.withLock { $0 = [2: second] }
        let (one, other) = (try world.keeper(first), try world.keeper(first))
        async let left = one.ask()
        async let right = other.ask()
        let versions = await [left, right]
        #expect(versions == [2, 2])
        #expect(world.questions == 2, "version 2 once, and once that there is no version 3")
    }

    @Test("Where no pin is valid any more, a call waits for the update, and fails closed without one")
    func expired() async throws {
        let first = try await file(1, pins: [1, 2])
        let keeper = try world.keeper(first)
        world.clock.advance(by: TimeInterval(2 * TrustSamples.year))
        #expect(await world.call(keeper) == .trustExpired)
        #expect(world.called.withLock { $0 } == 0 && world.pins.withLock { $0 } == [:])
        let end = TrustSamples.time + 4 * TrustSamples.year
        let second = try await samples.file(2, ["hosts": [TrustSamples.host([(1, end), (5, end)])]])
        world.files.withLock { $0 = [2: second] }
        #expect(await world.call(keeper) == .trustExpired, "asked within the hour")
        world.clock.advance(by: 3600)
        #expect(await world.call(keeper) == nil)
        // A device's clock that is put back does not bring the old pins back.
        world.clock.advance(by: TimeInterval(-2 * TrustSamples.year))
        #expect(await world.call(keeper) == nil)
        #expect(keeper.inForce.version == 2)
    }

    @Test("A clock that is ahead calls nothing and changes nothing, and once it is right all is well")
    func ahead() async throws {
        let keeper = try world.keeper(try await file(1, pins: [1, 2]))
        world.clock.advance(by: TimeInterval(10 * TrustSamples.year))
        #expect(await world.call(keeper) == .trustExpired)
        world.clock.advance(by: TimeInterval(-10 * TrustSamples.year))
        #expect(await world.call(keeper) == nil)
    }

    /// A vault in which a later release has put a file that cannot be read here.
    private func storeUnreadable(version: Int) async throws {
        let reached = ReachedVersion(audience: "bank-app/linux/production", version: version)
        let record = TrustRecord(file: "no file", asked: Int(TrustSamples.time), reached: reached)
        try await world.store.update(World.record, to: record.secret, expected: .any)
    }

    @Test("A file that cannot be read lets nothing through, and the sources lead back to its version")
    func unreadable() async throws {
        let first = try await file(1, pins: [1, 2])
        try await storeUnreadable(version: 3)
        let keeper = try world.keeper(first)
        #expect(await world.call(keeper) == .trustExpired)
        #expect(world.called.withLock { $0 } == 0 && keeper.inForce.version == nil)
        #expect(keeper.inForce.kinds(of: try Origin("https://api.bank.example")) == nil)
        // Only version 2: what version 3 took away must not come back.
        let second = try await file(2, pins: [1, 2])
        world.files.withLock { $0 = [2: second] }
        world.clock.advance(by: 3600)
        #expect(await world.call(keeper) == .trustExpired)
        let third = try await file(3, pins: [1, 3])
        world.files.withLock { $0 = [3: third] }
        world.clock.advance(by: 3600)
        #expect(await world.call(keeper) == nil)
        #expect(keeper.inForce.version == 3)
    }

    @Test("A release with the version that cannot be read ends it at once, and an older one does not begin again")
    func released() async throws {
        try await storeUnreadable(version: 3)
        let keeper = try world.keeper(try await file(3, pins: [1, 2]))
        #expect(await world.call(keeper) == nil)
        #expect(keeper.inForce.version == 3)
        world.clock.advance(by: 3600)
        #expect(await keeper.ask() == 3)
        let older = try world.keeper(try await file(2, pins: [1, 2]))
        #expect(await world.call(older) == .trustExpired)
    }

    @Test("A record that is none is like no record: who can write it could remove it as well")
    func damaged() async throws {
        try await world.store.update(World.record, to: Secret("no record"), expected: .any)
        let keeper = try world.keeper(try await file(1, pins: [1, 2]))
        #expect(await world.call(keeper) == nil)
        #expect(keeper.inForce.version == 1)
    }

    @Test("A call waits for a source no longer than it may take, and the next one has what came meanwhile")
    func patience() async throws {
        for (total, seconds) in [(Duration.seconds(7), 7.0), (nil, 40)] {
            let world = World()
            let first = try await file(1, pins: [1, 2])
            let second = try await samples.file(
                2, ["hosts": [TrustSamples.host([2, 3].map { ($0, TrustSamples.time + 3 * TrustSamples.year) })]])
            world.files.withLock { $0 = [2: second] }
            world.shown.withLock { $0 = 2 }
            let (stream, gate) = AsyncStream.makeStream(of: Void.self)
            world.held.withLock { $0 = Task { for await _ in stream {} } }
            let keeper = try world.keeper(first)
            world.clock.advance(by: TimeInterval(TrustSamples.year))
            let call = Task { await world.call(keeper, total: total) }
            // It waits for the source, and its timer is set.
            while world.questions == 0 { await Task.yield() }
            while world.clock.sleeperCount == 0 { await Task.yield() }
            world.clock.advance(by: seconds)
            #expect(await call.value == .timedOut)
            #expect(world.called.withLock { $0 } == 0)
            gate.finish()
            await keeper.finish()
            #expect(await world.call(keeper) == nil)
            #expect(keeper.inForce.version == 2)
        }
    }

    @Test("A call that is cancelled while it waits for a source says so, and what it has begun goes on")
    func cancelled() async throws {
        let first = try await file(1, pins: [1, 2])
        let second = try await samples.file(
            2, ["hosts": [TrustSamples.host([2, 3].map { ($0, TrustSamples.time + 3 * TrustSamples.year) })]])
        world.files.withLock { $0 = [2: second] }
        world.shown.withLock { $0 = 2 }
        let (stream, gate) = AsyncStream.makeStream(of: Void.self)
        world.held.withLock { $0 = Task { for await _ in stream {} } }
        let keeper = try world.keeper(first)
        world.clock.advance(by: TimeInterval(TrustSamples.year))
        let call = Task { await world.call(keeper) }
        while world.questions == 0 { await Task.yield() }
        call.cancel()
        #expect(await call.value == .cancelled)
        #expect(world.called.withLock { $0 } == 0)
        gate.finish()
        await keeper.finish()
        #expect(await world.call(keeper) == nil)
    }

    @Test("Two environments in one vault keep their versions apart, and neither takes back what the other has reached")
    func audiences() async throws {
        let staging: [String: JSONValue?] = ["aud": "bank-app/linux/staging"]
        let shipped = [try await samples.file(1), try await samples.file(1, staging)]
        world.files.withLock { $0 = [:] }
        let keepers = try shipped.map(world.keeper)
        for version in 2...3 {
            let file = try await samples.file(version)
            world.files.withLock { $0 = [version: file] }
            world.clock.advance(by: 3600)
            #expect(await keepers[0].ask() == version)
        }
        let other = try await samples.file(2, staging)
        world.files.withLock { $0 = [2: other] }
        #expect(await keepers[1].ask() == 2)
        #expect(await world.store.names().count == 2)
        world.files.withLock { $0 = [:] }
        // Each comes back with its own, and an older release has not less.
        for (text, version) in zip(shipped, [3, 2]) {
            let keeper = try world.keeper(text)
            try await keeper.settle()
            #expect(keeper.inForce.version == version)
        }
    }

    @Test("Before the first call a process settles which credentials the vault's version gives")
    func settled() async throws {
        let end = TrustSamples.time + TrustSamples.year
        let hosts: JSONValue = [TrustSamples.host([(1, end), (2, end)], sends: [])]
        let second = try await samples.file(2, ["hosts": hosts])
        try await world.store.update(World.record, to: TrustRecord(file: second).secret, expected: .any)
        let keeper = try world.keeper(try await file(1, pins: [1, 2]))
        try await keeper.settle()
        #expect(keeper.inForce.kinds(of: try Origin("https://api.bank.example")) == [])
    }

    @Test("A later version takes a host's credential away, and names another host")
    func credentials() async throws {
        let end = TrustSamples.time + TrustSamples.year
        let hosts: JSONValue = [
            TrustSamples.host([(1, end), (2, end)], sends: []),
            TrustSamples.host("new.bank.example", [(1, end), (2, end)]),
        ]
        let second = try await samples.file(2, ["hosts": hosts])
        world.files.withLock { $0 = [2: second] }
        let keeper = try world.keeper(try await file(1, pins: [1, 2]))
        #expect(keeper.inForce.kinds(of: try Origin("https://api.bank.example")) == [.user])
        #expect(await keeper.ask() == 2)
        #expect(keeper.inForce.kinds(of: try Origin("https://api.bank.example")) == [])
        #expect(keeper.inForce.kinds(of: try Origin("https://new.bank.example")) == [.user])
    }

    @Test("A record is read as it was written, and is due by the clock")
    func record() throws {
        let record = TrustRecord(file: "a.b.c", asked: 1000)
        #expect(TrustRecord(record.secret) == record)
        #expect(TrustRecord(TrustRecord().secret) == TrustRecord())
        #expect(!record.isDue(at: 4599, after: 3600) && record.isDue(at: 4600, after: 3600))
        #expect(record.isDue(at: 999, after: 3600))
        let reached = ReachedVersion(audience: "a/b/c", version: 7)
        let full = TrustRecord(file: "a.b.c", asked: 1, reached: reached)
        #expect(TrustRecord(full.secret) == full)
        let later = #"{"v":2,"asked":"1","file":2,"audience":"a/b/c","version":7,"more":{}}"#
        #expect(TrustRecord(Secret(later)) == TrustRecord(reached: reached))
        for text in ["", "[]", "a.b.c", "{"] { #expect(TrustRecord(Secret(text)) == nil, "\(text)") }
        for asked in [Int.min, -1, .max] {
            let strange = try #require(TrustRecord(Secret(#"{"v":1,"asked":\#(asked)}"#)))
            #expect(strange.isDue(at: 4600, after: 3600), "\(asked)")
        }
    }
}
