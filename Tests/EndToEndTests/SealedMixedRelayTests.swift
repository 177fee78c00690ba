import AssentCore
import AssentPayload
import HTTPTypes
import Testing

@testable import Assent

/// The same relay, which makes one message of parts of two that belong to one session. Each part is one that the other
/// side has sealed itself, and both have the same keys.
@Suite("Payload encryption: a relay that ends TLS, and makes one message of two of a session")
struct SealedMixedRelayTests {
    /// A frame with parts of another one.
    private struct Mix: Sendable {
        let name: String
        let make: @Sendable (_ frame: [UInt8], _ other: [UInt8]) -> [UInt8]

        /// Of parts of both.
        init(_ name: String, of parts: @escaping @Sendable (_ frame: [UInt8], _ other: [UInt8]) -> [[UInt8]]) {
            self.name = name
            make = { frame, other in Array(parts(frame, other).joined()) }
        }

        /// With these bytes of the other one, which stand at the same place there.
        init(_ name: String, at range: Range<Int>) {
            self.init(name) { frame, other in
                guard min(frame.count, other.count) >= range.upperBound else { return [frame] }
                var mixed = frame
                mixed.replaceSubrange(range, with: other[range])
                return [mixed]
            }
        }
    }

    private static let mixes: [Mix] = [
        Mix("number", at: 17..<25), Mix("salt", at: 25..<41), Mix("number and salt", at: 17..<41),
        Mix("the whole head", at: 0..<41), Mix("half of the salt", at: 33..<41),
        Mix("the beginning of the first chunk", at: 46..<150),
        Mix("the content behind the head") { [$0.head, $1.behindHead] },
        Mix("the first chunk") { [$0.head, $1.firstChunk, $0.behindFirstChunk] },
        Mix("the last chunk") { [$0.beforeLastChunk, $1.lastChunk] },
        Mix("the tag") { [$0.withoutTag, $1.tag] },
        Mix("the first chunk behind the own one") { [$0.head, $0.firstChunk, $1.firstChunk, $0.behindFirstChunk] },
        Mix("the first chunk before the own one") { [$0.head, $1.firstChunk, $0.behindHead] },
        Mix("the last chunk behind the own one") { [$0, $1.lastChunk] },
        Mix("the whole one behind the own one") { [$0, $1] },
    ]

    private func pay(
        _ scene: RelayScene, _ client: PayloadTransport, _ content: [UInt8]
    ) async -> RelayScene.Outcome {
        do {
            let reply = try await client.send(
                try HTTPCall(
                    .post, url: scene.ender.url + RelayScene.target, headerFields: [.contentType: "text/plain"],
                    body: HTTPBody(content)))
            let bytes = try await reply.body.collect(upTo: 1 << 20)
            let isRight = reply.status == 200 && bytes == scene.ledger.answer(to: content)
            return isRight ? .answered : .other("\(reply.status), \(bytes.count) bytes")
        } catch let error as HTTPTransportError {
            return error.mayHaveHadEffect ? .unknown : .notSent
        } catch {
            return .other("\(error)")
        }
    }

    /// Three payments that differ in each byte; with 100,000 their messages have two chunks.
    private static func contents(_ count: Int) -> [[UInt8]] {
        (0..<3).map { [UInt8](repeating: 0x61 + UInt8($0), count: count) }
    }

    /// What the service was told to pay since there were `before` entries.
    private func paid(_ scene: RelayScene, since before: Int) -> [[UInt8]] {
        scene.ledger.entries.dropFirst(before).map(\.body)
    }

    @Test(
        "36: No request that is made of two comes to the service, whether the other one did or was held back",
        arguments: [14, 100_000])
    func requests(count: Int) async throws {
        let contents = Self.contents(count)
        try await RelayScene.run { scene in
            for mix in Self.mixes {
                for isHeldBack in [false, true] {
                    let name = "\(mix.name), held back: \(isHeldBack)"
                    scene.ender.clear()
                    let client = try scene.client()
                    let other = Locked<[UInt8]>([])
                    scene.ender.meddle(
                        RelayScene.next(RelayScene.message) { asked, pass in
                            other.withLock { $0 = asked.body }
                            if isHeldBack { return .json(503, [:]) }
                            return try await pass(asked)
                        })
                    #expect(await pay(scene, client, contents[0]) == (isHeldBack ? .unknown : .answered), "\(name)")
                    let before = scene.ledger.entries.count
                    let given = Locked<(whole: TLSEnder.Asked, mixed: TLSEnder.Asked)?>(nil)
                    scene.ender.meddle(
                        RelayScene.next(RelayScene.message) { asked, pass in
                            var mixed = asked
                            mixed.body = mix.make(asked.body, other.withLock { $0 })
                            given.withLock { [mixed] in $0 = (asked, mixed) }
                            return try await pass(mixed)
                        })
                    #expect(await pay(scene, client, contents[1]) == .unknown, "\(name)")
                    #expect(paid(scene, since: before).isEmpty, "\(name)")

                    let (whole, mixed) = try #require(given.withLock { $0 })
                    #expect(whole.body != mixed.body, "\(name)")
                    #expect(other.withLock { $0.session } == whole.body.session)
                    #expect(whole.body.chunks.count == (count > 65_536 ? 2 : 1))
                    // The control: as it was it runs, but where its first chunk may have opened, and so its number may
                    // be spent.
                    _ = try await scene.ender.send(whole)
                    let runs = paid(scene, since: before)
                    let mayBeSpent = mixed.body.starts(with: whole.body.head + whole.body.firstChunk)
                    #expect(runs == [contents[1]] || mayBeSpent && runs.isEmpty, "\(name)")
                    #expect(await pay(scene, client, contents[2]) == .answered, "\(name)")
                }
            }
        }
    }

    @Test(
        "36: No reply that is made of two is taken for one; its call has run once, and its outcome is unknown",
        arguments: [14, 100_000])
    func replies(count: Int) async throws {
        let contents = Self.contents(count)
        try await RelayScene.run { scene in
            for mix in Self.mixes {
                scene.ender.clear()
                let client = try scene.client()
                #expect(await pay(scene, client, contents[0]) == .answered, "\(mix.name)")
                let other = try #require(scene.ender.passed.last).told.body
                let before = scene.ledger.entries.count
                let sessions = Locked<Set<[UInt8]>>([other.session])
                scene.ender.meddle(
                    RelayScene.next(RelayScene.message) { asked, pass in
                        var told = try await pass(asked)
                        let mixed = mix.make(told.body, other)
                        #expect(mixed != told.body, "\(mix.name)")
                        sessions.withLock { [told] in _ = $0.insert(told.body.session) }
                        told.body = mixed
                        return told
                    })
                #expect(await pay(scene, client, contents[1]) == .unknown, "\(mix.name)")
                #expect(paid(scene, since: before) == [contents[1]], "\(mix.name)")
                #expect(sessions.withLock { $0.count } == 1)
                // The control: what it leaves alone arrives, through the same session.
                #expect(await pay(scene, client, contents[2]) == .answered, "\(mix.name)")
                #expect(scene.ender.arrived.count { $0.head.path == RelayScene.handshake } == 1, "\(mix.name)")
            }
        }
    }
}

/// The parts of a frame.
extension [UInt8] {
    fileprivate var head: [UInt8] { Array(prefix(FrameHead.length)) }
    fileprivate var session: [UInt8] { Array(head.dropFirst().prefix(16)) }

    /// Each chunk, with what says its length.
    fileprivate var chunks: [[UInt8]] {
        var found: [[UInt8]] = []
        var rest = dropFirst(FrameHead.length)
        while rest.count > 5 {
            let length = rest.dropFirst().prefix(4).reduce(0) { $0 << 8 | Int($1) }
            found.append(Array(rest.prefix(5 + length)))
            rest = rest.dropFirst(5 + length)
        }
        return found
    }

    fileprivate var behindHead: [UInt8] { Array(dropFirst(FrameHead.length)) }
    fileprivate var withoutTag: [UInt8] { Array(dropLast(16)) }
    fileprivate var tag: [UInt8] { Array(suffix(16)) }
    fileprivate var firstChunk: [UInt8] { chunks.first ?? [] }
    fileprivate var lastChunk: [UInt8] { chunks.last ?? [] }
    fileprivate var behindFirstChunk: [UInt8] { Array(dropFirst(FrameHead.length + firstChunk.count)) }
    fileprivate var beforeLastChunk: [UInt8] { Array(dropLast(lastChunk.count)) }
}
