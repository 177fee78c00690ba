import AssentCore
import AssentPayload
import Foundation
import HTTPTypes
import TestSupport
import Testing

/// Whoever ends TLS may do to a message what they like; with `ASSENT_SOAK=1` a hundred thousand times each way.
@Suite("Payload encryption: mutations of messages")
struct MutatedFrameTests {
    private static let start = Date(timeIntervalSince1970: 1_900_000_000)
    private static let count = Soak.isOn ? 100_000 : 2_000
    private static let content = (0..<500).map { UInt8(truncatingIfNeeded: $0 &* 7) }
    private static let post = HTTPRequest(
        method: .post, scheme: "https", authority: "api.bank.example", path: "/transfers?x=1",
        headerFields: [.contentType: "text/plain"])

    private let client: ClientSession.Message
    private let server: ServerSession
    /// The head of the request to which the replies are sealed.
    private let asked: FrameHead
    private let origin: Origin

    /// A message, where its parts begin, and what opens of it.
    private struct Sealed {
        let bytes: [UInt8]
        let places: [Int]
        let plaintext: [UInt8]

        /// In three chunks, of which the first has all of the head.
        init(_ sealer: FrameSealer, _ plaintext: [UInt8]) throws {
            var sealer = sealer
            var bytes: [UInt8] = []
            var places = [0, 1, 17, 25]
            for piece in [plaintext.prefix(300), plaintext.dropFirst(300).prefix(100), plaintext.dropFirst(400)] {
                places.append(max(bytes.count, FrameHead.length))
                bytes += try sealer.seal(piece)
                bytes += try piece.endIndex == plaintext.endIndex ? sealer.finish() : sealer.flush()
            }
            (self.bytes, self.places, self.plaintext) = (bytes, places, plaintext)
        }
    }

    init() throws {
        let keys = [ClientSession.Key(try PayloadKey(of: PayloadVectors.key(0x11)), notAfter: .distantFuture)]
        var session = ClientSession(role: .device, keys: keys)
        _ = session.take(.begin(.init(id: 1, mayRepeat: false)), at: Self.start)
        let sent = session.take(
            .handshake(attempt: 1, .agreed(try PayloadVectors.client(), expires: 43_200)), at: Self.start)
        guard case .send(1, let message)? = sent.first else { throw PayloadError.notConfirmed }
        client = message
        server = ServerSession(
            try PayloadVectors.server(), peer: PayloadVectors.peer, begun: Self.start, lastUse: Self.start)
        asked = message.sealer(random: Repeating(byte: 5)).head
        origin = try Origin("https://api.bank.example")
    }

    private func request(salt: UInt8) throws -> Sealed {
        let plaintext = try BinaryHTTPWriter.request(Self.post, content: Self.content)
        return try Sealed(
            client.sealer(random: Repeating(byte: salt)), plaintext + Padding.bytes(behind: plaintext.count))
    }

    private func reply(salt: UInt8) throws -> Sealed {
        let plaintext = BinaryHTTPWriter.response(PayloadVectors.response, content: Self.content)
        return try Sealed(
            server.sealer(replyTo: asked, random: Repeating(byte: salt)),
            plaintext + Padding.bytes(behind: plaintext.count))
    }

    /// What opens of a message that comes in pieces, and why the rest does not.
    private func opened(
        _ message: [UInt8], _ kind: FrameHead.Kind, piece: Int = .max
    ) -> (plaintext: [UInt8], refusal: String?) {
        var plaintext: [UInt8] = []
        do {
            let head = try FrameHead(message.prefix(FrameHead.length))
            var opener =
                try kind == .request ? server.opener(head, at: Self.start) : client.opener(head, to: asked)
            var rest = message.dropFirst(FrameHead.length)
            while !rest.isEmpty {
                plaintext += try opener.open(rest.prefix(piece))
                rest = rest.dropFirst(piece)
            }
            try opener.finish()
            return (plaintext, nil)
        } catch {
            return (plaintext, "\(error)")
        }
    }

    @Test(
        "36: No mutation of a message opens in either direction, and nothing that opens before its end is another one's",
        arguments: [FrameHead.Kind.request, .reply])
    func frames(kind: FrameHead.Kind) throws {
        let make = kind == .request ? request : reply
        let (message, other) = (try make(9), try make(10))
        // The control: as it is, it opens, in whatever pieces.
        for piece in [1, 100, .max] {
            let (plaintext, refusal) = opened(message.bytes, kind, piece: piece)
            #expect(plaintext == message.plaintext && refusal == nil)
        }
        var mutator = Mutator(seed: Int(kind.rawValue), places: message.places, other: other.bytes)
        var refusals: Set<String> = []
        var faults: [String] = []
        for number in 0..<Self.count {
            let changed = mutator.mutated(message.bytes)
            let (plaintext, refusal) = opened(changed, kind, piece: 1 + mutator.below(700))
            // Another whole message of the peer is no forgery.
            guard changed != message.bytes, changed != other.bytes else { continue }
            if let refusal { refusals.insert(refusal) } else { faults.append("\(number) opens") }
            if !message.plaintext.starts(with: plaintext) { faults.append("\(number) opens another plaintext") }
        }
        #expect(faults.isEmpty, "\(faults.prefix(5))")
        let usual: Set = ["foreignFrame", "malformedFrame", "damagedFrame", "truncated"]
        #expect(refusals.isSuperset(of: usual), "\(refusals)")
        #expect(refusals.isSubset(of: usual.union(["malformed", "unknownSession"])), "\(refusals)")
    }

    /// What a listener with this session alone does with a message.
    private func actions(_ message: [UInt8], piece: Int) -> [ServerMessage.Action] {
        var session = server
        return session.actions(message, for: origin, piece: piece, at: Self.start)
    }

    @Test("36: A listener finishes no mutated request: it refuses it, or ends the very call that it had begun")
    func listener() throws {
        let (message, other) = (try request(salt: 9), try request(salt: 10))
        let whole = actions(message.bytes, piece: .max)
        #expect(whole.contains(.call(Self.post)) && whole.last == .finish)
        var mutator = Mutator(seed: 27, places: message.places, other: other.bytes)
        var ends: Set<ServerMessage.Action> = []
        var faults: [String] = []
        for number in 0..<Self.count {
            let changed = mutator.mutated(message.bytes)
            let piece = 1 + mutator.below(700)
            guard changed != message.bytes, changed != other.bytes else { continue }
            let actions = actions(changed, piece: piece)
            if let fault = fault(in: actions) { faults.append("\(number): \(fault)") }
            if let last = actions.last { ends.insert(last) }
        }
        #expect(faults.isEmpty, "\(faults.prefix(5))")
        #expect(ends == [.refuse(.malformed), .refuse(.unknownSession), .abort], "\(ends)")
    }

    /// What somebody has reached by a change; `nil` when that is nothing.
    private func fault(in actions: [ServerMessage.Action]) -> String? {
        var content: [UInt8] = []
        for action in actions {
            switch action {
            case .lookUp, .refuse, .abort: break
            case .claim(let number): if number != 1 { return "the number \(number) is claimed" }
            case .call(let request): if request != Self.post { return "\(request.method) \(request.path ?? "")" }
            case .content(let bytes): content += bytes
            case .finish, .reply: return "\(action)"
            }
        }
        return Self.content.starts(with: content) ? nil : "other content"
    }
}
