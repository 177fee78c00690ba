import AssentCore
import AssentPayload
import AssentTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import Assent

@Suite("Payload encryption: calls that wait, and replies that are not what they seem")
struct PayloadChannelTests {
    private static let url = SealedListener.origin + "/transfers"

    /// Holds answers back until it is opened.
    private final class Gate: Sendable {
        private let stream = AsyncStream.makeStream(of: Void.self)

        func pass() async { for await _ in stream.stream {} }
        func open() { stream.continuation.finish() }
    }

    private static func isHandshake(_ path: String) -> Bool { path.hasSuffix("/handshake") }

    private func failure(_ transport: PayloadTransport, _ call: HTTPCall) async -> HTTPTransportError? {
        do {
            _ = try await transport.send(call).body.collect(upTo: 32 << 20)
            return nil
        } catch {
            return error as? HTTPTransportError
        }
    }

    @Test("pe_busy is waited for as Retry-After says, in its bounds, three times and no more", arguments: [3, 4])
    func busy(refusals: Int) async throws {
        let left = Locked(refusals)
        let listener = SealedListener { number, path, reply in
            guard Self.isHandshake(path), left.withLock({ $0 > 0 }) else { return reply }
            left.withLock { $0 -= 1 }
            // None, too short, too long.
            let fields: [HTTPFields] = [[:], [.retryAfter: "0"], [.retryAfter: "3600"]]
            return .json(503, PayloadRefusal.busy.body, headers: fields[min(number - 1, 2)])
        }
        let transport = try listener.transport()
        var call = try HTTPCall(.post, url: Self.url)
        // Nothing else waits for the clock then.
        call.limits.total = nil
        let sending = Task { [call] in await failure(transport, call) }
        for (tried, seconds) in [(1, 2.0), (2, 1), (3, 30)] {
            while listener.clock.sleeperCount == 0 { await Task.yield() }
            #expect(listener.handshakes == tried && listener.calls.isEmpty)
            listener.clock.advance(by: seconds - 0.5)
            #expect(listener.clock.sleeperCount == 1)
            listener.clock.advance(by: 0.5)
        }
        let error = await sending.value
        #expect(listener.handshakes == 4)
        #expect(listener.calls.count == (refusals == 3 ? 1 : 0))
        if refusals == 3 {
            #expect(error == nil)
        } else {
            #expect(error?.code == .payloadEncryptionFailed && error?.mayHaveHadEffect == false)
        }
    }

    @Test("Sessions that the app has let go of are gone before the pause of a busy server is over")
    func released() async throws {
        let listener = SealedListener { _, path, reply in
            Self.isHandshake(path) ? .json(503, PayloadRefusal.busy.body) : reply
        }
        let settings = PayloadSettings(
            origin: try Origin(SealedListener.origin), app: "bank", version: "3.2.0", platform: "linux")
        let handshakes = HandshakeCalls(
            settings, over: InMemoryTransport { try await listener.answer($0) },
            seams: PayloadSeams(clock: listener.clock, random: SystemRandom()))
        let key = try Assent.PayloadEncryption.Key(listener.publicKey).key
        var call = try HTTPCall(.post, url: Self.url)
        // Nothing else waits for the clock then.
        call.limits.total = nil
        weak var kept: PayloadChannel?
        func wait(for call: HTTPCall) async {
            let channel = PayloadChannel(handshakes, keys: [ClientSession.Key(key, notAfter: .distantFuture)])
            kept = channel
            let sending = Task { try await channel.exchange(call, mayRepeat: false) }
            while listener.clock.sleeperCount == 0 { await Task.yield() }
            sending.cancel()
            let result = await sending.result
            #expect(throws: HTTPTransportError.self) { try result.get() }
        }
        var rounds = 0
        // A busy machine may be late to end the tasks of one round, and is not of all twenty. A pause that keeps its
        // channel keeps each one.
        try await Patience.retry("the channel is gone before the pause is over", for: .zero) {
            rounds += 1
            await wait(for: call)
            defer { listener.clock.advance(by: 2) }
            try await Patience.wait(until: "it is gone", for: .milliseconds(100)) { kept == nil }
            #expect(listener.clock.sleeperCount == 1 && listener.handshakes == rounds)
        }
    }

    @Test("1,024 calls wait for one handshake, and the next one is told that it was not sent")
    func waiting() async throws {
        let gate = Gate()
        let listener = SealedListener { _, path, reply in
            if Self.isHandshake(path) { await gate.pass() }
            return reply
        }
        let transport = try listener.transport()
        let limit = ClientSession.waitingLimit
        try await withThrowingTaskGroup(of: HTTPTransportError?.self) { group in
            for _ in 0...limit { group.addTask { await failure(transport, try HTTPCall(.post, url: Self.url)) } }
            // All others wait until the gate opens.
            let first = try #require(try await group.next())
            #expect(first?.code == .payloadEncryptionFailed && first?.mayHaveHadEffect == false)
            #expect(listener.calls.isEmpty)
            gate.open()
            for try await error in group { #expect(error == nil) }
        }
        #expect(listener.handshakes == 1 && listener.calls.count == limit)
    }

    @Test("A call that is cancelled while it waits is not sent, and the handshake serves the next one")
    func cancelledWaiting() async throws {
        let gate = Gate()
        let listener = SealedListener { _, path, reply in
            if Self.isHandshake(path) { await gate.pass() }
            return reply
        }
        let transport = try listener.transport()
        let sending = Task { await failure(transport, try HTTPCall(.post, url: Self.url)) }
        while listener.handshakes == 0 { await Task.yield() }
        sending.cancel()
        let error = try await sending.value
        #expect(error?.code == .cancelled && error?.mayHaveHadEffect == false)
        gate.open()
        #expect(try await failure(transport, HTTPCall(.post, url: Self.url)) == nil)
        #expect(listener.handshakes == 1 && listener.calls.count == 1)
    }

    @Test("A call that is cancelled after it was sent may have had its effect, and is not sent again")
    func cancelledSending() async throws {
        let gate = Gate()
        let listener = SealedListener { _, path, reply in
            guard !Self.isHandshake(path) else { return reply }
            await gate.pass()
            throw HTTPTransportError(.cancelled, "x", mayHaveHadEffect: true)
        }
        let transport = try listener.transport()
        let sending = Task { await failure(transport, try HTTPCall(.get, url: Self.url)) }
        while listener.calls.isEmpty { await Task.yield() }
        sending.cancel()
        gate.open()
        let error = try await sending.value
        #expect(error?.code == .cancelled && error?.mayHaveHadEffect == true)
        #expect(listener.calls.count == 1)
    }

    @Test("The reply of another call, or of the same one before, is not handed over")
    func otherReply() async throws {
        let first = Locked<HTTPReply?>(nil)
        let listener = SealedListener { _, path, reply in
            guard !Self.isHandshake(path) else { return reply }
            return first.withLock { kept in
                if kept == nil { kept = reply }
                return kept ?? reply
            }
        }
        let transport = try listener.transport()
        #expect(try await failure(transport, HTTPCall(.post, url: Self.url, body: HTTPBody([1]))) == nil)
        let error = await failure(transport, try HTTPCall(.post, url: Self.url, body: HTTPBody([1])))
        #expect(error?.code == .payloadEncryptionFailed && error?.mayHaveHadEffect == true)
        #expect(listener.calls.count == 2)
    }

    @Test("When a later chunk does not open, the content ends with an error, and the call is not repeated")
    func laterChunk() async throws {
        let content = SystemRandom().bytes(200_000)
        let listener = SealedListener { _, path, reply in
            guard !Self.isHandshake(path) else { return reply }
            var bytes = try await reply.body.collect(upTo: 1 << 20)
            bytes[bytes.count - 1] ^= 1
            return HTTPReply(reply.response, body: HTTPBody(bytes))
        }
        let reply = try await listener.transport().send(
            try HTTPCall(.put, url: Self.url, body: HTTPBody(content)))
        #expect(reply.status == 201)
        let error = await #expect(throws: HTTPTransportError.self) { try await reply.body.collect(upTo: 1 << 20) }
        #expect(error?.code == .payloadEncryptionFailed && error?.mayHaveHadEffect == true)
        #expect(listener.calls.count == 1)
    }

    @Test(
        "A reply of one chunk or of several may have as much content as the call allows, and no byte more",
        arguments: [100, 70_000], [0, 1])
    func limit(most: Int, surplus: Int) async throws {
        let listener = SealedListener()
        var call = try HTTPCall(.post, url: Self.url, body: HTTPBody(SystemRandom().bytes(most + surplus)))
        call.limits.replyBytes = most
        let error = await failure(try listener.transport(), call)
        #expect(error?.code == (surplus == 0 ? nil : .bodyTooLarge))
        #expect(listener.calls.count == 1)
    }

    /// Proves with the nonce that it is told.
    private struct Prover: PayloadProver {
        let asked = Locked<[(claim: String, nonce: String?)]>([])

        func clientID() async throws -> String? { "bank~1" }

        func proof(url: String, claim: String, nonce: String?) async throws -> String {
            asked.withLock { $0.append((claim, nonce)) }
            return "proof"
        }

        func registration() async -> ClientSession.Registration { .there }
    }

    @Test("A device's handshake is made once more with the nonce that the server gives, and not a third time")
    func nonce() async throws {
        for (refusals, handshakes, isSent) in [(1, 2, true), (2, 2, false)] {
            let left = Locked(refusals)
            let listener = SealedListener { number, path, reply in
                guard Self.isHandshake(path), left.withLock({ $0 > 0 }) else { return reply }
                left.withLock { $0 -= 1 }
                return .json(401, PayloadRefusal.useNonce.body, headers: [.dpopNonce: "nonce-\(number)"])
            }
            let prover = Prover()
            let error = await failure(
                try listener.transport(proving: prover), try HTTPCall(.post, url: Self.url))
            #expect((error == nil) == isSent && error?.mayHaveHadEffect != true)
            #expect(listener.handshakes == handshakes && listener.calls.count == (isSent ? 1 : 0))
            let asked = prover.asked.withLock { $0 }
            #expect(asked.map(\.nonce) == [nil, "nonce-1"])
            // Each handshake has keys of its own, and the proof is of these.
            #expect(Set(asked.map(\.claim)).count == 2)
        }
    }

    @Test(
        "A nonce that no proof can have is not kept: whoever changes one answer must not spoil the proofs after it",
        arguments: [String(repeating: "n", count: 513), "a\"b", "a b", "\u{E9}"])
    func uselessNonce(_ nonce: String) async throws {
        let listener = SealedListener { number, path, reply in
            guard Self.isHandshake(path), number == 1 else { return reply }
            return .json(401, PayloadRefusal.badProof.body, headers: [.dpopNonce: nonce])
        }
        let prover = Prover()
        let error = await failure(try listener.transport(proving: prover), try HTTPCall(.post, url: Self.url))
        #expect(error == nil && listener.handshakes == 2)
        let nonces = prover.asked.withLock { $0 }.map(\.nonce)
        #expect(nonces == [nil, nil])
    }
}
