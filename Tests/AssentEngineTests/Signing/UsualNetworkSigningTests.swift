import AssentCore
import AssentSigningProtocol
import AssentStore
import AssentTesting
import SigningTesting
import Testing

@testable import AssentEngine

@Suite("Usual networks where the user's device is woken, and signs")
struct UsualNetworkSigningTests {
    private typealias World = SigningJourneyWorld

    private static let away = "198.51.100.1"
    private static let elsewhere = "203.0.113.1"
    /// Where the device's own calls come from.
    private static let ofDevice = "192.0.2.1"

    /// The transaction that the user is asked to approve from there; `nil` where nothing is asked.
    private static func asked(_ world: World, from address: String, level: Int = 0) async throws -> String? {
        let decision = try await world.access(from: address, level: level)
        guard case .advised(let advice, .some) = decision else {
            #expect(decision == .granted(taken: nil))
            return nil
        }
        // An advice without it would look as if nothing had been asked.
        let id = try #require(advice.transactionID)
        return id
    }

    /// The page of the journey that approves what is asked from there.
    private static func begun(_ world: World, from address: String) async throws -> Page {
        try await world.begin(try #require(try await asked(world, from: address)), from: address)
    }

    @Test("From an unusual network the user is asked on the device, and once that has approved nobody is asked there")
    func story() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled()
        let page = try await Self.begun(world, from: Self.away)
        let asked = try await world.signing()
        _ = try await device.approve(asked.txn, container, number: asked.matchNumber)
        // The network becomes usual when the journey ends, and not before.
        #expect(try await Self.asked(world, from: Self.away) != nil)
        #expect(try await world.poll(page, from: Self.away).token() == world.session)
        #expect(try await world.access(from: Self.away) == .granted(taken: nil))
        // It is the network of the app that waited, and not the device's.
        for address in [Self.elsewhere, Self.ofDevice] {
            #expect(try await Self.asked(world, from: address) != nil, "\(address)")
        }
    }

    @Test("From an unusual network the devices that may answer are woken once, and from a usual one none is")
    func woken() async throws {
        let world = try await World()
        let (device, container) = try await world.enrolled(pushID: "push-1")
        _ = try await world.enrolled()
        let expired = try await world.enrolled(pushID: "push-2").container.did
        _ = try await world.journeys.database.run(
            SQLStatement(
                "UPDATE signing_containers SET expires_at = \(world.provider.now) WHERE did = \(expired.text)",
                expecting: .exactly(1)))
        let id = try #require(try await Self.asked(world, from: Self.away))
        // The advice wakes nobody: the journey does.
        #expect(world.heard.waiting.withLock { $0.isEmpty })
        let page = try await world.begin(id, from: Self.away)
        let asked = try await world.signing()
        #expect(world.heard.waiting.withLock { $0.map(\.txn) } == [asked.txn.text])
        #expect(world.heard.waiting.withLock { $0.map(\.pushIDs) } == [["push-1"]])
        _ = try await device.approve(asked.txn, container, number: asked.matchNumber)
        #expect(try await world.poll(page, from: Self.away).token() == world.session)
        #expect(try await Self.asked(world, from: Self.away) == nil)
        #expect(world.heard.waiting.withLock { $0.count } == 1)
    }

    @Test("A no, a wrong number, silence and a user without a device leave the network unusual")
    func refused() async throws {
        let world = try await World()
        await #expect(throws: EngineError(.noDevice)) { try await Self.begun(world, from: Self.away) }
        let (device, container) = try await world.enrolled()

        let denied = try await Self.begun(world, from: Self.away)
        let no = try await world.signing().txn
        _ = try await device.decide(try await device.signed(device.blind(no, container), label: nil), container)
        await #expect(throws: EngineError(.declined)) { try await world.poll(denied, from: Self.away) }

        let mistaken = try await Self.begun(world, from: Self.away)
        let asked = try await world.signing()
        let (txn, wrong) = (asked.txn, asked.matchNumber == "11" ? "12" : "11")
        #expect(try await refusal { _ = try await device.approve(txn, container, number: wrong) } == "match_wrong")
        await #expect(throws: EngineError(.declined)) { try await world.poll(mistaken, from: Self.away) }

        let waiting = try await Self.begun(world, from: Self.away)
        world.journeys.clock.advance(by: 60)
        let late = try Page(try await world.poll(waiting, from: Self.away))
        await #expect(throws: EngineError(.approvalExpired)) { try await world.poll(late, from: Self.away) }

        #expect(try await world.journeys.count("usual_networks") == 0)
        #expect(try await Self.asked(world, from: Self.away) != nil)
    }

    @Test("A signature makes the network of the last answer usual, up to the level of its journey")
    func level() async throws {
        let world = try await World(authLevel: 5)
        let (device, container) = try await world.enrolled()
        let id = try #require(try await Self.asked(world, from: Self.away, level: 5))
        let page = try await world.begin(id, from: Self.elsewhere)
        let waiting = try await world.signing()
        _ = try await device.approve(waiting.txn, container, number: waiting.matchNumber)
        #expect(try await world.poll(page, from: Self.away).token() == world.session)
        for (level, isUsual) in [(0, true), (5, true), (6, false)] {
            let question = try await Self.asked(world, from: Self.away, level: level)
            #expect((question == nil) == isUsual, "\(level)")
        }
        #expect(try await Self.asked(world, from: Self.elsewhere) != nil)
    }
}
