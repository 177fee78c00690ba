import AssentCore
import AssentPayload
import AssentTesting
import Crypto
import Foundation
import HTTPTypes

@testable import Assent

/// A listener of payload encryption in memory, made of the server's halves of the protocol.
final class SealedListener: Sendable {
    static let origin = "https://api.bank.example"

    private struct State {
        var sessions: [[UInt8]: (session: ServerSession, secrets: PayloadSecrets)] = [:]
        var handshakes = 0
        var calls: [(HTTPRequest, [UInt8])] = []
    }

    let clock = ManualClock()
    private let key = Curve25519.KeyAgreement.PrivateKey()
    private let state = Locked(State())
    /// What the listener does with its honest answers, by the path of the outer request.
    private let fault: @Sendable (Int, String, HTTPReply) async throws -> HTTPReply
    private let count = Locked(0)
    /// How many bytes more than they have its sealed replies say that they have; `nil` when they say nothing of it.
    let surplus = Locked<Int?>(nil)
    /// Whether its sealed replies are a status alone: empty sections at the end may be left out (RFC 9292 §3.8).
    let isBare = Locked(false)
    /// Whether its sealed replies are cut off behind a chunk that has all of them, but is not the last.
    let isCutOff = Locked(false)
    /// Whether the content of its sealed replies comes in pieces of one byte.
    let isInBytes = Locked(false)
    /// What its sealed replies set as a cookie.
    let cookie = Locked<String?>(nil)

    init(_ fault: @escaping @Sendable (Int, String, HTTPReply) async throws -> HTTPReply = { $2 }) {
        self.fault = fault
    }

    var publicKey: String { Base64URL.encode(PayloadKey(of: key).bytes) }
    var handshakes: Int { state.withLock { $0.handshakes } }
    var calls: [(HTTPRequest, [UInt8])] { state.withLock { $0.calls } }

    func transport(
        proving prover: (any PayloadProver)? = nil, observing observe: (@Sendable (PayloadTrace) -> Void)? = nil,
        watching watch: @escaping @Sendable (HTTPCall) -> Void = { _ in }
    ) throws -> PayloadTransport {
        let network = WatchedTransport(
            base: InMemoryTransport { [self] exchange in try await answer(exchange) }, watch: watch)
        let settings = PayloadSettings(
            origin: try Origin(Self.origin), app: "bank", version: "3.2.0", platform: "linux")
        return PayloadTransport(
            network,
            origins: [
                PayloadOrigin(
                    settings, keys: [.init(PayloadKey(of: key), notAfter: .distantFuture)], prover: prover,
                    over: network,
                    seams: PayloadSeams(clock: clock, random: SystemRandom(), observe: observe))
            ])
    }

    func answer(_ exchange: InMemoryTransport.Exchange) async throws -> HTTPReply {
        let number = count.withLock {
            $0 += 1
            return $0
        }
        let path = exchange.request.path ?? ""
        let honest =
            path == "/assent-pe/1/handshake" ? try handshake(exchange.body) : try message(exchange.body)
        return try await fault(number, path, honest)
    }

    private func handshake(_ body: [UInt8]) throws -> HTTPReply {
        let request = try HandshakeRequest(body: body)
        let (reply, secrets) = try ServerHandshake(
            request, keys: [ServerPayloadKey(key, notAfter: .distantFuture)], now: clock.now
        ).finish(
            prover: request.client, origin: Self.origin, session: SystemRandom().bytes(16), random: SystemRandom())
        let session = ServerSession(
            secrets, peer: request.peer(at: Self.origin), begun: clock.now, lastUse: clock.now)
        state.withLock { state in
            state.handshakes += 1
            state.sessions[secrets.session] = (session, secrets)
        }
        return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(reply.body))
    }

    private func message(_ body: [UInt8]) throws -> HTTPReply {
        let head = try FrameHead(body.prefix(FrameHead.length))
        guard let known = state.withLock({ $0.sessions[head.session] }) else {
            return .json(404, PayloadRefusal.unknownSession.body)
        }
        var opener = try known.session.opener(head, at: clock.now)
        let plaintext = try opener.open(body.dropFirst(FrameHead.length))
        try opener.finish()
        var reader = BinaryHTTPReader(.request)
        var (request, content): (HTTPRequest?, [UInt8]) = (nil, [])
        for part in try reader.read(plaintext) + reader.finish() {
            switch part {
            case .request(let read): request = read
            case .content(let bytes): content += bytes
            case .response: break
            }
        }
        guard let request else { return .json(400, PayloadRefusal.malformed.body) }
        state.withLock { $0.calls.append((request, content)) }
        var sealer = known.session.sealer(replyTo: head, random: SystemRandom())
        var fields: HTTPFields = [.retryAfter: "7"]
        if let surplus = surplus.withLock({ $0 }) { fields[.contentLength] = String(content.count + surplus) }
        if let cookie = cookie.withLock({ $0 }) { fields[.setCookie] = cookie }
        let response = HTTPResponse(status: .created, headerFields: fields)
        var reply = BinaryHTTPWriter.response(response, content: content)
        if isInBytes.withLock({ $0 }) {
            reply = BinaryHTTPWriter.head(response)
            for byte in content { reply += [1, byte] }
            reply += BinaryHTTPWriter.end
        }
        reply += Padding.bytes(behind: reply.count)
        // Of known length, 201.
        if isBare.withLock({ $0 }) { reply = [1, 0x40, 0xC9] }
        let begun = try sealer.seal(reply)
        let sealed = try begun + (isCutOff.withLock({ $0 }) ? sealer.flush() : sealer.finish())
        return HTTPReply(
            HTTPResponse(status: .ok, headerFields: [.contentType: "application/assent-pe"]), body: HTTPBody(sealed))
    }
}

/// Shows each call before it is sent.
private struct WatchedTransport: HTTPTransport {
    let base: InMemoryTransport
    let watch: @Sendable (HTTPCall) -> Void

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        watch(call)
        return try await base.send(call)
    }
}
