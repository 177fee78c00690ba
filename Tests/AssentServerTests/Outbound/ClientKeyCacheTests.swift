import AssentCore
import AssentEngine
import AssentJOSE
import AssentTesting
import Foundation
import Testing

@testable import AssentServer

@Suite("Key sets that clients publish")
struct ClientKeyCacheTests {
    private static let url = "https://app.example/jwks"

    /// A client's address, which counts how often it is asked.
    private final class Place: Sendable {
        private struct State {
            var keys: [JWK] = []
            var isDown = false
            var asked = 0
            var waiting: [CheckedContinuation<Void, Never>] = []
            var holds = false
        }

        private let state = Locked(State())

        var asked: Int { state.withLock { $0.asked } }

        func publish(_ keys: JWK...) { state.withLock { $0.keys = keys } }

        func goDown(_ isDown: Bool = true) { state.withLock { $0.isDown = isDown } }

        /// Answers nobody until ``release()``.
        func hold() { state.withLock { $0.holds = true } }

        func release() {
            let waiting = state.withLock { state in
                state.holds = false
                defer { state.waiting = [] }
                return state.waiting
            }
            for continuation in waiting { continuation.resume() }
        }

        func answer() async throws -> [UInt8] {
            await withCheckedContinuation { continuation in
                let goesOn = state.withLock { state in
                    state.asked += 1
                    if state.holds { state.waiting.append(continuation) }
                    return !state.holds
                }
                if goesOn { continuation.resume() }
            }
            return try state.withLock { state in
                if state.isDown { throw OutboundCalls.Failure.failed(.timedOut) }
                return JWKSet(state.keys).json.serializedBytes()
            }
        }
    }

    private let place = Place()
    private let clock = ManualClock()
    private let cache: ClientKeyCache

    init() {
        let place = place
        cache = ClientKeyCache(clock: clock) { _ in try await place.answer() }
    }

    private static func key(_ keyID: String) throws -> JWK {
        let key = try SoftwareSigningKey.generate(.es256)
        return try JWK(publicKeyInfo: key.publicKeyInfo, keyID: keyID)
    }

    private func keys(_ keyID: String? = "one") async throws -> JWKSet {
        try await cache.keys(at: Self.url, keyID: keyID, algorithm: .es256)
    }

    @Test("A set is fetched once, used for ten minutes and then fetched anew")
    func freshness() async throws {
        place.publish(try Self.key("one"))
        for _ in 0..<3 { #expect(try await keys().keys.count == 1) }
        #expect(try await keys(nil).keys.count == 1)
        clock.advance(by: 599)
        _ = try await keys()
        #expect(place.asked == 1)
        clock.advance(by: 1)
        place.publish(try Self.key("one"), try Self.key("two"))
        #expect(try await keys().keys.count == 2)
        #expect(place.asked == 2)
    }

    @Test("An unknown kid has the set fetched anew, but however many are named, twice a minute at most")
    func floor() async throws {
        place.publish(try Self.key("one"))
        _ = try await keys()
        place.publish(try Self.key("two"))
        for index in 0..<1000 { #expect(try await keys("unknown-\(index)").keys.map(\.keyID) == ["one"]) }
        #expect(place.asked == 1)
        clock.advance(by: 30)
        #expect(try await keys("two").keys.map(\.keyID) == ["two"])
        for index in 0..<1000 { _ = try await keys("unknown-\(index)") }
        #expect(place.asked == 2)
        // A key that fits no algorithm of the set is unknown as well.
        _ = try await cache.keys(at: Self.url, keyID: "two", algorithm: .edDSA)
        #expect(place.asked == 2)
    }

    @Test("A set that cannot be fetched is not asked for again at once, and an old one is not used")
    func failing() async throws {
        place.goDown()
        await #expect(throws: OutboundCalls.Failure.failed(.timedOut)) { try await keys() }
        for _ in 0..<100 {
            await #expect(throws: ClientKeyCache.Failure.triedRecently) { try await keys() }
        }
        #expect(place.asked == 1)
        clock.advance(by: 30)
        place.goDown(false)
        place.publish(try Self.key("one"))
        #expect(try await keys().keys.count == 1)
        place.goDown()
        clock.advance(by: 31)
        // What is known is still fresh, and lacks the key.
        #expect(try await keys("two").keys.map(\.keyID) == ["one"])
        #expect(place.asked == 3)
        clock.advance(by: 569)
        await #expect(throws: OutboundCalls.Failure.failed(.timedOut)) { try await keys() }
        #expect(place.asked == 4)
    }

    @Test("A hundred requests at once wait for one fetch")
    func together() async throws {
        place.publish(try Self.key("one"))
        place.hold()
        let counts = try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<100 { group.addTask { try await keys().keys.count } }
            while place.asked == 0 { await Task.yield() }
            place.release()
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        #expect(counts == Array(repeating: 1, count: 100))
        #expect(place.asked == 1)
    }

    @Test("A clock that is put back makes a set old")
    func clockBack() async throws {
        place.publish(try Self.key("one"))
        _ = try await keys()
        clock.advance(by: -3600)
        _ = try await keys()
        #expect(place.asked == 2)
    }

    @Test("What is not a key set, or has 10,000 keys, is refused")
    func content() async throws {
        let key = try Self.key("one").json
        let many = JSONValue.object(["keys": .array(Array(repeating: key, count: 10_000))]).serializedBytes()
        for bytes in [many, [], Array("<html>".utf8), Array(#"{"keys":{}}"#.utf8)] {
            let cache = ClientKeyCache(clock: clock) { _ in bytes }
            await #expect(throws: JOSEError.self) {
                try await cache.keys(at: Self.url, keyID: nil, algorithm: .es256)
            }
        }
    }
}
