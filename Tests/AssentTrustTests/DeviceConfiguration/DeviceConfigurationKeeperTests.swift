import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentTesting
import AssentVault
import Foundation
import HTTPTypes
import Logging
import Testing

@testable import AssentTrust

@Suite("35: An app's device configuration is kept")
struct DeviceConfigurationKeeperTests {
    /// A server that tells, and the app's processes.
    private final class World: Sendable {
        static let issuer = "https://am.bank.example/am/oauth2/alpha"

        let clock = ManualClock()
        let store: MemorySecretStore
        let trust: TrustInForce
        let document = Locked<String?>(nil)
        let endpoint = Locked("\(World.issuer)/device_config")
        let asked = Locked<[HTTPRequest]>([])
        /// What an answer waits for.
        let held = Locked<Task<Void, Never>?>(nil)

        init(_ trust: TrustFile) {
            store = MemorySecretStore(clock: clock)
            self.trust = TrustInForce(trust)
        }

        func keeper(of app: ConfiguredApp = DeviceConfigurationSamples.app) -> DeviceConfigurationKeeper {
            let network = InMemoryTransport { [self] exchange in
                if exchange.request.path?.hasSuffix("/.well-known/openid-configuration") == true {
                    return .json(
                        200,
                        [
                            "issuer": .string(World.issuer),
                            "assent_device_config_endpoint": .string(endpoint.withLock { $0 }),
                        ])
                }
                asked.withLock { $0.append(exchange.request) }
                await held.withLock { $0 }?.value
                guard let text = document.withLock({ $0 }) else {
                    throw HTTPTransportError(.connectFailed, "Nobody is there.")
                }
                let tag = "\"\(text.suffix(8))\""
                guard exchange.request.headerFields[.ifNoneMatch] != tag else {
                    return HTTPReply(HTTPResponse(status: .notModified))
                }
                return HTTPReply(
                    HTTPResponse(status: .ok, headerFields: [.eTag: tag]), body: HTTPBody(text))
            }
            return DeviceConfigurationKeeper(
                for: app, trust: trust, issuer: World.issuer,
                in: .init(
                    store: store, network: network, clock: clock,
                    logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })))
        }

        var questions: Int { asked.withLock { $0.count } }
    }

    private let samples: DeviceConfigurationSamples
    private let trust: TrustFile
    private let world: World

    init() async throws {
        samples = try DeviceConfigurationSamples()
        let keys = JSONValue.array(try samples.keys.map(\.json))
        trust = try TrustFile(shipped: try await TrustSamples().file(1, ["config": keys]))
        world = World(trust)
    }

    /// That a document is of now.
    private func times(_ world: World) throws -> [String: JSONValue?] {
        let now = Int(world.clock.epochSeconds)
        return ["iat": .integer(now), "exp": .integer(now + 300)]
    }

    /// The server tells a version, with changes.
    private func tell(_ version: Int, _ changes: [String: JSONValue?] = [:]) async throws {
        var all = try times(world)
        for (name, value) in changes { all[name] = value }
        let text = try await samples.document(version, all)
        world.document.withLock { $0 = text }
    }

    @Test("It asks by metadata, once in five minutes, with the tag of what it has")
    func asks() async throws {
        let keeper = world.keeper()
        try await tell(7)
        for _ in 1...3 { #expect(try await keeper.configuration()?.version == 7) }
        #expect(world.questions == 1)
        let first = try #require(world.asked.withLock { $0.first })
        #expect(first.path == "/am/oauth2/alpha/device_config?app=bank-app&version=3.2.0&platform=linux")
        #expect(first.headerFields[.ifNoneMatch] == nil && first.headerFields[.authorization] == nil)
        world.clock.advance(by: 300)
        #expect(try await keeper.configuration()?.version == 7)
        #expect(world.questions == 2)
        #expect(world.asked.withLock { $0.last?.headerFields[.ifNoneMatch] } != nil)
        world.clock.advance(by: 300)
        try await tell(8)
        #expect(try await keeper.configuration()?.version == 8)
    }

    @Test("When the server cannot be asked the last one counts, in the next process too, and an older one never")
    func last() async throws {
        try await tell(7)
        #expect(try await world.keeper().configuration()?.version == 7)
        world.document.withLock { $0 = nil }
        world.clock.advance(by: 86_400 * 300)
        let next = world.keeper()
        #expect(try await next.configuration()?.version == 7)
        #expect(try await next.configuration()?.version == 7)
        #expect(world.questions == 2, "a failure is not tried again with each call")
        world.clock.advance(by: 300)
        try await tell(6, ["payloadEncryption": "off"])
        #expect(try await next.configuration()?.payloadEncryption == .on)
        #expect(try await world.keeper().configuration()?.version == 7)
        // The number holds for the app's next version, whose document is another one.
        let updated = ConfiguredApp(audience: DeviceConfigurationSamples.app.audience, version: "3.3.0")
        try await tell(6, ["app_version": "3.3.0"])
        #expect(try await world.keeper(of: updated).configuration() == nil)
        try await tell(8, ["app_version": "3.3.0"])
        #expect(try await world.keeper(of: updated).configuration()?.version == 8)
    }

    @Test("35: A clock that is ahead takes nothing and forgets nothing, and one that was put back asks at once")
    func clocks() async throws {
        let keeper = world.keeper()
        try await tell(7)
        let start = world.clock.now
        #expect(try await keeper.configuration()?.version == 7)
        // What the server says is of its own time, which is two days earlier here.
        try await tell(8, ["payloadEncryption": "off"])
        world.clock.advance(by: 2 * 86_400)
        let ahead = try #require(try await keeper.configuration())
        #expect(ahead.version == 7 && ahead.payloadEncryption == .on)
        #expect(world.questions == 2)
        #expect(try await world.keeper().configuration()?.version == 7, "in the next process, too")
        // Put right: what was asked last is later than now.
        world.clock.advance(by: start.addingTimeInterval(10).timeIntervalSince(world.clock.now))
        #expect(try await keeper.configuration()?.version == 8)
        #expect(world.questions == 4)
        // Put back, before all that is known: what is in force stays.
        world.clock.advance(by: -86_400)
        #expect(try await keeper.configuration()?.version == 8)
        #expect(try await world.keeper().configuration()?.version == 8)
    }

    @Test("One that was never told is not made up, and one of another server's metadata is not asked for")
    func never() async throws {
        let wishes = DeviceDecision.Wishes(implicit: true, stateless: true)
        let keeper = world.keeper()
        #expect(try await keeper.configuration() == nil)
        #expect(try await keeper.decision(wishes)?.registers == .unknown)
        try await tell(7)
        let before = world.questions
        for url in ["https://evil.example/device_config", "http://am.bank.example/device_config", "device_config"] {
            world.endpoint.withLock { $0 = url }
            #expect(try await world.keeper().configuration() == nil, "\(url)")
        }
        #expect(world.questions == before)
        world.endpoint.withLock { $0 = "\(World.issuer)/device_config" }
        let decision = try #require(try await world.keeper().decision(wishes))
        #expect(decision.registers == .allowed && decision.implicit && !decision.stateless)
    }

    @Test("Who cannot do without one has the server asked again seconds after a failure, and no other call does")
    func needed() async throws {
        let wishes = DeviceDecision.Wishes(implicit: true, stateless: true)
        let keeper = world.keeper()
        #expect(try await keeper.decision(wishes, isNeeded: true)?.registers == .unknown)
        try await tell(7)
        world.clock.advance(by: TimeInterval(DeviceConfigurationKeeper.urgentInterval - 1))
        #expect(try await keeper.decision(wishes, isNeeded: true)?.registers == .unknown)
        world.clock.advance(by: 1)
        #expect(try await keeper.configuration() == nil)
        #expect(try await keeper.known() == nil)
        #expect(world.questions == 1)
        #expect(try await keeper.decision(wishes, isNeeded: true)?.registers == .allowed)
        #expect(world.questions == 2)
        // From then on it is asked as seldom as for anything else.
        world.clock.advance(by: 299)
        #expect(try await keeper.decision(wishes, isNeeded: true)?.registers == .allowed)
        #expect(world.questions == 2)
    }

    @Test("A call waits for the server no longer than it may take, and the next one has what came meanwhile")
    func patience() async throws {
        let wishes = DeviceDecision.Wishes(implicit: true, stateless: true)
        for (total, seconds) in [(Duration.seconds(7), 7.0), (nil, 40)] {
            for (waits, isNeeded) in [(false, false), (true, false), (true, true)] {
                let world = World(trust)
                let text = try await samples.document(7, try times(world))
                world.document.withLock { $0 = text }
                let (stream, gate) = AsyncStream.makeStream(of: Void.self)
                world.held.withLock { $0 = Task { for await _ in stream {} } }
                let keeper = world.keeper()
                let limits = HTTPLimits(total: total)
                let call = try HTTPCall(.get, url: "https://api.bank.example/balance", limits: limits)
                let waiting = Task {
                    try await keeper.decision(
                        wishes, waits: waits, isNeeded: isNeeded, until: keeper.deadline(of: call))
                }
                // It waits for the server, and its timer is set.
                while world.questions == 0 { await Task.yield() }
                while world.clock.sleeperCount == 0 { await Task.yield() }
                world.clock.advance(by: seconds)
                let error = await #expect(throws: HTTPTransportError.self) { _ = try await waiting.value }
                #expect(error?.code == .timedOut)
                gate.finish()
                await keeper.finish()
                #expect(try await keeper.decision(wishes, waits: false)?.registers == .allowed)
                #expect(world.questions == 1)
            }
        }
    }

    @Test("A call that is cancelled while it waits for the server says so")
    func cancelled() async throws {
        let (stream, gate) = AsyncStream.makeStream(of: Void.self)
        world.held.withLock { $0 = Task { for await _ in stream {} } }
        let keeper = world.keeper()
        let deadline = world.clock.now.addingTimeInterval(60)
        let waiting = Task { try await keeper.known(until: deadline) }
        while world.questions == 0 { await Task.yield() }
        waiting.cancel()
        let error = await #expect(throws: HTTPTransportError.self) { _ = try await waiting.value }
        #expect(error?.code == .cancelled)
        gate.finish()
        await keeper.finish()
    }

    @Test("A record that is damaged, or of another environment, is not read")
    func damaged() async throws {
        try await tell(7)
        for text in ["", "{}", "[1]", #"{"v":1,"audience":"bank-app/linux/staging","version":9,"document":"x"}"#] {
            let name = DeviceConfigurationRecord.name(for: DeviceConfigurationSamples.app.audience)
            try await world.store.update(name, to: Secret(text), expected: .any)
            #expect(try await world.keeper().configuration()?.version == 7, "\(text)")
        }
        let record = DeviceConfigurationRecord(audience: "a/b/c", version: 3, document: "x")
        #expect(DeviceConfigurationRecord(record.secret) == record)
    }

    @Test("Two environments in one vault have a number each")
    func audiences() async throws {
        let other = ConfiguredApp(audience: "bank-app/linux/staging", version: "3.2.0")
        try await tell(9)
        #expect(try await world.keeper().configuration()?.version == 9)
        try await tell(7, ["aud": "bank-app/linux/staging"])
        #expect(try await world.keeper(of: other).configuration()?.version == 7)
        // What the other one has reached has taken nothing away.
        try await tell(8)
        #expect(try await world.keeper().configuration()?.version == 9)
        #expect(await world.store.names().count == 2)
    }

    @Test("Processes that share the vault agree on the newest")
    func together() async throws {
        let (first, second) = (world.keeper(), world.keeper())
        try await tell(7)
        #expect(try await first.configuration()?.version == 7)
        try await tell(8)
        #expect(try await second.configuration()?.version == 8)
        // A node that has not started with the change yet answers the first one.
        try await tell(7)
        world.clock.advance(by: 300)
        #expect(try await first.configuration()?.version == 8)
    }
}
