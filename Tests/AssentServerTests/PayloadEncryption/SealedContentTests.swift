import AssentCore
import AssentPayload
import AssentStore
import HTTPTypes
import Hummingbird
import NIOCore
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("The content of a sealed request on its way to the handler")
struct SealedContentTests {
    private static let count = 30_000

    /// A message of indeterminate length (RFC 9292 §3.2) whose content comes byte by byte.
    private static func message(
        _ secrets: PayloadSecrets, to origin: Origin, count: Int = Self.count, number: UInt64 = 1
    ) throws -> [UInt8] {
        let request = HTTPRequest(
            method: .post, scheme: origin.scheme, authority: origin.authority, path: "/orders")
        let pieces = (0..<count).flatMap { BinaryHTTPWriter.piece([UInt8(truncatingIfNeeded: $0)]) }
        let plaintext = try BinaryHTTPWriter.head(request) + pieces + BinaryHTTPWriter.end
        let head = FrameHead(.request, session: secrets.session, number: number, random: SystemRandom())
        var sealer = FrameSealer(head, key: secrets.request, bound: [])
        return try sealer.seal(plaintext + Padding.bytes(behind: plaintext.count)) + sealer.finish()
    }

    /// A session at a node, and its keys.
    static func session(
        at node: ServerFixture, for origin: Origin
    ) async throws -> (PayloadSessions, PayloadSecrets) {
        let context = node.server.context
        let keys = PayloadKeys(context)
        let sessions = PayloadSessions(context, keys: keys)
        let now = context.clock.epochSeconds
        let key = try await keys.add(notBefore: now, notAfter: now + 86_400) { _ in .read("SELECT 1 AS one") }
        let stored = Secret(bytes: SystemRandom().bytes(PayloadSecrets.storedLength))
        let secrets = try PayloadSecrets(session: sessions.makeName(), stored: stored)
        let peer = PayloadPeer(
            role: .app, origin: origin.description, client: nil, app: "pay", version: "1.0", platform: "linux")
        try await sessions.keep(secrets, peer: peer, kid: key.kid)
        return (sessions, secrets)
    }

    @Test("Content in tiny pieces is handed on together, so that each byte does not cost a turn")
    func tiny() async throws {
        try await ServerFixture.run { node in
            let origin = try Origin("https://api.bank.example")
            let (sessions, secrets) = try await Self.session(at: node, for: origin)
            let body = RequestBody(buffer: ByteBuffer(bytes: try Self.message(secrets, to: origin)))
            let sealed = SealedRequest(body.makeAsyncIterator(), at: origin, sessions: sessions)
            guard case .call(_, hasContent: true, _, _) = try await sealed.begin() else {
                Issue.record("the handler is not called")
                return
            }
            var (buffers, content): (Int, [UInt8]) = (0, [])
            while let buffer = try await sealed.next() {
                buffers += 1
                content += Array(buffer: buffer)
            }
            #expect(content == (0..<Self.count).map { UInt8(truncatingIfNeeded: $0) })
            #expect(buffers < 10)
        }
    }

    @Test("Of a long message no more is read than the handler has taken, but for one chunk")
    func pulled() async throws {
        try await ServerFixture.run { node in
            let (piece, origin) = (10_000, try Origin("https://api.bank.example"))
            let (sessions, secrets) = try await Self.session(at: node, for: origin)
            let left = Locked(try Self.message(secrets, to: origin, count: 200_000)[...])
            let pulled = Locked(0)
            let bytes = AsyncStream<ByteBuffer>(unfolding: {
                left.withLock { left -> ByteBuffer? in
                    guard !left.isEmpty else { return nil }
                    pulled.withLock { $0 += 1 }
                    defer { left = left.dropFirst(piece) }
                    return ByteBuffer(bytes: left.prefix(piece))
                }
            })
            let sealed = SealedRequest(
                RequestBody(asyncSequence: bytes).makeAsyncIterator(), at: origin, sessions: sessions)
            guard case .call(_, hasContent: true, _, _) = try await sealed.begin() else {
                Issue.record("the handler is not called")
                return
            }
            // The first chunk has 65,598 bytes, with the head of the message.
            #expect(pulled.withLock { $0 } == 7)
            var count = 0
            while let buffer = try await sealed.next() {
                count += buffer.readableBytes
                // A byte of content is two of what is sealed.
                #expect(pulled.withLock { $0 } * piece <= 2 * count + 3 * piece)
            }
            #expect(count == 200_000)
        }
    }

    @Test("A short message is read whole, in whatever pieces it comes, and one that is not whole leads to no call")
    func short() async throws {
        try await ServerFixture.run { node in
            let origin = try Origin("https://api.bank.example")
            let (sessions, secrets) = try await Self.session(at: node, for: origin)
            func read(_ pieces: [ArraySlice<UInt8>]) async throws -> WholeSealedRequest {
                let (bytes, source) = AsyncStream<ByteBuffer>.makeStream()
                for piece in pieces { source.yield(ByteBuffer(bytes: piece)) }
                source.finish()
                return try await WholeSealedRequest(RequestBody(asyncSequence: bytes), at: origin, sessions: sessions)
            }
            for cut in [1, 40, 60, 700] {
                let message = try Self.message(secrets, to: origin, count: 300, number: UInt64(cut))
                let whole = try await read([message.prefix(cut), message.dropFirst(cut)])
                guard case .call(let request, hasContent: true, _, _) = whole.beginning else {
                    Issue.record("the handler is not called")
                    continue
                }
                #expect(request.path == "/orders")
                #expect(whole.content == (0..<300).map { UInt8(truncatingIfNeeded: $0) })
            }
            let message = try Self.message(secrets, to: origin, count: 300, number: 2)
            var changed = message
            changed[message.count - 1] ^= 1
            for broken in [message.prefix(40), message.dropLast(), changed[...], (message + [0])[...]] {
                let whole = try await read([broken])
                guard case .refused(.malformed) = whole.beginning else {
                    Issue.record("\(broken.count) bytes are taken")
                    continue
                }
                #expect(whole.content.isEmpty)
            }
        }
    }

    @Test("A message is whole with the last byte of the length that HTTP says: nobody waits for an end behind it")
    func withoutEnd() async throws {
        try await ServerFixture.run { node in
            let origin = try Origin("https://api.bank.example")
            let (sessions, secrets) = try await Self.session(at: node, for: origin)
            let message = try Self.message(secrets, to: origin)
            let (bytes, source) = AsyncStream<ByteBuffer>.makeStream()
            // Who asked for more would wait for ever.
            for piece in [message.prefix(1_000), message.dropFirst(1_000)] { source.yield(ByteBuffer(bytes: piece)) }
            let sealed = SealedRequest(
                RequestBody(asyncSequence: bytes).makeAsyncIterator(), at: origin, sessions: sessions,
                length: message.count)
            guard case .call(_, hasContent: true, _, _) = try await sealed.begin() else {
                Issue.record("the handler is not called")
                return
            }
            var count = 0
            while let buffer = try await sealed.next() { count += buffer.readableBytes }
            #expect(count == Self.count)
            source.finish()
        }
    }
}
