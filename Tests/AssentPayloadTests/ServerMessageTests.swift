import AssentCore
import AssentPayload
import Foundation
import HTTPTypes
import TestSupport
import Testing

@Suite("Payload encryption: what a listener does with a message")
struct ServerMessageTests {
    private static let start = Date(timeIntervalSince1970: 1_900_000_000)
    private let client: PayloadSecrets
    private let session: ServerSession
    private let origin: Origin
    private let post = HTTPRequest(
        method: .post, scheme: "https", authority: "api.bank.example", path: "/transfers",
        headerFields: [.contentType: "text/plain"])

    init() throws {
        client = try PayloadVectors.client()
        session = ServerSession(
            try PayloadVectors.server(), peer: PayloadVectors.peer, begun: Self.start, lastUse: Self.start)
        origin = try Origin("https://api.bank.example")
    }

    private func frame(_ content: [UInt8], number: UInt64 = 1) throws -> [UInt8] {
        try client.sealed(
            FrameHead(.request, session: client.session, number: number, random: Repeating(byte: 7)),
            content + Padding.bytes(behind: content.count))
    }

    /// Without look-ups, and with its content in one piece.
    private func outcome(_ frame: [UInt8], piece: Int = .max, session: ServerSession? = nil) -> [ServerMessage.Action] {
        var session = session ?? self.session
        return joined(session.actions(frame, for: origin, piece: piece, at: Self.start))
    }

    private func joined(_ actions: [ServerMessage.Action]) -> [ServerMessage.Action] {
        actions.reduce(into: []) { joined, action in
            switch (joined.last, action) {
            case (_, .lookUp), (_, .claim): break
            case (.content(let before)?, .content(let more)): joined[joined.count - 1] = .content(before + more)
            default: joined.append(action)
            }
        }
    }

    @Test("A request reaches the handler in whatever pieces it comes", arguments: [1_024, 5_000, 70_000, 1 << 20])
    func whole(piece: Int) throws {
        let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        let known = try BinaryHTTPWriter.request(post, content: content)
        #expect(try outcome(frame(known), piece: piece) == [.call(post), .content(content), .finish])
        let streamed = try BinaryHTTPWriter.head(post) + BinaryHTTPWriter.piece(content) + BinaryHTTPWriter.end
        #expect(try outcome(frame(streamed), piece: piece) == [.call(post), .content(content), .finish])
        let empty = try BinaryHTTPWriter.request(post, content: [])
        #expect(try outcome(frame(empty), piece: 1) == [.call(post), .finish])
        // Cut off where the standard allows it: the head comes with the end.
        let short = try client.sealed(
            FrameHead(.request, session: client.session, number: 1, random: SystemRandom()), Array(empty.dropLast(2)))
        #expect(outcome(short) == [.call(post), .finish])
    }

    @Test(
        "Bytes that are in no array lead to the same, whole, damaged and cut off",
        arguments: [1_024, 70_000, 1 << 21])
    func inPlace(piece: Int) throws {
        let content = (0..<200_000).map { UInt8(truncatingIfNeeded: $0) }
        let whole = try frame(BinaryHTTPWriter.request(post, content: content))
        var damaged = whole
        damaged[whole.count - 70_000] ^= 1
        for message in [whole, damaged, Array(whole.dropLast(10)), whole + [0]] {
            var (one, other) = (session, session)
            let expected = one.actions(message, for: origin, piece: piece, at: Self.start)
            let found = other.actions(message, for: origin, piece: piece, isInPlace: true, at: Self.start)
            #expect(found == expected && !found.isEmpty)
        }
    }

    @Test("A number is claimed once its first chunk has opened, and not by bytes that do not open")
    func claims() throws {
        let frame = try frame(BinaryHTTPWriter.request(post, content: [1]))
        var damaged = frame
        damaged[FrameHead.length + 20] ^= 1
        var session = session
        let refused = session.actions(damaged, for: origin, at: Self.start)
        #expect(refused.last == .refuse(.malformed))
        #expect(!refused.contains(.claim(1)))
        #expect(joined(session.actions(frame, for: origin, at: Self.start)) == [.call(post), .content([1]), .finish])
        #expect(session.actions(frame, for: origin, at: Self.start).last == .refuse(.repeated))
        // Another node has another window: there the row of the number, or the proof inside, decides.
        #expect(outcome(frame).last == .finish)
    }

    @Test("Bytes that are not a request of this session are refused without a call")
    func foreign() throws {
        let frame = try frame(BinaryHTTPWriter.request(post, content: [1]))
        #expect(outcome([]) == [.refuse(.malformed)])
        #expect(outcome(Array(frame.prefix(40))) == [.refuse(.malformed)])
        for length in [41, 45, 46, 100] { #expect(outcome(Array(frame.prefix(length))) == [.refuse(.malformed)]) }
        for kind: UInt8 in [0, 2, 3] { #expect(outcome([kind] + frame.dropFirst()) == [.refuse(.malformed)]) }
        var other = frame
        other[1] ^= 1
        #expect(outcome(other) == [.refuse(.unknownSession)])
        let zero = frame.prefix(17) + [UInt8](repeating: 0, count: 8) + frame.dropFirst(25)
        #expect(outcome(Array(zero)) == [.refuse(.malformed)])
        for length: UInt32 in [0, 15, 65_553, .max] {
            let chunk = [1] + withUnsafeBytes(of: length.bigEndian) { Array($0) }
            #expect(outcome(Array(frame.prefix(FrameHead.length)) + chunk) == [.refuse(.malformed)])
        }
        // Bytes behind the last chunk, before anything was called and after.
        #expect(outcome(frame + [0]) == [.refuse(.malformed)])
        #expect(outcome(frame + [0], piece: frame.count) == [.call(post), .content([1]), .abort])
    }

    @Test("A damaged or missing chunk behind the first ends the call without a regular end")
    func aborted() throws {
        let content = [UInt8](repeating: 1, count: 200_000)
        let frame = try frame(BinaryHTTPWriter.request(post, content: content))
        let chunk = 65_536 + 16 + 5
        for index in [FrameHead.length + chunk, FrameHead.length + 2 * chunk + 700, frame.count - 1] {
            var damaged = frame
            damaged[index] ^= 1
            let actions = outcome(damaged, piece: 10_000)
            #expect(actions.first == .call(post) && actions.last == .abort, "\(index)")
        }
        for length in [FrameHead.length + chunk, FrameHead.length + chunk + 100, frame.count - 1] {
            let actions = outcome(Array(frame.prefix(length)), piece: 10_000)
            #expect(actions.first == .call(post) && actions.last == .abort, "\(length)")
        }
        // Without its end nothing is finished.
        var session = session
        #expect(!session.actions(frame, for: origin, isCut: true, at: Self.start).contains(.finish))
    }

    @Test("Content that is not Binary HTTP has a sealed refusal before the call, and ends the call behind it")
    func badContent() throws {
        let good = try BinaryHTTPWriter.request(post, content: [1, 2, 3])
        for content in [[9], [1] + good.dropFirst(), [], [UInt8](repeating: 0xFF, count: 300)] as [[UInt8]] {
            #expect(try outcome(frame(content)) == [.reply(.badRequest)])
        }
        #expect(try outcome(frame(good + [1])) == [.reply(.badRequest)])
        let streamed = try BinaryHTTPWriter.head(post) + BinaryHTTPWriter.piece([UInt8](repeating: 1, count: 70_000))
        // The second chunk has trailers, and then a piece that is cut off.
        for end in [[0, 1, 0x61, 1, 0x62, 0], [0x44, 1]] as [[UInt8]] {
            let whole = streamed + end
            let sealed = try client.sealed(
                FrameHead(.request, session: client.session, number: 1, random: SystemRandom()), whole)
            let actions = outcome(sealed, piece: 10_000)
            #expect(actions.first == .call(post) && actions.last == .abort)
        }
    }

    @Test("Padding without end ends the call as soon as it is too long, and what follows is not looked at")
    func endlessPadding() throws {
        let content = try BinaryHTTPWriter.request(post, content: [1, 2, 3])
        let head = FrameHead(.request, session: client.session, number: 1, random: SystemRandom())
        func padded(_ count: Int) throws -> [UInt8] {
            try client.sealed(head, content + [UInt8](repeating: 0, count: count))
        }
        let expected: [ServerMessage.Action] = [.call(post), .content([1, 2, 3])]
        #expect(try outcome(padded(65_536), piece: 10_000) == expected + [.finish])
        let endless = try padded(1 << 20)
        #expect(outcome(endless, piece: 10_000) == expected + [.abort])
        // Two chunks are too much already.
        let two = FrameHead.length + 2 * (65_536 + 16 + 5)
        var session = session
        let actions = session.actions(
            Array(endless.prefix(two)), for: origin, piece: 10_000, isCut: true, at: Self.start)
        #expect(actions.last == .abort)
    }

    @Test("A request has as much content as its Content-Length says, or none of it counts")
    func lengths() throws {
        var request = post
        request.headerFields[.contentLength] = "3"
        let known = { (content: [UInt8]) in try self.frame(BinaryHTTPWriter.request(request, content: content)) }
        #expect(try outcome(known([1, 2, 3])) == [.call(request), .content([1, 2, 3]), .finish])
        for content in [[], [1, 2], [1, 2, 3, 4]] as [[UInt8]] {
            #expect(try outcome(known(content)).last == .abort)
        }
        for length in ["-1", "+3", "0x3", "3, 3", "99999999999999999999"] {
            request.headerFields[.contentLength] = length
            #expect(try outcome(known([1, 2, 3])) == [.reply(.badRequest)], "\(length)")
        }
    }

    @Test("A session ends after 10 minutes without a message, and after 12 hours; bytes that do not open do not count")
    func expiry() throws {
        let head = PayloadVectors.head(.request, 1, salt: 1)
        var session = session
        func at(_ seconds: TimeInterval) -> Date { Self.start.addingTimeInterval(seconds) }
        #expect(session.isLive(at: at(599)) && !session.isLive(at: at(600)))
        #expect(throws: Never.self) { try session.opener(head, at: at(599)) }
        #expect(throws: PayloadRefusal.unknownSession) { try session.opener(head, at: at(600)) }
        #expect(throws: PayloadRefusal.unknownSession) { try session.claim(1, at: at(600)) }
        // One that runs keeps it from being idle.
        try session.claim(1, at: at(599))
        #expect(session.isLive(at: at(5_000)))
        session.end(at: at(5_000))
        session.end(at: at(5_000))
        #expect(session.lastUse == at(5_000))
        #expect(session.isLive(at: at(5_599)) && !session.isLive(at: at(5_600)))
        try session.claim(2, at: at(5_500))
        #expect(session.isLive(at: at(43_199)) && !session.isLive(at: at(43_200)))
        #expect(throws: PayloadRefusal.unknownSession) { try session.claim(3, at: at(43_200)) }
        #expect(throws: PayloadRefusal.repeated) { try session.claim(1, at: at(5_500)) }
        #expect(throws: PayloadRefusal.malformed) {
            try session.opener(PayloadVectors.head(.reply, 1, salt: 1), at: at(5_500))
        }
    }

    @Test("A reply is sealed for its request: the client opens it, and for no other")
    func replies() throws {
        let head = PayloadVectors.head(.request, 9, salt: 1)
        var sealer = session.sealer(replyTo: head, random: SystemRandom())
        let frame = try sealer.seal([1, 2]) + sealer.finish()
        #expect(try client.opened(frame, as: .reply, bound: head.binding) == [1, 2])
        #expect(throws: PayloadError.damagedFrame) {
            try client.opened(frame, as: .reply, bound: PayloadVectors.head(.request, 9, salt: 2).binding)
        }
    }

    @Test("Events that come late, twice or too early change nothing, and seeded mutations of a message end no process")
    func mutations() throws {
        let content = try BinaryHTTPWriter.request(post, content: [UInt8](repeating: 5, count: 300))
        let frame = try frame(content)
        var message = ServerMessage(origin: origin)
        #expect(message.take(.claimed) == [] && message.take(.refused(.repeated)) == [])
        #expect(message.take(.bytes(Array(frame.prefix(41)))).count == 1)
        #expect(message.take(.claimed) == [])
        #expect(message.take(.refused(.unknownSession)) == [.refuse(.unknownSession)])
        #expect(message.take(.bytes(frame)) == [] && message.take(.end) == [])
        var random = SmallRandom(seed: 27)
        for _ in 0..<2_000 {
            var changed = frame
            switch random.below(4) {
            case 0: changed[random.below(frame.count)] ^= UInt8(1 + random.below(255))
            case 1: changed.removeSubrange(random.below(frame.count)..<frame.count)
            case 2: changed.remove(at: random.below(frame.count))
            default: changed.insert(UInt8(random.below(256)), at: random.below(frame.count))
            }
            let actions = outcome(changed, piece: 1 + random.below(500))
            #expect(!actions.contains(.finish))
            #expect(actions.isEmpty == false)
        }
    }

    @Test("Seeded mutations of a content that opens end no process")
    func mutatedContent() throws {
        let content = try BinaryHTTPWriter.request(post, content: [UInt8](repeating: 5, count: 300))
        var random = SmallRandom(seed: 28)
        for _ in 0..<2_000 {
            var changed = content
            for _ in 0...random.below(3) { changed[random.below(content.count)] = UInt8(random.below(256)) }
            let last = try outcome(frame(changed)).last
            #expect([.finish, .abort, .reply(.badRequest), .reply(.misdirected)].contains(last))
        }
    }
}
